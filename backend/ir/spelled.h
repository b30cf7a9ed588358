/* Normalisations that exporters spell out as small ops, read back from their last op.
 *
 *   LayerNorm   m = ReduceMean(x);  d = x - m;  v = ReduceMean(d * d);  y = d / Sqrt(v + epsilon)
 *   RMSNorm     v = ReduceMean(x * x);                                  y = x / Sqrt(v + epsilon)
 *
 * d * d is Square, Pow of 2 or Multiply; the last step is a division, or a multiplication by a Reciprocal or a Pow of -1/2. A
 * Quantize and Dequantize may stand behind every op but the last: exporters of QDQ models put them there. */
#ifndef QDQI_SPELLED_H
#define QDQI_SPELLED_H

#include "ir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QDQI_SPELLED_MEAN,   /* LayerNorm only */
    QDQI_SPELLED_CENTRE, /* x - mean; LayerNorm only */
    QDQI_SPELLED_SQUARE,
    QDQI_SPELLED_VARIANCE,
    QDQI_SPELLED_SHIFT, /* + epsilon */
    QDQI_SPELLED_ROOT,
    QDQI_SPELLED_RECIPROCAL, /* may be absent */
    QDQI_SPELLED_STAGES
};

typedef struct qdqi_spelled_stage {
    uint32_t op;    /* QDQI_NONE: absent */
    uint32_t q, dq; /* the pair of ops behind it, or QDQI_NONE */
} qdqi_spelled_stage;

typedef struct qdqi_spelled {
    qdqi_spelled_stage stages[QDQI_SPELLED_STAGES];
    uint32_t x; /* value that is normalised */
    uint32_t epsilon;
    bool multiplies; /* the last op is Multiply; ROOT is a Pow of -1/2 unless there is a RECIPROCAL */
    bool swapped;    /* the normalised value is its second operand */
} qdqi_spelled;

/* Read the form (`centred`: LayerNorm) that ends in `last`. False: it is none. Looks at a bounded neighbourhood. */
bool qdqi_spelled_read(const qdq_graph *graph, const qdqi_op *last, bool centred, qdqi_spelled *out);

#ifdef __cplusplus
}
#endif
#endif
