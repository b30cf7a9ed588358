/* Requantization in one step: an integer accumulator goes to the output's integers with a single multiplication.
 *
 *   q_out = sat( rint( relu?( (acc + bias) * M ) ) + zp_out )             M[c] = s_src * s_wei[c] / s_out, computed in f64
 *
 * and with a residual r (dequantized, added, before or after which a ReLU may stand)
 *
 *   q_out = sat( rint( relu?( ((acc + bias) * M' + r - z_r) * s_r / s_out ) ) + zp_out )    M'[c] = s_src * s_wei[c] / s_r
 *
 * Fewer roundings than scaling to real values, adding, dividing and adding a zero point, each in f32: next to a tie the result is the
 * one of real arithmetic far more often. An s32 bias is added as an integer only when its own scale is s_src * s_wei[c] in every
 * channel; any other constant bias is added in output units. Chains with other ops, and runtime parameters, take
 * the general way (chain.h). */
#ifndef QDQI_REQUANT_H
#define QDQI_REQUANT_H

#include "lower/chain.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_requant {
    bool on;
    const float *scales;   /* M or M' */
    int64_t n_scales;      /* 1 or the number of channels */
    bool scale_after_bias; /* integer bias: M is a post-op; else it is the weights' scale */
    qdq_dtype bias_dtype;  /* UNDEF: none */
    const void *bias;      /* n_bias values of bias_dtype in the arena */
    int64_t n_bias;
    int32_t residual; /* index of the link that adds it, or -1 */
} qdqi_requant;

/* Decide. `n_channels` is the length of a bias; `channel_axis` the axis of the weights' scales in the result. */
qdq_status qdqi_requant_plan(qdqi_lower *lw, const qdqi_chain *chain, int64_t n_channels, qdqi_requant *out,
                             qdq_error *err);
/* Post-ops and the dst zero point. `channel_axis`: dim of the result that the scales belong to. */
qdq_status qdqi_requant_posts(qdqi_lower *lw, qdqi_posts *posts, const qdqi_chain *chain, const qdqi_requant *r,
                              int32_t channel_axis, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
