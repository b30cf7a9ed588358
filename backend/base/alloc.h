/* Host memory of the library's own objects. One door, so that tests can count and fail allocations. */
#ifndef QDQI_ALLOC_H
#define QDQI_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QDQI_ALIGN_BYTES 64

/* As malloc, calloc (overflow-checked), realloc (n * size overflow-checked), free, strdup. NULL on failure.
 * malloc(0) gives a unique pointer. */
void *qdqi_malloc(size_t bytes);
void *qdqi_calloc(size_t n, size_t size);
void *qdqi_realloc_array(void *ptr, size_t n, size_t size);
void qdqi_free(void *ptr);
char *qdqi_strdup(const char *s);
/* 64-byte aligned; freed with qdqi_free_aligned. */
void *qdqi_malloc_aligned(size_t bytes);
void qdqi_free_aligned(void *ptr);

/* Tests: make the n-th allocation from now fail (0: none). The counter counts all allocations of this door. */
void qdqi_alloc_fail_at(uint64_t nth);
uint64_t qdqi_alloc_count(void);

/* Round up to the alignment of buffers. Returns false on overflow. */
static inline int qdqi_align_up(size_t bytes, size_t *out) {
    if (bytes > SIZE_MAX - (QDQI_ALIGN_BYTES - 1)) return 0;
    *out = (bytes + (QDQI_ALIGN_BYTES - 1)) & ~(size_t)(QDQI_ALIGN_BYTES - 1);
    return 1;
}

#ifdef __cplusplus
}
#endif
#endif
