#include "kernels/igemm/igemm_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

/* Six rows by two vectors of columns, a block of 16: 12 sums, two weights, a broadcast source. */
enum { LANES = 8, BLOCK = 16, STEP_BYTES = 4 * BLOCK, SIX_ROWS = 6 };

/* Four k of all rows; `source` makes the dword of row r. */
#define ADD_STEP(source)                                                                                               \
    do {                                                                                                               \
        const __m256i w0 = _mm256_loadu_si256((const __m256i *)(const void *)b),                                       \
                      w1 = _mm256_loadu_si256((const __m256i *)(const void *)(b + 32));                                \
        QK_SIX_TIMES(                                                                                                  \
            r, if (r < mr) {                                                                                           \
                const __m256i x = _mm256_xor_si256(_mm256_set1_epi32(source), sign);                                   \
                s[r][0] = _mm256_dpbusd_avx_epi32(s[r][0], x, w0);                                                     \
                s[r][1] = _mm256_dpbusd_avx_epi32(s[r][1], x, w1);                                                     \
            });                                                                                                        \
        b += STEP_BYTES;                                                                                               \
    } while (0)

QK_INLINE void tile(const qk_igemm *g, const uint8_t *b, const uint8_t *const *rows, int32_t *acc, const int mr) {
    const __m256i sign = _mm256_set1_epi8(g->src_shift != 0 ? (char)0x80 : 0);
    const size_t n4 = g->kc / 4 * 4, tail = g->kc % 4;
    __m256i s[SIX_ROWS][2];
    const uint8_t *a[SIX_ROWS];
    QK_SIX_TIMES(r, if (r < mr) a[r] = rows[r]);
    QK_SIX_TIMES(r, s[r][0] = s[r][1] = _mm256_setzero_si256());
    for (size_t k = 0; k < n4; k += 4)
        ADD_STEP(qk_igemm_load4(a[r] + k));
    if (tail != 0) ADD_STEP(qk_igemm_load_tail(a[r] + n4, tail));
    QK_SIX_TIMES(
        r, if (r < mr) {
            _mm256_storeu_si256((__m256i *)(void *)(acc + r * QK_IGEMM_COLS), s[r][0]);
            _mm256_storeu_si256((__m256i *)(void *)(acc + r * QK_IGEMM_COLS + LANES), s[r][1]);
        });
}

typedef void tile_fn(const qk_igemm *g, const uint8_t *b, const uint8_t *const *rows, int32_t *acc);
#define TILE(mr)                                                                                                       \
    static void tile_##mr(const qk_igemm *g, const uint8_t *b, const uint8_t *const *rows, int32_t *acc) {             \
        tile(g, b, rows, acc, mr);                                                                                     \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
static tile_fn *const tiles[SIX_ROWS] = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};

void qk_igemm_x8_avxvnni(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc) {
    const size_t n_cols = qk_igemm_cols_of(g, panel), block_bytes = qk_igemm_kc(g) * BLOCK;
    const size_t n_tiles = (rows->m + SIX_ROWS - 1) / SIX_ROWS;
    const uint8_t *b = qk_igemm_panel(g, packed, panel);
    for (size_t t = 0; t < n_tiles; t++) {
        const size_t row = rows->m * t / n_tiles, mr = rows->m * (t + 1) / n_tiles - row;
        const uint8_t *a[SIX_ROWS];
        for (size_t r = 0; r < mr; r++)
            a[r] = qk_igemm_row(rows, row + r);
        for (size_t col = 0; col < n_cols; col += BLOCK)
            tiles[mr - 1](g, b + col / BLOCK * block_bytes, a, (int32_t *)acc + row * QK_IGEMM_COLS + col);
    }
}
