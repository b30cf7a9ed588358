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
              PRODUCT_TAIL(10)),
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
        DYNAMIC_PRODUCT(CONVINTEGER),
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
        X8_PRODUCT(conv),
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
        W8_PRODUCT(conv, G(int_weights), G(const_src)),
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
        INTEGER_PRODUCT(CONVINTEGER),
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
        FP_PRODUCT(conv),
    },
};
QDQI_PATTERN_FAMILY(conv, table);
