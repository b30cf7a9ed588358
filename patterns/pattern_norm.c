#include "patterns/pattern_dsl.h"

/* A Quantize and a Dequantize behind an op of a spelled-out normalisation, whose values may be needed further on. */
#define PAIR(prev)                                                                                                     \
    { ANY(pair), REP(0, 2), OPEN, IN(prev) }
/* Casts and Clamps likewise, in a spelled-out softmax. */
#define BOUNDS(prev)                                                                                                   \
    { ANY(bound), REP(0, 2), OPEN, IN(prev), GUARDS(G(float_dst)) }
/* … and behind its end, before gamma and beta. */
#define PAIR_BEFORE_AFFINE(prev)                                                                                       \
    { ANY(pair), REP(0, 2), IN(prev), GUARDS(G(before_affine)) }
#define AFFINE(prev)                                                                                                   \
    { ANY(affine), OPT, IN(prev), ANY_SIDE, DQ_OTHER, GUARDS(G(float_dst), G(same_shape)) }
/* From the mean of the squares to one over its root, or the root; then, behind the op that scales by it (node `scaling`), what is
 * left. */
#define DEVIATION(squares)                                                                                             \
    {IS(REDUCEMEAN), IN(squares), OPEN, GUARDS(G(float_dst))}, PAIR((squares) + 1),                                    \
        {IS(ADD), IN((squares) + 2), OPEN, DQ_OTHER, GUARDS(G(float_dst))}, PAIR((squares) + 3),                       \
        {ANY(root), IN((squares) + 4), OPEN, GUARDS(G(float_dst))}, PAIR((squares) + 5),                               \
        {ANY(inverse), OPT, IN((squares) + 6), OPEN, ANY_SIDE, GUARDS(G(float_dst), G(of_one))}, PAIR((squares) + 7)
#define SCALED_TAIL(scaling)                                                                                           \
    PAIR_BEFORE_AFFINE(scaling), AFFINE((scaling) + 1), PAIR_BEFORE_AFFINE((scaling) + 2), AFFINE((scaling) + 3),      \
        CHAIN((scaling) + 4, 0, 32), MAYBE_Q((scaling) + 5)

static const qdqi_pattern table[] = {
    {
        /* As exporters spell it out; gamma and beta may be part of the chain. */
        .name = "spelled_layernorm",
        .recipe = qdqi_recipe_spelled,
        .picture = "     [dq]\n"
                   "       |______________\n"
                   "       |              |\n"
                   "   reducemean         |\n"
                   "       |              |\n"
                   "       '-- subtract --'         a Quantize and a Dequantize may follow\n"
                   "              |___________      each of these, and gamma\n"
                   "              |           |\n"
                   "    square|pow|multiply   |\n"
                   "              |           |\n"
                   "          reducemean      |\n"
                   "              |           |\n"
                   "         add epsilon      |\n"
                   "              |           |\n"
                   "          sqrt|pow        |\n"
                   "              |           |\n"
                   "      [reciprocal|divide] |\n"
                   "              |           |\n"
                   "           divide|multiply\n"
                   "                  |\n"
                   "         [multiply gamma]\n"
                   "                  |\n"
                   "            [add beta]\n"
                   "                  |\n"
                   "                chain\n"
                   "                  |\n"
                   "                 [q]\n",
        NODES({ANY(dq), OPT, IN(OUT), GUARDS(G(int_src))},                                                /* 0 */
              {IS(REDUCEMEAN), ANCHOR, IN(0), GUARDS(G(float_dst))}, PAIR(1),                             /* 1 */
              {IS(SUBTRACT), IN(OUT, 2), OPEN, DQ_OTHER, GUARDS(G(float_dst))},                           /* 3 */
              {ANY(pair), REP(0, 3), OPEN, IN(3)},                                                        /* 4 */
              {ANY(square), IN(4), OPEN, SELF_OTHER, GUARDS(G(float_dst))}, PAIR(5),                      /* 5 */
              DEVIATION(6),                                                                               /* 7 */
              {ANY(scaling), IN(OUT, 14), ANY_SIDE, SELF_OTHER, GUARDS(G(float_dst), G(layernorm_form))}, /* 15 */
              SCALED_TAIL(15)),
    },
    {
        .name = "spelled_rmsnorm",
        .recipe = qdqi_recipe_spelled,
        .picture = "             [dq]\n"
                   "              |___________      a Quantize and a Dequantize may follow\n"
                   "              |           |     each of these, and gamma\n"
                   "    square|pow|multiply   |\n"
                   "              |           |\n"
                   "          reducemean      |\n"
                   "              |           |\n"
                   "         add epsilon      |\n"
                   "              |           |\n"
                   "          sqrt|pow        |\n"
                   "              |           |\n"
                   "      [reciprocal|divide] |\n"
                   "              |           |\n"
                   "           divide|multiply\n"
                   "                  |\n"
                   "         [multiply gamma]\n"
                   "                  |\n"
                   "            [add beta]\n"
                   "                  |\n"
                   "                chain\n"
                   "                  |\n"
                   "                 [q]\n",
        NODES({ANY(dq), OPT, IN(OUT), GUARDS(G(int_src))},                                            /* 0 */
              {ANY(square), ANCHOR, IN(0), GUARDS(G(float_dst))}, PAIR(1),                            /* 1 */
              DEVIATION(2),                                                                           /* 3 */
              {ANY(scaling), IN(OUT, 10), ANY_SIDE, DQ_OTHER, GUARDS(G(float_dst), G(rmsnorm_form))}, /* 11 */
              SCALED_TAIL(11)),
    },
    {
        /* As exporters spell it out. */
        .name = "spelled_softmax",
        .recipe = qdqi_recipe_spelled,
        .picture = "     [dq]\n"
                   "       |\n"
                   "    [cast]\n"
                   "       |______________\n"
                   "       |              |\n"
                   "   reducemax          |\n"
                   "       |              |         casts and clamps may follow each of these\n"
                   "       '-- subtract --'\n"
                   "              |\n"
                   "             exp\n"
                   "              |_______\n"
                   "              |       |\n"
                   "          reducesum   |\n"
                   "              |       |\n"
                   "  [reciprocal|divide] |\n"
                   "              |       |\n"
                   "       divide|multiply\n"
                   "              |\n"
                   "            chain\n"
                   "              |\n"
                   "             [q]\n",
        NODES({ANY(dq), OPT, IN(OUT), GUARDS(G(int_src))}, VIEW(0),                                     /* 0 */
              {IS(REDUCEMAX), ANCHOR, IN(1), GUARDS(G(float_dst))}, BOUNDS(2),                          /* 2 */
              {IS(SUBTRACT), IN(OUT, 3), OPEN, DQ_OTHER, GUARDS(G(float_dst))}, BOUNDS(4),              /* 4 */
              {IS(EXP), IN(5), OPEN, GUARDS(G(float_dst))}, BOUNDS(6),                                  /* 6 */
              {IS(REDUCESUM), IN(7), OPEN, GUARDS(G(float_dst))}, BOUNDS(8),                            /* 8 */
              {ANY(inverse), OPT, IN(9), OPEN, ANY_SIDE, GUARDS(G(float_dst), G(of_one))}, BOUNDS(10),  /* 10 */
              {ANY(scaling), IN(OUT, 11), ANY_SIDE, SELF_OTHER, GUARDS(G(float_dst), G(softmax_form))}, /* 12 */
              CHAIN(12, 0, 32), MAYBE_Q(13)),
    },
    {
        /* Statistics that somebody needs end the partition at the normalisation. */
        .name = "x8_norm_post_ops",
        .recipe = qdqi_recipe_norm,
        .picture = "   dq   [dq] gamma, beta, mean, variance\n"
                   "     \\   |\n"
                   "   softmax|logsoftmax|layernorm|groupnorm|rmsnorm|batchnorm|instancenorm|reduce\n"
                   "         |\n"
                   "       chain\n"
                   "         |\n"
                   "        [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {ANY(dq), OPT, IN(OUT)}, {ANY(dq), OPT, IN(OUT)},
              {ANY(dq), OPT, IN(OUT)}, {ANY(dq), OPT, IN(OUT)},
              {ANY(norm), ANCHOR, IN(0, 1, 2, 3, 4), GUARDS(G(float_dst))}, CHAIN(5, 0, 32), MAYBE_Q(6)),
    },
    {
        .name = "fp_norm_post_ops",
        .recipe = qdqi_recipe_norm,
        .picture = "   softmax|logsoftmax|layernorm|groupnorm|rmsnorm|batchnorm|instancenorm|reduce - chain - [q]\n",
        NODES({ANY(norm), ANCHOR, IN(OUT), GUARDS(G(float_dst))}, CHAIN(0, 0, 32), MAYBE_Q(1)),
    },
};
QDQI_PATTERN_FAMILY(norm, table);
