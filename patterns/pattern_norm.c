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
              {IS(REDUCEMEAN), IN(6), OPEN, GUARDS(G(float_dst))}, PAIR(7),                               /* 7 */
              {IS(ADD), IN(8), OPEN, DQ_OTHER, GUARDS(G(float_dst))}, PAIR(9),                            /* 9 */
              {ANY(root), IN(10), OPEN, GUARDS(G(float_dst))}, PAIR(11),                                  /* 11 */
              {ANY(inverse), OPT, IN(12), OPEN, ANY_SIDE, GUARDS(G(float_dst), G(of_one))}, PAIR(13),     /* 13 */
              {ANY(scaling), IN(OUT, 14), ANY_SIDE, SELF_OTHER, GUARDS(G(float_dst), G(layernorm_form))}, /* 15 */
              PAIR_BEFORE_AFFINE(15), AFFINE(16), PAIR_BEFORE_AFFINE(17), AFFINE(18), CHAIN(19, 0, 32), MAYBE_Q(20)),
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
              {IS(REDUCEMEAN), IN(2), OPEN, GUARDS(G(float_dst))}, PAIR(3),                           /* 3 */
              {IS(ADD), IN(4), OPEN, DQ_OTHER, GUARDS(G(float_dst))}, PAIR(5),                        /* 5 */
              {ANY(root), IN(6), OPEN, GUARDS(G(float_dst))}, PAIR(7),                                /* 7 */
              {ANY(inverse), OPT, IN(8), OPEN, ANY_SIDE, GUARDS(G(float_dst), G(of_one))}, PAIR(9),   /* 9 */
              {ANY(scaling), IN(OUT, 10), ANY_SIDE, DQ_OTHER, GUARDS(G(float_dst), G(rmsnorm_form))}, /* 11 */
              PAIR_BEFORE_AFFINE(11), AFFINE(12), PAIR_BEFORE_AFFINE(13), AFFINE(14), CHAIN(15, 0, 32), MAYBE_Q(16)),
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
