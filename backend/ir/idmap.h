/* id -> index: open addressing, linear probing, at most 2/3 full. Ids are any 64-bit number. */
#ifndef QDQI_IDMAP_H
#define QDQI_IDMAP_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_idmap {
    struct qdqi_idmap_slot *slots;
    size_t n, capacity; /* capacity: 0 or a power of two */
} qdqi_idmap;

/* UINT32_MAX when the id is not there. */
uint32_t qdqi_idmap_get(const qdqi_idmap *map, uint64_t id);
/* Make room for `n` more, so that as many puts cannot fail. False when out of memory. */
bool qdqi_idmap_reserve(qdqi_idmap *map, size_t n);
/* The id must not be there and room must be reserved. */
void qdqi_idmap_put(qdqi_idmap *map, uint64_t id, uint32_t index);
void qdqi_idmap_free(qdqi_idmap *map);

#ifdef __cplusplus
}
#endif
#endif
