#include "patterns/pattern_dsl.h"

/* Runs of elementwise ops that nothing heavier took. The anchor is the first op of the run. */
static const qdqi_pattern table[] = {
    {
        .name = "x8_eltwise",
        .recipe = qdqi_recipe_eltwise,
        .picture = "    dq   [dq]\n"
                   "     |     |\n"
                   "  [view] [view]\n"
                   "      \\   |\n"
                   "   unary|binary\n"
                   "        |\n"
                   "   chain {0,31}\n"
                   "        |\n"
                   "       [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, VIEW(0), {ANY(dq), OPT, IN(OUT)}, VIEW(2),
              {ANY(pointwise), ANCHOR, IN(1, 3), GUARDS(G(float_dst))}, CHAIN(4, 0, 31), MAYBE_Q(5)),
    },
    {
        /* float - dq, float / dq: where the sides cannot be swapped. */
        .name = "x8_eltwise_rhs",
        .recipe = qdqi_recipe_eltwise,
        .picture = "   src  dq - [view]\n"
                   "     \\  |\n"
                   "     binary\n"
                   "        |\n"
                   "   chain {0,31}\n"
                   "        |\n"
                   "       [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, VIEW(0),
              {ANY(pointwise), ANCHOR, IN(OUT, 1), GUARDS(G(float_dst))}, CHAIN(2, 0, 31), MAYBE_Q(3)),
    },
    {
        .name = "x8_sum",
        .recipe = qdqi_recipe_eltwise,
        .picture = "   dq  dq  …\n"
                   "     \\ |  /\n"
                   "      sum\n"
                   "       |\n"
                   "  chain {0,31}\n"
                   "       |\n"
                   "      [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {IS(SUM), ANCHOR, VARIADIC, IN(0), GUARDS(G(float_dst))},
              CHAIN(1, 0, 31), MAYBE_Q(2)),
    },
    {
        .name = "cast_quantize",
        .recipe = qdqi_recipe_eltwise,
        .picture = "   typecast - chain {0,31} - q\n",
        NODES({ANY(cast), ANCHOR, IN(OUT), GUARDS(G(float_dst), G(starts_run))}, CHAIN(0, 0, 31), {ANY(q), IN(1)}),
    },
    {
        .name = "fp_eltwise",
        .recipe = qdqi_recipe_eltwise,
        .picture = "   unary|binary - chain {0,31} - [q]      two ops at least\n",
        NODES({ANY(pointwise), ANCHOR, IN(OUT, OUT), GUARDS(G(float_dst))}, CHAIN(0, 0, 31), MAYBE_Q(1)),
    },
};
QDQI_PATTERN_FAMILY(eltwise, table);
