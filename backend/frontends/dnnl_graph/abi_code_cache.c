/* The cache of compiled partitions: a hash table whose entries also hang in a list, most recently used first. */
#include "abi.h"

#include <pthread.h>
#include <string.h>

typedef struct entry {
    struct entry *chain;         /* of its bucket */
    struct entry *newer, *older; /* of the list */
    abi_code *code;
    uint64_t hash;
    size_t bytes;
    unsigned char key[];
} entry;

enum { N_BUCKETS = 4096, DEFAULT_CAPACITY = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *buckets[N_BUCKETS], *newest, *oldest;
static size_t n_entries;
static int limit = -1; /* not known yet */

static uint64_t hash_of(const unsigned char *key, size_t bytes) {
    uint64_t h = bytes;
    for (size_t i = 0; i < bytes; i += sizeof h) {
        uint64_t word = 0;
        memcpy(&word, key + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        h = (h ^ word) * UINT64_C(0x9FB21C651E98DF25);
        h ^= h >> 31;
    }
    return h;
}

static int capacity(void) {
    if (limit >= 0) return limit;
    const char *names[] = {"ONEDNN_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY",
                           "DNNL_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY"};
    limit = DEFAULT_CAPACITY;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        char *end;
        if (text == NULL || *text == '\0') continue;
        const long n = strtol(text, &end, 10);
        if (*end == '\0' && n >= 0 && n <= INT32_MAX) limit = (int)n;
        break;
    }
    return limit;
}

static entry **place_of(uint64_t hash, const void *key, size_t bytes) {
    entry **at = &buckets[hash % N_BUCKETS];
    while (*at != NULL && ((*at)->hash != hash || (*at)->bytes != bytes || memcmp((*at)->key, key, bytes) != 0))
        at = &(*at)->chain;
    return at;
}

static void unlink_entry(entry *e) {
    *(e->newer != NULL ? &e->newer->older : &newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &oldest) = e->newer;
}

static void link_newest(entry *e) {
    e->newer = NULL;
    e->older = newest;
    *(newest != NULL ? &newest->newer : &oldest) = e;
    newest = e;
}

/* Entries over the limit, taken out; the caller frees the chain when it has let go of the lock. */
static entry *take_excess(void) {
    entry *out = NULL;
    while (n_entries > (size_t)capacity()) {
        entry *e = oldest;
        unlink_entry(e);
        *place_of(e->hash, e->key, e->bytes) = e->chain;
        n_entries--;
        e->chain = out;
        out = e;
    }
    return out;
}

static void drop(entry *e) {
    while (e != NULL) {
        entry *next = e->chain;
        abi_code_release(e->code);
        free(e);
        e = next;
    }
}

abi_code *abi_code_cache_get(const void *key, size_t bytes) {
    const uint64_t hash = hash_of(key, bytes);
    pthread_mutex_lock(&lock);
    entry *e = *place_of(hash, key, bytes);
    if (e != NULL) {
        unlink_entry(e);
        link_newest(e);
        abi_code_retain(e->code);
    }
    pthread_mutex_unlock(&lock);
    return e == NULL ? NULL : e->code;
}

abi_code *abi_code_cache_put(const void *key, size_t bytes, abi_code *code) {
    entry *e = malloc(sizeof *e + bytes);
    if (e == NULL) return code; /* it lives uncached */
    *e = (entry){.code = code, .hash = hash_of(key, bytes), .bytes = bytes};
    memcpy(e->key, key, bytes);
    abi_code *other = NULL;
    entry *excess = NULL;
    pthread_mutex_lock(&lock);
    entry **at = place_of(e->hash, key, bytes);
    if (*at != NULL) {
        other = (*at)->code;
        abi_code_retain(other);
    } else {
        abi_code_retain(code);
        *at = e;
        link_newest(e);
        n_entries++;
        excess = take_excess();
    }
    pthread_mutex_unlock(&lock);
    drop(excess);
    if (other == NULL) return code;
    free(e);
    abi_code_release(code);
    return other;
}

dnnl_status_t dnnl_graph_get_compiled_partition_cache_capacity(int *capacity_out) {
    if (capacity_out == NULL) return dnnl_invalid_arguments;
    pthread_mutex_lock(&lock);
    *capacity_out = capacity();
    pthread_mutex_unlock(&lock);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_set_compiled_partition_cache_capacity(int new_capacity) {
    if (new_capacity < 0) return dnnl_invalid_arguments;
    pthread_mutex_lock(&lock);
    limit = new_capacity;
    entry *excess = take_excess();
    pthread_mutex_unlock(&lock);
    drop(excess);
    return dnnl_success;
}
