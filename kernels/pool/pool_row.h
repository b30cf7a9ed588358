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

typedef struct qk_pool_row {
    /* Over n_rows rows of n bytes each, 1 … QK_POOL_ADDS of them: the largest; the sum, put into or added to `sum` (here
     * n_rows may be 0); the average. Only every step-th column is stored, step being 1 or 2: (n - 1) / step + 1 results. */
    void (*max_rows)(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed);
    void (*sum_rows)(const uint8_t *const *rows, size_t n_rows, int32_t *sum, size_t n, bool is_signed, bool is_added);
    void (*average_rows)(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed,
                         const qk_pool_end *end);
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

#define QK_POOL(level) extern const qk_pool_row qk_pool_row_##level;
#include "kernels/pool/pool.def"
#undef QK_POOL

#endif
