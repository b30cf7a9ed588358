#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t n_allocs;
static _Atomic uint64_t fail_at; /* value of n_allocs at which to fail; 0: never */

void qdqi_alloc_fail_at(uint64_t nth) {
    atomic_store(&fail_at, nth == 0 ? 0 : atomic_load(&n_allocs) + nth);
}
uint64_t qdqi_alloc_count(void) {
    return atomic_load(&n_allocs);
}

static int must_fail(void) {
    const uint64_t mine = atomic_fetch_add(&n_allocs, 1) + 1;
    return mine == atomic_load_explicit(&fail_at, memory_order_relaxed);
}

void *qdqi_malloc(size_t bytes) {
    return must_fail() ? NULL : malloc(bytes == 0 ? 1 : bytes);
}

void *qdqi_calloc(size_t n, size_t size) {
    return must_fail() ? NULL : calloc(n == 0 ? 1 : n, size == 0 ? 1 : size);
}

void *qdqi_realloc_array(void *ptr, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
    return must_fail() ? NULL : realloc(ptr, bytes == 0 ? 1 : bytes);
}

void qdqi_free(void *ptr) {
    free(ptr);
}

char *qdqi_strdup(const char *s) {
    const size_t n = strlen(s) + 1;
    char *copy = qdqi_malloc(n);
    if (copy != NULL) memcpy(copy, s, n);
    return copy;
}

void *qdqi_malloc_aligned(size_t bytes) {
    size_t rounded;
    if (!qdqi_align_up(bytes == 0 ? 1 : bytes, &rounded)) return NULL;
    return must_fail() ? NULL : aligned_alloc(QDQI_ALIGN_BYTES, rounded);
}

void qdqi_free_aligned(void *ptr) {
    free(ptr);
}
