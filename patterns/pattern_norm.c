#include "patterns/pattern_dsl.h"

static const qdqi_pattern table[] = {
    {
        /* Statistics that somebody needs end the partition at the normalisation. */
        .name = "x8_norm_post_ops",
        .recipe = qdqi_recipe_norm,
        .picture = "   dq   [dq] gamma, beta, mean, variance\n"
                   "     \\   |\n"
                   "   softmax|logsoftmax|layernorm|groupnorm|rmsnorm|batchnorm|instancenorm|reduce\n"
                   "         |\n"
                   "       chain\n"
                   "         |\n"
                   "        [q]\n",
        NODES({ANY(dq), IN(OUT), GUARDS(G(int_src))}, {ANY(dq), OPT, IN(OUT)}, {ANY(dq), OPT, IN(OUT)},
              {ANY(dq), OPT, IN(OUT)}, {ANY(dq), OPT, IN(OUT)},
              {ANY(norm), ANCHOR, IN(0, 1, 2, 3, 4), GUARDS(G(float_dst))}, CHAIN(5, 0, 32), MAYBE_Q(6)),
    },
    {
        .name = "fp_norm_post_ops",
        .recipe = qdqi_recipe_norm,
        .picture = "   softmax|logsoftmax|layernorm|groupnorm|rmsnorm|batchnorm|instancenorm|reduce - chain - [q]\n",
        NODES({ANY(norm), ANCHOR, IN(OUT), GUARDS(G(float_dst))}, CHAIN(0, 0, 32), MAYBE_Q(1)),
    },
};
QDQI_PATTERN_FAMILY(norm, table);
