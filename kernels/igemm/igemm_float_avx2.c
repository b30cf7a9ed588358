#include "kernels/igemm/igemm_end256_body.h"

#define ELEM_BYTES          4
#define LOAD_SOME(p, n)     qv_load4(p, n)
#define ADD_DOTS(sum, x, w) qv_fma(qv_of_bits(x), qv_of_bits(w), sum)
#include "kernels/igemm/igemm_dots_body.h"

/* Six rows by two vectors of columns: 12 sums, two weights, a broadcast source. */
enum { SIX_ROWS = 6, AHEAD = 16 };

/* Where weights are: column c of k is element k * step + c / BLOCK * block + c % BLOCK. */
typedef struct weights {
    const float *data;
    size_t step, block;
} weights;

/* A row of a block: the sums as they are, or what becomes of them. */
QK_INLINE void end_row(const __m256 *s, const panel_end *e, const size_t col, char *to) {
    if (e->what == SUMS || (e->what == BARE_FLOATS && e->n_cols - col >= BLOCK)) {
        _mm256_storeu_ps((float *)(void *)to, s[0]);
        _mm256_storeu_ps((float *)(void *)to + LANES, s[1]);
    } else {
        floats_row(s, e, col, to);
    }
}

/* One block, from column col of the panel on. */
QK_INLINE void tile(const qk_igemm *g, const weights *w, const char *a, ptrdiff_t row_bytes, const panel_end *e,
                    const size_t col, char *to, const int mr) {
    const float *b = w->data + col / BLOCK * w->block;
    const size_t step = w->step;
    __m256 s[SIX_ROWS][2];
    QK_SIX_TIMES(r, s[r][0] = s[r][1] = _mm256_setzero_ps());
    for (size_t k = 0; k < g->kc; k++, b += step, a += sizeof(float)) {
        const __m256 w0 = _mm256_loadu_ps(b), w1 = _mm256_loadu_ps(b + LANES);
        QK_SIX_TIMES(
            r, if (r < mr) {
                const __m256 x = _mm256_broadcast_ss((const float *)(const void *)(a + r * row_bytes));
                s[r][0] = _mm256_fmadd_ps(x, w0, s[r][0]);
                s[r][1] = _mm256_fmadd_ps(x, w1, s[r][1]);
            });
    }
    QK_SIX_TIMES(r, if (r < mr) end_row(s[r], e, col, to + r * e->stride_bytes));
}

typedef void tile_fn(const qk_igemm *g, const weights *w, const char *a, ptrdiff_t row_bytes, const panel_end *e,
                     size_t col, char *to);
#define TILE(mr)                                                                                                       \
    static void tile_##mr(const qk_igemm *g, const weights *w, const char *a, ptrdiff_t row_bytes, const panel_end *e, \
                          size_t col, char *to) {                                                                      \
        tile(g, w, a, row_bytes, e, col, to, mr);                                                                      \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#undef TILE
static tile_fn *const tiles[SIX_ROWS] = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};

/* One or two rows: eight sums from several blocks, for an addition takes four steps and two begin in each. Where weights lie, a k is
 * one piece of a line of memory: too short for the CPU to see what comes. */
QK_INLINE void few_rows(const qk_igemm *g, const weights *w, const char *a, ptrdiff_t row_bytes, const panel_end *e,
                        const size_t col, char *to, const int mr, const bool lies) {
    const int n_blocks = 4 / mr;
    const size_t step = w->step, block = w->block;
    const float *b = w->data + col / BLOCK * block;
    __m256 s[2][4][2];
    QK_FOUR_TIMES(q, s[0][q][0] = s[0][q][1] = s[1][q][0] = s[1][q][1] = _mm256_setzero_ps());
    for (size_t k = 0; k < g->kc; k++, b += step, a += sizeof(float)) {
        if (lies) QK_FOUR_TIMES(q, _mm_prefetch((const char *)(b + AHEAD * step + q * BLOCK), _MM_HINT_T0));
        const __m256 x0 = _mm256_broadcast_ss((const float *)(const void *)a),
                     x1 = mr > 1 ? _mm256_broadcast_ss((const float *)(const void *)(a + row_bytes)) : x0;
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
    QK_FOUR_TIMES(
        q, if (q < n_blocks) {
            end_row(s[0][q], e, col + q * BLOCK, to + 4 * q * BLOCK);
            if (mr > 1) end_row(s[1][q], e, col + q * BLOCK, to + e->stride_bytes + 4 * q * BLOCK);
        });
}

static void one_row(const qk_igemm *g, const weights *w, const char *a, const panel_end *e, char *to) {
    if (g->k_step != 0)
        few_rows(g, w, a, 0, e, 0, to, 1, true);
    else
        few_rows(g, w, a, 0, e, 0, to, 1, false);
}
static void two_rows(const qk_igemm *g, const weights *w, const char *a, ptrdiff_t row_bytes, const panel_end *e,
                     size_t col, char *to) {
    few_rows(g, w, a, row_bytes, e, col, to, 2, false);
}

/* Any number of rows; those of the next tile are fetched for writing. */
static void run(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, const panel_end *e,
                char *to) {
    const size_t n_cols = qk_igemm_cols_of(g, panel), n_tiles = (rows->m + SIX_ROWS - 1) / SIX_ROWS;
    weights w = {(const float *)packed + panel * QK_IGEMM_COLS, g->k_step, BLOCK};
    if (g->k_step == 0)
        w = (weights){(const float *)(const void *)qk_igemm_panel(g, packed, panel), BLOCK, g->kc * BLOCK};
    size_t col = 0;
    if (rows->m == 1 && n_cols > 3 * BLOCK) {
        one_row(g, &w, rows->data, e, to);
        return;
    }
    for (; rows->m == 2 && n_cols > col + BLOCK; col += 2 * BLOCK)
        two_rows(g, &w, rows->data, rows->row_bytes, e, col, to + col * sizeof(float));
    for (size_t t = 0; t < n_tiles; t++) {
        const size_t row = rows->m * t / n_tiles, mr = rows->m * (t + 1) / n_tiles - row;
        if (e->what != SUMS && t + 1 < n_tiles)
            for (size_t r = row + mr; r < rows->m * (t + 2) / n_tiles; r++)
                QK_FOUR_TIMES(line, _mm_prefetch(to + (ptrdiff_t)r * e->stride_bytes + 64 * line, _MM_HINT_T0));
        for (size_t c = col; c < n_cols; c += BLOCK)
            tiles[mr - 1](g, &w, qk_igemm_row(rows, row), rows->row_bytes, e, c,
                          to + (ptrdiff_t)row * e->stride_bytes + c * sizeof(float));
    }
}

void qk_igemm_f32_avx2(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc) {
    run(g, packed, rows, panel, &sums_end, acc);
}

bool qk_igemm_f32_end_avx2(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel,
                           const qk_igemm_end *end) {
    panel_end e;
    if (end->dst != QDQ_DTYPE_F32 || !prepare_end(end, panel, qk_igemm_cols_of(g, panel), &e)) return false;
    run(g, packed, rows, panel, &e, (char *)end->data + (ptrdiff_t)(panel * QK_IGEMM_COLS * sizeof(float)));
    return true;
}

void qk_igemm_dots_f32_avx2(const qk_igemm *g, const void *row, const qk_igemm_rows *columns, float *out) {
    dots(g, row, columns, out);
}
