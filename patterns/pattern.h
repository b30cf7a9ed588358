/* The pattern language: an entry is data, written beside its ASCII picture in patterns/pattern_<family>.c (words: pattern_dsl.h).
 *
 * An entry lists nodes in topological order. Exactly one is the anchor: the compute op. Node i matches an op; IN(a, b, …)
 * says, per input port of that op, which earlier node feeds it: an index, or OUT for any value from outside. Ports past
 * the list are outside too.
 *   IS(KIND)          this kind                    ANY(set)          any kind of a set (sets.h)
 *   OPT               may be absent: who refers to it gets what its input 0 refers to
 *   REP(min, max)     a run of min…max such ops
 *   GUARDS(G(name))   named predicates on the candidate op (guards.h)
 *   ANY_SIDE          the chain may enter a binary op by either port (commutative ops always take either port)
 *   DQ_OTHER          an operand that is not the chain's may come through a Dequantize (and views), which are absorbed
 *   SELF_OTHER        the run may be a small graph instead of a line: x * sigmoid(x), x * x, x * clip(x + 3)
 *   OPEN              what the match made up to here may be needed by ops further on: the next node without OPEN closes it. Such
 *                     nodes stand between required ones
 *   FRONT             an op with several outputs before the anchor, all of which are needed inside of the match only: what it
 *                     makes is followed as what the anchor makes
 *   SCALE_OTHER       an operand that is not the chain's may be the product of a few numbers, computed for it alone: a row of
 *                     scales. The Multiply is absorbed
 *   VARIADIC          every input port of the op, however many, is fed by the node that IN names
 *   RECOMPUTE         may be absorbed although others use it, as a Dequantize may: for ops on constants, and for views of a
 *                     Dequantize
 *   REGION(max)       up to max connected ops of the set, in any arrangement, used inside of the match only; the node that IN
 *                     names makes one of the values that they read
 *
 * Nodes before the anchor lie upstream of it and are matched backward, port by port. Nodes after it lie downstream and
 * are matched forward, greedily and without backtracking; each names its predecessor at one port. A commutative anchor is
 * tried with inputs 0 and 1 both ways.
 *
 * What a match may hold. Every value made inside is used inside only, except the outputs of the last op. So:
 *   - The way forward goes through a value only when it is no graph output and all its uses are by ops of the match.
 *     Elsewhere the tail is cut, if all that is left of the entry is optional, at the last op where nothing inside is needed outside.
 *   - A Dequantize (any op of the schema flag DEQUANTIZE) is the exception: it is absorbed although it has other users or
 *     is a graph output; each partition recomputes it.
 *   - Any other upstream op must feed the match alone, or be RECOMPUTE.
 * A match of one op is no match: the op is left to "single".
 *
 * Priority is order: families as listed in catalogue.c (those whose fusion saves most first, elementwise chains last, so
 * that they get what is left), inside a family by number of required nodes, largest first, then as written. No numbers. The
 * order is a golden file of the tests. Matching looks only at a bounded neighbourhood of the anchor: the whole is linear in
 * ops. */
#ifndef QDQI_PATTERN_H
#define QDQI_PATTERN_H

#include "lower/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QDQI_PATTERN_MAX_NODES = 28,
    QDQI_PATTERN_MAX_INPUTS = 5, /* ports that IN can name */
    QDQI_PATTERN_MAX_GUARDS = 4,
    QDQI_PATTERN_MAX_VIEWS = 2,  /* between a Dequantize and its reader */
    QDQI_PATTERN_MAX_REP = 64,   /* sum of the runs of an entry */
    QDQI_PATTERN_MAX_REGION = 16 /* ops of one region */
};

typedef struct qdqi_set {
    const char *name;
    bool (*has)(const qdqi_op *op);
} qdqi_set;

struct qdqi_guard; /* guards.h */

typedef struct qdqi_pnode {
    qdqi_kind kind;      /* NONE when `set` decides */
    const qdqi_set *set; /* NULL when `kind` decides */
    bool anchor;
    bool optional;
    bool any_side, dq_other, self_other, scale_other, open; /* downstream nodes */
    bool front;                                             /* upstream nodes */
    bool variadic;                                          /* anchor */
    bool recompute;                                         /* upstream nodes */
    uint8_t region;                                         /* upstream nodes: most ops */
    uint8_t rep_min, rep_max;                               /* downstream nodes; 0,0: exactly one */
    uint8_t n_in;
    int8_t in[QDQI_PATTERN_MAX_INPUTS];
    const struct qdqi_guard *guards[QDQI_PATTERN_MAX_GUARDS];
} qdqi_pnode;

typedef struct qdqi_pattern {
    const char *name;
    qdqi_recipe_fn recipe;
    const qdqi_pnode *nodes;
    uint32_t n_nodes;
    const char *picture; /* the ASCII picture, for `qdq patterns`; lines end in \n */
    bool split; /* too much for one primitive: partitioned once more by the other entries, and lowered part by part */
} qdqi_pattern;

/* All entries in the order in which they are tried. Static; thread-safe. NULL when i is out of range. */
size_t qdqi_pattern_count(void);
const qdqi_pattern *qdqi_pattern_at(size_t i);
/* The family of the i-th entry ("conv"): the file that it stands in. */
const char *qdqi_pattern_family_name(size_t i);
/* Nodes that every match has. */
uint32_t qdqi_pattern_n_required(const qdqi_pattern *pattern);

#ifdef __cplusplus
}
#endif
#endif
