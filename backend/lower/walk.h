/* A destination that is walked in memory order, with sources that broadcast (numpy) to it: a function gets one run of elements after
 * the other, over which each source advances by one or stays. Private to lower/. */
#ifndef QDQI_WALK_H
#define QDQI_WALK_H

#include "kernels/binary/binary.h"
#include "lower/single.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the longest chain of kernels/binary reads. */
enum { QDQI_WALK_SOURCES = QK_BINARY_MAX_STEPS + 1, QDQI_WALK_ENDS = QDQI_WALK_SOURCES + 1 };

/* Arrays of ends: the sources, then the destination at [n_src]. */
typedef struct qdqi_walk {
    uint32_t n_src;
    int64_t run, n_rows;      /* elements of a run; how many of them */
    int step[QDQI_WALK_ENDS]; /* 1, or 0: one element for all of the run. 1 of the destination. */
    int64_t elem_bytes[QDQI_WALK_ENDS];
    int32_t n_outer;
    int64_t outer_dims[QDQ_MAX_NDIMS];
    int64_t strides_bytes[QDQI_WALK_ENDS][QDQ_MAX_NDIMS]; /* of the outer dims */
} qdqi_walk;

/* Bytes read and written that pay for another thread, where a function does little more than move them; the grain by which
 * qdqi_lower_walk is told that it does no more. */
enum { QDQI_WALK_GRAIN_BYTES = 160 * 1024, QDQI_WALK_MOVES = 0 };

/* n elements. Runs on several threads at once, each with rows, or a piece of the only one, of its own. */
typedef void qdqi_walk_fn(const void *impl, const void *const *src, void *dst, int64_t n);

/* The walk over these dims and strides, with the longest runs there are. UNSUPPORTED when a source does not broadcast to the
 * destination, or its elements are no whole bytes. */
qdq_status qdqi_walk_init(const qdq_tensor_desc *descs, uint32_t n_src, qdqi_walk *walk, qdq_error *err);
/* Threads get at least `grain` elements. */
void qdqi_walk_run(const qdqi_walk *walk, qdqi_walk_fn *fn, const void *impl, int64_t grain, void *const *bufs,
                   const qdq_engine *engine);
/* Source k is as wide as the destination, and its elements lie as those lie. */
bool qdqi_walk_is_alike(const qdqi_walk *walk, uint32_t k);

/* ---- a step of one function -------------------------------------------------------------------------------------- */

enum { QDQI_ROW_SOURCES = 3 };

typedef struct qdqi_walk_row {
    qdqi_walk_fn *run; /* `impl` is the row */
    uint32_t n_src;
    uint32_t may_share;   /* bit k: the destination may be source k */
    void (*kernel)(void); /* of the function's own choice */
    void (*convert[QDQI_ROW_SOURCES + 1])(const void *src, void *dst, size_t n); /* likewise: to f32, and from it */
    float a, b;
    /* filled in by qdqi_lower_walk */
    qdq_dtype dtype[QDQI_ROW_SOURCES + 1];
    int64_t grain;
    qdqi_walk walk;
} qdqi_walk_row;

/* Append the step that makes `out` of `in`. `views` (may be NULL, and each may be) are other descriptors of the same dense data:
 * a vector seen as dims of 1 around the channels. Threads get at least `grain` elements, or what QDQI_WALK_MOVES says. Errors:
 * UNSUPPORTED. */
qdq_status qdqi_lower_walk(qdqi_lower *lw, const qdqi_walk_row *row, const uint32_t *in,
                           const qdq_tensor_desc *const *views, uint32_t out, int64_t grain, const char *note,
                           qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
