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
        NODES({IS(DYNAMICQUANTIZELINEAR), FRONT, IN(OUT)}, {IS(MATMULINTEGER), ANCHOR, IN(0, OUT)}, SCALES(1),
              {ANY(cast), OPEN, IN(2), GUARDS(G(float_dst))}, SCALES(3),
              {IS(MULTIPLY), IN(4), SELF_OTHER, GUARDS(G(float_dst))}, POSTS_OF_SUMS(5), RELAYOUT(6), MAYBE_Q(7)),
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
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, VIEW(0), VIEW(1),   /* 0 src */
              {ANY(q), OPT, RECOMPUTE, IN(OUT), GUARDS(G(const_src))},    /* 3 weights known as floats */
              {ANY(dq), IN(3), GUARDS(G(int_weights))}, VIEW(4), VIEW(5), /* 4 weights */
              {ANY(dq), OPT, IN(OUT)}, VIEW(7),                           /* 7 bias */
              {ANY(matmul), ANCHOR, IN(2, 6, 8), GUARDS(G(float_dst))},   /* 9 */
              POSTS(9, 0, 32), RELAYOUT(10), MAYBE_Q(11)),
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
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_weights))}, VIEW(0), VIEW(1), /* 0 weights */
              {ANY(dq), OPT, IN(OUT)}, VIEW(3),                             /* 3 bias */
              {ANY(matmul), ANCHOR, IN(OUT, 2, 4), GUARDS(G(float_dst))}, POSTS(5, 0, 32), RELAYOUT(6), MAYBE_Q(7)),
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
        NODES({IS(MATMULINTEGER), ANCHOR, IN(OUT, OUT)}, POSTS_OF_SUMS(0), RELAYOUT(1), MAYBE_Q(2)),
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
        NODES({ANY(matmul), ANCHOR, IN(OUT, OUT), GUARDS(G(float_dst))}, POSTS(0, 0, 32), RELAYOUT(1), MAYBE_Q(2)),
    },
};
QDQI_PATTERN_FAMILY(matmul, table);
