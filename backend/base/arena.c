#include "base/arena.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <stdalign.h>
#include <string.h>

enum { CHUNK_BYTES = 16 * 1024 };

struct qdqi_arena_chunk {
    struct qdqi_arena_chunk *next;
    size_t used, capacity;
    alignas(max_align_t) unsigned char data[];
};

void *qdqi_arena_alloc(qdqi_arena *arena, size_t n, size_t size) {
    size_t bytes;
    if (!qdqi_mul_size(n, size, &bytes) || !qdqi_add_size(bytes, alignof(max_align_t) - 1, &bytes)) return NULL;
    bytes &= ~(alignof(max_align_t) - 1);
    struct qdqi_arena_chunk *chunk = arena->head;
    if (chunk == NULL || chunk->capacity - chunk->used < bytes) {
        const size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        size_t total;
        if (!qdqi_add_size(capacity, sizeof *chunk, &total)) return NULL;
        chunk = qdqi_calloc(1, total);
        if (chunk == NULL) return NULL;
        chunk->capacity = capacity;
        /* a big object gets a chunk of its own behind the head, whose free room stays in use */
        if (bytes > CHUNK_BYTES && arena->head != NULL) {
            chunk->next = arena->head->next;
            arena->head->next = chunk;
        } else {
            chunk->next = arena->head;
            arena->head = chunk;
        }
    }
    void *ptr = chunk->data + chunk->used;
    chunk->used += bytes;
    return ptr;
}

void *qdqi_arena_dup(qdqi_arena *arena, const void *data, size_t bytes) {
    void *copy = qdqi_arena_alloc(arena, 1, bytes == 0 ? 1 : bytes);
    if (copy != NULL && bytes != 0) memcpy(copy, data, bytes);
    return copy;
}

char *qdqi_arena_strdup(qdqi_arena *arena, const char *s) {
    return qdqi_arena_dup(arena, s, strlen(s) + 1);
}

void qdqi_arena_free(qdqi_arena *arena) {
    for (struct qdqi_arena_chunk *chunk = arena->head; chunk != NULL;) {
        struct qdqi_arena_chunk *next = chunk->next;
        qdqi_free(chunk);
        chunk = next;
    }
    arena->head = NULL;
}
