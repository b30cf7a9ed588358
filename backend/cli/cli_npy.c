/* .npy files: "\x93NUMPY", version, length of the header, a Python dict as text, the elements. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *descr; /* without the byte order */
    qdq_dtype dtype;
} types[] = {{"f4", QDQ_DTYPE_F32}, {"f2", QDQ_DTYPE_F16},    {"f8", QDQ_DTYPE_F64}, {"i1", QDQ_DTYPE_S8},
             {"u1", QDQ_DTYPE_U8},  {"i2", QDQ_DTYPE_S16},    {"u2", QDQ_DTYPE_U16}, {"i4", QDQ_DTYPE_S32},
             {"i8", QDQ_DTYPE_S64}, {"b1", QDQ_DTYPE_BOOLEAN}};
enum { N_TYPES = sizeof types / sizeof types[0], MAX_HEADER_BYTES = 65536 };

/* ---- the header's dict ---- */

/* The text after `'key':` in the dict, or NULL. */
static const char *value_of(const char *header, const char *key) {
    const size_t n = strlen(key);
    for (const char *at = header; (at = strstr(at, key)) != NULL; at += n) {
        const bool is_quoted = at > header && (at[-1] == '\'' || at[-1] == '"') && at[n] == at[-1];
        if (!is_quoted) continue;
        const char *colon = at + n + 1 + strspn(at + n + 1, " ");
        if (*colon == ':') return colon + 1 + strspn(colon + 1, " ");
    }
    return NULL;
}

static bool parse_descr(const char *text, qdq_dtype *out) {
    if (text == NULL || (text[0] != '\'' && text[0] != '"')) return false;
    const char order = text[1];
    for (size_t i = 0; i < N_TYPES; i++) {
        const size_t n = strlen(types[i].descr);
        if (strncmp(text + 2, types[i].descr, n) != 0 || text[2 + n] != text[0]) continue;
        const bool is_byte = qdq_dtype_bits(types[i].dtype) == 8;
        if (order != '<' && !(is_byte && (order == '|' || order == '='))) return false;
        *out = types[i].dtype;
        return true;
    }
    return false;
}

static bool parse_tuple(const char *text, int32_t *ndims, int64_t *dims) {
    if (text == NULL || *text != '(') return false;
    *ndims = 0;
    for (const char *at = text + 1;;) {
        at += strspn(at, " ");
        if (*at == ')') return true;
        if (*ndims == QDQ_MAX_NDIMS || *at < '0' || *at > '9') return false;
        int64_t v = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            if (!qdqi_mul_i64(v, 10, &v) || !qdqi_add_i64(v, *at - '0', &v)) return false;
        dims[(*ndims)++] = v;
        at += strspn(at, "L ");
        if (*at == ',')
            at++;
        else if (*at != ')')
            return false;
    }
}

/* ---- reading ---- */

/* Column-major to row-major. */
static qdq_status to_row_major(qdqi_array *array, qdq_error *err) {
    const size_t size = qdq_dtype_bits(array->dtype) / 8;
    uint8_t *to = qdqi_malloc(array->bytes);
    if (to == NULL) return QDQI_NO_MEMORY(err);
    int64_t at[QDQ_MAX_NDIMS] = {0}, step[QDQ_MAX_NDIMS];
    int64_t n = 1;
    for (int32_t d = 0; d < array->ndims; d++) {
        step[d] = n;
        n *= array->dims[d];
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t from = 0;
        for (int32_t d = 0; d < array->ndims; d++)
            from += at[d] * step[d];
        memcpy(to + (size_t)i * size, (const uint8_t *)array->data + (size_t)from * size, size);
        for (int32_t d = array->ndims - 1; d >= 0 && ++at[d] == array->dims[d]; d--)
            at[d] = 0;
    }
    qdqi_free(array->data);
    array->data = to;
    return QDQ_OK;
}

static qdq_status bad(qdq_error *err, const char *path, const char *what) {
    return qdqi_fail(err, QDQ_E_NPY, "%s: %s", path, what);
}

static qdq_status read_header(FILE *f, const char *path, char *header, qdq_error *err) {
    uint8_t start[12];
    if (fread(start, 1, 10, f) != 10) return bad(err, path, "not an npy file (too short)");
    if (memcmp(start, "\x93NUMPY", 6) != 0) return bad(err, path, "not an npy file (wrong magic)");
    if (start[6] < 1 || start[6] > 3)
        return qdqi_fail(err, QDQ_E_NPY, "%s: npy format version %u is not supported", path, start[6]);
    size_t n = start[8] | (size_t)start[9] << 8;
    if (start[6] > 1) {
        if (fread(start + 10, 1, 2, f) != 2) return bad(err, path, "the npy header is cut");
        n |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (n >= MAX_HEADER_BYTES) return bad(err, path, "the npy header is too long");
    if (fread(header, 1, n, f) != n) return bad(err, path, "the npy header is cut");
    header[n] = '\0';
    if (strlen(header) != n) return bad(err, path, "the npy header is malformed");
    return QDQ_OK;
}

static qdq_status read_array(FILE *f, const char *path, char *header, qdqi_array *array, qdq_error *err) {
    struct stat info;
    if (fstat(fileno(f), &info) != 0) return qdqi_fail(err, QDQ_E_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return qdqi_fail(err, QDQ_E_IO, "%s: is a directory", path);
    QDQI_TRY(read_header(f, path, header, err));
    const char *descr = value_of(header, "descr"), *order = value_of(header, "fortran_order");
    if (descr == NULL || order == NULL) return bad(err, path, "the npy header lacks descr or fortran_order");
    if (!parse_descr(descr, &array->dtype))
        return qdqi_fail(err, QDQ_E_NPY, "%s: data type %.*s is not supported", path,
                         (int)strcspn(descr, ",}") > 40 ? 40 : (int)strcspn(descr, ",}"), descr);
    if (!parse_tuple(value_of(header, "shape"), &array->ndims, array->dims))
        return bad(err, path, "the npy header has no legal shape");
    const bool is_fortran = strncmp(order, "True", 4) == 0;
    if (!is_fortran && strncmp(order, "False", 5) != 0) return bad(err, path, "fortran_order is not True or False");
    qdq_tensor_desc desc;
    QDQI_TRY(qdq_tensor_desc_init(0, array->dtype, array->ndims, array->dims, QDQ_LAYOUT_STRIDED, QDQ_PROPERTY_VARIABLE,
                                  &desc, err));
    QDQI_TRY(qdq_tensor_desc_size_bytes(&desc, &array->bytes, err));
    const off_t at = ftello(f);
    const uint64_t found = at < 0 || info.st_size < at ? 0 : (uint64_t)(info.st_size - at);
    if (found != array->bytes)
        return qdqi_fail(err, QDQ_E_NPY, "%s: found %" PRIu64 " bytes of data, expected %zu for shape %s of %s", path,
                         found, array->bytes, qdqi_shape_str(array->ndims, array->dims).s,
                         qdq_dtype_name(array->dtype));
    array->data = qdqi_malloc(array->bytes);
    if (array->data == NULL) return QDQI_NO_MEMORY(err);
    if (fread(array->data, 1, array->bytes, f) != array->bytes) return bad(err, path, "cannot be read");
    return is_fortran && array->ndims > 1 && array->bytes > 0 ? to_row_major(array, err) : QDQ_OK;
}

qdq_status qdqi_npy_read(const char *path, qdqi_array *array_out, qdq_error *err) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) return qdqi_fail(err, QDQ_E_IO, "%s: %s", path, strerror(errno));
    qdqi_array array = {0};
    char *header = qdqi_malloc(MAX_HEADER_BYTES);
    qdq_status st = header == NULL ? QDQI_NO_MEMORY(err) : read_array(f, path, header, &array, err);
    qdqi_free(header);
    fclose(f);
    if (st == QDQ_OK)
        *array_out = array;
    else
        qdqi_array_free(&array);
    /* a shape that overflows is reported by the descriptor, which does not know the file */
    if (st != QDQ_OK && err != NULL && strncmp(err->text, path, strlen(path)) != 0) qdqi_fail_in(err, st, "%s", path);
    return st;
}

/* ---- writing ---- */

static qdq_dtype numpy_dtype(qdq_dtype dtype) {
    switch (dtype) {
    case QDQ_DTYPE_BF16:
    case QDQ_DTYPE_F8_E4M3:
    case QDQ_DTYPE_F8_E5M2: return QDQ_DTYPE_F32;
    case QDQ_DTYPE_S4: return QDQ_DTYPE_S8;
    case QDQ_DTYPE_U4: return QDQ_DTYPE_U8;
    default: return dtype;
    }
}

static qdq_status widen(const qdqi_array *array, qdq_dtype dtype, qdqi_array *out, qdq_error *err) {
    qdq_tensor_desc desc;
    QDQI_TRY(qdq_tensor_desc_init(0, dtype, array->ndims, array->dims, QDQ_LAYOUT_STRIDED, QDQ_PROPERTY_VARIABLE, &desc,
                                  err));
    QDQI_TRY(qdqi_array_create(&desc, out, err));
    int64_t n = 0;
    QDQI_TRY(qdq_tensor_desc_n_elems(&desc, &n, err));
    for (int64_t i = 0; i < n; i++)
        qdqi_store_f32(out->data, dtype, i, qdqi_load_f32(array->data, array->dtype, i));
    return QDQ_OK;
}

static bool write_to(FILE *f, const qdqi_array *array, const char *descr) {
    char header[512];
    char shape[400] = "";
    size_t n = 0;
    for (int32_t d = 0; d < array->ndims; d++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%" PRId64 "%s", array->dims[d],
                              array->ndims == 1      ? ","
                              : d + 1 < array->ndims ? ", "
                                                     : "");
    const bool is_byte = qdq_dtype_bits(array->dtype) == 8;
    int length = snprintf(header, sizeof header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                          is_byte ? '|' : '<', descr, shape);
    if (length < 0 || length > (int)sizeof header - 66) return false;
    /* the elements start at a multiple of 64 */
    while ((length + 11) % 64 != 0)
        header[length++] = ' ';
    header[length++] = '\n';
    const uint8_t start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(length & 255), (uint8_t)(length >> 8)};
    return fwrite(start, 1, 10, f) == 10 && fwrite(header, 1, (size_t)length, f) == (size_t)length &&
           fwrite(array->data, 1, array->bytes, f) == array->bytes;
}

static qdq_status write_file(const char *path, const qdqi_array *array, qdq_error *err) {
    const char *descr = NULL;
    for (size_t i = 0; i < N_TYPES; i++)
        if (types[i].dtype == array->dtype) descr = types[i].descr;
    if (descr == NULL)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: data type %s has no npy form", path,
                         qdq_dtype_name(array->dtype));
    FILE *f = fopen(path, "wb");
    if (f == NULL) return qdqi_fail(err, QDQ_E_IO, "%s: %s", path, strerror(errno));
    const bool ok = write_to(f, array, descr);
    if (fclose(f) != 0 || !ok) return qdqi_fail(err, QDQ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    return QDQ_OK;
}

qdq_status qdqi_npy_write(const char *path, const qdqi_array *array, qdq_error *err) {
    const qdq_dtype dtype = numpy_dtype(array->dtype);
    if (dtype == array->dtype) return write_file(path, array, err);
    qdqi_array wide = {0};
    qdq_status st = widen(array, dtype, &wide, err);
    if (st == QDQ_OK) st = write_file(path, &wide, err);
    qdqi_array_free(&wide);
    return st;
}
