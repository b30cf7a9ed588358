#include "patterns/pattern_dsl.h"

static const qdqi_pattern table[] = {
    {
        /* Weights known as floats, grouped ones perhaps kept in another shape: the reshapes move no data. */
        .name = "x8_conv_reshaped_weights",
        .recipe = qdqi_recipe_conv,
        .picture = "        [reshape]\n"
                   "           |\n"
                   "           q\n"
                   "           |\n"
                   "   dq     dq   [dq]\n"
                   "    |      |    |\n"
                   " [view] [view] [view]\n"
                   "     \\    |    /\n"
                   "   conv|convtranspose\n"
                   "          |\n"
                   "        chain\n"
                   "          |\n"
                   "   [reshape|transpose|typecast|maxpool {0,4}]\n"
                   "          |\n"
                   "         [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, VIEW(0), VIEW(1),   /* 0 src */
              {ANY(relayout), OPT, IN(OUT)},                              /* 3 */
              {ANY(q), IN(3)},                                            /* 4 weights known as floats */
              {ANY(dq), IN(4), GUARDS(G(int_weights))}, VIEW(5), VIEW(6), /* 5 weights */
              {ANY(dq), OPT, IN(OUT)}, VIEW(8),                           /* 8 bias */
              {ANY(conv), ANCHOR, IN(2, 7, 9), GUARDS(G(float_dst))},     /* 10 */
              POSTS(10, 0, 32), RELAYOUT(11), MAYBE_Q(12)),
    },
    {
        /* Quantized at run time, for this convolution alone. */
        .name = "dynamic_conv_post_ops",
        .recipe = qdqi_recipe_conv,
        .picture = "   dynamicquantizelinear\n"
                   "      |   |zp    |scale\n"
                   "      |   |      |\n"
                   "     convinteger \\\n"
                   "          |      [multiply weights' scale]\n"
                   "        cast     |\n"
                   "           \\     |\n"
                   "            multiply\n"
                   "               |\n"
                   "             chain\n"
                   "               |\n"
                   "   [reshape|transpose|typecast|maxpool {0,4}]\n"
                   "               |\n"
                   "              [q]\n",
        NODES({IS(DYNAMICQUANTIZELINEAR), FRONT, IN(OUT)}, {IS(CONVINTEGER), ANCHOR, IN(0, OUT)}, SCALES(1),
              {ANY(cast), OPEN, IN(2), GUARDS(G(float_dst))}, SCALES(3),
              {IS(MULTIPLY), IN(4), SELF_OTHER, GUARDS(G(float_dst))}, POSTS_OF_SUMS(5), RELAYOUT(6), MAYBE_Q(7)),
    },
    {
        .name = "x8_conv_post_ops",
        .recipe = qdqi_recipe_conv,
        .picture = "          [q] const\n"
                   "           |\n"
                   "   dq     dq    [dq]\n"
                   "    |     |      |\n"
                   " [view] [view] [view]     view: typecast|reshape|transpose {0,2}\n"
                   "    \\     |     /\n"
                   "   conv|convtranspose     chain: unary|binary|bias|typecast|batchnorm, {0,32},\n"
                   "          |               either side, other operand [dq - view]\n"
                   "        chain\n"
                   "          |\n"
                   "   [reshape|transpose|typecast|maxpool {0,4}]\n"
                   "          |\n"
                   "         [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, VIEW(0), VIEW(1),   /* 0 src */
              {ANY(q), OPT, RECOMPUTE, IN(OUT), GUARDS(G(const_src))},    /* 3 weights known as floats */
              {ANY(dq), IN(3), GUARDS(G(int_weights))}, VIEW(4), VIEW(5), /* 4 weights */
              {ANY(dq), OPT, IN(OUT)}, VIEW(7),                           /* 7 bias */
              {ANY(conv), ANCHOR, IN(2, 6, 8), GUARDS(G(float_dst))},     /* 9 */
              POSTS(9, 0, 32), RELAYOUT(10), MAYBE_Q(11)),
    },
    {
        /* Constant weights: a dequantized copy is packed once. */
        .name = "w8_conv_post_ops",
        .recipe = qdqi_recipe_conv,
        .picture = "         dq const\n"
                   "          |\n"
                   "   src  [view]  [dq - view]\n"
                   "     \\    |    /\n"
                   "   conv|convtranspose\n"
                   "          |\n"
                   "        chain\n"
                   "          |\n"
                   "   [reshape|transpose|typecast|maxpool {0,4}]\n"
                   "          |\n"
                   "         [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_weights), G(const_src))}, VIEW(0), VIEW(1), /* 0 weights */
              {ANY(dq), OPT, IN(OUT)}, VIEW(3),                                           /* 3 bias */
              {ANY(conv), ANCHOR, IN(OUT, 2, 4), GUARDS(G(float_dst))}, POSTS(5, 0, 32), RELAYOUT(6), MAYBE_Q(7)),
    },
    {
        /* Integers by themselves; a cast and the scales follow in the chain. */
        .name = "integer_conv_post_ops",
        .recipe = qdqi_recipe_conv,
        .picture = "   x8   x8  zps\n"
                   "     \\  |  /\n"
                   "    convinteger\n"
                   "        |\n"
                   "      chain\n"
                   "        |\n"
                   "   [reshape|transpose|typecast|maxpool {0,4}]\n"
                   "        |\n"
                   "       [q]\n",
        NODES({IS(CONVINTEGER), ANCHOR, IN(OUT, OUT)}, POSTS_OF_SUMS(0), RELAYOUT(1), MAYBE_Q(2)),
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
                   "   [reshape|transpose|typecast|maxpool {0,4}]\n"
                   "        |\n"
                   "       [q]\n",
        NODES({ANY(conv), ANCHOR, IN(OUT, OUT), GUARDS(G(float_dst))}, POSTS(0, 0, 32), RELAYOUT(1), MAYBE_Q(2)),
    },
};
QDQI_PATTERN_FAMILY(conv, table);
