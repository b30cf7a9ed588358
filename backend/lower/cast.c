/* TypeCast and Cast on runs of elements (lower/walk.h), as ref_cast.c: floats toward zero and saturated, integers by their low bits,
 * booleans by being other than 0. In two loops, to a type between and from it, so that there is one for each type and not for each
 * pair; what kernels/convert has is one. */
#include "base/dtype.h"
#include "kernels/convert/convert.h"
#include "lower/walk.h"

#include <math.h>
#include <string.h>

/* Elements of a piece between the loops, and elements for which a thread pays. */
enum { PIECE = 512, GRAIN = 8 * 1024 };

typedef void loop_fn(const void *src, void *dst, size_t n);

#define LOOP(name, from, to, value)                                                                                    \
    static void name(const void *src, void *dst, size_t n) {                                                           \
        const from *s = src;                                                                                           \
        to *d = dst;                                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const from x = s[i];                                                                                       \
            d[i] = (to)(value);                                                                                        \
        }                                                                                                              \
    }

static int64_t truncated(double x) {
    return isnan(x) ? 0 : x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

/* X(dtype, type, the value of x, that as s64) */
#define INTEGERS(X)                                                                                                    \
    X(S64, int64_t, x, x)                                                                                              \
    X(S32, int32_t, x, x)                                                                                              \
    X(S16, int16_t, x, x)                                                                                              \
    X(U16, uint16_t, x, x)                                                                                             \
    X(S8, int8_t, x, x)                                                                                                \
    X(U8, uint8_t, x, x)
#define ALL(X)                                                                                                         \
    INTEGERS(X)                                                                                                        \
    X(BOOLEAN, uint8_t, x != 0, x != 0)                                                                                \
    X(F64, double, x, truncated(x))                                                                                    \
    X(F32, float, x, truncated((double)x))                                                                             \
    X(F16, uint16_t, qdqi_f32_of_f16(x), truncated((double)qdqi_f32_of_f16(x)))                                        \
    X(BF16, uint16_t, qdqi_f32_of_bf16(x), truncated((double)qdqi_f32_of_bf16(x)))                                     \
    X(F8_E4M3, uint8_t, qdqi_f32_of_f8_e4m3(x), truncated((double)qdqi_f32_of_f8_e4m3(x)))                             \
    X(F8_E5M2, uint8_t, qdqi_f32_of_f8_e5m2(x), truncated((double)qdqi_f32_of_f8_e5m2(x)))

#define LOADS(d, type, value, integer)                                                                                 \
    LOOP(f32_of_##d, type, float, value)                                                                               \
    LOOP(f64_of_##d, type, double, value)                                                                              \
    LOOP(s64_of_##d, type, int64_t, integer)
ALL(LOADS)

/* From s64: the low bits, and saturated. */
#define LEAST(type)    ((type)-1 < (type)1 ? -((int64_t)1 << (8 * sizeof(type) - 1)) : 0)
#define GREATEST(type) (((int64_t)1 << (8 * sizeof(type) - ((type)-1 < (type)1))) - 1)
#define STORES(d, type, value, integer)                                                                                \
    LOOP(low_##d, int64_t, type, x)                                                                                    \
    LOOP(near_##d, int64_t, type, x<LEAST(type) ? LEAST(type) : x> GREATEST(type) ? GREATEST(type) : x)
STORES(S32, int32_t, , )
STORES(S16, int16_t, , )
STORES(U16, uint16_t, , )
STORES(S8, int8_t, , )
STORES(U8, uint8_t, , )
LOOP(truth_of_s64, int64_t, uint8_t, x != 0)
LOOP(truth_of_f64, double, uint8_t, x != 0.0)
LOOP(e4m3_of_f32, float, uint8_t, qdqi_f8_e4m3_of_f32(x, false))
LOOP(e5m2_of_f32, float, uint8_t, qdqi_f8_e5m2_of_f32(x, false))
LOOP(e4m3_near_f32, float, uint8_t, qdqi_f8_e4m3_of_f32(x, true))
LOOP(e5m2_near_f32, float, uint8_t, qdqi_f8_e5m2_of_f32(x, true))

typedef enum middle { BY_F32, BY_F64, BY_S64 } middle;

static loop_fn *load_of(qdq_dtype from, middle by) {
    switch ((int)from) {
#define CASE(d, type, value, integer)                                                                                  \
    case QDQ_DTYPE_##d: return by == BY_F32 ? f32_of_##d : by == BY_F64 ? f64_of_##d : s64_of_##d;
        ALL(CASE)
#undef CASE
    default: return NULL;
    }
}

/* NULL where that is the type between; false where there is none. */
static bool store_of(qdq_dtype to, middle by, bool near, loop_fn **out) {
    *out = NULL;
    switch ((int)to) {
    case QDQ_DTYPE_F32: return by == BY_F32;
    case QDQ_DTYPE_F64: return by == BY_F64;
    case QDQ_DTYPE_S64: return by == BY_S64;
    case QDQ_DTYPE_F16:
    case QDQ_DTYPE_BF16: *out = qk_convert_choose(QDQ_DTYPE_F32, to, NULL); break;
    case QDQ_DTYPE_F8_E4M3: *out = near ? e4m3_near_f32 : e4m3_of_f32; break;
    case QDQ_DTYPE_F8_E5M2: *out = near ? e5m2_near_f32 : e5m2_of_f32; break;
    case QDQ_DTYPE_BOOLEAN: *out = by == BY_S64 ? truth_of_s64 : truth_of_f64; break;
    case QDQ_DTYPE_S32: *out = near ? near_S32 : low_S32; break;
    case QDQ_DTYPE_S16: *out = near ? near_S16 : low_S16; break;
    case QDQ_DTYPE_U16: *out = near ? near_U16 : low_U16; break;
    case QDQ_DTYPE_S8: *out = near ? near_S8 : low_S8; break;
    case QDQ_DTYPE_U8: *out = near ? near_U8 : low_U8; break;
    default: break;
    }
    return *out != NULL;
}

static void cast_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    const int64_t from_bytes = row->walk.elem_bytes[0] * row->walk.step[0], to_bytes = row->walk.elem_bytes[1];
    const int64_t most = row->walk.step[0] != 0 ? PIECE : 1; /* one element for all comes as often as it is needed */
    int64_t room[PIECE];
    for (int64_t i = 0, m; i < n; i += m) {
        m = n - i < most ? n - i : most;
        const void *from = (const char *)src[0] + i * from_bytes;
        void *to = (char *)dst + i * to_bytes;
        row->convert[0](from, row->convert[1] != NULL ? room : to, (size_t)m);
        if (row->convert[1] != NULL) row->convert[1](room, to, (size_t)m);
    }
}

/* In one loop, where the result is not rounded otherwise. */
static void convert_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    row->convert[0](src[0], dst, (size_t)n);
}

qdq_status qdqi_lower_cast(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    const qdq_dtype from = qdqi_lower_val(lw, op->in[0])->desc.dtype, to = qdqi_lower_val(lw, op->out[0])->desc.dtype;
    const bool of_floats = qdqi_dtype_is_float(from), to_floats = qdqi_dtype_is_float(to);
    const qdqi_attr *saturate = qdqi_op_attr_or_null(op, QDQI_A_SATURATE);
    const bool near = to_floats ? saturate == NULL || saturate->v.boolean : of_floats;
    const middle by = to == QDQ_DTYPE_F64 || (to == QDQ_DTYPE_BOOLEAN && of_floats) ? BY_F64
                      : to_floats                                                   ? BY_F32
                                                                                    : BY_S64;
    qdqi_walk_row row = {.run = cast_run, .n_src = 1};
    int64_t grain = GRAIN;
    row.convert[0] = to_floats ? qk_convert_choose(from, to, NULL) : NULL;
    if (row.convert[0] != NULL) {
        row.run = convert_run;
        grain = QDQI_WALK_MOVES;
    } else {
        row.convert[0] = load_of(from, by);
        if (row.convert[0] == NULL || !store_of(to, by, near, &row.convert[1]))
            return qdqi_refuse(err, "cast", "dtype");
    }
    return qdqi_lower_walk(lw, &row, op->in, NULL, op->out[0], grain,
                           op->kind == QDQI_OP_CAST ? "native Cast" : "native TypeCast", err);
}
