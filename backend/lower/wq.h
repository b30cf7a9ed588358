/* Weight-only quantization: float rows times constant integer weights that are dequantized in registers (kernels/gemm). */
#ifndef QDQI_WQ_H
#define QDQI_WQ_H

#include "lower/chain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The root MatMul|Gemm of `chain` on kernels/gemm, and the rest of the partition op by op. The weights stay integers: no float copy
 * of them is made. UNSUPPORTED unless the weights are a dequantized 2-D constant of s8, u8, s4 or u4 with constant
 * scales and zero points, and the rows so few that this is the faster way; steps may have been appended then. */
qdq_status qdqi_lower_wq(qdqi_lower *lw, const qdqi_chain *chain, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
