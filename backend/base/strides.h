/* Questions about strides that need no descriptor. */
#ifndef QDQI_STRIDES_H
#define QDQI_STRIDES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Two elements may share memory: some dim does not step over all that the dims inside of it reach. Known dims and strides. */
bool qdqi_strides_overlap(int32_t ndims, const int64_t *dims, const int64_t *strides);

#ifdef __cplusplus
}
#endif
#endif
