/* Large windows, channels last: the rows of a window first, then the window along what they came to. Private to kernels/pool. */
#ifndef QK_POOL_SEPARATE_H
#define QK_POOL_SEPARATE_H

#include "kernels/pool/pool_axis.h"

/* Does it pay, and does what is kept fit? After is_global and is_walk are set. */
bool qk_pool_is_separate(const qk_pool *pool);
size_t qk_pool_separate_scratch(const qk_pool *pool);

/* One row of results of an image; maxima before requantization, the lowest of the source's type where a window has no element. */
void qk_pool_separate_row(const qk_pool *pool, const qk_pool_quant *quant, const uint8_t *image, int64_t od, int64_t oh,
                          uint8_t *dst, void *scratch);

#endif
