/* Loops written by hand for one case each, like kbench_floor.h: rows of n elements with a factor and a shift for each column. */
#ifndef KBENCH_FLOOR_COLS_H
#define KBENCH_FLOOR_COLS_H

#include "kbench.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kbench_col_floors {
    /* q = sat(rint(p * factor[i] + shift[i])), s8; n a multiple of 64 */
    void (*affine_s8)(const int8_t *src, int8_t *dst, size_t n, const float *factor, const float *shift);
    /* q = sat(rint(p * factor + shift)), s8; n a multiple of 16 */
    void (*affine_one_s8)(const int8_t *src, int8_t *dst, size_t n, float factor, float shift);
    /* q = sat(rint(max(acc * factor[i] + shift[i], 0))), s32 to s8; n a multiple of 64 */
    void (*finish_s8)(const int32_t *acc, int8_t *dst, size_t n, const float *factor, const float *shift);
    /* x = acc * factor[i] + shift[i], s32 to f32; n a multiple of 64 */
    void (*finish_f32)(const int32_t *acc, float *dst, size_t n, const float *factor, const float *shift);
    /* q = sat(rint(max(acc + shift[i], 0) * factor)), f32 to s8; n a multiple of 64 */
    void (*round_s8)(const float *acc, int8_t *dst, size_t n, float factor, const float *shift);
    /* x = q * factor + base, u8; n a multiple of 64 */
    void (*dequantize_u8)(const uint8_t *src, float *dst, size_t n, float factor, float base);
} kbench_col_floors;

/* Of the best level under the present cap; NULL where there are none. */
const kbench_col_floors *kbench_col_floors_here(void);
extern const kbench_col_floors kbench_col_floors_avx512, kbench_col_floors_avx2;

#ifdef __cplusplus
}
#endif
#endif
