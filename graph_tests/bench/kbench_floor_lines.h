/* Loops over lines written by hand, as kbench_floor.h has it: no infinities, no NaN, no large means, whole vectors. Lines of n, a
 * multiple of 64. */
#ifndef KBENCH_FLOOR_LINES_H
#define KBENCH_FLOOR_LINES_H

#include "kbench.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kbench_lines_floors {
    void (*softmax_f32)(const float *src, float *dst, size_t n_rows, size_t n);
    /* to u8 with the scale 1/255; lines of 4096 at most */
    void (*softmax_f32_u8)(const float *src, uint8_t *dst, size_t n_rows, size_t n);
    void (*softmax_s8_u8)(const int8_t *src, uint8_t *dst, size_t n_rows, size_t n, float scale);
    void (*norm_f32)(const float *src, float *dst, const float *gamma, const float *beta, size_t n_rows, size_t n);
    /* gamma and beta with the destination's scale in them */
    void (*norm_f32_s8)(const float *src, int8_t *dst, const float *gamma, const float *beta, size_t n_rows, size_t n);
    void (*norm_s8)(const int8_t *src, int8_t *dst, const float *gamma, const float *beta, size_t n_rows, size_t n);
} kbench_lines_floors;

/* Those of the level that kernels are capped to: of AVX-512 with VBMI and VNNI, of AVX2 below that, or NULL. */
const kbench_lines_floors *kbench_lines_floors_here(void);
extern const kbench_lines_floors kbench_lines_floors_avx2;
extern const kbench_lines_floors kbench_lines_floors_avx512vbmi;

#ifdef __cplusplus
}
#endif
#endif
