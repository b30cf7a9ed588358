/* The pattern language: an entry is data, written under its ASCII picture in patterns/<family>.c.
 *
 * An entry lists nodes in topological order. Node i matches an op; IN(a, b, …) says, per input port of that op, which earlier
 * node feeds it: an index, or OUT (-1) for any value from outside. Ports past the list are outside too.
 *   IS(KIND)          this kind                    ANY(set)          any kind of a set: unary, binary, any_dq, any_q, …
 *   OPT               may be absent: who refers to it gets what its input 0 refers to
 *   REP(min, max)     a run of such ops, each fed by the one before (port 0, or either port of a commutative op; for
 *                     ANY_SIDE nodes either port of any binary op)
 *   GUARD(name)       a named predicate on the candidate op (patterns/guards.h); several may be given
 *   DQ_OTHER          the other operand of a binary op may come from a Dequantize that is absorbed as well
 * A commutative op is tried with its inputs both ways. Chains go forward through values that have exactly one
 * consumer and are no graph outputs; inputs go backward. A Dequantize is absorbed even when others use it (it is free to
 * recompute); any other op of a match must be used by the match alone, except its last one.
 *
 * Priority is order: entries by number of required nodes, largest first, then as written. No numbers. The resulting order is a
 * golden file of the tests. Matching looks only at a bounded neighbourhood of the anchor: the whole is linear in ops. */
#ifndef QDQI_PATTERN_H
#define QDQI_PATTERN_H

#include "lower/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QDQI_PATTERN_MAX_NODES = 16, QDQI_PATTERN_MAX_INPUTS = 4, QDQI_PATTERN_MAX_GUARDS = 4 };

typedef bool (*qdqi_kind_set)(const qdqi_op *op);
/* True when the op may stand at the node. `why` (never NULL) receives a word of the refusal vocabulary. */
typedef bool (*qdqi_guard_fn)(const qdq_graph *graph, const qdqi_op *op, const char **why);
typedef struct qdqi_guard {
    const char *name;
    qdqi_guard_fn fn;
} qdqi_guard;

typedef struct qdqi_pnode {
    qdqi_kind kind; /* NONE when `set` decides */
    qdqi_kind_set set;
    bool optional;
    uint8_t rep_min, rep_max; /* 0,0: exactly one */
    bool any_side;            /* the chain value may be either input of a binary op */
    bool dq_other;
    bool anchor; /* the compute op; exactly one per entry */
    uint8_t n_in;
    int8_t in[QDQI_PATTERN_MAX_INPUTS];
    const qdqi_guard *guards[QDQI_PATTERN_MAX_GUARDS];
} qdqi_pnode;

typedef struct qdqi_pattern {
    const char *name;
    qdqi_recipe_fn recipe;
    const qdqi_pnode *nodes;
    uint32_t n_nodes;
    const char *picture; /* the ASCII picture, for `qdq patterns` */
} qdqi_pattern;

/* All entries in the order in which they are tried. */
size_t qdqi_pattern_count(void);
const qdqi_pattern *qdqi_pattern_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
