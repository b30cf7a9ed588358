#include "kernels/igemm/igemm_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

enum { LANES = 16 };

#define ROW(form, mr)                                                                                                  \
    { form##_##mr##_1, form##_##mr##_2, form##_##mr##_3, form##_##mr##_4 }
#define FORM(form)                                                                                                     \
    { ROW(form, 1), ROW(form, 2), ROW(form, 3), ROW(form, 4), ROW(form, 5), ROW(form, 6) }
#define TILES(mr) TILE(mr, 1) TILE(mr, 2) TILE(mr, 3) TILE(mr, 4)

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

QK_INLINE int32_t load_pair(const int16_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* acc += the products of n2 pairs. */
QK_INLINE void tile_words(int16_t (*a)[PART], size_t n2, const uint8_t *b, int32_t *acc, const int mr, const int nv) {
    __m512i s[QK_IGEMM_ROWS][4], w[4];
    QK_SIX_TIMES(r,
                 QK_FOUR_TIMES(j, s[r][j] = r < mr && j < nv ? _mm512_loadu_si512(acc + r * QK_IGEMM_COLS + LANES * j)
                                                             : _mm512_setzero_si512()));
    for (size_t k = 0; k < n2; k++, b += WORD_STEP) {
        QK_FOUR_TIMES(j, if (j < nv) w[j] = _mm512_loadu_si512(b + 64 * j));
        QK_SIX_TIMES(
            r, if (r < mr) {
                const __m512i x = _mm512_set1_epi32(load_pair(a[r] + 2 * k));
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
static words_fn *const word_tiles[QK_IGEMM_ROWS][4] = FORM(words);

void qk_igemm_x8_avx512(const qk_igemm *g, const void *packed, const void *const *rows, size_t m, size_t panel,
                        void *acc) {
    const size_t nv = (qk_igemm_cols_of(g, panel) + LANES - 1) / LANES;
    words_fn *const run = word_tiles[m - 1][nv - 1];
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0, *b = qk_igemm_panel(g, packed, panel);
    _Alignas(64) int16_t a[QK_IGEMM_ROWS][PART];
    memset(acc, 0, m * QK_IGEMM_COLS * sizeof(int32_t));
    for (size_t t = 0; t < g->n_taps; t++, rows += QK_IGEMM_ROWS)
        for (size_t k = 0; k < g->kc; k += PART) {
            const size_t n = g->kc - k < PART ? g->kc - k : PART, n2 = (n + 1) / 2;
            for (size_t r = 0; r < m; r++)
                widen((const uint8_t *)rows[r] + k, n, flip, a[r]);
            run(a, n2, b, acc);
            b += n2 * WORD_STEP;
        }
}

/* ---- floats ------------------------------------------------------------------------------------------------------------- */

QK_INLINE void tile_f32(const qk_igemm *g, const float *b, const void *const *rows, float *acc, const int mr,
                        const int nv) {
    __m512 s[QK_IGEMM_ROWS][4], w[4];
    QK_SIX_TIMES(r, QK_FOUR_TIMES(j, s[r][j] = _mm512_setzero_ps()));
    for (size_t t = 0; t < g->n_taps; t++, rows += QK_IGEMM_ROWS) {
        const float *a[QK_IGEMM_ROWS];
        QK_SIX_TIMES(r, if (r < mr) a[r] = rows[r]);
        for (size_t k = 0; k < g->kc; k++, b += QK_IGEMM_COLS) {
            QK_FOUR_TIMES(j, if (j < nv) w[j] = _mm512_loadu_ps(b + LANES * j));
            QK_SIX_TIMES(
                r, if (r < mr) {
                    const __m512 x = _mm512_set1_ps(a[r][k]);
                    QK_FOUR_TIMES(j, if (j < nv) s[r][j] = _mm512_fmadd_ps(x, w[j], s[r][j]));
                });
        }
    }
    QK_SIX_TIMES(r, if (r < mr)
                        QK_FOUR_TIMES(j, if (j < nv) _mm512_storeu_ps(acc + r * QK_IGEMM_COLS + LANES * j, s[r][j])));
}

typedef void f32_fn(const qk_igemm *g, const float *b, const void *const *rows, float *acc);
#define TILE(mr, nv)                                                                                                   \
    static void f32_##mr##_##nv(const qk_igemm *g, const float *b, const void *const *rows, float *acc) {              \
        tile_f32(g, b, rows, acc, mr, nv);                                                                             \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
#undef TILE
static f32_fn *const f32_tiles[QK_IGEMM_ROWS][4] = FORM(f32);

void qk_igemm_f32_avx512(const qk_igemm *g, const void *packed, const void *const *rows, size_t m, size_t panel,
                         void *acc) {
    const size_t nv = (qk_igemm_cols_of(g, panel) + LANES - 1) / LANES;
    f32_tiles[m - 1][nv - 1](g, (const float *)(const void *)qk_igemm_panel(g, packed, panel), rows, acc);
}
