#include "ir/idmap.h"

#include "base/alloc.h"

#include <assert.h>

typedef struct qdqi_idmap_slot {
    uint64_t id;
    uint32_t index; /* EMPTY: free */
} slot;

enum { FIRST_CAPACITY = 16 };
#define EMPTY UINT32_MAX

/* Ids are often small and dense, or multiples of something: mix all bits into the low ones. */
static size_t hash(uint64_t id) {
    id ^= id >> 33;
    id *= UINT64_C(0xff51afd7ed558ccd);
    id ^= id >> 29;
    return (size_t)id;
}

static slot *find(const qdqi_idmap *map, uint64_t id) {
    size_t i = hash(id) & (map->capacity - 1);
    while (map->slots[i].index != EMPTY && map->slots[i].id != id)
        i = (i + 1) & (map->capacity - 1);
    return &map->slots[i];
}

uint32_t qdqi_idmap_get(const qdqi_idmap *map, uint64_t id) {
    return map->capacity == 0 ? EMPTY : find(map, id)->index;
}

bool qdqi_idmap_reserve(qdqi_idmap *map, size_t n) {
    size_t capacity = map->capacity == 0 ? FIRST_CAPACITY : map->capacity;
    while ((map->n + n) * 3 > capacity * 2) {
        if (capacity > SIZE_MAX / 8) return false;
        capacity *= 2;
    }
    if (capacity == map->capacity) return true;
    qdqi_idmap grown = {qdqi_realloc_array(NULL, capacity, sizeof(slot)), map->n, capacity};
    if (grown.slots == NULL) return false;
    for (size_t i = 0; i < capacity; i++)
        grown.slots[i] = (slot){0, EMPTY};
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].index != EMPTY) *find(&grown, map->slots[i].id) = map->slots[i];
    qdqi_free(map->slots);
    *map = grown;
    return true;
}

void qdqi_idmap_put(qdqi_idmap *map, uint64_t id, uint32_t index) {
    slot *free_slot = find(map, id);
    assert(free_slot->index == EMPTY);
    *free_slot = (slot){id, index};
    map->n++;
}

void qdqi_idmap_free(qdqi_idmap *map) {
    qdqi_free(map->slots);
    *map = (qdqi_idmap){0};
}
