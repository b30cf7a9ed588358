#include "kernels/igemm/igemm_end512_body.h"

/* ---- integers: pairs of 16-bit words, their products and sum exact in vpmaddwd --------------------------------------------- */

/* A part of the rows' k as words; its weights are 64 KiB. */
enum { PART = 512, WORD_STEP = QK_IGEMM_COLS * 2 * (int)sizeof(int16_t) };

static void widen(const uint8_t *a, size_t n, uint8_t flip, int16_t *out) {
    const __m256i sign = _mm256_set1_epi8((char)flip);
    size_t i = 0;
    for (; n - i >= 32; i += 32)
        _mm512_storeu_si512(out + i, _mm512_cvtepu8_epi16(_mm256_xor_si256(
                                         _mm256_loadu_si256((const __m256i *)(const void *)(a + i)), sign)));
    if (i == n) return;
    const __mmask32 lanes = (__mmask32)((1u << (n - i)) - 1u);
    _mm512_storeu_si512(out + i, _mm512_cvtepu8_epi16(_mm256_xor_si256(_mm256_maskz_loadu_epi8(lanes, a + i), sign)));
}

/* acc += the products of n2 pairs. */
QK_INLINE void tile_words(int16_t (*a)[PART], size_t n2, const uint8_t *b, int32_t *acc, const int mr, const int nv) {
    __m512i s[SIX_ROWS][4], w[4];
    QK_SIX_TIMES(r,
                 QK_FOUR_TIMES(j, s[r][j] = r < mr && j < nv ? _mm512_loadu_si512(acc + r * QK_IGEMM_COLS + LANES * j)
                                                             : _mm512_setzero_si512()));
    for (size_t k = 0; k < n2; k++, b += WORD_STEP) {
        QK_FOUR_TIMES(j, if (j < nv) w[j] = _mm512_loadu_si512(b + 64 * j));
        QK_SIX_TIMES(
            r, if (r < mr) {
                const __m512i x = _mm512_set1_epi32(qk_igemm_load4(a[r] + 2 * k));
                QK_FOUR_TIMES(j, if (j < nv) s[r][j] = _mm512_add_epi32(s[r][j], _mm512_madd_epi16(x, w[j])));
            });
    }
    QK_SIX_TIMES(
        r, if (r < mr) QK_FOUR_TIMES(j, if (j < nv) _mm512_storeu_si512(acc + r * QK_IGEMM_COLS + LANES * j, s[r][j])));
}

typedef void words_fn(int16_t (*a)[PART], size_t n2, const uint8_t *b, int32_t *acc);
#define TILE(mr, nv)                                                                                                   \
    static void words_##mr##_##nv(int16_t(*a)[PART], size_t n2, const uint8_t *b, int32_t *acc) {                      \
        tile_words(a, n2, b, acc, mr, nv);                                                                             \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
#undef TILE
static words_fn *const word_tiles[SIX_ROWS][4] = FORM(words);

/* m is 1 … SIX_ROWS */
static void rows_x8(const qk_igemm *g, const uint8_t *b, const qk_igemm_rows *rows, size_t first, size_t m, size_t nv,
                    int32_t *acc) {
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    _Alignas(64) int16_t a[SIX_ROWS][PART];
    memset(acc, 0, m * QK_IGEMM_COLS * sizeof(int32_t));
    for (size_t k = 0; k < g->kc; k += PART) {
        const size_t n = g->kc - k < PART ? g->kc - k : PART, n2 = (n + 1) / 2;
        for (size_t r = 0; r < m; r++)
            widen((const uint8_t *)qk_igemm_row(rows, first + r) + k, n, flip, a[r]);
        word_tiles[m - 1][nv - 1](a, n2, b, acc);
        b += n2 * WORD_STEP;
    }
}

void qk_igemm_x8_avx512(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc) {
    const size_t nv = (qk_igemm_cols_of(g, panel) + LANES - 1) / LANES;
    const size_t n_tiles = (rows->m + SIX_ROWS - 1) / SIX_ROWS;
    for (size_t t = 0; t < n_tiles; t++) {
        const size_t row = rows->m * t / n_tiles, mr = rows->m * (t + 1) / n_tiles - row;
        rows_x8(g, qk_igemm_panel(g, packed, panel), rows, row, mr, nv, (int32_t *)acc + row * QK_IGEMM_COLS);
    }
}
