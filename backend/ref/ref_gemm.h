/* The product that MatMul and Convolution share: f64 accumulation over operands repacked once.
 *
 *     a  [k][QDQI_REF_MR]        a tile of rows, k-major
 *     b  [panel][k][QDQI_REF_NR] columns in panels, the last filled up with zeros
 *
 * Products of f32 are exact in f64, so are sums of 8-bit products; the sum of each element runs over k in order. */
#ifndef QDQI_REF_GEMM_H
#define QDQI_REF_GEMM_H

#include "ref/ref_io.h"

enum { QDQI_REF_MR = 8, QDQI_REF_NR = 4, QDQI_REF_NB = 64 /* columns packed at a time by the matrix product */ };

/* acc[r][j] = sum over k of a[k][r] * b[k][j] for one panel */
void qdqi_ref_gemm_tile(int64_t k, const double *a, const double *b, double acc[QDQI_REF_MR][QDQI_REF_NR]);

/* An operand: f32, or integers minus zero points. Element (row, col) is at row * row_stride + col * col_stride. */
typedef struct qdqi_ref_mat {
    const float *f;   /* either */
    const int32_t *q; /* or */
    int64_t row_stride, col_stride;
    const int64_t *zp; /* NULL: 0. Of A per row, of B per column, zp_stride apart */
    int64_t zp_stride;
} qdqi_ref_mat;

/* Takes the sums of columns [col, col + n) of a row. */
typedef void (*qdqi_ref_emit)(void *job, int64_t row, int64_t col, int64_t n, const double *acc);

/* Doubles of scratch that the product needs. */
int64_t qdqi_ref_product_doubles(int64_t k);
void qdqi_ref_product(int64_t m, int64_t n, int64_t k, const qdqi_ref_mat *a, const qdqi_ref_mat *b, double *scratch,
                      qdqi_ref_emit emit, void *job);

#endif
