/* The formulas of elementwise ops as loops over runs of elements, for steps that bring their own walk, threads and conversions. */
#ifndef QDQI_REF_ROWS_H
#define QDQI_REF_ROWS_H

#include "ref/ref_io.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `a` and `b` are the attributes of ir/unary.def. dst may be src. */
typedef void qdqi_ref_unary_row(const float *src, float *dst, int64_t n, float a, float b);
/* NULL when the kind is not elementwise unary. */
qdqi_ref_unary_row *qdqi_ref_unary_row_of(qdqi_kind kind);

/* dst[i] = f(a[i * sa], b[i * sb]); dst is of the operands' type, or bytes of 0 and 1. dst may be a or b when that steps by 1. */
typedef void qdqi_ref_binary_row(void *dst, const void *a, int64_t sa, const void *b, int64_t sb, int64_t n);
/* Arithmetic and comparisons of F32, logic of RAW bytes. NULL for every other kind or type. */
qdqi_ref_binary_row *qdqi_ref_binary_row_of(const qdqi_op *op, qdqi_ref_type type);

#ifdef __cplusplus
}
#endif
#endif
