/* Tensors of an ONNX model: any of the forms that the format allows, to dense little-endian content. */
#include "onnx_reader.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Numbers of TensorProto.DataType. `dtype` is what a tensor of the graph becomes, UNDEF when there is no such type here. */
static const struct {
    const char *text;
    qdq_dtype dtype;
} dtypes[] = {
    [0] = {"undefined", QDQ_DTYPE_UNDEF},   [1] = {"float", QDQ_DTYPE_F32},
    [2] = {"uint8", QDQ_DTYPE_U8},          [3] = {"int8", QDQ_DTYPE_S8},
    [4] = {"uint16", QDQ_DTYPE_U16},        [5] = {"int16", QDQ_DTYPE_S16},
    [6] = {"int32", QDQ_DTYPE_S32},         [7] = {"int64", QDQ_DTYPE_S64},
    [8] = {"string", QDQ_DTYPE_UNDEF},      [9] = {"bool", QDQ_DTYPE_BOOLEAN},
    [10] = {"float16", QDQ_DTYPE_F16},      [11] = {"double", QDQ_DTYPE_F64},
    [12] = {"uint32", QDQ_DTYPE_UNDEF},     [13] = {"uint64", QDQ_DTYPE_UNDEF},
    [14] = {"complex64", QDQ_DTYPE_UNDEF},  [15] = {"complex128", QDQ_DTYPE_UNDEF},
    [16] = {"bfloat16", QDQ_DTYPE_BF16},    [17] = {"float8e4m3fn", QDQ_DTYPE_F8_E4M3},
    [18] = {"float8e4m3fnuz", 0},           [19] = {"float8e5m2", QDQ_DTYPE_F8_E5M2},
    [20] = {"float8e5m2fnuz", 0},           [21] = {"uint4", QDQ_DTYPE_U4},
    [22] = {"int4", QDQ_DTYPE_S4},          [23] = {"float4e2m1", QDQ_DTYPE_UNDEF},
    [24] = {"float8e8m0", QDQ_DTYPE_UNDEF}, [25] = {"uint2", QDQ_DTYPE_UNDEF},
    [26] = {"int2", QDQ_DTYPE_UNDEF},       [27] = {"float6e2m3", QDQ_DTYPE_UNDEF},
    [28] = {"float6e3m2", QDQ_DTYPE_UNDEF},
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0], ONNX_DOUBLE = 11, ONNX_UINT32 = 12, ONNX_UINT64 = 13 };

qdq_dtype qdqi_onnx_dtype(int64_t data_type) {
    return data_type < 0 || data_type >= N_DTYPES ? QDQ_DTYPE_UNDEF : dtypes[data_type].dtype;
}

const char *qdqi_onnx_dtype_text(int64_t data_type) {
    return data_type < 0 || data_type >= N_DTYPES ? "unknown" : dtypes[data_type].text;
}

/* Constants of these types change their type: uint32 and uint64 (index arithmetic) become s64 where their values fit, double
 * becomes f32, in which everything that is not an integer is computed. */
static bool is_changed(int64_t data_type) {
    return data_type == ONNX_UINT32 || data_type == ONNX_UINT64 || data_type == ONNX_DOUBLE;
}

static qdq_dtype constant_dtype(int64_t data_type) {
    return !is_changed(data_type)     ? qdqi_onnx_dtype(data_type)
           : data_type == ONNX_DOUBLE ? QDQ_DTYPE_F32
                                      : QDQ_DTYPE_S64;
}

qdq_status qdqi_onnx_tensor_desc(const Onnx__TensorProto *t, const char *what, qdq_tensor_desc *desc_out,
                                 qdq_error *err) {
    const int64_t type = t->has_data_type ? t->data_type : 0;
    const qdq_dtype dtype = constant_dtype(type);
    if (dtype == QDQ_DTYPE_UNDEF)
        return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": data type %s (%lld) is not supported", what,
                         qdqi_onnx_dtype_text(type), (long long)type);
    if (t->n_dims > QDQ_MAX_NDIMS)
        return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\" has %zu dimensions, at most %d are supported",
                         what, t->n_dims, QDQ_MAX_NDIMS);
    for (size_t i = 0; i < t->n_dims; i++)
        if (t->dims[i] < 0)
            return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": dimension %zu is %lld", what, i,
                             (long long)t->dims[i]);
    const qdq_status st = qdq_tensor_desc_init(0, dtype, (int32_t)t->n_dims, t->dims, QDQ_LAYOUT_STRIDED,
                                               QDQ_PROPERTY_CONSTANT, desc_out, err);
    return st == QDQ_OK ? st : qdqi_fail_in(err, st, "tensor \"" QDQI_ONNX_NAME "\"", what);
}

/* ---- files ---- */

static qdq_status read_open(FILE *f, const char *path, int64_t offset, int64_t length, void **data_out,
                            size_t *bytes_out, qdq_error *err) {
    struct stat info;
    if (fstat(fileno(f), &info) != 0) return qdqi_fail(err, QDQ_E_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return qdqi_fail(err, QDQ_E_IO, "%s: is a directory", path);
    if (!S_ISREG(info.st_mode)) return qdqi_fail(err, QDQ_E_IO, "%s: is not a regular file", path);
    const int64_t size = (int64_t)info.st_size;
    if (offset < 0 || offset > size)
        return qdqi_fail(err, QDQ_E_IO, "%s: offset %lld is outside of the file (%lld bytes)", path, (long long)offset,
                         (long long)size);
    if (length < 0) length = size - offset;
    if (length > size - offset)
        return qdqi_fail(err, QDQ_E_IO, "%s: %lld bytes from offset %lld are needed, the file has %lld bytes", path,
                         (long long)length, (long long)offset, (long long)size);
    void *data = qdqi_malloc((size_t)length);
    if (data == NULL) return QDQI_NO_MEMORY(err);
    if (fseeko(f, (off_t)offset, SEEK_SET) != 0 || fread(data, 1, (size_t)length, f) != (size_t)length) {
        qdqi_free(data);
        return qdqi_fail(err, QDQ_E_IO, "%s: cannot be read: %s", path, ferror(f) ? strerror(errno) : "end of file");
    }
    *data_out = data;
    *bytes_out = (size_t)length;
    return QDQ_OK;
}

qdq_status qdqi_onnx_read_file(const char *path, int64_t offset, int64_t length, void **data_out, size_t *bytes_out,
                               qdq_error *err) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) return qdqi_fail(err, QDQ_E_IO, "%s: %s", path, strerror(errno));
    const qdq_status st = read_open(f, path, offset, length, data_out, bytes_out, err);
    fclose(f);
    return st;
}

/* A location must stay inside the model's folder. */
static bool is_inside(const char *location) {
    if (location[0] == '\0' || location[0] == '/' || location[0] == '\\') return false;
    for (const char *part = location; part != NULL;) {
        const char *end = strpbrk(part, "/\\");
        const size_t n = end == NULL ? strlen(part) : (size_t)(end - part);
        if (n == 2 && part[0] == '.' && part[1] == '.') return false;
        part = end == NULL ? NULL : end + 1;
    }
    return true;
}

static bool parse_i64(const char *text, int64_t *out) {
    char *end = NULL;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    *out = (int64_t)v;
    return errno == 0 && end != text && *end == '\0' && v >= 0;
}

static qdq_status external_data(const qdqi_onnx_reader *r, const Onnx__TensorProto *t, const char *what,
                                size_t expected, void **owned_out, qdq_error *err) {
    const char *location = NULL;
    int64_t offset = 0, length = -1;
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = t->external_data[i]->key, *value = t->external_data[i]->value;
        if (key == NULL || value == NULL) continue;
        if (strcmp(key, "location") == 0) location = value;
        const bool is_number = strcmp(key, "offset") == 0 || strcmp(key, "length") == 0;
        if (is_number && !parse_i64(value, key[0] == 'o' ? &offset : &length))
            return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": external data: %s \"%.40s\" is no size",
                             what, key, value);
    }
    if (location == NULL)
        return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": external data without a location", what);
    if (r->folder == NULL)
        return qdqi_fail(err, QDQ_E_ONNX,
                         "tensor \"" QDQI_ONNX_NAME "\" lies in another file (" QDQI_ONNX_NAME
                         "): a model given as bytes cannot have external data",
                         what, location);
    if (!is_inside(location))
        return qdqi_fail(err, QDQ_E_ONNX,
                         "tensor \"" QDQI_ONNX_NAME "\": external data at \"" QDQI_ONNX_NAME
                         "\": only paths inside the model's folder are allowed",
                         what, location);
    if (length >= 0 && (uint64_t)length != expected)
        return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": external data has %lld bytes, expected %zu",
                         what, (long long)length, expected);
    const size_t n = strlen(r->folder) + strlen(location) + 1;
    char *path = qdqi_malloc(n);
    if (path == NULL) return QDQI_NO_MEMORY(err);
    memcpy(path, r->folder, strlen(r->folder));
    memcpy(path + strlen(r->folder), location, strlen(location) + 1);
    size_t bytes = 0;
    const qdq_status st = qdqi_onnx_read_file(path, offset, (int64_t)expected, owned_out, &bytes, err);
    qdqi_free(path);
    return st == QDQ_OK ? st : qdqi_fail_in(err, st, "tensor \"" QDQI_ONNX_NAME "\": external data", what);
}

/* ---- the typed fields ---- */

/* Values of int32_data for a type: legal range, bytes of one stored unit. */
static bool int32_unit(qdq_dtype dtype, int32_t *min, int32_t *max, size_t *bytes) {
    *bytes = dtype == QDQ_DTYPE_S32 ? 4 : qdq_dtype_bits(dtype) == 16 ? 2 : 1;
    switch (dtype) {
    case QDQ_DTYPE_S32: *min = INT32_MIN, *max = INT32_MAX; return true;
    case QDQ_DTYPE_S16: *min = INT16_MIN, *max = INT16_MAX; return true;
    case QDQ_DTYPE_S8: *min = INT8_MIN, *max = INT8_MAX; return true;
    case QDQ_DTYPE_U8: *min = 0, *max = UINT8_MAX; return true;
    case QDQ_DTYPE_BOOLEAN: *min = 0, *max = 1; return true;
    case QDQ_DTYPE_U16:
    case QDQ_DTYPE_F16:
    case QDQ_DTYPE_BF16: *min = 0, *max = UINT16_MAX; return true;
    case QDQ_DTYPE_F8_E4M3:
    case QDQ_DTYPE_F8_E5M2: *min = 0, *max = UINT8_MAX; return true;
    case QDQ_DTYPE_S4: /* a unit is a byte of two elements; writers differ in its sign */
    case QDQ_DTYPE_U4: *min = INT8_MIN, *max = UINT8_MAX; return true;
    default: return false;
    }
}

static qdq_status wrong_count(const char *what, const char *field, size_t found, size_t expected, qdq_error *err) {
    return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": %s has %zu values, expected %zu", what, field,
                     found, expected);
}

static qdq_status from_int32(const Onnx__TensorProto *t, const char *what, const qdq_tensor_desc *desc, size_t bytes,
                             uint8_t *dst, qdq_error *err) {
    int32_t min = 0, max = 0;
    size_t unit = 1;
    if (!int32_unit(desc->dtype, &min, &max, &unit))
        return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": no data for its type %s", what,
                         qdq_dtype_name(desc->dtype));
    const size_t n = bytes / unit;
    if (t->n_int32_data != n) return wrong_count(what, "int32_data", t->n_int32_data, n, err);
    for (size_t i = 0; i < n; i++) {
        const int32_t v = t->int32_data[i];
        if (v < min || v > max)
            return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": value %ld at %zu is outside of %s", what,
                             (long)v, i, qdq_dtype_name(desc->dtype));
        const uint32_t bits = (uint32_t)v;
        for (size_t b = 0; b < unit; b++)
            dst[i * unit + b] = (uint8_t)(bits >> (8 * b));
    }
    return QDQ_OK;
}

/* One element of a type that changes. */
static qdq_status change_one(const void *src, int64_t data_type, size_t i, const char *what, void *dst,
                             qdq_error *err) {
    if (data_type == ONNX_DOUBLE) {
        double v = 0.0;
        memcpy(&v, (const uint8_t *)src + i * sizeof v, sizeof v);
        /* a finite value stays finite: masks are often the lowest double */
        if (isfinite(v)) v = v > (double)FLT_MAX ? (double)FLT_MAX : v < -(double)FLT_MAX ? -(double)FLT_MAX : v;
        ((float *)dst)[i] = (float)v;
        return QDQ_OK;
    }
    uint64_t v = 0;
    const size_t unit = data_type == ONNX_UINT32 ? 4 : 8;
    memcpy(&v, (const uint8_t *)src + i * unit, unit);
    if (v > INT64_MAX)
        return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": value %llu at %zu does not fit into s64",
                         what, (unsigned long long)v, i);
    ((int64_t *)dst)[i] = (int64_t)v;
    return QDQ_OK;
}

/* Raw content (as in the file) of a type that changes, to a new buffer. */
static qdq_status change(const void *src, int64_t data_type, const char *what, size_t n, void **owned_out,
                         qdq_error *err) {
    void *dst = qdqi_malloc(n * sizeof(int64_t));
    if (dst == NULL) return QDQI_NO_MEMORY(err);
    qdq_status st = QDQ_OK;
    for (size_t i = 0; i < n && st == QDQ_OK; i++)
        st = change_one(src, data_type, i, what, dst, err);
    if (st == QDQ_OK)
        *owned_out = dst;
    else
        qdqi_free(dst);
    return st;
}

/* Content that needs a buffer of its own. */
static qdq_status convert(const Onnx__TensorProto *t, const char *what, const qdq_tensor_desc *desc, size_t bytes,
                          void *dst, qdq_error *err) {
    const void *src = NULL;
    size_t found = 0, unit = 0;
    const char *field = NULL;
    switch (desc->dtype) {
    case QDQ_DTYPE_F32: src = t->float_data, found = t->n_float_data, unit = 4, field = "float_data"; break;
    case QDQ_DTYPE_S64: src = t->int64_data, found = t->n_int64_data, unit = 8, field = "int64_data"; break;
    default: return from_int32(t, what, desc, bytes, dst, err);
    }
    if (found != bytes / unit) return wrong_count(what, field, found, bytes / unit, err);
    memcpy(dst, src, bytes);
    return QDQ_OK;
}

static bool has_only_bits(const uint8_t *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] > 1) return false;
    return true;
}

/* The typed fields are of no more use: give their memory back, so that a big model is not held twice. */
static void release_typed(Onnx__TensorProto *t) {
#define RELEASE(field) qdqi_free(t->field), t->field = NULL, t->n_##field = 0
    RELEASE(float_data);
    RELEASE(int32_data);
    RELEASE(int64_data);
    RELEASE(double_data);
    RELEASE(uint64_data);
#undef RELEASE
}

/* Content given as bytes of the file's own type: raw_data, or a piece of another file (`*owned_out`). NULL: typed fields. */
static qdq_status raw_content(const qdqi_onnx_reader *r, const Onnx__TensorProto *t, const char *what, size_t expected,
                              const void **data_out, void **owned_out, qdq_error *err) {
    if (t->has_data_location && t->data_location == 1) {
        QDQI_TRY(external_data(r, t, what, expected, owned_out, err));
        *data_out = *owned_out;
    } else if (t->has_raw_data && t->raw_data.len > 0) {
        if (t->raw_data.len != expected)
            return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\": raw_data has %zu bytes, expected %zu",
                             what, t->raw_data.len, expected);
        *data_out = t->raw_data.data;
    }
    return QDQ_OK;
}

/* Content given in a typed field, into a new buffer. */
static qdq_status typed_content(Onnx__TensorProto *t, const char *what, const qdq_tensor_desc *desc, size_t n,
                                size_t bytes, void **owned_out, qdq_error *err) {
    if (is_changed(t->data_type)) {
        const bool is_double = t->data_type == ONNX_DOUBLE;
        const size_t found = is_double ? t->n_double_data : t->n_uint64_data;
        if (found != n) return wrong_count(what, is_double ? "double_data" : "uint64_data", found, n, err);
        const int64_t type = is_double ? ONNX_DOUBLE : ONNX_UINT64;
        QDQI_TRY(change(is_double ? (const void *)t->double_data : t->uint64_data, type, what, n, owned_out, err));
        release_typed(t);
        return QDQ_OK;
    }
    /* before any allocation: dims may claim any size */
    const size_t given = t->n_float_data + t->n_int32_data + t->n_int64_data + t->n_double_data + t->n_uint64_data;
    if (given == 0)
        return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\" (%s) has no data, expected %zu bytes", what,
                         qdq_dtype_name(desc->dtype), bytes);
    if (bytes / 8 > given)
        return qdqi_fail(err, QDQ_E_ONNX, "tensor \"" QDQI_ONNX_NAME "\" has %zu values, expected %zu bytes of %s",
                         what, given, bytes, qdq_dtype_name(desc->dtype));
    void *owned = qdqi_malloc(bytes);
    if (owned == NULL) return QDQI_NO_MEMORY(err);
    const qdq_status st = convert(t, what, desc, bytes, owned, err);
    if (st != QDQ_OK) {
        qdqi_free(owned);
        return st;
    }
    release_typed(t);
    *owned_out = owned;
    return QDQ_OK;
}

/* Booleans are 0 or 1 in a graph, whatever the file holds. */
static qdq_status clean_booleans(const void **data, void **owned, size_t bytes, qdq_error *err) {
    if (has_only_bits(*data, bytes)) return QDQ_OK;
    uint8_t *clean = qdqi_malloc(bytes);
    if (clean == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < bytes; i++)
        clean[i] = ((const uint8_t *)*data)[i] != 0;
    qdqi_free(*owned);
    *data = *owned = clean;
    return QDQ_OK;
}

qdq_status qdqi_onnx_tensor_data(const qdqi_onnx_reader *r, Onnx__TensorProto *t, const char *what,
                                 const qdq_tensor_desc *desc, const void **data_out, void **owned_out, qdq_error *err) {
    size_t bytes = 0;
    int64_t n = 0;
    QDQI_TRY(qdq_tensor_desc_size_bytes(desc, &bytes, err));
    QDQI_TRY(qdq_tensor_desc_n_elems(desc, &n, err));
    *owned_out = NULL;
    *data_out = NULL;
    if (bytes == 0) return QDQ_OK;
    const bool changes = is_changed(t->data_type);
    size_t raw_bytes = bytes;
    if (changes && !qdqi_mul_size((size_t)n, t->data_type == ONNX_UINT32 ? 4 : 8, &raw_bytes))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "tensor \"" QDQI_ONNX_NAME "\" is too large", what);
    const void *data = NULL;
    void *owned = NULL;
    QDQI_TRY(raw_content(r, t, what, raw_bytes, &data, &owned, err));
    qdq_status st = QDQ_OK;
    if (data == NULL) {
        st = typed_content(t, what, desc, (size_t)n, bytes, &owned, err);
        data = owned;
    } else if (changes) {
        void *changed = NULL;
        st = change(data, t->data_type, what, (size_t)n, &changed, err);
        qdqi_free(owned);
        data = owned = changed;
    }
    if (st == QDQ_OK && desc->dtype == QDQ_DTYPE_BOOLEAN) st = clean_booleans(&data, &owned, bytes, err);
    if (st != QDQ_OK) {
        qdqi_free(owned);
        return st;
    }
    *data_out = data;
    *owned_out = owned;
    return QDQ_OK;
}
