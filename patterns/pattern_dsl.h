/* The words in which entries are written (pattern.h says what they mean). For patterns/pattern_<family>.c only: short names. */
#ifndef QDQI_PATTERN_DSL_H
#define QDQI_PATTERN_DSL_H

#include "patterns/catalogue.h"
#include "patterns/guards.h"
#include "patterns/sets.h"

enum { OUT = -1 };

#define IS(KIND)      .kind = QDQI_OP_##KIND
#define ANY(SET)      .set = &qdqi_set_##SET
#define ANCHOR        .anchor = true
#define OPT           .optional = true
#define REP(min, max) .rep_min = (min), .rep_max = (max)
#define ANY_SIDE      .any_side = true
#define DQ_OTHER      .dq_other = true
#define SELF_OTHER    .self_other = true
#define OPEN          .open = true
#define FRONT         .front = true
#define SCALE_OTHER   .scale_other = true
#define VARIADIC      .variadic = true
#define RECOMPUTE     .recompute = true
#define REGION(max)   .region = (max)
#define IN(...)       .n_in = sizeof((const int8_t[]){__VA_ARGS__}), .in = {__VA_ARGS__}
#define G(NAME)       &qdqi_guard_##NAME
#define GUARDS(...)   .guards = {__VA_ARGS__}

#define NODES(...)                                                                                                     \
    .nodes = (const qdqi_pnode[]){__VA_ARGS__},                                                                        \
    .n_nodes = sizeof((const qdqi_pnode[]){__VA_ARGS__}) / sizeof(qdqi_pnode)

/* A cast, reshape or transposition between a Dequantize (node `prev`) and its reader: the integers are read as it says, and
 * nothing is moved. Two of them in a row at most. */
#define VIEW(prev)                                                                                                     \
    { ANY(view), OPT, RECOMPUTE, IN(prev), GUARDS(G(float_dst), G(dq_behind)) }
/* A run of elementwise ops of unchanged shape, downstream of node `prev`: what a primitive takes as post-ops. */
#define CHAIN(prev, min, max)                                                                                          \
    { ANY(chain), REP(min, max), IN(prev), ANY_SIDE, DQ_OTHER, SELF_OTHER, GUARDS(G(float_dst), G(same_shape)) }
/* The same behind products and convolutions, which come before normalisations and may take one along. */
#define POSTS(prev, min, max)                                                                                          \
    { ANY(post), REP(min, max), IN(prev), ANY_SIDE, DQ_OTHER, SELF_OTHER, GUARDS(G(float_dst), G(same_shape)) }
/* … and behind sums of integers, whose scales may be a product. */
#define POSTS_OF_SUMS(prev)                                                                                            \
    {                                                                                                                  \
        ANY(post), REP(0, 32), IN(prev), ANY_SIDE, DQ_OTHER, SELF_OTHER, SCALE_OTHER,                                  \
            GUARDS(G(float_dst), G(same_shape))                                                                        \
    }
/* A product of scales on its way into the chain. */
#define SCALES(prev)                                                                                                   \
    { IS(MULTIPLY), OPT, OPEN, IN(prev), GUARDS(G(few_numbers)) }
/* Up to four reshapes, transpositions and casts of the result, and a MaxPool, which are done on the integers that the Quantize
 * makes. */
#define RELAYOUT(prev)                                                                                                 \
    { ANY(late), REP(0, 4), IN(prev), GUARDS(G(float_dst), G(quantized_next)) }
/* The Quantize that ends it. */
#define MAYBE_Q(prev)                                                                                                  \
    { ANY(q), OPT, IN(prev) }

/* ---- products of matrices and of windows, which look alike: their nodes, all of them ---- */

/* What follows the anchor, node `root`, up to the Quantize. */
#define PRODUCT_TAIL(root) POSTS(root, 0, 32), RELAYOUT((root) + 1), MAYBE_Q((root) + 2)
#define SUMS_TAIL(root)    POSTS_OF_SUMS(root), RELAYOUT((root) + 1), MAYBE_Q((root) + 2)
/* Of floats. */
#define FP_PRODUCT(SET)    NODES({ANY(SET), ANCHOR, IN(OUT, OUT), GUARDS(G(float_dst))}, PRODUCT_TAIL(0))
/* Of dequantized tensors. */
#define X8_PRODUCT(SET)                                                                                                \
    NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, VIEW(0), VIEW(1),   /* 0 src */                                      \
          {ANY(q), OPT, RECOMPUTE, IN(OUT), GUARDS(G(const_src))},    /* 3 weights known as floats */                  \
          {ANY(dq), IN(3), GUARDS(G(int_weights))}, VIEW(4), VIEW(5), /* 4 weights */                                  \
          {ANY(dq), OPT, IN(OUT)}, VIEW(7),                           /* 7 bias */                                     \
          {ANY(SET), ANCHOR, IN(2, 6, 8), GUARDS(G(float_dst))},      /* 9 */                                          \
          PRODUCT_TAIL(9))
/* Of a float and dequantized weights, which its guards describe. */
#define W8_PRODUCT(SET, ...)                                                                                           \
    NODES({ANY(dq), IN(OUT), GUARDS(__VA_ARGS__)}, VIEW(0), VIEW(1), /* 0 weights */                                   \
          {ANY(dq), OPT, IN(OUT)}, VIEW(3),                          /* 3 bias */                                      \
          {ANY(SET), ANCHOR, IN(OUT, 2, 4), GUARDS(G(float_dst))}, PRODUCT_TAIL(5))
/* Of integers as they are. */
#define INTEGER_PRODUCT(KIND) NODES({IS(KIND), ANCHOR, IN(OUT, OUT)}, SUMS_TAIL(0))
/* Of integers that a DynamicQuantizeLinear made for it. */
#define DYNAMIC_PRODUCT(KIND)                                                                                          \
    NODES({IS(DYNAMICQUANTIZELINEAR), FRONT, IN(OUT)}, {IS(KIND), ANCHOR, IN(0, OUT)}, SCALES(1),                      \
          {ANY(cast), OPEN, IN(2), GUARDS(G(float_dst))}, SCALES(3),                                                   \
          {IS(MULTIPLY), IN(4), SELF_OTHER, GUARDS(G(float_dst))}, SUMS_TAIL(5))

#endif
