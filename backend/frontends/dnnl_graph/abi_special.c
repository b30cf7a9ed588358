/* The constant tensor cache.
 *
 * A tensor that the caller calls constant arrives with its content at execute only. With the cache on, the content of all
 * constant inputs is hashed then; for each content there is a version of the code, a session with these tensors attached, whose
 * weights are packed. What changed in place, or lies elsewhere now, hashes differently or equally, as it should: an address
 * means nothing. Once the capacity is reached no new content is kept, and the code runs as it was compiled. */
#include "abi.h"

#include <pthread.h>
#include <string.h>
#include <xxhash.h>

typedef struct version {
    atomic_uint refs;
    XXH128_hash_t hash;
    qdq_session *session;
    size_t bytes;
    struct version *next;
} version;

struct abi_special {
    version *versions; /* most recent first */
    struct abi_special *next, *before;
    size_t bytes;       /* of one version */
    atomic_bool failed; /* a version could not be made: do not try again */
};

/* Both are guarded by the lock: the list of all, and what they hold. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static abi_special *all;
static size_t used;

static atomic_size_t limits[2]; /* in MB, of CPU and GPU */
static pthread_once_t once = PTHREAD_ONCE_INIT;
enum { MB_SHIFT = 20 };
#define MAX_MB (SIZE_MAX >> MB_SHIFT)

/* "cpu:1024;gpu:512" */
static void read_environment(void) {
    const char *text = getenv("ONEDNN_GRAPH_CONSTANT_TENSOR_CACHE_CAPACITY");
    while (text != NULL && *text != '\0') {
        const int kind = strncmp(text, "cpu:", 4) == 0 ? 0 : strncmp(text, "gpu:", 4) == 0 ? 1 : -1;
        if (kind >= 0 && text[4] >= '0' && text[4] <= '9') {
            const unsigned long long mb = strtoull(text + 4, NULL, 10);
            atomic_store(&limits[kind], mb > MAX_MB ? MAX_MB : (size_t)mb);
        }
        text = strchr(text, ';');
        if (text != NULL) text++;
    }
}

static atomic_size_t *limit_of(dnnl_engine_kind_t kind) {
    pthread_once(&once, read_environment);
    return kind == dnnl_cpu ? &limits[0] : kind == dnnl_gpu ? &limits[1] : NULL;
}

bool abi_special_enabled(void) {
    return atomic_load_explicit(limit_of(dnnl_cpu), memory_order_relaxed) != 0;
}

/* ---- versions --------------------------------------------------------------------------------------------------- */

static void release(version *v) {
    if (atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) > 1) return;
    qdq_session_destroy(&v->session);
    free(v);
}

static void release_all(version *v) {
    while (v != NULL) {
        version *next = v->next;
        release(v);
        v = next;
    }
}

/* With the lock held: all versions of one, for the caller to release without it. */
static version *take_versions(abi_special *s, version *tail) {
    version *first = s->versions, *last = first;
    if (first == NULL) return tail;
    used -= first->bytes;
    while (last->next != NULL) {
        last = last->next;
        used -= last->bytes;
    }
    last->next = tail;
    s->versions = NULL;
    return first;
}

abi_special *abi_special_create(abi_code *code) {
    abi_special *s = abi_calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    for (size_t i = 0; i < code->n_in; i++)
        if (code->in[i].constant) s->bytes += abi_lt_bytes(&code->in[i].lt);
    pthread_mutex_lock(&lock);
    s->next = all;
    if (all != NULL) all->before = s;
    all = s;
    pthread_mutex_unlock(&lock);
    return s;
}

void abi_special_destroy(abi_special *s) {
    if (s == NULL) return;
    pthread_mutex_lock(&lock);
    *(s->before != NULL ? &s->before->next : &all) = s->next;
    if (s->next != NULL) s->next->before = s->before;
    version *mine = take_versions(s, NULL);
    pthread_mutex_unlock(&lock);
    release_all(mine);
    free(s);
}

static version *find(const abi_special *s, XXH128_hash_t hash) {
    version *v = s->versions;
    while (v != NULL && !XXH128_isEqual(v->hash, hash))
        v = v->next;
    return v;
}

static XXH128_hash_t hash_constants(const abi_code *code, const void *const *in) {
    XXH128_hash_t h = {0, 0};
    for (size_t i = 0; i < code->n_in; i++) {
        if (!code->in[i].constant) continue;
        const XXH128_hash_t one = XXH3_128bits(in[i], abi_lt_bytes(&code->in[i].lt));
        const uint64_t both[4] = {h.low64, h.high64, one.low64, one.high64};
        h = XXH3_128bits(both, sizeof both);
    }
    return h;
}

/* ---- making a version ------------------------------------------------------------------------------------------- */

static qdq_status make_session(const abi_code *code, const void *const *in, qdq_session **out) {
    const size_t n = code->n_in + code->n_out;
    qdq_tensor_desc *descs = abi_calloc(n, sizeof *descs);
    qdq_status st = descs == NULL ? QDQ_E_NO_MEMORY : QDQ_OK;
    for (size_t i = 0; st == QDQ_OK && i < n; i++) {
        const abi_port *port = i < code->n_in ? &code->in[i] : &code->out[i - code->n_in];
        const abi_lt *lt = &port->lt;
        st = qdq_tensor_desc_init_strided(lt->id, (qdq_dtype)lt->data_type, lt->ndims, lt->dims, lt->layout.strides,
                                          port->constant ? QDQ_PROPERTY_CONSTANT : QDQ_PROPERTY_VARIABLE, &descs[i],
                                          NULL);
    }
    if (st == QDQ_OK) st = abi_session_create(code, descs, in, out, NULL);
    free(descs);
    return st;
}

/* Make the version of this content and keep it. NULL: no room, or no memory. Retained. */
static version *make(const abi_code *code, const void *const *in, XXH128_hash_t hash) {
    abi_special *s = code->special;
    const size_t mb = atomic_load(limit_of(dnnl_cpu)), limit = mb > MAX_MB ? SIZE_MAX : mb << MB_SHIFT;
    pthread_mutex_lock(&lock);
    const bool room = s->bytes <= limit && used <= limit - s->bytes;
    if (room) used += s->bytes;
    pthread_mutex_unlock(&lock);
    if (!room) return NULL;
    version *v = abi_calloc(1, sizeof *v);
    if (v != NULL && make_session(code, in, &v->session) != QDQ_OK) {
        atomic_store(&s->failed, true);
        free(v);
        v = NULL;
    }
    pthread_mutex_lock(&lock);
    if (v != NULL) {
        atomic_init(&v->refs, 2); /* the list's and the caller's */
        v->hash = hash;
        v->bytes = s->bytes;
        v->next = s->versions;
        s->versions = v;
    } else {
        used -= s->bytes;
    }
    pthread_mutex_unlock(&lock);
    return v;
}

enum { STACK_PORTS = 256 };

bool abi_special_run(const abi_code *code, const void *const *in, void *const *out, dnnl_status_t *status_out) {
    if (code->n_in > STACK_PORTS || atomic_load_explicit(&code->special->failed, memory_order_relaxed)) return false;
    const XXH128_hash_t hash = hash_constants(code, in);
    pthread_mutex_lock(&lock);
    version *v = find(code->special, hash);
    if (v != NULL) atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    if (v == NULL) v = make(code, in, hash);
    if (v == NULL) return false;
    const void *vary[STACK_PORTS];
    size_t n = 0;
    for (size_t i = 0; i < code->n_in; i++)
        if (!code->in[i].constant) vary[n++] = in[i];
    *status_out = abi_status(qdq_session_run(v->session, vary, n, out, code->n_out, NULL));
    release(v);
    return true;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

static void flush(void) {
    version *old = NULL;
    pthread_mutex_lock(&lock);
    for (abi_special *s = all; s != NULL; s = s->next)
        old = take_versions(s, old);
    pthread_mutex_unlock(&lock);
    release_all(old);
}

dnnl_status_t dnnl_graph_set_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t size) {
    atomic_size_t *limit = limit_of(eng_kind);
    if (limit == NULL) return dnnl_invalid_arguments;
    atomic_store(limit, size > MAX_MB ? MAX_MB : size);
    if (eng_kind == dnnl_cpu) flush();
    return dnnl_success;
}

dnnl_status_t dnnl_graph_get_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t *size) {
    atomic_size_t *limit = limit_of(eng_kind);
    if (limit == NULL || size == NULL) return dnnl_invalid_arguments;
    *size = atomic_load(limit);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_set_constant_tensor_cache(int flag) {
    if (flag < 0) return dnnl_invalid_arguments;
    return dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, flag == 0 ? 0 : SIZE_MAX);
}

dnnl_status_t dnnl_graph_get_constant_tensor_cache(int *flag) {
    if (flag == NULL) return dnnl_invalid_arguments;
    *flag = abi_special_enabled();
    return dnnl_success;
}
