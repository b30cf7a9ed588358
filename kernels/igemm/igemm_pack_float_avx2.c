#include "kernels/simd/vec256.h"

#define EIGHT_TIMES(i, ...)                                                                                            \
    QK_FOUR_TIMES(p_, {                                                                                                \
        {                                                                                                              \
            enum { i = 2 * p_ };                                                                                       \
            __VA_ARGS__;                                                                                               \
    }                                                                                                                  \
    {                                                                                                                  \
        enum { i = 2 * p_ + 1 };                                                                                       \
        __VA_ARGS__;                                                                                                   \
    }                                                                                                                  \
    })

/* Eight vectors of eight dwords as a matrix, transposed in place. */
QK_INLINE void transpose8(__m256i v[8]) {
    __m256i a[8], b[8];
    QK_FOUR_TIMES(i, {
        a[2 * i] = _mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    });
    /* b[4 h + j]: dword j of vectors 4 h … 4 h + 3, and dword 4 + j in the upper lane */
    EIGHT_TIMES(i, {
        enum { h = i / 4 * 4, from = h + i % 4 / 2 };
        b[i] = i % 2 == 0 ? _mm256_unpacklo_epi64(a[from], a[from + 2]) : _mm256_unpackhi_epi64(a[from], a[from + 2]);
    });
    QK_FOUR_TIMES(j, {
        v[j] = _mm256_permute2x128_si256(b[j], b[j + 4], 0x20);
        v[j + 4] = _mm256_permute2x128_si256(b[j], b[j + 4], 0x31);
    });
}

enum { NR = 16 };
#define LANES_TIMES(i, ...) EIGHT_TIMES(i, __VA_ARGS__)
#define TRANSPOSE(v)        transpose8(v)
#include "kernels/igemm/igemm_pack_float_body.h"

bool qk_igemm_pack_f32_avx2(const qk_igemm *g, const qk_igemm_source *s, size_t panel, void *out, int32_t *sums) {
    (void)sums;
    return pack(g, s, panel, out);
}
