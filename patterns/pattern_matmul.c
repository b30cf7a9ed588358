#include "patterns/pattern_dsl.h"

static const qdqi_pattern table[] = {
    {
        .name = "x8_matmul_post_ops",
        .recipe = qdqi_recipe_matmul,
        .picture = "          [q] const\n"
                   "           |\n"
                   "   dq     dq    [dq]\n"
                   "    \\     |     /\n"
                   "     matmul|gemm          chain: unary|binary|bias, {0,32},\n"
                   "          |               either side, other operand [dq]\n"
                   "        chain\n"
                   "          |\n"
                   "         [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))},                   /* 0 src */
              {ANY(q), OPT, RECOMPUTE, IN(OUT), GUARDS(G(const_src))},  /* 1 weights known as floats */
              {ANY(dq), IN(1), GUARDS(G(int_weights))},                 /* 2 weights */
              {ANY(dq), OPT, IN(OUT)},                                  /* 3 bias */
              {ANY(matmul), ANCHOR, IN(0, 2, 3), GUARDS(G(float_dst))}, /* 4 */
              CHAIN(4, 0, 32), MAYBE_Q(5)),
    },
    {
        /* Weights are decompressed on the fly; src stays float. */
        .name = "w8_matmul_post_ops",
        .recipe = qdqi_recipe_matmul,
        .picture = "         dq\n"
                   "   src    |    [dq]\n"
                   "     \\    |    /\n"
                   "     matmul|gemm\n"
                   "          |\n"
                   "        chain\n"
                   "          |\n"
                   "         [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_weights))}, /* 0 weights */
              {ANY(dq), OPT, IN(OUT)},                    /* 1 bias */
              {ANY(matmul), ANCHOR, IN(OUT, 0, 1), GUARDS(G(float_dst))}, CHAIN(2, 0, 32), MAYBE_Q(3)),
    },
    {
        .name = "fp_matmul_post_ops",
        .recipe = qdqi_recipe_matmul,
        .picture = "   src   weights\n"
                   "     \\    /\n"
                   "   matmul|gemm\n"
                   "        |\n"
                   "      chain\n"
                   "        |\n"
                   "       [q]\n",
        NODES({ANY(matmul), ANCHOR, IN(OUT, OUT), GUARDS(G(float_dst))}, CHAIN(0, 0, 32), MAYBE_Q(1)),
    },
};
QDQI_PATTERN_FAMILY(matmul, table);
