/* The functions of a vector level: included once by convert_<level>.c with QK_CONVERT_LEVEL(name) giving a function's name. */
#include "kernels/convert/convert_row.h"
#include "kernels/simd/vec.h"

#define CONVERT(from, to)                                                                                              \
    static void from##_##to(const void *src, void *dst, size_t n) {                                                    \
        enum { F = QDQ_DTYPE_##from, T = QDQ_DTYPE_##to };                                                             \
        const char *s = src;                                                                                           \
        char *d = dst;                                                                                                 \
        size_t i = 0;                                                                                                  \
        for (; n - i >= 4 * QKV_LANES; i += 4 * QKV_LANES) {                                                           \
            qkv v[4];                                                                                                  \
            QK_FOUR_TIMES(k, v[k] = number((qdq_dtype)T, qkv_load((qdq_dtype)F, s + (i + (size_t)k * QKV_LANES) *      \
                                                                                        qkv_bytes((qdq_dtype)F))));    \
            qkv_store4((qdq_dtype)T, d + i * qkv_bytes((qdq_dtype)T), v);                                              \
        }                                                                                                              \
        for (; n - i >= QKV_LANES; i += QKV_LANES)                                                                     \
            qkv_store((qdq_dtype)T, d + i * qkv_bytes((qdq_dtype)T),                                                   \
                      number((qdq_dtype)T, qkv_load((qdq_dtype)F, s + i * qkv_bytes((qdq_dtype)F))));                  \
        if (i < n)                                                                                                     \
            qkv_store_n((qdq_dtype)T, d + i * qkv_bytes((qdq_dtype)T),                                                 \
                        number((qdq_dtype)T, qkv_load_n((qdq_dtype)F, s + i * qkv_bytes((qdq_dtype)F), n - i)),        \
                        n - i);                                                                                        \
    }

/* To 8 bits a NaN is 0. */
QK_INLINE qkv number(qdq_dtype to, qkv v) {
#if defined(__AVX512F__)
    return qkv_is_x8(to) ? _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v) : v;
#else
    return qkv_is_x8(to) ? _mm256_and_ps(_mm256_cmp_ps(v, v, _CMP_ORD_Q), v) : v;
#endif
}

CONVERT(F32, BF16)

#if defined(__AVX512BF16__)

/* The rest is no better than on the level below. */
qk_convert_fn *QK_CONVERT_LEVEL(qk_convert_of_)(qdq_dtype from, qdq_dtype to) {
    return from == QDQ_DTYPE_F32 && to == QDQ_DTYPE_BF16 ? F32_BF16 : NULL;
}

#else

CONVERT(F32, F32)
CONVERT(BF16, F32)
CONVERT(F16, F32)
CONVERT(U8, F32)
CONVERT(S8, F32)
CONVERT(S32, F32)
CONVERT(F32, F16)
CONVERT(F32, U8)
CONVERT(F32, S8)

qk_convert_fn *QK_CONVERT_LEVEL(qk_convert_of_)(qdq_dtype from, qdq_dtype to) {
    if (to == QDQ_DTYPE_F32) {
        switch ((int)from) {
        case QDQ_DTYPE_F32: return F32_F32;
        case QDQ_DTYPE_BF16: return BF16_F32;
        case QDQ_DTYPE_F16: return F16_F32;
        case QDQ_DTYPE_U8: return U8_F32;
        case QDQ_DTYPE_S8: return S8_F32;
        case QDQ_DTYPE_S32: return S32_F32;
        default: return NULL;
        }
    }
    if (from != QDQ_DTYPE_F32) return NULL;
    switch ((int)to) {
    case QDQ_DTYPE_BF16: return F32_BF16;
    case QDQ_DTYPE_F16: return F32_F16;
    case QDQ_DTYPE_U8: return F32_U8;
    case QDQ_DTYPE_S8: return F32_S8;
    default: return NULL;
    }
}

#endif
