#include "kernels/igemm/igemm_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

/* Six rows by two vectors of columns, a block of 16: 12 sums, two weights, a broadcast source. */
enum { LANES = 8, BLOCK = 16 };

#define TILES()                                                                                                        \
    TILE(1)                                                                                                            \
    TILE(2)                                                                                                            \
    TILE(3)                                                                                                            \
    TILE(4)                                                                                                            \
    TILE(5)                                                                                                            \
    TILE(6)
#define FORM(form)                                                                                                     \
    { form##_1, form##_2, form##_3, form##_4, form##_5, form##_6 }

/* ---- integers: pairs of 16-bit words, their products and sum exact in vpmaddwd --------------------------------------------- */

/* A part of the rows' k as words: 6 KiB, and 16 KiB of weights of a block. */
enum { PART = 512, WORD_STEP = BLOCK * 2 * (int)sizeof(int16_t) };

static void widen(const uint8_t *a, size_t n, uint8_t flip, int16_t *out) {
    const __m128i sign = _mm_set1_epi8((char)flip);
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        _mm256_storeu_si256(
            (__m256i *)(void *)(out + i),
            _mm256_cvtepu8_epi16(_mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(a + i)), sign)));
    for (; i < n; i++)
        out[i] = a[i] ^ flip;
    if (n % 2 != 0) out[n] = 0;
}

QK_INLINE int32_t load_pair(const int16_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#define SUM_AT(r, j) ((__m256i *)(void *)(acc + r * QK_IGEMM_COLS + LANES * j))

/* acc += the products of n2 pairs, one block of columns. */
QK_INLINE void tile_words(int16_t (*a)[PART], size_t n2, const uint8_t *b, int32_t *acc, const int mr) {
    __m256i s[QK_IGEMM_ROWS][2];
    QK_SIX_TIMES(r, {
        s[r][0] = r < mr ? _mm256_loadu_si256(SUM_AT(r, 0)) : _mm256_setzero_si256();
        s[r][1] = r < mr ? _mm256_loadu_si256(SUM_AT(r, 1)) : _mm256_setzero_si256();
    });
    for (size_t k = 0; k < n2; k++, b += WORD_STEP) {
        const __m256i w0 = _mm256_loadu_si256((const __m256i *)(const void *)b),
                      w1 = _mm256_loadu_si256((const __m256i *)(const void *)(b + 32));
        QK_SIX_TIMES(
            r, if (r < mr) {
                const __m256i x = _mm256_set1_epi32(load_pair(a[r] + 2 * k));
                s[r][0] = _mm256_add_epi32(s[r][0], _mm256_madd_epi16(x, w0));
                s[r][1] = _mm256_add_epi32(s[r][1], _mm256_madd_epi16(x, w1));
            });
    }
    QK_SIX_TIMES(
        r, if (r < mr) {
            _mm256_storeu_si256(SUM_AT(r, 0), s[r][0]);
            _mm256_storeu_si256(SUM_AT(r, 1), s[r][1]);
        });
}

typedef void words_fn(int16_t (*a)[PART], size_t n2, const uint8_t *b, int32_t *acc);
#define TILE(mr)                                                                                                       \
    static void words_##mr(int16_t(*a)[PART], size_t n2, const uint8_t *b, int32_t *acc) {                             \
        tile_words(a, n2, b, acc, mr);                                                                                 \
    }
TILES()
#undef TILE
static words_fn *const word_tiles[QK_IGEMM_ROWS] = FORM(words);

void qk_igemm_x8_avx2(const qk_igemm *g, const void *packed, const void *const *rows, size_t m, size_t panel,
                      void *acc) {
    const size_t n_cols = qk_igemm_cols_of(g, panel), block_bytes = g->n_taps * qk_igemm_kc(g) * BLOCK * 2;
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0, *b = qk_igemm_panel(g, packed, panel);
    _Alignas(32) int16_t a[QK_IGEMM_ROWS][PART];
    memset(acc, 0, m * QK_IGEMM_COLS * sizeof(int32_t));
    for (size_t t = 0; t < g->n_taps; t++, rows += QK_IGEMM_ROWS)
        for (size_t k = 0; k < g->kc; k += PART) {
            const size_t n = g->kc - k < PART ? g->kc - k : PART, n2 = (n + 1) / 2;
            for (size_t r = 0; r < m; r++)
                widen((const uint8_t *)rows[r] + k, n, flip, a[r]);
            for (size_t col = 0; col < n_cols; col += BLOCK)
                word_tiles[m - 1](a, n2, b + col / BLOCK * block_bytes, (int32_t *)acc + col);
            b += n2 * WORD_STEP;
        }
}

void qk_igemm_sums_avx2(const qk_igemm *g, const void *const *rows, size_t m, int32_t *sums) {
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    const __m256i sign = _mm256_set1_epi8((char)flip);
    for (size_t r = 0; r < m; r++) {
        __m256i s = _mm256_setzero_si256();
        uint32_t tail = 0;
        for (size_t t = 0; t < g->n_taps; t++) {
            const uint8_t *a = rows[t * QK_IGEMM_ROWS + r];
            size_t k = 0;
            for (; g->kc - k >= 32; k += 32) {
                const __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(a + k)), sign);
                s = _mm256_add_epi64(s, _mm256_sad_epu8(x, _mm256_setzero_si256()));
            }
            for (; k < g->kc; k++)
                tail += a[k] ^ flip;
        }
        const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
        sums[r] = (int32_t)(tail + (uint32_t)_mm_cvtsi128_si32(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))));
    }
}

/* ---- floats ------------------------------------------------------------------------------------------------------------- */

QK_INLINE void tile_f32(const qk_igemm *g, const float *b, const void *const *rows, float *acc, const int mr) {
    __m256 s[QK_IGEMM_ROWS][2];
    QK_SIX_TIMES(r, s[r][0] = s[r][1] = _mm256_setzero_ps());
    for (size_t t = 0; t < g->n_taps; t++, rows += QK_IGEMM_ROWS) {
        const float *a[QK_IGEMM_ROWS];
        QK_SIX_TIMES(r, if (r < mr) a[r] = rows[r]);
        for (size_t k = 0; k < g->kc; k++, b += BLOCK) {
            const __m256 w0 = _mm256_loadu_ps(b), w1 = _mm256_loadu_ps(b + LANES);
            QK_SIX_TIMES(
                r, if (r < mr) {
                    const __m256 x = _mm256_broadcast_ss(a[r] + k);
                    s[r][0] = _mm256_fmadd_ps(x, w0, s[r][0]);
                    s[r][1] = _mm256_fmadd_ps(x, w1, s[r][1]);
                });
        }
    }
    QK_SIX_TIMES(
        r, if (r < mr) {
            _mm256_storeu_ps(acc + r * QK_IGEMM_COLS, s[r][0]);
            _mm256_storeu_ps(acc + r * QK_IGEMM_COLS + LANES, s[r][1]);
        });
}

typedef void f32_fn(const qk_igemm *g, const float *b, const void *const *rows, float *acc);
#define TILE(mr)                                                                                                       \
    static void f32_##mr(const qk_igemm *g, const float *b, const void *const *rows, float *acc) {                     \
        tile_f32(g, b, rows, acc, mr);                                                                                 \
    }
TILES()
#undef TILE
static f32_fn *const f32_tiles[QK_IGEMM_ROWS] = FORM(f32);

/* One or two rows: eight sums from several blocks, for an addition takes four steps and two begin in each. */
QK_INLINE void few_rows_f32(const qk_igemm *g, const float *b, size_t block, const void *const *rows, float *acc,
                            const int mr) {
    const int n_blocks = 4 / mr;
    __m256 s[2][4][2];
    QK_FOUR_TIMES(q, s[0][q][0] = s[0][q][1] = s[1][q][0] = s[1][q][1] = _mm256_setzero_ps());
    for (size_t t = 0; t < g->n_taps; t++, rows += QK_IGEMM_ROWS) {
        const float *a0 = rows[0], *a1 = mr > 1 ? rows[1] : NULL;
        for (size_t k = 0; k < g->kc; k++, b += BLOCK) {
            const __m256 x0 = _mm256_broadcast_ss(a0 + k), x1 = mr > 1 ? _mm256_broadcast_ss(a1 + k) : x0;
            QK_FOUR_TIMES(
                q, if (q < n_blocks) {
                    const __m256 w0 = _mm256_loadu_ps(b + q * block), w1 = _mm256_loadu_ps(b + q * block + LANES);
                    s[0][q][0] = _mm256_fmadd_ps(x0, w0, s[0][q][0]);
                    s[0][q][1] = _mm256_fmadd_ps(x0, w1, s[0][q][1]);
                    if (mr > 1) {
                        s[1][q][0] = _mm256_fmadd_ps(x1, w0, s[1][q][0]);
                        s[1][q][1] = _mm256_fmadd_ps(x1, w1, s[1][q][1]);
                    }
                });
        }
    }
    QK_FOUR_TIMES(
        q, if (q < n_blocks) {
            for (int r = 0; r < mr; r++) {
                _mm256_storeu_ps(acc + r * QK_IGEMM_COLS + q * BLOCK, s[r][q][0]);
                _mm256_storeu_ps(acc + r * QK_IGEMM_COLS + q * BLOCK + LANES, s[r][q][1]);
            }
        });
}

static void one_row_f32(const qk_igemm *g, const float *b, size_t block, const void *const *rows, float *acc) {
    few_rows_f32(g, b, block, rows, acc, 1);
}
static void two_rows_f32(const qk_igemm *g, const float *b, size_t block, const void *const *rows, float *acc) {
    few_rows_f32(g, b, block, rows, acc, 2);
}

void qk_igemm_f32_avx2(const qk_igemm *g, const void *packed, const void *const *rows, size_t m, size_t panel,
                       void *acc) {
    const size_t n_cols = qk_igemm_cols_of(g, panel), block = g->n_taps * g->kc * BLOCK;
    const float *b = (const float *)(const void *)qk_igemm_panel(g, packed, panel);
    size_t col = 0;
    if (m == 1 && n_cols > 3 * BLOCK) {
        one_row_f32(g, b, block, rows, acc);
        return;
    }
    for (; m == 2 && n_cols > col + BLOCK; col += 2 * BLOCK)
        two_rows_f32(g, b + col / BLOCK * block, block, rows, (float *)acc + col);
    for (; col < n_cols; col += BLOCK)
        f32_tiles[m - 1](g, b + col / BLOCK * block, rows, (float *)acc + col);
}
