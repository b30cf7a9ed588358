/* A partition as data, and the recipes that turn one into plan steps. The pattern tables name a recipe per entry. */
#ifndef QDQI_RECIPE_H
#define QDQI_RECIPE_H

#include "ir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct qdqi_lower;

/* A set of ops that are lowered together.
 *   - The ops form a connected piece whose only escaping values are the outputs of its last op, so any two partitions can be ordered.
 *   - A Dequantize that feeds several partitions (or is a graph output as well) is listed in each that absorbed it: each
 *     recomputes it, which is free once fused. `inputs` then holds the Dequantize's inputs, not its output. */
typedef struct qdqi_part {
    uint32_t id;
    const char *pattern; /* name of the pattern entry; "single" */
    qdq_status (*recipe)(struct qdqi_lower *lower, const struct qdqi_part *part, qdq_error *err);
    uint32_t root; /* op index: the compute op that the pattern is anchored on */
    uint32_t n_ops;
    const uint32_t *ops; /* op indices in topological order, absorbed Dequantizes included */
    uint32_t n_inputs, n_outputs;
    const uint32_t *inputs;  /* value indices: read here, made elsewhere; constants with data left out; no duplicates */
    const uint32_t *outputs; /* value indices made here and needed elsewhere */
    uint32_t n_consts;
    const uint32_t *consts; /* value indices: constants with data that are read here */
    /* A partition of several products is lowered as partitions of its own ops, in this order; only the last one's outputs leave it. */
    uint32_t n_children;
    struct qdqi_part *children;
} qdqi_part;

/* Recipes. Each appends steps to the plan of `lower`. QDQ_E_UNSUPPORTED means "refused, nothing appended": the caller then
 * lowers the ops one by one.
 *   eltwise   [dq]* - unary|binary chain - [q]
 *   norm      [dq] - SoftMax|LayerNorm|BatchNorm|Reduce... - chain - [q]
 *   spelled   [dq] - LayerNorm, RMSNorm or SoftMax written as small ops (ir/spelled.h) - chain - [q]
 *   move      dq - data movement - q, and dq - q
 *   concat    dq... - Concat - q
 *   select    dq, dq - Select - q
 *   resample  [dq] - linear Interpolate or Resize - chain - [q]
 *   conv      and ConvTranspose
 *   single    any one op
 *   children  the partitions inside, one by one */
#define QDQI_RECIPE_MAP(X)                                                                                             \
    X(single)                                                                                                          \
    X(children)                                                                                                        \
    X(matmul)                                                                                                          \
    X(conv)                                                                                                            \
    X(pool)                                                                                                            \
    X(eltwise)                                                                                                         \
    X(norm)                                                                                                            \
    X(spelled)                                                                                                         \
    X(move)                                                                                                            \
    X(concat)                                                                                                          \
    X(select)                                                                                                          \
    X(resample)

typedef qdq_status (*qdqi_recipe_fn)(struct qdqi_lower *lower, const qdqi_part *part, qdq_error *err);
#define QDQI_RECIPE_DECL(name)                                                                                         \
    qdq_status qdqi_recipe_##name(struct qdqi_lower *lower, const qdqi_part *part, qdq_error *err);
QDQI_RECIPE_MAP(QDQI_RECIPE_DECL)
#undef QDQI_RECIPE_DECL

#ifdef __cplusplus
}
#endif
#endif
