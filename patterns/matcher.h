/* The matcher: does an entry match at an op, which ops does the match hold, and if not, why. One per graph and use; not
 * shared between threads. */
#ifndef QDQI_MATCHER_H
#define QDQI_MATCHER_H

#include "patterns/guards.h"
#include "patterns/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_matcher qdqi_matcher;

/* Where and why the matcher stopped following an entry. */
typedef struct qdqi_match_step {
    const qdqi_pattern *pattern;
    bool cut;                /* the entry matched up to here and the rest was optional; else it did not match */
    uint32_t n_ops;          /* ops matched by then */
    uint32_t node;           /* of the entry */
    uint32_t op;             /* the op that was refused; QDQI_NONE when there was none */
    uint32_t value;          /* the value by which the node would have been reached; QDQI_NONE at the anchor */
    qdqi_why why;            /* the refusal */
    const qdqi_guard *guard; /* the guard that refused, or NULL */
} qdqi_match_step;

typedef struct qdqi_match_trace {
    void (*step)(void *user, const qdqi_match_step *step);
    void *user;
} qdqi_match_trace;

typedef struct qdqi_match {
    const qdqi_pattern *pattern;
    uint32_t root;
    uint32_t n_ops;
    const uint32_t *ops; /* in topological order; the matcher's, until its next attempt */
} qdqi_match;

/* `graph` is finalized and outlives the matcher. */
qdq_status qdqi_matcher_create(const qdq_graph *graph, qdqi_matcher **matcher_out, qdq_error *err);
void qdqi_matcher_destroy(qdqi_matcher **matcher);

/* Try one entry with its anchor at op `root`. `trace` may be NULL. */
bool qdqi_matcher_try(qdqi_matcher *matcher, const qdqi_pattern *pattern, uint32_t root, const qdqi_match_trace *trace,
                      qdqi_match *match_out);
/* Make the ops of the last successful attempt the property of that match: later ones cannot have them, except those that
 * are recomputed (Dequantize and nodes marked RECOMPUTE). */
void qdqi_matcher_claim(qdqi_matcher *matcher);
/* From now on only these ops take part, none of them claimed. */
void qdqi_matcher_restrict(qdqi_matcher *matcher, const uint32_t *ops, uint32_t n_ops);
bool qdqi_matcher_is_claimed(const qdqi_matcher *matcher, uint32_t op);
/* True when some claimed match recomputes the op. */
bool qdqi_matcher_is_absorbed(const qdqi_matcher *matcher, uint32_t op);

/* Among all entries that could be anchored at `op`, the one that gets furthest, regardless of `matcher`'s claims on `op`
 * itself: pattern NULL when there is none. With `cut`, the entry matches, and the step says why it ended there. */
void qdqi_matcher_nearest(qdqi_matcher *matcher, uint32_t op, qdqi_match_step *nearest_out);

/* Position of an op in topological order. */
uint32_t qdqi_matcher_position(const qdqi_matcher *matcher, uint32_t op);
/* Uses of a value by ops that take part (folded ones do not). */
uint32_t qdqi_matcher_n_uses(const qdqi_matcher *matcher, uint32_t value);
/* How often an op was held against a node: the measure of work, linear in the number of ops. */
uint64_t qdqi_matcher_n_attempts(const qdqi_matcher *matcher);

#ifdef __cplusplus
}
#endif
#endif
