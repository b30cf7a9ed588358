/* buckets[hash] -> entry -> entry -> NULL        every entry
 * idle: oldest <-> ... <-> newest                the entries without references, least recently used first */
#include "runtime/const_cache.h"

#include "base/alloc.h"
#include "base/log.h"

#include <pthread.h>
#include <string.h>
#include <xxhash.h>

enum { N_BUCKETS = 1024 };

typedef struct const_key {
    XXH128_hash_t content;
    size_t src_bytes, packed_bytes, recipe_bytes;
    const void *recipe;
} const_key;

typedef struct qdqi_const_entry {
    const_key key; /* key.recipe points behind this struct */
    struct qdqi_const_entry *next;
    struct qdqi_const_entry *older, *newer;
    size_t refs;
    void *data;
} const_entry;

typedef struct qdqi_const_cache {
    pthread_mutex_t lock;
    const_entry *buckets[N_BUCKETS];
    const_entry *oldest, *newest;
    qdq_cache_stats stats;
} const_cache;

const_cache *qdqi_const_cache_create(void) {
    const_cache *cache = qdqi_calloc(1, sizeof *cache);
    if (cache == NULL) return NULL;
    if (pthread_mutex_init(&cache->lock, NULL) != 0) {
        qdqi_free(cache);
        return NULL;
    }
    return cache;
}

static void free_entry(const qdq_engine *engine, const_entry *entry) {
    if (entry == NULL) return;
    qdqi_engine_free(engine, entry->data);
    qdqi_free(entry);
}

void qdqi_const_cache_destroy(qdq_engine *engine) {
    const_cache *cache = engine->cache;
    for (size_t i = 0; i < N_BUCKETS; i++)
        while (cache->buckets[i] != NULL) {
            const_entry *entry = cache->buckets[i];
            cache->buckets[i] = entry->next;
            free_entry(engine, entry);
        }
    pthread_mutex_destroy(&cache->lock);
    qdqi_free(cache);
    engine->cache = NULL;
}

static const_entry **bucket_of(const_cache *cache, const const_key *key) {
    return &cache->buckets[key->content.low64 % N_BUCKETS];
}

static bool same_key(const const_key *a, const const_key *b) {
    return XXH128_isEqual(a->content, b->content) && a->src_bytes == b->src_bytes &&
           a->packed_bytes == b->packed_bytes && a->recipe_bytes == b->recipe_bytes &&
           (a->recipe_bytes == 0 || memcmp(a->recipe, b->recipe, a->recipe_bytes) == 0);
}

static void idle_remove(const_cache *cache, const_entry *entry) {
    *(entry->older != NULL ? &entry->older->newer : &cache->oldest) = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &cache->newest) = entry->older;
    entry->older = entry->newer = NULL;
}

static void idle_append(const_cache *cache, const_entry *entry) {
    entry->older = cache->newest;
    entry->newer = NULL;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static const_entry *find_and_ref(const_cache *cache, const const_key *key) {
    for (const_entry *e = *bucket_of(cache, key); e != NULL; e = e->next)
        if (same_key(&e->key, key)) {
            if (e->refs++ == 0) idle_remove(cache, e);
            return e;
        }
    return NULL;
}

/* Takes idle entries out, oldest first, until the bound holds; returns them chained by `next` for freeing without the lock. */
static const_entry *evict(const_cache *cache, size_t bound) {
    const_entry *out = NULL;
    while (cache->stats.bytes > bound && cache->oldest != NULL) {
        const_entry *entry = cache->oldest;
        idle_remove(cache, entry);
        const_entry **link = bucket_of(cache, &entry->key);
        while (*link != entry)
            link = &(*link)->next;
        *link = entry->next;
        cache->stats.bytes -= entry->key.packed_bytes;
        cache->stats.evictions++;
        entry->next = out;
        out = entry;
    }
    return out;
}

static void free_chain(const qdq_engine *engine, const_entry *chain) {
    while (chain != NULL) {
        const_entry *next = chain->next;
        free_entry(engine, chain);
        chain = next;
    }
}

static qdq_status pack_entry(const qdq_engine *engine, const const_key *key, qdqi_pack_fn pack, void *arg,
                             const_entry **entry_out, qdq_error *err) {
    if (key->recipe_bytes > SIZE_MAX - sizeof(const_entry)) return QDQI_NO_MEMORY(err);
    const_entry *entry = qdqi_calloc(1, sizeof *entry + key->recipe_bytes);
    if (entry == NULL) return QDQI_NO_MEMORY(err);
    entry->key = *key;
    entry->key.recipe = entry + 1;
    if (key->recipe_bytes != 0) memcpy(entry + 1, key->recipe, key->recipe_bytes);
    entry->refs = 1;
    entry->data = qdqi_engine_malloc(engine, key->packed_bytes);
    const qdq_status st = entry->data == NULL ? QDQI_NO_MEMORY(err) : pack(entry->data, key->packed_bytes, arg, err);
    if (st != QDQ_OK) {
        free_entry(engine, entry);
        return st;
    }
    *entry_out = entry;
    return QDQ_OK;
}

qdq_status qdqi_const_get(qdq_engine *engine, const void *src, size_t src_bytes, const void *recipe,
                          size_t recipe_bytes, size_t packed_bytes, qdqi_pack_fn pack, void *arg, qdqi_const *const_out,
                          qdq_error *err) {
    const_cache *cache = engine->cache;
    const const_key key = {.content = XXH3_128bits(src_bytes == 0 ? "" : src, src_bytes),
                           .src_bytes = src_bytes,
                           .packed_bytes = packed_bytes,
                           .recipe_bytes = recipe_bytes,
                           .recipe = recipe};
    pthread_mutex_lock(&cache->lock);
    const_entry *entry = find_and_ref(cache, &key);
    if (entry != NULL)
        cache->stats.hits++;
    else
        cache->stats.misses++;
    pthread_mutex_unlock(&cache->lock);

    if (entry == NULL) {
        /* pack without the lock; another thread may do the same, then the one that comes first stays */
        const_entry *mine = NULL;
        QDQI_TRY(pack_entry(engine, &key, pack, arg, &mine, err));
        pthread_mutex_lock(&cache->lock);
        const_entry *drop = NULL;
        entry = find_and_ref(cache, &key);
        if (entry == NULL) {
            const_entry **bucket = bucket_of(cache, &key);
            mine->next = *bucket;
            *bucket = entry = mine;
            cache->stats.bytes += packed_bytes;
            drop = evict(cache, engine->options.const_cache_bytes);
        } else {
            drop = mine;
        }
        pthread_mutex_unlock(&cache->lock);
        free_chain(engine, drop);
        qdqi_log(QDQI_LOG_CACHE, "packed %zu bytes from %zu", packed_bytes, src_bytes);
    }
    *const_out = (qdqi_const){.data = entry->data, .bytes = packed_bytes, .entry = entry};
    return QDQ_OK;
}

void qdqi_const_release(qdq_engine *engine, qdqi_const *c) {
    if (c == NULL || c->entry == NULL) return;
    const_cache *cache = engine->cache;
    const_entry *drop = NULL;
    pthread_mutex_lock(&cache->lock);
    if (--c->entry->refs == 0) {
        idle_append(cache, c->entry);
        drop = evict(cache, engine->options.const_cache_bytes);
    }
    pthread_mutex_unlock(&cache->lock);
    free_chain(engine, drop);
    *c = (qdqi_const){0};
}

void qdqi_const_stats(const qdq_engine *engine, qdq_cache_stats *out) {
    pthread_mutex_lock(&engine->cache->lock);
    *out = engine->cache->stats;
    pthread_mutex_unlock(&engine->cache->lock);
}
