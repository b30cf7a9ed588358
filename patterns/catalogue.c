#include "patterns/catalogue.h"

static const qdqi_pattern_family *const families[] = {
#define QDQI_PATTERN_FAMILY_ROW(family) &qdqi_patterns_##family,
    QDQI_PATTERN_FAMILY_MAP(QDQI_PATTERN_FAMILY_ROW)
#undef QDQI_PATTERN_FAMILY_ROW
};
enum { N_FAMILIES = sizeof(families) / sizeof(families[0]) };

size_t qdqi_pattern_count(void) {
    size_t n = 0;
    for (size_t f = 0; f < N_FAMILIES; f++)
        n += families[f]->n;
    return n;
}

const qdqi_pattern *qdqi_pattern_at(size_t i) {
    for (size_t f = 0; f < N_FAMILIES; f++) {
        if (i < families[f]->n) return &families[f]->entries[i];
        i -= families[f]->n;
    }
    return NULL;
}

const char *qdqi_pattern_family_name(size_t i) {
    for (size_t f = 0; f < N_FAMILIES; f++) {
        if (i < families[f]->n) return families[f]->name;
        i -= families[f]->n;
    }
    return NULL;
}

uint32_t qdqi_pattern_n_required(const qdqi_pattern *pattern) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < pattern->n_nodes; i++) {
        const qdqi_pnode *node = &pattern->nodes[i];
        if (!node->optional && !node->region) n += node->rep_max == 0 ? 1 : node->rep_min;
    }
    return n;
}
