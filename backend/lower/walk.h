/* A step that walks a destination in memory order with up to three sources that broadcast (numpy) to it, and gives a function one
 * run of elements after the other. Private to lower/. */
#ifndef QDQI_WALK_H
#define QDQI_WALK_H

#include "lower/single.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QDQI_WALK_SOURCES = 3 };

typedef struct qdqi_walk_row qdqi_walk_row;
struct qdqi_walk_row {
    /* n elements: ptr[0…) are the sources, the last is the destination. Sources step by 1, or by 0: one element for all. Runs on
     * several threads at once. */
    void (*run)(const qdqi_walk_row *row, const char *const *src, char *dst, int64_t n);
    uint32_t n_src;
    void (*kernel)(void);                                                         /* of the function's own choice */
    void (*convert[QDQI_WALK_SOURCES + 1])(const void *src, void *dst, size_t n); /* likewise: to f32, and from it */
    float a, b;
    /* filled in by the walk; of the destination at [n_src] */
    qdq_dtype dtype[QDQI_WALK_SOURCES + 1];
    int64_t bytes[QDQI_WALK_SOURCES + 1];
    int step[QDQI_WALK_SOURCES + 1];
};

/* Append the step that makes `out` of `in`. `views` (may be NULL, and each may be) are other descriptors of the same dense data:
 * a vector seen as dims of 1 around the channels. Threads get at least `grain` elements. Errors: UNSUPPORTED. */
qdq_status qdqi_lower_walk(qdqi_lower *lw, const qdqi_walk_row *row, const uint32_t *in,
                           const qdq_tensor_desc *const *views, uint32_t out, int64_t grain, const char *note,
                           qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
