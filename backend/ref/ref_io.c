#include "ref/ref_io.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/dtype.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- scratch ---- */

static void set_failed(qdqi_ref_ctx *c, qdq_status status) {
    if (c->status == QDQ_OK) c->status = status;
}

void *qdqi_ref_temp(qdqi_ref_ctx *c, int64_t n, size_t size) {
    size_t bytes, end;
    if (n < 0 || !qdqi_mul_size((size_t)n, size, &bytes) || !qdqi_align_up(bytes == 0 ? 1 : bytes, &bytes) ||
        !qdqi_add_size(c->used, bytes, &end)) {
        set_failed(c, qdqi_ref_fail(c, QDQ_E_OVERFLOW, "scratch of %lld elements does not fit", (long long)n));
        return NULL;
    }
    const size_t at = c->used;
    c->used = end;
    if (end > c->peak) c->peak = end;
    if (c->measuring) return NULL;
    if (end > c->capacity) {
        set_failed(c, qdqi_ref_fail(c, QDQ_E_INTERNAL, "needs %zu bytes of scratch, has %zu", end, c->capacity));
        return NULL;
    }
    return c->scratch + at;
}

size_t qdqi_ref_mark(const qdqi_ref_ctx *c) {
    return c->used;
}

void qdqi_ref_release(qdqi_ref_ctx *c, size_t mark) {
    c->used = mark;
}

/* ---- ports ---- */

bool qdqi_ref_has_in(const qdqi_ref_ctx *c, uint32_t port) {
    return port < c->n_in && c->in[port].desc != NULL;
}

bool qdqi_ref_has_out(const qdqi_ref_ctx *c, uint32_t port) {
    return port < c->n_out && c->out[port].desc != NULL;
}

const qdq_tensor_desc *qdqi_ref_in_desc(const qdqi_ref_ctx *c, uint32_t port) {
    return port < c->n_in ? c->in[port].desc : NULL;
}

const qdq_tensor_desc *qdqi_ref_out_desc(const qdqi_ref_ctx *c, uint32_t port) {
    return port < c->n_out ? c->out[port].desc : NULL;
}

size_t qdqi_ref_raw_bytes(qdq_dtype dtype) {
    const size_t bits = qdq_dtype_bits(dtype);
    return bits < 8 ? 1 : bits / 8;
}

static size_t type_bytes(qdqi_ref_type type, qdq_dtype dtype) {
    switch (type) {
    case QDQI_REF_F32: return sizeof(float);
    case QDQI_REF_F64: return sizeof(double);
    case QDQI_REF_I32: return sizeof(int32_t);
    case QDQI_REF_I64: return sizeof(int64_t);
    case QDQI_REF_RAW: return qdqi_ref_raw_bytes(dtype);
    }
    return 0;
}

static bool is_native(qdqi_ref_type type, qdq_dtype dtype) {
    switch (type) {
    case QDQI_REF_F32: return dtype == QDQ_DTYPE_F32;
    case QDQI_REF_F64: return dtype == QDQ_DTYPE_F64;
    case QDQI_REF_I32: return dtype == QDQ_DTYPE_S32;
    case QDQI_REF_I64: return dtype == QDQ_DTYPE_S64;
    case QDQI_REF_RAW: return qdq_dtype_bits(dtype) >= 8;
    }
    return false;
}

static bool dense_layout(const qdq_tensor_desc *desc) {
    return desc->layout != QDQ_LAYOUT_STRIDED || qdqi_is_dense(desc);
}

const void *qdqi_ref_in(qdqi_ref_ctx *c, uint32_t port, qdqi_ref_type type) {
    if (!qdqi_ref_has_in(c, port) || c->status != QDQ_OK) return NULL;
    const qdqi_ref_tensor *t = &c->in[port];
    const int64_t n = qdqi_n_elems(t->desc);
    if (n != 0 && is_native(type, t->desc->dtype) && dense_layout(t->desc)) return t->data;
    void *dense = qdqi_ref_temp(c, n, type_bytes(type, t->desc->dtype));
    if (dense != NULL && n != 0) qdqi_ref_to_dense(t->desc, t->data, type, dense);
    return dense;
}

void *qdqi_ref_out(qdqi_ref_ctx *c, uint32_t port, qdqi_ref_type type) {
    if (!qdqi_ref_has_out(c, port) || c->status != QDQ_OK) return NULL;
    const qdqi_ref_tensor *t = &c->out[port];
    const int64_t n = qdqi_n_elems(t->desc);
    if (n != 0 && is_native(type, t->desc->dtype) && dense_layout(t->desc)) return t->data;
    void *dense = qdqi_ref_temp(c, n, type_bytes(type, t->desc->dtype));
    if (dense == NULL || n == 0) return dense;
    if (c->n_pending == QDQI_REF_MAX_PENDING) {
        set_failed(c, qdqi_ref_fail(c, QDQ_E_INTERNAL, "more than %d converted outputs", QDQI_REF_MAX_PENDING));
        return NULL;
    }
    c->pending[c->n_pending].port = port;
    c->pending[c->n_pending].type = type;
    c->pending[c->n_pending].dense = dense;
    c->n_pending++;
    return dense;
}

const float *qdqi_ref_in_f32(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_in(c, port, QDQI_REF_F32);
}
const double *qdqi_ref_in_f64(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_in(c, port, QDQI_REF_F64);
}
const int32_t *qdqi_ref_in_i32(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_in(c, port, QDQI_REF_I32);
}
const int64_t *qdqi_ref_in_i64(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_in(c, port, QDQI_REF_I64);
}
const unsigned char *qdqi_ref_in_raw(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_in(c, port, QDQI_REF_RAW);
}
float *qdqi_ref_out_f32(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_out(c, port, QDQI_REF_F32);
}
double *qdqi_ref_out_f64(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_out(c, port, QDQI_REF_F64);
}
int32_t *qdqi_ref_out_i32(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_out(c, port, QDQI_REF_I32);
}
int64_t *qdqi_ref_out_i64(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_out(c, port, QDQI_REF_I64);
}
unsigned char *qdqi_ref_out_raw(qdqi_ref_ctx *c, uint32_t port) {
    return qdqi_ref_out(c, port, QDQI_REF_RAW);
}

void qdqi_ref_put(qdqi_ref_ctx *c, uint32_t port, qdqi_ref_type type, const void *dense) {
    if (!qdqi_ref_has_out(c, port) || qdqi_n_elems(c->out[port].desc) == 0) return;
    qdqi_ref_from_dense(c->out[port].desc, c->out[port].data, type, dense);
}

qdq_status qdqi_ref_call(qdqi_ref_ctx *c, qdqi_ref_fn fn) {
    QDQI_TRY(fn(c));
    if (c->measuring) return QDQ_OK;
    for (uint32_t i = 0; i < c->n_pending; i++)
        qdqi_ref_put(c, c->pending[i].port, c->pending[i].type, c->pending[i].dense);
    return QDQ_OK;
}

/* ---- runs of elements: `n` elements from element `at` on, `step` apart ---- */

#define LOOP(dst_type, src_type, expr)                                                                                 \
    do {                                                                                                               \
        dst_type *d = dense;                                                                                           \
        const src_type *s = (const src_type *)data + at;                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const src_type v = s[i * step];                                                                            \
            d[i] = (dst_type)(expr);                                                                                   \
        }                                                                                                              \
        return;                                                                                                        \
    } while (0)

static void load_f32(float *dense, const void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n) {
    if (dtype == QDQ_DTYPE_F32) LOOP(float, float, v);
    if (dtype == QDQ_DTYPE_U8) LOOP(float, uint8_t, v);
    if (dtype == QDQ_DTYPE_S8) LOOP(float, int8_t, v);
    if (dtype == QDQ_DTYPE_S32) LOOP(float, int32_t, v);
    if (dtype == QDQ_DTYPE_BF16) LOOP(float, uint16_t, qdqi_f32_of_bf16(v));
    for (int64_t i = 0; i < n; i++)
        dense[i] = qdqi_load_f32(data, dtype, at + i * step);
}

static void load_f64(double *dense, const void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n) {
    if (dtype == QDQ_DTYPE_F64) LOOP(double, double, v);
    if (dtype == QDQ_DTYPE_F32) LOOP(double, float, v);
    for (int64_t i = 0; i < n; i++)
        dense[i] = qdqi_load_f64(data, dtype, at + i * step);
}

static void load_i32(int32_t *dense, const void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n) {
    if (dtype == QDQ_DTYPE_S32) LOOP(int32_t, int32_t, v);
    if (dtype == QDQ_DTYPE_U8) LOOP(int32_t, uint8_t, v);
    if (dtype == QDQ_DTYPE_S8) LOOP(int32_t, int8_t, v);
    for (int64_t i = 0; i < n; i++)
        qdqi_store_i64(dense, QDQ_DTYPE_S32, i, qdqi_load_i64(data, dtype, at + i * step));
}

static void load_i64(int64_t *dense, const void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n) {
    if (dtype == QDQ_DTYPE_S64) LOOP(int64_t, int64_t, v);
    if (dtype == QDQ_DTYPE_S32) LOOP(int64_t, int32_t, v);
    for (int64_t i = 0; i < n; i++)
        dense[i] = qdqi_load_i64(data, dtype, at + i * step);
}

static void load_raw(unsigned char *dense, const void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n) {
    const unsigned char *s = data;
    const size_t bytes = qdqi_ref_raw_bytes(dtype);
    if (qdq_dtype_bits(dtype) < 8) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t e = at + i * step;
            dense[i] = (unsigned char)(e % 2 == 0 ? s[e / 2] & 15 : s[e / 2] >> 4);
        }
    } else if (step == 1) {
        memcpy(dense, s + (size_t)at * bytes, (size_t)n * bytes);
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(dense + (size_t)i * bytes, s + (size_t)(at + i * step) * bytes, bytes);
    }
}

#undef LOOP
#define LOOP(dst_type, src_type, expr)                                                                                 \
    do {                                                                                                               \
        dst_type *d = (dst_type *)data + at;                                                                           \
        const src_type *s = dense;                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const src_type v = s[i];                                                                                   \
            d[i * step] = (dst_type)(expr);                                                                            \
        }                                                                                                              \
        return;                                                                                                        \
    } while (0)

static int64_t clamp_i32(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

static void store_f32(void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n, const float *dense) {
    if (dtype == QDQ_DTYPE_F32) LOOP(float, float, v);
    if (dtype == QDQ_DTYPE_BF16) LOOP(uint16_t, float, qdqi_bf16_of_f32(v));
    if (dtype == QDQ_DTYPE_F16) LOOP(uint16_t, float, qdqi_f16_of_f32(v));
    for (int64_t i = 0; i < n; i++)
        qdqi_store_f32(data, dtype, at + i * step, dense[i]);
}

static void store_i32(void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n, const int32_t *dense) {
    if (dtype == QDQ_DTYPE_S32) LOOP(int32_t, int32_t, v);
    if (dtype == QDQ_DTYPE_U8) LOOP(uint8_t, int32_t, clamp_i32(v, 0, 255));
    if (dtype == QDQ_DTYPE_S8) LOOP(int8_t, int32_t, clamp_i32(v, -128, 127));
    for (int64_t i = 0; i < n; i++)
        qdqi_store_i64(data, dtype, at + i * step, dense[i]);
}

static void store_f64(void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n, const double *dense) {
    for (int64_t i = 0; i < n; i++)
        qdqi_store_f64(data, dtype, at + i * step, dense[i]);
}

static void store_i64(void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n, const int64_t *dense) {
    for (int64_t i = 0; i < n; i++)
        qdqi_store_i64(data, dtype, at + i * step, dense[i]);
}

#undef LOOP

static void store_raw(void *data, qdq_dtype dtype, int64_t at, int64_t step, int64_t n, const unsigned char *dense) {
    unsigned char *d = data;
    const size_t bytes = qdqi_ref_raw_bytes(dtype);
    if (qdq_dtype_bits(dtype) < 8) {
        for (int64_t i = 0; i < n; i++) {
            unsigned char *b = d + (at + i * step) / 2;
            *b = (unsigned char)((at + i * step) % 2 == 0 ? (*b & 0xf0) | (dense[i] & 15)
                                                          : (*b & 0x0f) | (dense[i] & 15) << 4);
        }
    } else if (step == 1) {
        memcpy(d + (size_t)at * bytes, dense, (size_t)n * bytes);
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(d + (size_t)(at + i * step) * bytes, dense + (size_t)i * bytes, bytes);
    }
}

static void load_run(qdqi_ref_type type, void *dense, const void *data, qdq_dtype dtype, int64_t at, int64_t step,
                     int64_t n) {
    switch (type) {
    case QDQI_REF_F32: load_f32(dense, data, dtype, at, step, n); break;
    case QDQI_REF_F64: load_f64(dense, data, dtype, at, step, n); break;
    case QDQI_REF_I32: load_i32(dense, data, dtype, at, step, n); break;
    case QDQI_REF_I64: load_i64(dense, data, dtype, at, step, n); break;
    case QDQI_REF_RAW: load_raw(dense, data, dtype, at, step, n); break;
    }
}

static void store_run(qdqi_ref_type type, const void *dense, void *data, qdq_dtype dtype, int64_t at, int64_t step,
                      int64_t n) {
    switch (type) {
    case QDQI_REF_F32: store_f32(data, dtype, at, step, n, dense); break;
    case QDQI_REF_F64: store_f64(data, dtype, at, step, n, dense); break;
    case QDQI_REF_I32: store_i32(data, dtype, at, step, n, dense); break;
    case QDQI_REF_I64: store_i64(data, dtype, at, step, n, dense); break;
    case QDQI_REF_RAW: store_raw(data, dtype, at, step, n, dense); break;
    }
}

/* ---- whole tensors ---- */

/* Rows of a tensor as long as its strides allow: dims that follow one another in memory become one. */
static qdqi_ref_rows rows_of_desc(const qdq_tensor_desc *desc) {
    int64_t strides[QDQ_MAX_NDIMS], dims[QDQ_MAX_NDIMS], kept[QDQ_MAX_NDIMS];
    int32_t n = 0;
    if (desc->layout == QDQ_LAYOUT_STRIDED) {
        memcpy(strides, desc->strides, sizeof strides);
    } else {
        qdqi_dense_strides(desc->ndims, desc->dims, strides);
    }
    for (int32_t d = 0; d < desc->ndims; d++) {
        if (desc->dims[d] == 1) continue;
        if (n != 0 && kept[n - 1] == strides[d] * desc->dims[d]) {
            dims[n - 1] *= desc->dims[d];
            kept[n - 1] = strides[d];
        } else {
            dims[n] = desc->dims[d];
            kept[n++] = strides[d];
        }
    }
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, n, dims);
    qdqi_ref_rows_add(&r, n, kept);
    return r;
}

void qdqi_ref_to_dense(const qdq_tensor_desc *desc, const void *data, qdqi_ref_type type, void *dense_out) {
    unsigned char *to = dense_out;
    const size_t bytes = type_bytes(type, desc->dtype);
    for (qdqi_ref_rows r = rows_of_desc(desc); qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        load_run(type, to, data, desc->dtype, r.off[0], r.step[0], r.n);
        to += (size_t)r.n * bytes;
    }
}

void qdqi_ref_from_dense(const qdq_tensor_desc *desc, void *data, qdqi_ref_type type, const void *dense) {
    const unsigned char *from = dense;
    const size_t bytes = type_bytes(type, desc->dtype);
    for (qdqi_ref_rows r = rows_of_desc(desc); qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        store_run(type, from, data, desc->dtype, r.off[0], r.step[0], r.n);
        from += (size_t)r.n * bytes;
    }
}

void qdqi_ref_relayout(const qdq_tensor_desc *dst_desc, void *dst, const qdq_tensor_desc *src_desc, const void *src) {
    size_t bytes;
    const int64_t n = qdqi_n_elems(src_desc);
    if (n == 0) return;
    if (dense_layout(dst_desc) && dense_layout(src_desc) && qdqi_dtype_bytes(src_desc->dtype, n, &bytes)) {
        if (dst != src) memcpy(dst, src, bytes);
        return;
    }
    int64_t strides[2][QDQ_MAX_NDIMS];
    const qdq_tensor_desc *descs[2] = {dst_desc, src_desc};
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, src_desc->ndims, src_desc->dims);
    for (int i = 0; i < 2; i++) {
        qdqi_dense_strides(descs[i]->ndims, descs[i]->dims, strides[i]);
        qdqi_ref_rows_add(&r, descs[i]->ndims, descs[i]->layout == QDQ_LAYOUT_STRIDED ? descs[i]->strides : strides[i]);
    }
    unsigned char piece[512];
    const int64_t cap = (int64_t)(sizeof piece / qdqi_ref_raw_bytes(src_desc->dtype));
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        for (int64_t i = 0; i < r.n; i += cap) {
            const int64_t m = r.n - i < cap ? r.n - i : cap;
            load_raw(piece, src, src_desc->dtype, r.off[1] + i * r.step[1], r.step[1], m);
            store_raw(dst, dst_desc->dtype, r.off[0] + i * r.step[0], r.step[0], m, piece);
        }
    }
}

/* ---- rows ---- */

void qdqi_ref_rows_init(qdqi_ref_rows *r, int32_t ndims, const int64_t *dims) {
    memset(r, 0, sizeof *r);
    r->ndims = ndims > 0 ? ndims - 1 : 0;
    r->n = ndims > 0 ? dims[ndims - 1] : 1;
    r->n_rows = r->n == 0 ? 0 : 1;
    for (int32_t d = 0; d < r->ndims; d++) {
        r->dims[d] = dims[d];
        r->n_rows *= dims[d];
    }
}

void qdqi_ref_rows_add(qdqi_ref_rows *r, int32_t ndims, const int64_t *strides) {
    const int32_t i = r->n_offsets++;
    for (int32_t d = 0; d < r->ndims; d++)
        r->strides[i][d] = strides[d];
    r->step[i] = ndims > 0 ? strides[ndims - 1] : 0;
}

void qdqi_ref_rows_add_broadcast(qdqi_ref_rows *r, int32_t ndims, const qdq_tensor_desc *desc) {
    int64_t dense[QDQ_MAX_NDIMS], strides[QDQ_MAX_NDIMS] = {0};
    qdqi_dense_strides(desc->ndims, desc->dims, dense);
    for (int32_t d = 0; d < desc->ndims; d++)
        strides[d + ndims - desc->ndims] = desc->dims[d] == 1 ? 0 : dense[d];
    qdqi_ref_rows_add(r, ndims, strides);
}

bool qdqi_ref_row_ok(const qdqi_ref_rows *r) {
    return r->row < r->n_rows;
}

void qdqi_ref_row_next(qdqi_ref_rows *r) {
    r->row++;
    for (int32_t d = r->ndims - 1; d >= 0; d--) {
        for (int32_t i = 0; i < r->n_offsets; i++)
            r->off[i] += r->strides[i][d];
        if (++r->idx[d] < r->dims[d]) return;
        for (int32_t i = 0; i < r->n_offsets; i++)
            r->off[i] -= r->strides[i][d] * r->dims[d];
        r->idx[d] = 0;
    }
}

/* ---- small helpers ---- */

int64_t qdqi_ref_count(const qdq_tensor_desc *desc, int32_t from, int32_t to) {
    int64_t n = 1;
    for (int32_t d = from; d < to; d++)
        n *= desc->dims[d];
    return n;
}

qdq_status qdqi_ref_axis(qdqi_ref_ctx *c, int64_t axis, int32_t ndims, int32_t *axis_out) {
    if (qdqi_norm_axis(axis, ndims, axis_out)) return QDQ_OK;
    return qdqi_ref_fail(c, QDQ_E_BAD_AXIS, "axis %lld is outside rank %d", (long long)axis, ndims);
}

qdq_status qdqi_ref_fail(qdqi_ref_ctx *c, qdq_status status, const char *fmt, ...) {
    char text[QDQ_ERROR_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return qdqi_fail(c->err, status, "%s op %llu (%s): %s", c->op->schema->name, (unsigned long long)c->op->id,
                     c->op->name == NULL ? "" : c->op->name, text);
}

qdqi_ref_type qdqi_ref_float_type(const qdqi_ref_ctx *c, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (qdqi_ref_has_in(c, i) && c->in[i].desc->dtype == QDQ_DTYPE_F64) return QDQI_REF_F64;
    return qdqi_ref_has_out(c, 0) && c->out[0].desc->dtype == QDQ_DTYPE_F64 ? QDQI_REF_F64 : QDQI_REF_F32;
}
