#include "kernels/igemm/igemm_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

/* Six rows by four vectors of columns: 24 sums, four weights, a broadcast source. */
enum { LANES = 16, STEP_BYTES = 4 * QK_IGEMM_COLS };

QK_INLINE int32_t load4(const uint8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Four k of all rows; `source` makes the dword of row r. */
#define ADD_STEP(source)                                                                                               \
    do {                                                                                                               \
        QK_FOUR_TIMES(j, if (j < nv) w[j] = _mm512_loadu_si512(b + 64 * j));                                           \
        QK_SIX_TIMES(                                                                                                  \
            r, if (r < mr) {                                                                                           \
                __m512i x = _mm512_set1_epi32(source);                                                                 \
                if (flip) x = _mm512_xor_si512(x, sign);                                                               \
                QK_FOUR_TIMES(j, if (j < nv) s[r][j] = _mm512_dpbusd_epi32(s[r][j], x, w[j]));                         \
            });                                                                                                        \
        b += STEP_BYTES;                                                                                               \
    } while (0)

/* mr, nv and flip are constants of the caller. */
QK_INLINE void tile(const qk_igemm *g, const uint8_t *b, const void *const *rows, int32_t *acc, const int mr,
                    const int nv, const bool flip) {
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    const size_t n4 = g->kc / 4 * 4, tail = g->kc % 4;
    __m512i s[QK_IGEMM_ROWS][4], w[4];
    QK_SIX_TIMES(r, QK_FOUR_TIMES(j, s[r][j] = _mm512_setzero_si512()));
    for (size_t t = 0; t < g->n_taps; t++, rows += QK_IGEMM_ROWS) {
        const uint8_t *a[QK_IGEMM_ROWS];
        QK_SIX_TIMES(r, if (r < mr) a[r] = rows[r]);
        for (size_t k = 0; k < n4; k += 4)
            ADD_STEP(load4(a[r] + k));
        if (tail != 0) ADD_STEP(qk_igemm_load_tail(a[r] + n4, tail));
    }
    QK_SIX_TIMES(
        r, if (r < mr) QK_FOUR_TIMES(j, if (j < nv) _mm512_storeu_si512(acc + r * QK_IGEMM_COLS + LANES * j, s[r][j])));
}

typedef void tile_fn(const qk_igemm *g, const uint8_t *b, const void *const *rows, int32_t *acc);
#define TILE(mr, nv)                                                                                                   \
    static void tile_##mr##_##nv(const qk_igemm *g, const uint8_t *b, const void *const *rows, int32_t *acc) {         \
        tile(g, b, rows, acc, mr, nv, false);                                                                          \
    }                                                                                                                  \
    static void flip_##mr##_##nv(const qk_igemm *g, const uint8_t *b, const void *const *rows, int32_t *acc) {         \
        tile(g, b, rows, acc, mr, nv, true);                                                                           \
    }
#define TILES(mr) TILE(mr, 1) TILE(mr, 2) TILE(mr, 3) TILE(mr, 4)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)

#define ROW(form, mr)                                                                                                  \
    { form##_##mr##_1, form##_##mr##_2, form##_##mr##_3, form##_##mr##_4 }
#define FORM(form)                                                                                                     \
    { ROW(form, 1), ROW(form, 2), ROW(form, 3), ROW(form, 4), ROW(form, 5), ROW(form, 6) }
static tile_fn *const tiles[2][QK_IGEMM_ROWS][4] = {FORM(tile), FORM(flip)};

void qk_igemm_x8_avx512vnni(const qk_igemm *g, const void *packed, const void *const *rows, size_t m, size_t panel,
                            void *acc) {
    const size_t nv = (qk_igemm_cols_of(g, panel) + LANES - 1) / LANES;
    tiles[g->src_shift != 0][m - 1][nv - 1](g, qk_igemm_panel(g, packed, panel), rows, acc);
}
