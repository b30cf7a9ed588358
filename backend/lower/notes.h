/* What lowering refused and what it did op by op, for explanations. A context keeps notes when somebody will read them. */
#ifndef QDQI_NOTES_H
#define QDQI_NOTES_H

#include "lower/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the vocabulary: why.def ---- */
size_t qdqi_refusal_count(void);
/* The i-th word and its sentence; NULL when i is out of range. Static. */
const char *qdqi_refusal_word(size_t i);
const char *qdqi_refusal_sentence(size_t i);
/* The sentence of a word; NULL when it is none. */
const char *qdqi_refusal_text(const char *word);

/* The name of a recipe ("matmul"): static, "unknown" for a foreign function. */
const char *qdqi_recipe_name(qdqi_recipe_fn recipe);

/* ---- notes ---- */
typedef struct qdqi_refusal {
    uint32_t part;
    uint32_t op;     /* the op being lowered on its own; QDQI_NONE: the partition as a whole */
    const char *who; /* candidate: a recipe, a step of one, or an op's kind; static */
    const char *why; /* word of why.def */
} qdqi_refusal;

typedef struct qdqi_notes {
    qdqi_refusal *refusals;
    uint32_t n_refusals, cap_refusals;
    uint32_t n_seen; /* refusals, equal ones included */
    uint32_t *alone; /* ops that were lowered to steps of their own, in that order */
    uint32_t n_alone, cap_alone;
    bool *refused; /* by partition: its recipe refused. Set by who reads it, n_parts long; may be NULL */
    bool failed;   /* out of memory: notes are missing */
} qdqi_notes;

void qdqi_notes_free(qdqi_notes *notes);
/* Equal refusals of one partition and op are kept once; what its recipe refused is not said again of its ops. */
void qdqi_notes_refusal(qdqi_notes *notes, const qdqi_refusal *refusal);
void qdqi_notes_alone(qdqi_notes *notes, uint32_t op);

#ifdef __cplusplus
}
#endif
#endif
