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
    void (*max8)(uint8_t *acc, const uint8_t *a, size_t n, bool is_signed); /* acc = max(acc, a) */
    void (*add8)(int16_t *acc, const uint8_t *a, size_t n, bool is_signed); /* at most QK_POOL_ADDS times from 0 */
    void (*add16)(int32_t *acc, const int16_t *a, size_t n);
    void (*add32)(int32_t *acc, const int32_t *a, size_t n);
    int64_t (*sum8)(const uint8_t *a, size_t n, bool is_signed);
    uint8_t (*max_of)(const uint8_t *a, size_t n, bool is_signed);  /* n at least 1 */
    void (*every_second)(const uint8_t *a, uint8_t *dst, size_t n); /* dst[i] = a[2i]; reads a[0 … 2n-2] */
    void (*finish)(const int32_t *sum, uint8_t *dst, size_t n, const qk_pool_end *end);
    qk_isa isa;
} qk_pool_row;

enum { QK_POOL_ADDS = 128 };

#define QK_POOL(level) extern const qk_pool_row qk_pool_row_##level;
#include "kernels/pool/pool.def"
#undef QK_POOL

#endif
