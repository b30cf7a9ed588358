/* The families of pattern tables. A family is one file: patterns/pattern_<family>.c. */
#ifndef QDQI_CATALOGUE_H
#define QDQI_CATALOGUE_H

#include "patterns/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In order of priority. */
#define QDQI_PATTERN_FAMILY_MAP(X)                                                                                     \
    X(attention)                                                                                                       \
    X(matmul)                                                                                                          \
    X(conv)                                                                                                            \
    X(norm)                                                                                                            \
    X(pool)                                                                                                            \
    X(concat)                                                                                                          \
    X(move)                                                                                                            \
    X(eltwise)

typedef struct qdqi_pattern_family {
    const char *name;
    const qdqi_pattern *entries;
    uint32_t n;
} qdqi_pattern_family;

#define QDQI_PATTERN_FAMILY_DECL(family) extern const qdqi_pattern_family qdqi_patterns_##family;
QDQI_PATTERN_FAMILY_MAP(QDQI_PATTERN_FAMILY_DECL)
#undef QDQI_PATTERN_FAMILY_DECL

/* Defines the family of a file from its table. */
#define QDQI_PATTERN_FAMILY(family, table)                                                                             \
    const qdqi_pattern_family qdqi_patterns_##family = {#family, table, sizeof(table) / sizeof((table)[0])}

#ifdef __cplusplus
}
#endif
#endif
