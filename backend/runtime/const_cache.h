/* Life of the packed-constant cache; its use is in engine.h. */
#ifndef QDQI_CONST_CACHE_H
#define QDQI_CONST_CACHE_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct qdqi_const_cache *qdqi_const_cache_create(void); /* NULL when out of memory */
/* Frees the engine's cache and every entry; no entry may be referenced any more. */
void qdqi_const_cache_destroy(qdq_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
