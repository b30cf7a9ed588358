#include "lower/notes.h"

#include "base/alloc.h"

#include <string.h>

static const struct {
    const char *word, *text;
} rows[] = {
#define WHY(word, text) {#word, text},
#include "lower/why.def"
#undef WHY
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

size_t qdqi_refusal_count(void) {
    return N_ROWS;
}

const char *qdqi_refusal_word(size_t i) {
    return i < N_ROWS ? rows[i].word : NULL;
}

const char *qdqi_refusal_sentence(size_t i) {
    return i < N_ROWS ? rows[i].text : NULL;
}

const char *qdqi_refusal_text(const char *word) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].word, word) == 0) return rows[i].text;
    return NULL;
}

const char *qdqi_recipe_name(qdqi_recipe_fn recipe) {
    static const struct {
        qdqi_recipe_fn fn;
        const char *name;
    } recipes[] = {
#define QDQI_RECIPE_ROW(name) {qdqi_recipe_##name, #name},
        QDQI_RECIPE_MAP(QDQI_RECIPE_ROW)
#undef QDQI_RECIPE_ROW
    };
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++)
        if (recipes[i].fn == recipe) return recipes[i].name;
    return "unknown";
}

void qdqi_notes_free(qdqi_notes *notes) {
    qdqi_free(notes->refusals);
    qdqi_free(notes->alone);
    qdqi_free(notes->refused);
    *notes = (qdqi_notes){0};
}

/* Room for one more; `items` is left as it was on failure. */
static void *grown(void *items, uint32_t n, uint32_t *cap, size_t size, bool *failed) {
    if (n < *cap) return items;
    const uint32_t more = *cap == 0 ? 64 : *cap * 2;
    void *p = more > *cap ? qdqi_realloc_array(items, more, size) : NULL;
    if (p == NULL) {
        *failed = true;
        return items;
    }
    *cap = more;
    return p;
}

void qdqi_notes_refusal(qdqi_notes *notes, const qdqi_refusal *refusal) {
    notes->n_seen++;
    for (uint32_t i = notes->n_refusals; i-- > 0 && notes->refusals[i].part == refusal->part;) {
        const qdqi_refusal *r = &notes->refusals[i];
        const bool same_op = r->op == refusal->op || r->op == QDQI_NONE;
        if (same_op && strcmp(r->who, refusal->who) == 0 && strcmp(r->why, refusal->why) == 0) return;
    }
    notes->refusals =
        grown(notes->refusals, notes->n_refusals, &notes->cap_refusals, sizeof *notes->refusals, &notes->failed);
    if (notes->n_refusals < notes->cap_refusals) notes->refusals[notes->n_refusals++] = *refusal;
}

void qdqi_notes_alone(qdqi_notes *notes, uint32_t op) {
    notes->alone = grown(notes->alone, notes->n_alone, &notes->cap_alone, sizeof *notes->alone, &notes->failed);
    if (notes->n_alone < notes->cap_alone) notes->alone[notes->n_alone++] = op;
}
