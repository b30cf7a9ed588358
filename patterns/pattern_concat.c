#include "patterns/pattern_dsl.h"

static const qdqi_pattern table[] = {
    {
        .name = "x8_concat",
        .recipe = qdqi_recipe_concat,
        .picture = "   dq  dq  …\n"
                   "     \\ |  /\n"
                   "     concat\n"
                   "       |\n"
                   "       q\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {IS(CONCAT), ANCHOR, VARIADIC, IN(0), GUARDS(G(float_dst))},
              {ANY(q), IN(1)}),
    },
};
QDQI_PATTERN_FAMILY(concat, table);
