/* TypeCast and Cast.
 *
 *     to float          rounded half to even; f8 saturates unless `saturate` is 0
 *     float to integer  toward zero, saturated; NaN gives 0
 *     integer to integer  the low bits, as two's complement
 *     to boolean        not equal to 0 */
#include "ref/ref_fns.h"

#include "base/dtype.h"

#include <math.h>

static int64_t low_bits(int64_t v, qdq_dtype dtype) {
    const size_t bits = qdq_dtype_bits(dtype);
    if (bits == 64) return v;
    const uint64_t low = (uint64_t)v & (((uint64_t)1 << bits) - 1);
    const bool negative = qdqi_dtype_min(dtype) < 0 && (low >> (bits - 1) & 1) != 0;
    return negative ? (int64_t)low - ((int64_t)1 << bits) : (int64_t)low;
}

static unsigned char f8_of(float v, qdq_dtype dtype, bool saturate) {
    return dtype == QDQ_DTYPE_F8_E4M3 ? qdqi_f8_e4m3_of_f32(v, saturate) : qdqi_f8_e5m2_of_f32(v, saturate);
}

static qdq_status cast_to_float(qdqi_ref_ctx *c, qdq_dtype to) {
    const qdqi_ref_type type = qdqi_ref_float_type(c, 1);
    const bool is_f8 = to == QDQ_DTYPE_F8_E4M3 || to == QDQ_DTYPE_F8_E5M2;
    const qdqi_attr *attr = qdqi_op_attr_or_null(c->op, QDQI_A_SATURATE);
    const int64_t n = qdqi_n_elems(c->in[0].desc);
    const float *x = type == QDQI_REF_F32 ? qdqi_ref_in_f32(c, 0) : NULL;
    const double *x_d = type == QDQI_REF_F64 ? qdqi_ref_in_f64(c, 0) : NULL;
    unsigned char *y_f8 = is_f8 ? qdqi_ref_out_raw(c, 0) : NULL;
    float *y = !is_f8 && type == QDQI_REF_F32 ? qdqi_ref_out_f32(c, 0) : NULL;
    double *y_d = !is_f8 && type == QDQI_REF_F64 ? qdqi_ref_out_f64(c, 0) : NULL;
    QDQI_REF_READY(c);
    for (int64_t i = 0; i < n; i++) {
        if (is_f8) y_f8[i] = f8_of(x != NULL ? x[i] : (float)x_d[i], to, attr == NULL || attr->v.boolean);
        if (y != NULL) y[i] = x[i];
        if (y_d != NULL) y_d[i] = x_d[i];
    }
    return QDQ_OK;
}

static qdq_status cast_to_int(qdqi_ref_ctx *c, qdq_dtype from, qdq_dtype to) {
    const int64_t n = qdqi_n_elems(c->in[0].desc);
    const bool is_float = qdqi_dtype_is_float(from);
    const double *x_f = is_float && to == QDQ_DTYPE_BOOLEAN ? qdqi_ref_in_f64(c, 0) : NULL;
    const int64_t *x = is_float && to == QDQ_DTYPE_BOOLEAN ? NULL : qdqi_ref_in_i64(c, 0);
    int64_t *y = qdqi_ref_out_i64(c, 0);
    QDQI_REF_READY(c);
    for (int64_t i = 0; i < n; i++) {
        if (x_f != NULL) {
            y[i] = x_f[i] != 0.0;
        } else if (to == QDQ_DTYPE_BOOLEAN) {
            y[i] = x[i] != 0;
        } else {
            y[i] = is_float ? x[i] : low_bits(x[i], to); /* loading truncated a float, storing saturates */
        }
    }
    return QDQ_OK;
}

qdq_status qdqi_ref_cast(qdqi_ref_ctx *c) {
    const qdq_dtype from = c->in[0].desc->dtype, to = c->out[0].desc->dtype;
    if (qdqi_n_elems(c->in[0].desc) != qdqi_n_elems(c->out[0].desc))
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input and output differ in size");
    return qdqi_dtype_is_float(to) ? cast_to_float(c, to) : cast_to_int(c, from, to);
}
