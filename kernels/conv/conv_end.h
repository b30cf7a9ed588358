/* What becomes of sums in registers: kernels/simd/plain.h, for some columns. Private to kernels/conv. */
#ifndef QK_CONV_END_H
#define QK_CONV_END_H

#include "qdq/qdq.h"

typedef struct qk_conv_end {
    const float *scale, *bias; /* as many as the vectors have lanes, whatever n_cols is; NULL: none, of floats only */
    float shift, floor;        /* floor: of floats, -INFINITY or 0 */
    bool has_shift, is_relu, is_signed, is_floats;
    bool is_bare; /* to bytes: no shift, zero point or bounds but those of the type; to floats: a bias, no scale */
    int16_t zp;
    uint8_t low, high;
    size_t n_cols;         /* that are stored */
    uint8_t *dst;          /* of pixel 0 */
    ptrdiff_t step;        /* bytes from pixel to pixel */
    const ptrdiff_t *rows; /* where the rows of a tile are, from dst */
} qk_conv_end;

#endif
