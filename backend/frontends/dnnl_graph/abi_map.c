/* A map of ids to indices: open addressing, at most half full. */
#include "abi.h"

static size_t slot_of(const abi_map *map, uint64_t key) {
    uint64_t h = key * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 32;
    size_t i = (size_t)h & (map->cap - 1);
    while (map->values[i] != ABI_NONE && map->keys[i] != key)
        i = (i + 1) & (map->cap - 1);
    return i;
}

uint32_t abi_map_get(const abi_map *map, uint64_t key) {
    return map->cap == 0 ? ABI_NONE : map->values[slot_of(map, key)];
}

static bool make(abi_map *map, size_t cap) {
    *map = (abi_map){
        .keys = abi_calloc(cap, sizeof *map->keys), .values = abi_calloc(cap, sizeof *map->values), .cap = cap};
    if (map->keys == NULL || map->values == NULL) {
        abi_map_free(map);
        return false;
    }
    for (size_t i = 0; i < cap; i++)
        map->values[i] = ABI_NONE;
    return true;
}

bool abi_map_put(abi_map *map, uint64_t key, uint32_t value) {
    if (2 * (map->n + 1) > map->cap) {
        abi_map bigger;
        if (!make(&bigger, map->cap == 0 ? 16 : map->cap * 2)) return false;
        for (size_t i = 0; i < map->cap; i++) {
            if (map->values[i] == ABI_NONE) continue;
            const size_t to = slot_of(&bigger, map->keys[i]);
            bigger.keys[to] = map->keys[i];
            bigger.values[to] = map->values[i];
        }
        bigger.n = map->n;
        abi_map_free(map);
        *map = bigger;
    }
    const size_t i = slot_of(map, key);
    if (map->values[i] == ABI_NONE) map->n++;
    map->keys[i] = key;
    map->values[i] = value;
    return true;
}

void abi_map_free(abi_map *map) {
    free(map->keys);
    free(map->values);
    *map = (abi_map){0};
}
