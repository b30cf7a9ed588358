/* Elementwise ops of two and three operands, with numpy broadcasting. Floats in f32 (f64 when one is f64), integers in
 * s64: narrower results saturate, s64 ones wrap. */
#include "ref/ref_fns.h"
#include "ref/ref_rows.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

/* ---- loops over rows: dst is dense, the operands step 0 where they broadcast ---- */

typedef qdqi_ref_binary_row *row_fn;

#define ROW(name, T, D, expr)                                                                                          \
    static void name(void *dst_, const void *a_, int64_t sa, const void *b_, int64_t sb, int64_t n) {                  \
        D *dst = dst_;                                                                                                 \
        const T *a = a_, *b = b_;                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T x = a[i * sa], y = b[i * sb];                                                                      \
            dst[i] = (D)(expr);                                                                                        \
        }                                                                                                              \
    }

static int64_t wrap_add(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x + (uint64_t)y);
}
static int64_t wrap_sub(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x - (uint64_t)y);
}
static int64_t wrap_mul(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x * (uint64_t)y);
}
/* Toward zero; a zero divisor was refused before. */
static int64_t div_i64(int64_t x, int64_t y) {
    return y == -1 ? wrap_sub(0, x) : x / y;
}
static int64_t remainder_of(int64_t x, int64_t y) {
    return y == -1 ? 0 : x % y;
}
/* The sign of the divisor, as numpy.mod. */
static int64_t modulo(int64_t x, int64_t y) {
    const int64_t r = remainder_of(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static int64_t pow_i64(int64_t x, int64_t y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
    int64_t r = 1;
    for (; y != 0; y >>= 1, x = wrap_mul(x, x))
        if ((y & 1) != 0) r = wrap_mul(r, x);
    return r;
}
/* NaN wins, as in numpy. */
static double max_f64(double x, double y) {
    return x > y || isnan(x) ? x : y;
}
static double min_f64(double x, double y) {
    return x < y || isnan(x) ? x : y;
}

#define FLOAT_ROWS(name, expr)                                                                                         \
    ROW(name##_f32, float, float, expr)                                                                                \
    ROW(name##_f64, double, double, expr)
FLOAT_ROWS(add, x + y)
FLOAT_ROWS(subtract, x - y)
FLOAT_ROWS(multiply, x *y)
FLOAT_ROWS(divide, x / y)
FLOAT_ROWS(maximum, max_f64((double)x, (double)y))
FLOAT_ROWS(minimum, min_f64((double)x, (double)y))
FLOAT_ROWS(squareddifference, (x - y) * (x - y))
FLOAT_ROWS(powtensor, pow((double)x, (double)y))
FLOAT_ROWS(mod, fmod((double)x, (double)y))
ROW(add_i64, int64_t, int64_t, wrap_add(x, y))
ROW(subtract_i64, int64_t, int64_t, wrap_sub(x, y))
ROW(multiply_i64, int64_t, int64_t, wrap_mul(x, y))
ROW(divide_i64, int64_t, int64_t, div_i64(x, y))
ROW(maximum_i64, int64_t, int64_t, x > y ? x : y)
ROW(minimum_i64, int64_t, int64_t, x < y ? x : y)
ROW(squareddifference_i64, int64_t, int64_t, wrap_mul(wrap_sub(x, y), wrap_sub(x, y)))
ROW(powtensor_i64, int64_t, int64_t, pow_i64(x, y))
ROW(mod_i64, int64_t, int64_t, modulo(x, y))
ROW(rem_i64, int64_t, int64_t, remainder_of(x, y))

#define COMPARE_ROWS(name, expr)                                                                                       \
    ROW(name##_f32, float, unsigned char, expr)                                                                        \
    ROW(name##_f64, double, unsigned char, expr)                                                                       \
    ROW(name##_i64, int64_t, unsigned char, expr)
COMPARE_ROWS(greaterequal, x >= y)
COMPARE_ROWS(greater, x > y)
COMPARE_ROWS(lessorequal, x <= y)
COMPARE_ROWS(less, x < y)
COMPARE_ROWS(equal, x == y)
ROW(logical_and_u8, unsigned char, unsigned char, x != 0 && y != 0)
ROW(logical_or_u8, unsigned char, unsigned char, x != 0 || y != 0)
ROW(logical_xor_u8, unsigned char, unsigned char, (x != 0) != (y != 0))

qdqi_ref_binary_row *qdqi_ref_binary_row_of(const qdqi_op *op, qdqi_ref_type type) {
    static const struct {
        qdqi_kind kind;
        qdqi_ref_type type;
        row_fn fn;
    } rows[] = {{QDQI_OP_ADD, QDQI_REF_F32, add_f32},
                {QDQI_OP_SUBTRACT, QDQI_REF_F32, subtract_f32},
                {QDQI_OP_MULTIPLY, QDQI_REF_F32, multiply_f32},
                {QDQI_OP_DIVIDE, QDQI_REF_F32, divide_f32},
                {QDQI_OP_MAXIMUM, QDQI_REF_F32, maximum_f32},
                {QDQI_OP_MINIMUM, QDQI_REF_F32, minimum_f32},
                {QDQI_OP_SQUAREDDIFFERENCE, QDQI_REF_F32, squareddifference_f32},
                {QDQI_OP_POWTENSOR, QDQI_REF_F32, powtensor_f32},
                {QDQI_OP_GREATEREQUAL, QDQI_REF_F32, greaterequal_f32},
                {QDQI_OP_GREATER, QDQI_REF_F32, greater_f32},
                {QDQI_OP_LESSOREQUAL, QDQI_REF_F32, lessorequal_f32},
                {QDQI_OP_LESS, QDQI_REF_F32, less_f32},
                {QDQI_OP_EQUAL, QDQI_REF_F32, equal_f32},
                {QDQI_OP_AND, QDQI_REF_RAW, logical_and_u8},
                {QDQI_OP_OR, QDQI_REF_RAW, logical_or_u8},
                {QDQI_OP_XOR, QDQI_REF_RAW, logical_xor_u8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].kind == op->kind && rows[i].type == type) return rows[i].fn;
    return op->kind == QDQI_OP_MOD && type == QDQI_REF_F32 && qdqi_op_bool(op, QDQI_A_FMOD) ? mod_f32 : NULL;
}

/* ---- drivers ---- */

static qdqi_ref_type operand_type(const qdqi_ref_ctx *c) {
    if (!qdqi_dtype_is_float(c->in[0].desc->dtype) && !qdqi_dtype_is_float(c->in[1].desc->dtype)) return QDQI_REF_I64;
    return qdqi_ref_float_type(c, 2);
}

static size_t bytes_of(qdqi_ref_type type) {
    return type == QDQI_REF_F32 ? sizeof(float) : type == QDQI_REF_RAW ? 1 : sizeof(double);
}

static qdq_status check_broadcast(qdqi_ref_ctx *c, uint32_t n) {
    const qdq_tensor_desc *dst = c->out[0].desc;
    for (uint32_t i = 0; i < n; i++) {
        const qdq_tensor_desc *src = c->in[i].desc;
        bool fits = src->ndims <= dst->ndims;
        for (int32_t d = 1; fits && d <= src->ndims; d++)
            fits = src->dims[src->ndims - d] == 1 || src->dims[src->ndims - d] == dst->dims[dst->ndims - d];
        if (!fits) return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input %u does not broadcast to the output", i);
    }
    return QDQ_OK;
}

static void run_rows(const qdqi_ref_ctx *c, row_fn fn, qdqi_ref_type type, const void *a, const void *b, void *dst,
                     size_t dst_bytes) {
    const qdq_tensor_desc *out = c->out[0].desc;
    const size_t bytes = bytes_of(type);
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, out->ndims, out->dims);
    qdqi_ref_rows_add_broadcast(&r, out->ndims, c->in[0].desc);
    qdqi_ref_rows_add_broadcast(&r, out->ndims, c->in[1].desc);
    unsigned char *to = dst;
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        fn(to, (const unsigned char *)a + (size_t)r.off[0] * bytes, r.step[0],
           (const unsigned char *)b + (size_t)r.off[1] * bytes, r.step[1], r.n);
        to += (size_t)r.n * dst_bytes;
    }
}

static qdq_status arithmetic(qdqi_ref_ctx *c, row_fn f32, row_fn f64, row_fn i64, bool divides) {
    const qdqi_ref_type type = operand_type(c);
    const void *a = qdqi_ref_in(c, 0, type), *b = qdqi_ref_in(c, 1, type);
    void *dst = qdqi_ref_out(c, 0, type);
    QDQI_REF_READY(c);
    QDQI_TRY(check_broadcast(c, 2));
    if (type == QDQI_REF_I64 && divides) {
        const int64_t n = qdqi_n_elems(c->in[1].desc);
        for (int64_t i = 0; i < n; i++)
            if (((const int64_t *)b)[i] == 0)
                return qdqi_ref_fail(c, QDQ_E_BAD_ARG, "element %lld of the divisor is 0", (long long)i);
    }
    run_rows(c, type == QDQI_REF_F32 ? f32 : type == QDQI_REF_F64 ? f64 : i64, type, a, b, dst, bytes_of(type));
    return QDQ_OK;
}

#define ARITHMETIC(name, divides)                                                                                      \
    qdq_status qdqi_ref_##name(qdqi_ref_ctx *c) {                                                                      \
        return arithmetic(c, name##_f32, name##_f64, name##_i64, divides);                                             \
    }
ARITHMETIC(add, false)
ARITHMETIC(subtract, false)
ARITHMETIC(multiply, false)
ARITHMETIC(divide, true)
ARITHMETIC(maximum, false)
ARITHMETIC(minimum, false)
ARITHMETIC(squareddifference, false)
ARITHMETIC(powtensor, false)

qdq_status qdqi_ref_mod(qdqi_ref_ctx *c) {
    const bool is_fmod = qdqi_op_bool(c->op, QDQI_A_FMOD);
    if (!is_fmod && operand_type(c) != QDQI_REF_I64)
        return qdqi_ref_fail(c, QDQ_E_BAD_ATTR, "fmod is 0, expected 1 for float operands");
    return arithmetic(c, mod_f32, mod_f64, is_fmod ? rem_i64 : mod_i64, true);
}

static qdq_status compare(qdqi_ref_ctx *c, row_fn f32, row_fn f64, row_fn i64) {
    const qdqi_ref_type type = operand_type(c);
    const void *a = qdqi_ref_in(c, 0, type), *b = qdqi_ref_in(c, 1, type);
    unsigned char *dst = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(check_broadcast(c, 2));
    run_rows(c, type == QDQI_REF_F32 ? f32 : type == QDQI_REF_F64 ? f64 : i64, type, a, b, dst, 1);
    return QDQ_OK;
}

#define COMPARE(name)                                                                                                  \
    qdq_status qdqi_ref_##name(qdqi_ref_ctx *c) {                                                                      \
        return compare(c, name##_f32, name##_f64, name##_i64);                                                         \
    }
COMPARE(greaterequal)
COMPARE(greater)
COMPARE(lessorequal)
COMPARE(less)
COMPARE(equal)

static qdq_status logic(qdqi_ref_ctx *c, row_fn fn) {
    const unsigned char *a = qdqi_ref_in_raw(c, 0), *b = qdqi_ref_in_raw(c, 1);
    unsigned char *dst = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(check_broadcast(c, 2));
    run_rows(c, fn, QDQI_REF_RAW, a, b, dst, 1);
    return QDQ_OK;
}

qdq_status qdqi_ref_logical_and(qdqi_ref_ctx *c) {
    return logic(c, logical_and_u8);
}
qdq_status qdqi_ref_logical_or(qdqi_ref_ctx *c) {
    return logic(c, logical_or_u8);
}
qdq_status qdqi_ref_logical_xor(qdqi_ref_ctx *c) {
    return logic(c, logical_xor_u8);
}

qdq_status qdqi_ref_logical_not(qdqi_ref_ctx *c) {
    const unsigned char *src = qdqi_ref_in_raw(c, 0);
    unsigned char *dst = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    const int64_t n = qdqi_n_elems(c->out[0].desc);
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] == 0;
    return QDQ_OK;
}

/* Where and Select: elements move unchanged, of any data type. */
qdq_status qdqi_ref_where(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *out = c->out[0].desc;
    const unsigned char *cond = qdqi_ref_in_raw(c, 0), *x = qdqi_ref_in_raw(c, 1), *y = qdqi_ref_in_raw(c, 2);
    unsigned char *dst = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(check_broadcast(c, 3));
    const size_t bytes = qdqi_ref_raw_bytes(out->dtype);
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, out->ndims, out->dims);
    for (uint32_t i = 0; i < 3; i++)
        qdqi_ref_rows_add_broadcast(&r, out->ndims, c->in[i].desc);
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r))
        for (int64_t i = 0; i < r.n; i++, dst += bytes) {
            const bool first = cond[r.off[0] + i * r.step[0]] != 0;
            memcpy(dst,
                   first ? x + (size_t)(r.off[1] + i * r.step[1]) * bytes
                         : y + (size_t)(r.off[2] + i * r.step[2]) * bytes,
                   bytes);
        }
    return QDQ_OK;
}

qdq_status qdqi_ref_select(qdqi_ref_ctx *c) {
    return qdqi_ref_where(c);
}

qdq_status qdqi_ref_sum(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *out = c->out[0].desc;
    float *dst = qdqi_ref_out_f32(c, 0);
    double *sum = qdqi_ref_temp(c, qdqi_n_elems(out), sizeof *sum);
    const size_t mark = qdqi_ref_mark(c);
    const int64_t n = qdqi_n_elems(out);
    if (!c->measuring && c->status == QDQ_OK) QDQI_TRY(check_broadcast(c, c->n_in));
    for (int64_t i = 0; sum != NULL && i < n; i++)
        sum[i] = 0.0;
    for (uint32_t k = 0; k < c->n_in; k++) {
        const float *src = qdqi_ref_in_f32(c, k);
        if (src != NULL && sum != NULL) {
            qdqi_ref_rows r;
            qdqi_ref_rows_init(&r, out->ndims, out->dims);
            qdqi_ref_rows_add_broadcast(&r, out->ndims, c->in[k].desc);
            for (int64_t at = 0; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r))
                for (int64_t i = 0; i < r.n; i++)
                    sum[at++] += (double)src[r.off[0] + i * r.step[0]];
        }
        qdqi_ref_release(c, mark);
    }
    QDQI_REF_READY(c);
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)sum[i];
    return QDQ_OK;
}

/* ---- a vector along the channels ---- */

static int32_t channel_dim(const qdqi_ref_ctx *c) {
    const int32_t ndims = c->in[0].desc->ndims;
    return qdqi_op_str_is(c->op, QDQI_A_DATA_FORMAT, "NCX") ? 1 : ndims - 1;
}

qdq_status qdqi_ref_biasadd(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    const float *x = qdqi_ref_in_f32(c, 0), *bias = qdqi_ref_in_f32(c, 1);
    float *y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    const int32_t ch = channel_dim(c);
    if (src->ndims < 2 || qdqi_n_elems(c->in[1].desc) != src->dims[ch])
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "bias has %lld values for a source of rank %d",
                             (long long)qdqi_n_elems(c->in[1].desc), src->ndims);
    const int64_t n = qdqi_n_elems(src), inner = qdqi_ref_count(src, ch + 1, src->ndims), channels = src->dims[ch];
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] + bias[i / inner % channels];
    return QDQ_OK;
}

/* The slope is one value, one per channel (per_channel_broadcast), or broadcasts as numpy has it. */
qdq_status qdqi_ref_prelu(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc, *slope_desc = c->in[1].desc;
    const float *x = qdqi_ref_in_f32(c, 0), *slope = qdqi_ref_in_f32(c, 1);
    float *y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    const int64_t n = qdqi_n_elems(src), n_slopes = qdqi_n_elems(slope_desc);
    if (qdqi_op_bool(c->op, QDQI_A_PER_CHANNEL_BROADCAST) && src->ndims >= 2 && slope_desc->ndims == 1 &&
        n_slopes == src->dims[channel_dim(c)]) {
        const int32_t ch = channel_dim(c);
        const int64_t inner = qdqi_ref_count(src, ch + 1, src->ndims);
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] < 0.0f ? x[i] * slope[i / inner % n_slopes] : x[i];
        return QDQ_OK;
    }
    QDQI_TRY(check_broadcast(c, 2));
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, src->ndims, src->dims);
    qdqi_ref_rows_add_broadcast(&r, src->ndims, slope_desc);
    for (int64_t at = 0; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r))
        for (int64_t i = 0; i < r.n; i++, at++)
            y[at] = x[at] < 0.0f ? x[at] * slope[r.off[0] + i * r.step[0]] : x[at];
    return QDQ_OK;
}
