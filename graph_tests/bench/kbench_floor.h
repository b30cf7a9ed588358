/* Loops written by hand for one case each: what its work costs when nothing is left to decide at run time. They multiply by
 * reciprocals where the kernels divide, and take whole blocks only. NULL where the machine has no AVX-512. */
#ifndef KBENCH_FLOOR_H
#define KBENCH_FLOOR_H

#include "kbench.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kbench_floors {
    /* q = sat(rint(x * factor + zp)), s8; n a multiple of 64 */
    void (*quantize_s8)(const float *src, int8_t *dst, size_t n, float factor, float zp);
    /* x = q * factor, s8; past the caches if asked */
    void (*dequantize_s8)(const int8_t *src, float *dst, size_t n, float factor, bool streaming);
    /* q = sat(rint(max(p * factor, low) + zp)), s8 to s8: a requantization, with low = 0 behind a ReLU */
    void (*requantize_s8)(const int8_t *src, int8_t *dst, size_t n, float factor, float low, float zp);
    /* q = sat(rint(max(a * a_factor + b * b_factor, 0))), s8 */
    void (*add_relu_s8)(const int8_t *a, const int8_t *b, int8_t *dst, size_t n, float a_factor, float b_factor);
    /* dst[i] = max of the 2x2 window at 2i of the two rows; n results, at least 16 */
    void (*max_2x2_u8)(const uint8_t *row0, const uint8_t *row1, uint8_t *dst, size_t n);
    /* C[m, 64] = A[m, k] times a panel of 64 columns of 4-bit weights in groups of 128 with zero points, packed as kernels/gemm/gemm.h
     * says. One row: a weight is looked up and multiplied, the zero points meet the sum of the row's floats. More rows: a group is
     * made floats, which six rows at a time then meet. */
    void (*weights_u4)(const uint8_t *panel, const float *a, float *c, size_t c_stride, size_t m, size_t k);
} kbench_floors;

const kbench_floors *kbench_floors_of_host(void);
extern const kbench_floors kbench_floors_avx512;

#ifdef __cplusplus
}
#endif
#endif
