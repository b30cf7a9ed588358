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
    int64_t (*sum8)(const uint8_t *a, size_t n, bool is_signed);
    uint8_t (*max_of)(const uint8_t *a, size_t n, bool is_signed); /* n at least 1 */
    /* dst[i] = a[2i], i < n; reads a[0 … 2n-2]; dst may be a. */
    void (*every_second32)(const int32_t *a, int32_t *dst, size_t n);
    void (*finish)(const int32_t *sum, uint8_t *dst, size_t n, const qk_pool_end *end);
    qk_isa isa;
} qk_pool_row;

/* As many bytes as certainly fit a sum of 16 bits. */
enum { QK_POOL_ADDS = 128 };

/* The mean of one sum. */
uint8_t qk_pool_mean_of(const qk_pool_mean *mean, uint32_t sum);

#define QK_POOL(level) extern const qk_pool_row qk_pool_row_##level;
#include "kernels/pool/pool.def"
#undef QK_POOL

#endif
