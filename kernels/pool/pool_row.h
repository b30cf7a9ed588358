/* What a level of the family provides: loops over arrays. Private to kernels/pool. */
#ifndef QK_POOL_ROW_H
#define QK_POOL_ROW_H

#include "kernels/pool/pool.h"

/* The end of an average: Q(f32(sum - bias) * factor). */
typedef struct qk_pool_end {
    int32_t bias;
    float factor, scale;
    int32_t zp;
    bool add_zp_first, is_signed;
} qk_pool_end;

/* Windows whose taps all lie inside, in rows above each other: window i of row r begins at src + r * src_row + i * step, its taps
 * `taps` behind that; its result goes to dst + r * dst_row + i. src_bytes may be read from src on, and dst_bytes written from dst on: what
 * is written behind the n of a row is garbage, but belongs to the rows that follow it in the grid. */
typedef struct qk_pool_grid {
    size_t n, n_rows, step, src_row, dst_row, n_taps, src_bytes, dst_bytes; /* step 1 or 2 */
    size_t taps[QK_POOL_GRID_TAPS], last_tap;
    bool is_signed;
    bool pair; /* each tap is two elements side by side; step 2 */
    qk_pool_mean mean;
} qk_pool_grid;

/* Results in the first and the last column by their sums of bytes, blanks beside the rows not counted; NULL where that column is not
 * cut. */
typedef struct qk_pool_edges {
    const uint8_t *left, *right;
} qk_pool_edges;

/* Windows of k x k that move by `step` along both axes, (3, 1), (3, 2) or (2, 2), with at most one cut window at either end of an
 * axis. Row y of the source is `blank` outside of 0 … in_h-1 (0, of S8 -128), from tail_row on in `tail`, otherwise at src; row 0
 * is `head`. From QK_POOL_BEFORE bytes before to QK_POOL_BEHIND bytes behind a row may be read. */
typedef struct qk_pool_walk {
    bool is_signed; /* both types */
    int k, step;
    size_t c, in_h, in_w, out_w, row_bytes, pad, pad_top;
    size_t whole_first, whole_end, whole_top, whole_bottom; /* the results of whole windows, along w and h */
    const uint8_t *src, *blank, *head, *tail;
    size_t tail_row;
    uint8_t *dst;           /* the first row of results asked for */
    const uint8_t *dst_end; /* of those asked for: nothing is written from here on */
    const qk_pool_mean (*means)[3];
    const void *closings;   /* of averages: what make_closings has made */
    qk_pool_edges edges[3]; /* plain averages; by class of rows */
} qk_pool_walk;

enum { QK_POOL_BEFORE = 1, QK_POOL_BEHIND = 66, QK_POOL_CLOSINGS = 9 * 832 };

/* Rows first … first+n-1 of results. Before requantization, in the case of a maximum. */
typedef void qk_pool_walk_fn(const qk_pool_walk *walk, size_t first, size_t n);
typedef struct qk_pool_walkers {
    void (*make_closings)(const qk_pool_walk *walk, void *room); /* QK_POOL_CLOSINGS bytes at 64 */
    qk_pool_walk_fn *last_max, *last_mean, *plane_max, *plane_mean;
} qk_pool_walkers;

typedef struct qk_pool_row {
    void (*max_grid)(const qk_pool_grid *grid, const uint8_t *src, uint8_t *dst);
    void (*mean_grid)(const qk_pool_grid *grid, const uint8_t *src, uint8_t *dst);
    /* Over n_rows rows of n bytes each, 1 … QK_POOL_ADDS of them: the largest; the sum, put into or added to `sum` (here
     * n_rows may be 0); the average. Only every step-th column is stored, step being 1 or 2: (n - 1) / step + 1 results. */
    void (*max_rows)(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed);
    void (*sum_rows)(const uint8_t *const *rows, size_t n_rows, int32_t *sum, size_t n, bool is_signed, bool is_added);
    void (*average_rows)(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed,
                         const qk_pool_end *end);
    /* The sums of n columns of n_rows rows, `stride` bytes apart; as many rows as fit the sums. */
    void (*sum_columns)(const uint8_t *src, size_t stride, size_t n_rows, int32_t *sum, size_t n, bool is_signed);
    void (*add32)(int32_t *acc, const int32_t *a, size_t n);
    void (*slide32)(int32_t *acc, const int32_t *in, const int32_t *out,
                    size_t n); /* acc + in - out; exact in 32 bits */
    int64_t (*sum8)(const uint8_t *a, size_t n, bool is_signed);
    uint8_t (*max_of)(const uint8_t *a, size_t n, bool is_signed); /* n at least 1 */
    /* dst[i] = a[2i], i < n; reads a[0 … 2n-2]; dst may be a. */
    void (*every_second32)(const int32_t *a, int32_t *dst, size_t n);
    void (*finish)(const int32_t *sum, uint8_t *dst, size_t n, const qk_pool_end *end);
    const qk_pool_walkers *walkers; /* NULL: the other functions do it */
    qk_isa isa;
} qk_pool_row;

/* As many bytes as certainly fit a sum of 16 bits. */
enum { QK_POOL_ADDS = 128 };

/* The mean of one sum, FIXED. */
uint8_t qk_pool_mean_of(const qk_pool_mean *mean, uint32_t sum);
/* Of `taps` elements inside, where `counted` are counted; no further than `best`. */
qk_pool_mean qk_pool_mean_make(const qk_pool *pool, const qk_pool_quant *quant, int32_t taps, int32_t counted,
                               qk_pool_mean_form best);
/* The results of the sums of up to six bytes as 0 … 255. */
void qk_pool_mean_table(const qk_pool *pool, const qk_pool_quant *quant, int32_t taps, int32_t counted, uint8_t *table);

/* Is the pool one for the walkers? Are its averages? */
bool qk_pool_walk_ok(const qk_pool *pool);
bool qk_pool_walk_means(const qk_pool *pool, qk_pool_quant *quant);
size_t qk_pool_walk_scratch(const qk_pool *pool);
void qk_pool_walk_run(const qk_pool *pool, const qk_pool_quant *quant, const void *src, void *dst, size_t first,
                      size_t n, void *scratch);

#define QK_POOL(level) extern const qk_pool_row qk_pool_row_##level;
#include "kernels/pool/pool.def"
#undef QK_POOL

#endif
