#include "kernels/convert/convert_row.h"
#include "kernels/simd/scalar.h"

#define CONVERT(from, to)                                                                                              \
    static void from##_##to(const void *src, void *dst, size_t n) {                                                    \
        const bool to_8 = QDQ_DTYPE_##to == QDQ_DTYPE_U8 || QDQ_DTYPE_##to == QDQ_DTYPE_S8;                            \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const float v = qks_load(QDQ_DTYPE_##from, src, i);                                                        \
            qks_store(QDQ_DTYPE_##to, dst, i, to_8 &&isnan(v) ? 0.0f : v);                                             \
        }                                                                                                              \
    }
#define PAIRS(X)                                                                                                       \
    X(F32, F32)                                                                                                        \
    X(BF16, F32)                                                                                                       \
    X(F16, F32)                                                                                                        \
    X(U8, F32)                                                                                                         \
    X(S8, F32) X(S32, F32) X(F32, BF16) X(F32, F16) X(F32, U8) X(F32, S8)

PAIRS(CONVERT)

qk_convert_fn *qk_convert_of_ref(qdq_dtype from, qdq_dtype to) {
#define MATCH(f, t)                                                                                                    \
    if (from == QDQ_DTYPE_##f && to == QDQ_DTYPE_##t) return f##_##t;
    PAIRS(MATCH)
    return NULL;
}
