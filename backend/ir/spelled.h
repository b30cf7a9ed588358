/* Normalisations that exporters spell out as small ops, read back from their last op.
 *
 *   LayerNorm   m = ReduceMean(x);  d = x - m;  v = ReduceMean(d * d);  y = d / Sqrt(v + epsilon)
 *   RMSNorm     v = ReduceMean(x * x);                                  y = x / Sqrt(v + epsilon)
 *
 * d * d is Square, Pow of 2 or Multiply; the last step is a division, or a multiplication by a Reciprocal or a Pow of -1/2. A
 * Quantize and Dequantize may stand behind every op but the last: exporters of QDQ models put them there.
 *
 *   SoftMax     m = ReduceMax(x);  e = Exp(x - m);  y = e / ReduceSum(e)
 *
 * The last step may be a multiplication by a Reciprocal, or by a division of 1. Casts from one float type to another and
 * Clamps may stand behind every op but the last. */
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

/* Where a Clamp stands: what it is said to bound, whose range is known. */
typedef enum qdqi_spelled_place {
    QDQI_SPELLED_MAX,
    QDQI_SPELLED_DISTANCE, /* x - max: at most 0 */
    QDQI_SPELLED_POWER,    /* 0 ... 1 */
    QDQI_SPELLED_SUM,      /* 1 ... as many as there are */
    QDQI_SPELLED_PART      /* 1 / sum */
} qdqi_spelled_place;

enum { QDQI_SPELLED_CLAMPS = 16 };

typedef struct qdqi_spelled_softmax {
    uint32_t x;        /* value */
    uint32_t max, sum; /* ops: both keep their dims */
    uint32_t n_clamps;
    struct {
        uint32_t op;
        qdqi_spelled_place place;
    } clamps[QDQI_SPELLED_CLAMPS];
} qdqi_spelled_softmax;

/* The same for a SoftMax. */
bool qdqi_spelled_softmax_read(const qdq_graph *graph, const qdqi_op *last, qdqi_spelled_softmax *out);

#ifdef __cplusplus
}
#endif
#endif
