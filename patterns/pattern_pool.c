#include "patterns/pattern_dsl.h"

static const qdqi_pattern table[] = {
    {
        .name = "x8_pool_relayout",
        .recipe = qdqi_recipe_pool,
        .picture = "   dq - avgpool|maxpool|globalpool - reshape|transpose {1,3} - q\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {ANY(pool), ANCHOR, IN(0), GUARDS(G(float_dst))},
              {ANY(relayout), REP(1, 3), IN(1), GUARDS(G(float_dst))}, {ANY(q), IN(2)}),
    },
    {
        .name = "fp_pool_relayout",
        .recipe = qdqi_recipe_pool,
        .picture = "   avgpool|maxpool|globalpool - reshape|transpose {1,3} - q\n",
        NODES({ANY(pool), ANCHOR, IN(OUT), GUARDS(G(float_dst))},
              {ANY(relayout), REP(1, 3), IN(0), GUARDS(G(float_dst))}, {ANY(q), IN(1)}),
    },
    {
        .name = "x8_pool_post_ops",
        .recipe = qdqi_recipe_pool,
        .picture = "   dq - avgpool|maxpool|globalpool - chain - [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {ANY(pool), ANCHOR, IN(0), GUARDS(G(float_dst))}, CHAIN(1, 0, 32),
              MAYBE_Q(2)),
    },
    {
        .name = "fp_pool_post_ops",
        .recipe = qdqi_recipe_pool,
        .picture = "   avgpool|maxpool|globalpool - chain - [q]\n",
        NODES({ANY(pool), ANCHOR, IN(OUT), GUARDS(G(float_dst))}, CHAIN(0, 0, 32), MAYBE_Q(1)),
    },
};
QDQI_PATTERN_FAMILY(pool, table);
