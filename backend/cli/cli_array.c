/* Arrays of the program: memory, random content, a line about their values. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/dtype.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void qdqi_array_free(qdqi_array *array) {
    qdqi_free(array->data);
    array->data = NULL;
    array->bytes = 0;
}

qdq_status qdqi_array_create(const qdq_tensor_desc *desc, qdqi_array *array_out, qdq_error *err) {
    qdqi_array array = {.dtype = desc->dtype, .ndims = desc->ndims};
    QDQI_TRY(qdq_tensor_desc_size_bytes(desc, &array.bytes, err));
    memcpy(array.dims, desc->dims, sizeof array.dims);
    array.data = qdqi_calloc(array.bytes + 1, 1);
    if (array.data == NULL) return QDQI_NO_MEMORY(err);
    *array_out = array;
    return QDQ_OK;
}

static int64_t n_elems(const qdqi_array *array) {
    int64_t n = 1;
    for (int32_t d = 0; d < array->ndims; d++)
        n *= array->dims[d];
    return n;
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

void qdqi_array_fill_random(qdqi_array *array, uint64_t seed) {
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    const int64_t n = n_elems(array);
    const bool is_float = qdqi_dtype_is_float(array->dtype);
    const bool is_narrow = !is_float && array->dtype != QDQ_DTYPE_BOOLEAN && qdq_dtype_bits(array->dtype) <= 8;
    const int64_t min = is_narrow ? qdqi_dtype_min(array->dtype) : 0;
    const uint64_t span = is_narrow ? (uint64_t)(qdqi_dtype_max(array->dtype) - min) + 1 : 2;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t r = next_random(&state) >> 11;
        if (is_float)
            qdqi_store_f32(array->data, array->dtype, i, (float)((double)r * 0x1p-52 - 1.0));
        else
            qdqi_store_i64(array->data, array->dtype, i, min + (int64_t)(r % span));
    }
}

qdqi_summary qdqi_array_summary(const qdqi_array *array) {
    qdqi_summary out = {""};
    const int64_t n = n_elems(array);
    int64_t argmax = -1, n_nan = 0;
    double min = 0.0, max = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double v = qdqi_load_f64(array->data, array->dtype, i);
        if (isnan(v)) {
            n_nan++;
            continue;
        }
        if (argmax < 0 || v < min) min = v;
        if (argmax < 0 || v > max) {
            max = v;
            argmax = i;
        }
    }
    int at = 0;
    if (argmax < 0)
        at = snprintf(out.s, sizeof out.s, n == 0 ? "empty" : "no numbers");
    else
        at = snprintf(out.s, sizeof out.s, "min %.6g  max %.6g  argmax %" PRId64, min, max, argmax);
    if (n_nan > 0 && at > 0) snprintf(out.s + at, sizeof out.s - (size_t)at, "  NaN %" PRId64, n_nan);
    return out;
}
