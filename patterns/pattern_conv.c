#include "patterns/pattern_dsl.h"

static const qdqi_pattern table[] = {
    {
        /* Grouped weights that a framework keeps in another shape: the reshapes move no data. */
        .name = "x8_conv_reshaped_weights",
        .recipe = qdqi_recipe_conv,
        .picture = "        [reshape]\n"
                   "           |\n"
                   "          [q]\n"
                   "           |\n"
                   "   dq     dq\n"
                   "    \\     |\n"
                   "     \\ reshape [dq]\n"
                   "      \\   |    /\n"
                   "   conv|convtranspose\n"
                   "          |\n"
                   "        chain\n"
                   "          |\n"
                   "         [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))},                 /* 0 src */
              {ANY(relayout), OPT, IN(OUT)},                          /* 1 */
              {ANY(q), OPT, IN(1)},                                   /* 2 weights known as floats */
              {ANY(dq), IN(2), GUARDS(G(int_weights))},               /* 3 weights */
              {ANY(relayout), IN(3)},                                 /* 4 */
              {ANY(dq), OPT, IN(OUT)},                                /* 5 bias */
              {ANY(conv), ANCHOR, IN(0, 4, 5), GUARDS(G(float_dst))}, /* 6 */
              CHAIN(6, 0, 32), MAYBE_Q(7)),
    },
    {
        .name = "x8_conv_post_ops",
        .recipe = qdqi_recipe_conv,
        .picture = "          [q] const\n"
                   "           |\n"
                   "   dq     dq    [dq]\n"
                   "    \\     |     /\n"
                   "   conv|convtranspose     chain: unary|binary|bias, {0,32},\n"
                   "          |               either side, other operand [dq]\n"
                   "        chain\n"
                   "          |\n"
                   "         [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))},                  /* 0 src */
              {ANY(q), OPT, RECOMPUTE, IN(OUT), GUARDS(G(const_src))}, /* 1 weights known as floats */
              {ANY(dq), IN(1), GUARDS(G(int_weights))},                /* 2 weights */
              {ANY(dq), OPT, IN(OUT)},                                 /* 3 bias */
              {ANY(conv), ANCHOR, IN(0, 2, 3), GUARDS(G(float_dst))},  /* 4 */
              CHAIN(4, 0, 32), MAYBE_Q(5)),
    },
    {
        /* Constant weights: a dequantized copy is packed once. */
        .name = "w8_conv_post_ops",
        .recipe = qdqi_recipe_conv,
        .picture = "         dq const\n"
                   "   src    |    [dq]\n"
                   "     \\    |    /\n"
                   "   conv|convtranspose\n"
                   "          |\n"
                   "        chain\n"
                   "          |\n"
                   "         [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_weights), G(const_src))}, /* 0 weights */
              {ANY(dq), OPT, IN(OUT)},                                  /* 1 bias */
              {ANY(conv), ANCHOR, IN(OUT, 0, 1), GUARDS(G(float_dst))}, CHAIN(2, 0, 32), MAYBE_Q(3)),
    },
    {
        .name = "fp_conv_post_ops",
        .recipe = qdqi_recipe_conv,
        .picture = "   src   weights\n"
                   "     \\    /\n"
                   "   conv|convtranspose\n"
                   "        |\n"
                   "      chain\n"
                   "        |\n"
                   "       [q]\n",
        NODES({ANY(conv), ANCHOR, IN(OUT, OUT), GUARDS(G(float_dst))}, CHAIN(0, 0, 32), MAYBE_Q(1)),
    },
};
QDQI_PATTERN_FAMILY(conv, table);
