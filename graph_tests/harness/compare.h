/* Comparison of a tensor with the reference, under the numeric contract. */
#ifndef QDQH_COMPARE_H
#define QDQH_COMPARE_H

#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is allowed to differ; set from the ops of the partition. */
typedef struct qdqh_rule {
    bool exact; /* a single quantize-family or data-moving op */
    bool transcendental;
    bool narrow;      /* bf16 or f16 inside */
    bool long_sums;   /* accumulates over many elements */
    bool requantized; /* a Quantize inside: of narrow floats, some fall on the other side of a tie */
    bool scores;      /* a softmax of something made inside */
} qdqh_rule;

/* Where an integer result comes from: q = round(x / scale + zp). `x` NULL: not known, the result must be equal. */
typedef struct qdqh_quantizer {
    const qdq_tensor *x;
    const float *scales;
    const int64_t *zps; /* NULL: 0 */
    size_t n_scales, n_zps;
    int32_t axis; /* of per_channel */
} qdqh_quantizer;

typedef struct qdqh_counts {
    int64_t errors, total, zeros, saturated;
} qdqh_counts;

/* Compare element by element; prints the points that differ at verbose ≥ 6. */
qdqh_counts qdqh_compare(const qdq_tensor *got, const qdq_tensor *want, const qdqh_rule *rule,
                         const qdqh_quantizer *quantizer, int verbose);

#ifdef __cplusplus
}
#endif
#endif
