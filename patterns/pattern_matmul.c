#include "patterns/pattern_dsl.h"

static const qdqi_pattern table[] = {
    {
        /* Quantized at run time, for this product alone. */
        .name = "dynamic_matmul_post_ops",
        .recipe = qdqi_recipe_matmul,
        .picture = "   dynamicquantizelinear\n"
                   "      |   |zp    |scale\n"
                   "      |   |      |\n"
                   "     matmulinteger \\\n"
                   "          |        [multiply weights' scale]\n"
                   "        cast       |\n"
                   "           \\       |\n"
                   "            multiply\n"
                   "               |\n"
                   "             chain\n"
                   "               |\n"
                   "   [reshape|transpose|typecast {0,4}]\n"
                   "               |\n"
                   "              [q]\n",
        DYNAMIC_PRODUCT(MATMULINTEGER),
    },
    {
        .name = "x8_matmul_post_ops",
        .recipe = qdqi_recipe_matmul,
        .picture = "          [q] const\n"
                   "           |\n"
                   "   dq     dq    [dq]\n"
                   "    |     |      |\n"
                   " [view] [view] [view]     view: typecast|reshape|transpose {0,2}\n"
                   "    \\     |     /\n"
                   "     matmul|gemm          chain: unary|binary|bias|typecast|batchnorm, {0,32},\n"
                   "          |               either side, other operand [dq - view]\n"
                   "        chain\n"
                   "          |\n"
                   "   [reshape|transpose|typecast {0,4}]\n"
                   "          |\n"
                   "         [q]\n",
        X8_PRODUCT(matmul),
    },
    {
        /* Weights are decompressed on the fly; src stays float. */
        .name = "w8_matmul_post_ops",
        .recipe = qdqi_recipe_matmul,
        .picture = "         dq\n"
                   "          |\n"
                   "   src  [view]  [dq - view]\n"
                   "     \\    |    /\n"
                   "     matmul|gemm\n"
                   "          |\n"
                   "        chain\n"
                   "          |\n"
                   "   [reshape|transpose|typecast {0,4}]\n"
                   "          |\n"
                   "         [q]\n",
        W8_PRODUCT(matmul, G(int_weights)),
    },
    {
        /* Integers by themselves; a cast and the scales follow in the chain. */
        .name = "integer_matmul_post_ops",
        .recipe = qdqi_recipe_matmul,
        .picture = "   x8   x8  zps\n"
                   "     \\  |  /\n"
                   "   matmulinteger\n"
                   "        |\n"
                   "      chain             a product of scales for it alone is taken along\n"
                   "        |\n"
                   "   [reshape|transpose|typecast {0,4}]\n"
                   "        |\n"
                   "       [q]\n",
        INTEGER_PRODUCT(MATMULINTEGER),
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
                   "   [reshape|transpose|typecast {0,4}]\n"
                   "        |\n"
                   "       [q]\n",
        FP_PRODUCT(matmul),
    },
};
QDQI_PATTERN_FAMILY(matmul, table);
