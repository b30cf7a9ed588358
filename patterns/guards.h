/* Guards: named predicates of the pattern tables, and the vocabulary in which the matcher says why it stopped.
 *
 * Guards are few on purpose. Whether a primitive can take a partition is the recipe's to say (it refuses with its own reason,
 * and the ops are then lowered one by one). A guard only keeps together-lowering from being tried where it never works. */
#ifndef QDQI_GUARDS_H
#define QDQI_GUARDS_H

#include "patterns/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The fixed vocabulary of refusals: enumerator, word (for reports), sentence. */
#define QDQI_WHY_MAP(X)                                                                                                \
    X(NONE, "none", "nothing failed")                                                                                  \
    /* structure: the matcher's own */                                                                                 \
    X(KIND, "kind", "another kind of op stands here")                                                                  \
    X(NO_PRODUCER, "no_producer", "the value is a graph input, a constant or missing")                                 \
    X(NO_CONSUMER, "no_consumer", "nothing uses the value")                                                            \
    X(GRAPH_OUTPUT, "graph_output", "the value is a graph output, so it must stay visible")                            \
    X(SHARED, "shared", "the value is used outside of the match as well")                                              \
    X(OUTPUTS, "outputs", "another output of the op is needed")                                                        \
    X(PORT, "port", "the value enters the op by the wrong port")                                                       \
    X(CLAIMED, "claimed", "the op belongs to another partition")                                                       \
    X(TOO_LONG, "too_long", "the run is as long as the entry allows")                                                  \
    X(ALONE, "alone", "only one op matches: nothing to fuse it with")                                                  \
    /* of an op, not of an entry */                                                                                    \
    X(NO_ENTRY, "no_entry", "no entry of the catalogue is for this kind of op")                                        \
    X(PIECE, "piece", "its partition takes several steps, and the op is one of them")                                  \
    X(POLICY, "policy", "every op was to be kept on its own")                                                          \
    /* guards */                                                                                                       \
    X(DTYPE, "dtype", "the data type is not one that the entry takes")                                                 \
    X(SHAPE_GROWS, "shape_grows", "the op broadcasts the chain to a larger shape")                                     \
    X(NOT_CONSTANT, "not_constant", "the source is not constant")                                                      \
    X(MODE, "mode", "an attribute selects another computation")                                                        \
    X(CONTINUES, "continues", "an elementwise op before it is where the run starts")                                   \
    X(NOT_DEQUANTIZED, "not_dequantized", "what the op reads is made by other ops than a Dequantize")                  \
    X(FORM, "form", "the ops up to here are wired otherwise, or have other attributes")

typedef enum qdqi_why {
#define QDQI_WHY_ROW(id, word, text) QDQI_WHY_##id,
    QDQI_WHY_MAP(QDQI_WHY_ROW)
#undef QDQI_WHY_ROW
} qdqi_why;

/* Static strings; never NULL. */
const char *qdqi_why_word(qdqi_why why);
const char *qdqi_why_text(qdqi_why why);

/* The i-th refusal (NONE is 0): NULL past the end. */
const char *qdqi_why_word_at(size_t i);

/* True when `op` may stand at the node. `value` is the value that links it to the match: an input of `op` at downstream
 * nodes, an output at upstream nodes, QDQI_NONE at the anchor. What is not known yet (dims) never refuses. */
typedef struct qdqi_guard {
    const char *name;
    qdqi_why why; /* the refusal */
    bool (*pass)(const qdq_graph *graph, const qdqi_op *op, uint32_t value);
} qdqi_guard;

/* The list of guards: name, refusal, meaning. */
#define QDQI_GUARD_MAP(X)                                                                                              \
    X(float_dst, DTYPE, "output 0 is f32, bf16 or f16")                                                                \
    X(int_src, DTYPE, "input 0 is s8, u8 or an 8-bit float")                                                           \
    X(int_weights, DTYPE, "input 0 is s8, u8, s4, u4 or an 8-bit float")                                               \
    X(same_shape, SHAPE_GROWS, "output 0 has the shape of the value that comes in")                                    \
    X(const_src, NOT_CONSTANT, "input 0 is constant")                                                                  \
    X(nearest, MODE, "an interpolation takes the nearest element")                                                     \
    X(starts_run, CONTINUES, "input 0 is not made by an elementwise op")                                               \
    X(layernorm_form, FORM, "the ops up to here spell out a layer normalisation")                                      \
    X(rmsnorm_form, FORM, "the ops up to here spell out a normalisation by the root of the mean square")               \
    X(softmax_form, FORM, "the ops up to here spell out a softmax")                                                    \
    X(of_one, FORM, "a division has a constant dividend")                                                              \
    X(quantized_next, FORM, "a MaxPool has a Quantize behind it, and nothing else")                                    \
    X(few_numbers, FORM, "output 0 is a number or a row of numbers")                                                   \
    X(before_affine, FORM, "a Dequantize and a multiplication or addition of a constant follow, and nothing else")     \
    X(dq_behind, NOT_DEQUANTIZED, "behind it and at most one more view is a Dequantize, a graph input or a constant")

#define QDQI_GUARD_DECL(guard, reason, text) extern const qdqi_guard qdqi_guard_##guard;
QDQI_GUARD_MAP(QDQI_GUARD_DECL)
#undef QDQI_GUARD_DECL

/* What the guard asks for: the third column of the list. Static; "" for a guard that is not in it. */
const char *qdqi_guard_text(const qdqi_guard *guard);

#ifdef __cplusplus
}
#endif
#endif
