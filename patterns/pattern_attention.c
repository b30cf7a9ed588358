#include "patterns/pattern_dsl.h"

/* Several products in one partition. The entries are deliberately wide: what each product is fused with is decided by the other
 * families, which partition the inside. */
static const qdqi_pattern table[] = {
    {
        .name = "gated_mlp",
        .recipe = qdqi_recipe_children,
        .split = true,
        .picture = "        [dq]  [dq]   [dq]  [dq]      src and weights, typecast|reshape|transpose behind each\n"
                   "          \\   /        \\   /\n"
                   "     gate matmul     matmul up\n"
                   "             |         |\n"
                   "   activation {0,8}  [chain {0,8}]\n"
                   "             \\       /\n"
                   "             multiply\n"
                   "                 |\n"
                   "         [typecast] - [q - dq - [typecast]]   [dq]\n"
                   "                                     \\         /\n"
                   "                                     matmul down\n"
                   "                                          |\n"
                   "                                        chain\n"
                   "                                          |\n"
                   "                                         [q]\n",
        NODES({ANY(dq), OPT, IN(OUT)}, VIEW(0),                        /* 0 src */
              {ANY(dq), OPT, IN(OUT)}, VIEW(2),                        /* 2 weights */
              {ANY(matmul), IN(1, 3), GUARDS(G(float_dst))},           /* 4 gate */
              {ANY(chain), REGION(8), IN(4)},                          /* 5 */
              {ANY(dq), OPT, IN(OUT)}, VIEW(6),                        /* 6 src */
              {ANY(dq), OPT, IN(OUT)}, VIEW(8),                        /* 8 weights */
              {ANY(matmul), IN(7, 9), GUARDS(G(float_dst))},           /* 10 up */
              {ANY(chain), REGION(8), IN(10)},                         /* 11 */
              {IS(MULTIPLY), ANCHOR, IN(5, 11), GUARDS(G(float_dst))}, /* 12 */
              {ANY(cast), OPT, IN(12), GUARDS(G(float_dst))},          /* 13 */
              {ANY(q), OPT, IN(13)},                                   /* 14 */
              {ANY(dq), OPT, IN(14)},                                  /* 15 */
              {ANY(cast), OPT, IN(15), GUARDS(G(float_dst))},          /* 16 */
              {ANY(matmul), IN(16), DQ_OTHER, GUARDS(G(float_dst))},   /* 17 down */
              CHAIN(17, 0, 32), MAYBE_Q(18)),
    },
    {
        /* Scale, mask and causal mask in any order and form; grouped and multi-query heads are reshapes. */
        .name = "attention",
        .recipe = qdqi_recipe_children,
        .split = true,
        .picture = "   [dq] query  [dq] key      typecast|reshape|transpose behind each\n"
                   "        \\      /\n"
                   "         matmul\n"
                   "           |\n"
                   "   scale, mask, select, reshape … {0,12}\n"
                   "           |\n"
                   "        softmax\n"
                   "           |\n"
                   "   [typecast|reshape|transpose {0,4}]\n"
                   "           |\n"
                   "   [q - dq - [typecast]]   [dq] value\n"
                   "                  \\         /\n"
                   "                   matmul\n"
                   "                      |\n"
                   "        [typecast|reshape|transpose {0,4}]\n"
                   "                      |\n"
                   "                     [q]\n",
        NODES({ANY(dq), OPT, IN(OUT)}, VIEW(0), VIEW(1), {ANY(relayout), OPT, IN(2)}, /* 0 query */
              {ANY(dq), OPT, IN(OUT)}, VIEW(4), VIEW(5), {ANY(relayout), OPT, IN(6)}, /* 4 key */
              {ANY(matmul), IN(3, 7), GUARDS(G(float_dst))},                          /* 8 */
              {ANY(score), REGION(12), IN(8)},                                        /* 9 */
              {IS(SOFTMAX), ANCHOR, IN(9), GUARDS(G(float_dst))},                     /* 10 */
              {ANY(view), REP(0, 4), IN(10), GUARDS(G(float_dst))},                   /* 11 */
              {ANY(q), OPT, IN(11)},                                                  /* 12 */
              {ANY(dq), OPT, IN(12)},                                                 /* 13 */
              {ANY(cast), OPT, IN(13), GUARDS(G(float_dst))},                         /* 14 */
              {ANY(matmul), IN(14), ANY_SIDE, DQ_OTHER, GUARDS(G(float_dst))},        /* 15 */
              {ANY(view), REP(0, 4), IN(15), GUARDS(G(float_dst))},                   /* 16 */
              MAYBE_Q(16)),
    },
    {
        .name = "matmul_softmax",
        .recipe = qdqi_recipe_children,
        .split = true,
        .picture = "   [dq]    [dq]      typecast|reshape|transpose behind each\n"
                   "      \\    /\n"
                   "      matmul\n"
                   "         |\n"
                   "   scale, mask, select, reshape … {0,12}\n"
                   "         |\n"
                   "      softmax\n"
                   "         |\n"
                   "       chain\n"
                   "         |\n"
                   "        [q]\n",
        NODES({ANY(dq), OPT, IN(OUT)}, VIEW(0), VIEW(1), {ANY(relayout), OPT, IN(2)}, /* 0 src */
              {ANY(dq), OPT, IN(OUT)}, VIEW(4), VIEW(5), {ANY(relayout), OPT, IN(6)}, /* 4 weights */
              {ANY(matmul), IN(3, 7), GUARDS(G(float_dst))},                          /* 8 */
              {ANY(score), REGION(12), IN(8)},                                        /* 9 */
              {IS(SOFTMAX), ANCHOR, IN(9), GUARDS(G(float_dst))},                     /* 10 */
              CHAIN(10, 0, 32), MAYBE_Q(11)),
    },
};
QDQI_PATTERN_FAMILY(attention, table);
