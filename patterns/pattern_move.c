#include "patterns/pattern_dsl.h"

static const qdqi_pattern table[] = {
    {
        .name = "x8_select",
        .recipe = qdqi_recipe_select,
        .picture = "   dq  dq\n"
                   "     \\ /\n"
                   "    select      the condition comes from outside\n"
                   "      |\n"
                   "      q\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {ANY(dq), IN(OUT), GUARDS(G(int_src))},
              {ANY(select), ANCHOR, IN(OUT, 0, 1), GUARDS(G(float_dst))}, {ANY(q), IN(2)}),
    },
    {
        .name = "x8_move",
        .recipe = qdqi_recipe_move,
        .picture = "   dq - move {1,8} - q      move: reshape transpose slice gather pad expand resize(nearest) …\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {ANY(move), ANCHOR, IN(0), GUARDS(G(float_dst), G(nearest))},
              {ANY(move), REP(0, 7), IN(1), GUARDS(G(float_dst), G(nearest))}, {ANY(q), IN(2)}),
    },
    {
        /* Once per output: each takes its piece of the integers. */
        .name = "x8_split",
        .recipe = qdqi_recipe_move,
        .picture = "   dq - split - q      for each output that is quantized\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {IS(SPLIT), RECOMPUTE, IN(0), GUARDS(G(float_dst), G(dq_behind))},
              {ANY(q), ANCHOR, IN(1)}),
    },
    {
        .name = "x8_resample",
        .recipe = qdqi_recipe_resample,
        .picture = "   dq - interpolate|resize - chain - [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {ANY(resize), ANCHOR, IN(0), GUARDS(G(float_dst))},
              CHAIN(1, 0, 32), MAYBE_Q(2)),
    },
    {
        .name = "x8_requantize",
        .recipe = qdqi_recipe_move,
        .picture = "   dq - [typecast] - q\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, VIEW(0), {ANY(q), ANCHOR, IN(1)}),
    },
    {
        .name = "fp_resample",
        .recipe = qdqi_recipe_resample,
        .picture = "   interpolate|resize - chain - [q]\n",
        NODES({ANY(resize), ANCHOR, IN(OUT), GUARDS(G(float_dst))}, CHAIN(0, 0, 32), MAYBE_Q(1)),
    },
};
QDQI_PATTERN_FAMILY(move, table);
