/* The functions of a vector level, over the names of simd/vec512.h or vec256.h: included once by pointwise_<level>.c, with
 * QK_POINTWISE_LEVEL(name) giving a function's name. */
#include "kernels/pointwise/pointwise_math_body.h"
#include "kernels/pointwise/pointwise_row.h"
#include "kernels/simd/bf16.h"

#include <stdint.h>
#include <string.h>

/* n is the constant QV_LANES, or less. */
QK_INLINE qv_f load(qdq_dtype dtype, const char *p, size_t n) {
    if (dtype == QDQ_DTYPE_F32) return qv_of_bits(qv_load4(p, n));
    if (dtype == QDQ_DTYPE_BF16) return qv_of_bits(qv_slli(qv_of_u16(qv_load2(p, n)), 16));
    return qv_of_f16(qv_load2(p, n));
}

/* Past the caches: a register of f32, half a one of 16-bit elements, in order, so that lines come together. */
#if defined(__AVX512F__)
typedef __m256i qv_h; /* a register of 16-bit elements */
QK_INLINE void stream4(void *p, qv_i v) {
    _mm512_stream_si512((__m512i *)p, v);
}
QK_INLINE void stream2(void *p, __m256i v) {
    _mm256_stream_si256((__m256i *)p, v);
}
#else
typedef __m128i qv_h;
QK_INLINE void stream4(void *p, qv_i v) {
    _mm256_stream_si256((__m256i *)p, v);
}
QK_INLINE void stream2(void *p, __m128i v) {
    _mm_stream_si128((__m128i *)p, v);
}
#endif

QK_INLINE void store(qdq_dtype dtype, bool stream, char *p, size_t n, qv_f v) {
    if (dtype == QDQ_DTYPE_F32) {
        if (stream)
            stream4(p, qv_bits(v));
        else
            qv_store4(p, n, qv_bits(v));
    } else if (dtype == QDQ_DTYPE_F16) {
        if (stream)
            stream2(p, qv_to_f16(v));
        else
            qv_store2(p, n, qv_to_f16(v));
    } else {
        const qv_h all = qv_high16(qv_bf16_rounded(v));
        if (stream)
            stream2(p, all);
        else
            qv_store2(p, n, all);
    }
}

/* One for all lanes. */
QK_INLINE qv_f same(qdq_dtype dtype, const char *p) {
    float f;
    uint16_t half;
    if (dtype == QDQ_DTYPE_F32) {
        memcpy(&f, p, sizeof f);
        return qv_set1(f);
    }
    memcpy(&half, p, sizeof half);
    if (dtype == QDQ_DTYPE_F16) return qv_set1(_cvtsh_ss(half));
    return qv_of_bits(qv_set1i((int32_t)((uint32_t)half << 16)));
}

#define ZERO                  qv_set1(0.0f)
#define ONE                   qv_set1(1.0f)
#define CLAMPED(x, low, high) qv_min(qv_max(x, low), high)

/* One function for each operation: a loop gets the one it is of as a constant, and the compiler sees no other. IS_SHORT: of bf16. */
typedef qv_f one_op(qv_f X, qv_f W, qv_f A, qv_f B, bool IS_SHORT);
#define QK_UNARY(name, expression)                                                                                     \
    QK_INLINE qv_f apply_##name(qv_f X, qv_f W, qv_f A, qv_f B, bool IS_SHORT) {                                       \
        (void)W, (void)A, (void)B, (void)IS_SHORT;                                                                     \
        return expression;                                                                                             \
    }
#define QK_FUNCTION(name, expression) QK_UNARY(name, expression)
#define QK_PAIR(name, expression)     QK_UNARY(name, expression)
#include "kernels/pointwise/pointwise_ops.def"
#undef QK_UNARY
#undef QK_FUNCTION
#undef QK_PAIR

typedef struct cursor {
    const char *src, *w;
    char *dst;
} cursor;

/* n elements in one vector; `w` is read where `each` is. */
QK_INLINE void step(one_op *apply, qdq_dtype dtype, bool each, bool stream, cursor *at, size_t n, qv_f w, qv_f a,
                    qv_f b) {
    const size_t bytes = n * (dtype == QDQ_DTYPE_F32 ? 4 : 2);
    const qv_f x = load(dtype, at->src, n);
    if (each) w = load(dtype, at->w, n);
    store(dtype, stream, at->dst, n, apply(x, w, a, b, dtype == QDQ_DTYPE_BF16));
    at->src += bytes;
    at->dst += bytes;
    if (each) at->w += bytes;
}

/* A register of bf16: its even and its odd elements. `keeps`: results are as short as the operands. */
QK_INLINE void short_step(one_op *apply, bool keeps, bool each, bool stream, cursor *at, qv_f w, qv_f a, qv_f b) {
    const qv_i x = qv_loadi(at->src), y = each ? qv_loadi(at->w) : qv_bits(w);
    const qv_f even = apply(qk_bf16_even(x), each ? qk_bf16_even(y) : w, a, b, true);
    const qv_f odd = apply(qk_bf16_odd(x), each ? qk_bf16_odd(y) : w, a, b, true);
    qv_i v = qk_bf16_upper(even, odd);
    if (!keeps) v = qk_bf16_rounded(v, qk_bf16_lower(even, odd), false);
    if (stream)
        stream4(at->dst, v);
    else
        qv_storei(at->dst, v);
    at->src += sizeof v;
    at->dst += sizeof v;
    if (each) at->w += sizeof v;
}

/* `is_long`: the loop is one of many instructions, and not worth being there more than once. */
QK_INLINE void row(one_op *apply, qdq_dtype dtype, bool is_long, bool keeps, bool each, bool stream, cursor at,
                   size_t n, qv_f w, qv_f a, qv_f b) {
    if (stream) {
        const size_t size = dtype == QDQ_DTYPE_F32 ? 4 : 2, head = (64 - (uintptr_t)at.dst % 64) % 64 / size;
        size_t left = head < n ? head : n;
        n -= left;
        for (size_t some; left > 0; left -= some) {
            some = left < QV_LANES ? left : QV_LANES;
            step(apply, dtype, each, false, &at, some, w, a, b);
        }
    }
    if (dtype == QDQ_DTYPE_BF16) {
        if (!is_long)
            for (; n >= 8 * QV_LANES; n -= 8 * QV_LANES)
                QK_FOUR_TIMES(k, (void)k; short_step(apply, keeps, each, stream, &at, w, a, b));
        for (; n >= 2 * QV_LANES; n -= 2 * QV_LANES)
            short_step(apply, keeps, each, stream, &at, w, a, b);
    } else if (!is_long) {
        for (; n >= 4 * QV_LANES; n -= 4 * QV_LANES)
            QK_FOUR_TIMES(k, (void)k; step(apply, dtype, each, stream, &at, QV_LANES, w, a, b));
    }
    for (; n >= QV_LANES; n -= QV_LANES)
        step(apply, dtype, each, is_long && stream && dtype != QDQ_DTYPE_BF16, &at, QV_LANES, w, a, b);
    if (n) step(apply, dtype, each, false, &at, n, w, a, b);
}

/* Whose results of bf16 are bf16; a clip's with bounds that are. */
QK_INLINE bool keeps_short(qk_pointwise_op op) {
    return op == QK_POINTWISE_RELU || op == QK_POINTWISE_ABS || op == QK_POINTWISE_CLIP || op == QK_POINTWISE_ROUND ||
           op == QK_POINTWISE_MAX || op == QK_POINTWISE_MIN || op == QK_POINTWISE_GE;
}

QK_INLINE void rows(one_op *apply, qdq_dtype dtype, bool is_long, bool keeps, bool pair, const qk_pointwise *p,
                    const void *src, const void *w, void *dst, size_t n_rows, size_t n_cols) {
    qv_f a = qv_set1(p->alpha), b = qv_set1(p->beta);
    if (dtype == QDQ_DTYPE_BF16 && keeps) {
        const qv_i upper = qv_set1i((int32_t)0xffff0000u);
        a = qv_of_bits(qv_andi(qv_bf16_rounded(a), upper));
        b = qv_of_bits(qv_andi(qv_bf16_rounded(b), upper));
    }
    const bool stream = p->stream && (uintptr_t)dst % 4 == 0 && p->dst_row % 4 == 0, each = pair && !p->common;
    cursor at = {src, w, dst};
    for (; n_rows > 0; n_rows--) {
        const qv_f one = pair && !each ? same(dtype, at.w) : ZERO;
        if (is_long)
            row(apply, dtype, true, keeps, false, stream, at, n_cols, one, a, b);
        else if (stream && each)
            row(apply, dtype, false, keeps, pair, true, at, n_cols, one, a, b);
        else if (stream)
            row(apply, dtype, false, keeps, false, true, at, n_cols, one, a, b);
        else if (each)
            row(apply, dtype, false, keeps, pair, false, at, n_cols, one, a, b);
        else
            row(apply, dtype, false, keeps, false, false, at, n_cols, one, a, b);
        at.src += p->src_row;
        at.dst += p->dst_row;
        if (pair) at.w += p->w_row;
    }
    if (stream) _mm_sfence();
}

#define LOOP(name, dtype, is_long, pair)                                                                               \
    static void name##_##dtype(const qk_pointwise *p, const void *src, const void *w, void *dst, size_t n_rows,        \
                               size_t n_cols) {                                                                        \
        rows(apply_##name, QDQ_DTYPE_##dtype, is_long, keeps_short(QK_POINTWISE_##name), pair, p, src, w, dst, n_rows, \
             n_cols);                                                                                                  \
    }
#define LOOPS(name, is_long, pair)                                                                                     \
    LOOP(name, F32, is_long, pair)                                                                                     \
    LOOP(name, BF16, is_long, pair)                                                                                    \
    LOOP(name, F16, is_long, pair)
#define QK_UNARY(name, expression)    LOOPS(name, false, false)
#define QK_FUNCTION(name, expression) LOOPS(name, true, false)
#define QK_PAIR(name, expression)     LOOPS(name, false, true)
#include "kernels/pointwise/pointwise_ops.def"
#undef QK_UNARY
#undef QK_FUNCTION
#undef QK_PAIR

qk_pointwise_fn *QK_POINTWISE_LEVEL(qk_pointwise_of_)(qk_pointwise_op op, qdq_dtype dtype) {
    static qk_pointwise_fn *const fns[][3] = {
#define QK_UNARY(name, expression)    {name##_F32, name##_BF16, name##_F16},
#define QK_FUNCTION(name, expression) QK_UNARY(name, expression)
#define QK_PAIR(name, expression)     {name##_F32, name##_BF16, name##_F16},
#include "kernels/pointwise/pointwise_ops.def"
#undef QK_UNARY
#undef QK_FUNCTION
#undef QK_PAIR
    };
    if ((uint32_t)op >= QK_POINTWISE_COUNT) return NULL;
    return dtype == QDQ_DTYPE_F32    ? fns[op][0]
           : dtype == QDQ_DTYPE_BF16 ? fns[op][1]
           : dtype == QDQ_DTYPE_F16  ? fns[op][2]
                                     : NULL;
}
