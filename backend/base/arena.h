/* A growing bump arena: many small objects that die together (a graph, a plan).
 *
 *     arena -> [chunk: header | used .......... | free ] -> [chunk ...] -> NULL
 */
#ifndef QDQI_ARENA_H
#define QDQI_ARENA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_arena {
    struct qdqi_arena_chunk *head;
} qdqi_arena;

/* Zeroed memory of n * size bytes, aligned for any scalar; NULL when out of memory or on overflow. */
void *qdqi_arena_alloc(qdqi_arena *arena, size_t n, size_t size);
char *qdqi_arena_strdup(qdqi_arena *arena, const char *s);
void *qdqi_arena_dup(qdqi_arena *arena, const void *data, size_t bytes);
void qdqi_arena_free(qdqi_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
