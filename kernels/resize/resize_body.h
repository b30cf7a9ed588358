/* The functions of a vector level: included once by resize_<level>.c with QK_RESIZE_LEVEL, its table's name. */
#include "kernels/resize/resize_row.h"
#include "kernels/simd/vec.h"

QK_INLINE qkv blended(qdq_dtype S, const void *const *src, const float *weights, size_t n_src, size_t i, size_t m) {
    qkv v = qkv_zero();
    for (size_t k = 0; k < n_src; k++) {
        const char *x = (const char *)src[k] + i * qkv_bytes(S);
        v = qkv_fma(m == QKV_LANES ? qkv_load(S, x) : qkv_load_n(S, x, m), qkv_set(weights[k]), v);
    }
    return v;
}

static void end(const qk_resize *resize, bool to_floats, qkv v, char *dst, size_t i, size_t m) {
    const qdq_dtype to = to_floats ? QDQ_DTYPE_F32 : resize->dst;
    if (!to_floats) v = qkv_fma(v, qkv_set(resize->factor), qkv_set(resize->add));
    char *y = dst + i * qkv_bytes(to);
    if (m == QKV_LANES) {
        QKV_BY_TYPE(to, D, qkv_store((qdq_dtype)D, y, v));
    } else {
        QKV_BY_TYPE(to, D, qkv_store_n((qdq_dtype)D, y, v, m));
    }
}

static void blend(const qk_resize *resize, bool to_floats, const void *const *src, const float *weights, size_t n_src,
                  void *dst, size_t n) {
    for (size_t i = 0; i < n; i += QKV_LANES) {
        const size_t m = n - i < QKV_LANES ? n - i : QKV_LANES;
        qkv v = qkv_zero();
        QKV_BY_TYPE(resize->src, S, v = blended((qdq_dtype)S, src, weights, n_src, i, m));
        end(resize, to_floats, v, dst, i, m);
    }
}

/* Sixteen (eight) elements of the row by their numbers. */
#if defined(__AVX512F__)
QK_INLINE qkv gathered(const float *row, const int32_t *at, size_t m) {
    const __mmask16 lanes = qkv_first(m);
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), lanes, _mm512_maskz_loadu_epi32(lanes, at), row, 4);
}
#else
QK_INLINE qkv gathered(const float *row, const int32_t *at, size_t m) {
    const __m256i lanes = qkv_first(m);
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), row, _mm256_maskload_epi32(at, lanes),
                                    _mm256_castsi256_ps(lanes), 4);
}
#endif

static void across(const qk_resize *resize, const float *row, const int32_t *lo, const int32_t *hi, const float *w,
                   void *dst, size_t n) {
    for (size_t i = 0; i < n; i += QKV_LANES) {
        const size_t m = n - i < QKV_LANES ? n - i : QKV_LANES;
        const qkv a = gathered(row, lo + i, m), b = gathered(row, hi + i, m), t = qkv_loadu_n(w + i, m);
        /* an infinity at a tap without weight stays out */
        const qkv v = qkv_less(qkv_zero(), t, qkv_fma(qkv_sub(b, a), t, a), a);
        end(resize, false, v, dst, i, m);
    }
}

const qk_resize_fns QK_RESIZE_LEVEL = {blend, across};
