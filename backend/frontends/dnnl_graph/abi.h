/* libqdq_dnnl_graph: the C functions of oneDNN Graph, answered by libqdq.
 *
 * Engines, streams and memory stay libdnnl's and are asked through its public functions. Everything else behind a
 * dnnl_graph_* handle is one of the objects below. Nothing here sees more of libqdq than its public header.
 *
 * Life: an op's content, a graph's core, a list of partitions and compiled code are reference counted and immutable once
 * they are shared, so the caller may destroy handles in any order. */
#ifndef QDQ_DNNL_GRAPH_ABI_H
#define QDQ_DNNL_GRAPH_ABI_H

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_graph.h>
#include <qdq/qdq.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef dnnl_graph_logical_tensor_t abi_lt;

#define ABI_NONE UINT32_MAX
/* malloc and calloc may answer NULL for nothing; these ask for a byte then. NULL when memory is out. */
void *abi_calloc(size_t n, size_t bytes);
/* Room for one more element of an array that doubles. False when memory is out. */
bool abi_grow(void *array, size_t used, size_t *capacity, size_t elem_bytes);

/* ---- text (abi_text.c) ------------------------------------------------------------------------------------------ */

typedef struct abi_text {
    char *s;
    size_t n, cap;
    bool failed; /* memory was out: s is incomplete */
} abi_text;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void abi_text_add(abi_text *text, const char *format, ...);
void abi_text_bytes(abi_text *text, const void *bytes, size_t n);
void abi_text_free(abi_text *text);

/* ---- ids (abi_map.c) -------------------------------------------------------------------------------------------- */

typedef struct abi_map {
    uint64_t *keys;
    uint32_t *values;
    size_t n, cap;
} abi_map;

uint32_t abi_map_get(const abi_map *map, uint64_t key); /* ABI_NONE when it is not there */
bool abi_map_put(abi_map *map, uint64_t key, uint32_t value);
void abi_map_free(abi_map *map);

/* ---- the tables (abi_tables.c) ---------------------------------------------------------------------------------- */

/* Upstream's spelling of an op kind, as dumps and verbose lines have it; NULL when there is no such kind. */
const char *abi_kind_name(dnnl_graph_op_kind_t kind);
/* What the kind is in a qdq graph; "Wildcard" for what is for training, which libqdq does not compute. */
const char *abi_kind_qdq(dnnl_graph_op_kind_t kind);
/* Of kinds that are a Wildcard to libqdq: whether so many ports are legal. */
bool abi_kind_takes(dnnl_graph_op_kind_t kind, size_t n_in, size_t n_out);
/* The attribute's name, and its type: 'f' f32, 'F' f32[], 'i' s64, 'I' s64[], 'b' bool, 's' string; 0: there is no such one. */
const char *abi_attr_name(dnnl_graph_op_attr_t attr);
char abi_attr_type(dnnl_graph_op_attr_t attr);
dnnl_status_t abi_status(qdq_status status);
const char *abi_mode_name(dnnl_fpmath_mode_t mode);

/* ---- logical tensors (abi_logical.c) ---------------------------------------------------------------------------- */

/* Layout and property are words of the header, and the rank is none that it forbids. */
bool abi_lt_legal(const abi_lt *lt);
bool abi_lt_dims_known(const abi_lt *lt);
bool abi_lt_strides_known(const abi_lt *lt);
/* Every field that counts is equal. */
bool abi_lt_same(const abi_lt *a, const abi_lt *b);
/* Bytes of the buffer, SIZE_MAX when it cannot be told. */
size_t abi_lt_bytes(const abi_lt *lt);
/* A number that is equal for equal data type, dims, layout and strides: what execute compares first. */
uint64_t abi_lt_signature(const abi_lt *lt);
/* The tensor's buffer can be read as `want`, though described otherwise: both row-major with as many elements, say. */
bool abi_lt_fits(const abi_lt *lt, const abi_lt *want);
/* As part of a graph: shapes as known (none at all without `shapes`), and no layout, which compile decides. */
qdq_status abi_lt_edge(const abi_lt *lt, bool shapes, qdq_tensor_desc *out);
/* As a port to compile for. */
dnnl_status_t abi_lt_port(const abi_lt *lt, bool output, qdq_tensor_desc *out);
/* Dims and strides of a resolved descriptor put into `lt`. */
void abi_lt_resolve(abi_lt *lt, const qdq_tensor_desc *desc);

/* ---- ops (abi_op.c) --------------------------------------------------------------------------------------------- */

typedef struct abi_attr {
    dnnl_graph_op_attr_t attr;
    size_t n; /* of lists */
    union {
        float f32;
        int64_t s64;
        bool flag;
        float *f32s;
        int64_t *s64s;
        char *text;
    } v;
} abi_attr;

/* The content of an op. Written only while one handle holds it. */
typedef struct abi_op {
    atomic_uint refs;
    size_t id;
    dnnl_graph_op_kind_t kind;
    char *name;
    abi_lt *in, *out;
    size_t n_in, cap_in, n_out, cap_out;
    abi_attr *attrs; /* ascending */
    size_t n_attrs, cap_attrs;
} abi_op;

struct dnnl_graph_op {
    abi_op *op;
};

void abi_op_retain(abi_op *op);
void abi_op_release(abi_op *op); /* NULL is legal */
/* The op for a qdq graph. `shapes`: see abi_lt_edge. */
qdq_status abi_op_to_qdq(const abi_op *op, bool shapes, qdq_op **out, qdq_error *err);
const abi_attr *abi_op_attr(const abi_op *op, dnnl_graph_op_attr_t attr);

/* ---- graphs (abi_graph.c) --------------------------------------------------------------------------------------- */

typedef struct abi_value {
    const abi_lt *lt;  /* of its first mention */
    uint32_t producer; /* index of an op, or ABI_NONE */
    bool used, ended;  /* by an op; by an End, which marks a result */
} abi_value;

/* What a graph holds. Immutable once finalized, and then shared with its partitions. */
typedef struct abi_core {
    atomic_uint refs;
    size_t id;
    dnnl_engine_kind_t kind;
    dnnl_fpmath_mode_t mode;
    int apply_to_int;
    abi_op **ops;
    size_t n_ops, cap_ops;
    abi_map op_ids, value_ids;
    abi_value *values;
    size_t n_values, cap_values;
    bool conflict; /* one id with two descriptions */
    bool has_end;
    qdq_graph *graph;
} abi_core;

struct dnnl_graph_graph {
    abi_core *core;
    bool finalized;
    struct abi_list *list; /* of the last filter */
};

abi_core *abi_core_create(dnnl_engine_kind_t kind, dnnl_fpmath_mode_t mode);
void abi_core_retain(abi_core *core);
void abi_core_release(abi_core *core);
dnnl_status_t abi_core_add(abi_core *core, abi_op *op);
dnnl_status_t abi_core_finalize(abi_core *core);

/* ---- partitions (abi_partition.c) ------------------------------------------------------------------------------- */

/* A partition of oneDNN Graph's is a group of libqdq's: mostly of one, see abi_join.c. */
typedef struct abi_list {
    atomic_uint refs;
    abi_core *core;
    qdq_partition_list *list;
    size_t n, first_id; /* groups */
    uint32_t *group_of; /* of each of libqdq's partitions */
    uint32_t *members;  /* those of group g: from starts[g] on, up to starts[g + 1] */
    uint32_t *starts;
    bool *leaves; /* of each value of the core: it goes from one group to another, or out of the graph */
} abi_list;

/* Fill the groups. Without `join` each partition is one. */
bool abi_join(abi_list *list, bool join);

struct dnnl_graph_partition {
    atomic_uint refs;
    abi_list *list;
    const qdq_partition *p; /* NULL for a group of several */
    size_t id, n_ops, n_in, n_out;
    bool supported;
    abi_op **ops; /* of the core, each once; topological order */
    abi_lt *in, *out;
};

dnnl_status_t abi_list_create(abi_core *core, qdq_policy policy, abi_list **out);
void abi_list_release(abi_list *list);
dnnl_status_t abi_partition_create(abi_list *list, size_t i, dnnl_graph_partition_t *out);
void abi_partition_retain(dnnl_graph_partition_t partition);
void abi_partition_release(dnnl_graph_partition_t partition);

/* ---- engines (abi_engine.c) ------------------------------------------------------------------------------------- */

struct dnnl_graph_allocator {
    dnnl_graph_host_allocate_f malloc_fn; /* NULL: the default */
    dnnl_graph_host_deallocate_f free_fn;
};

/* What is known of a dnnl_engine_t: one for each that has an allocator of its own, and one for all others. Never freed. */
typedef struct abi_engine abi_engine;

const abi_engine *abi_engine_of(dnnl_engine_t engine);
void *abi_engine_malloc(const abi_engine *engine, size_t bytes);
void abi_engine_free(const abi_engine *engine, void *ptr);
/* libqdq's engine for it with as many threads as the calling thread may use now. It lives for ever. NULL: no memory. */
qdq_engine *abi_engine_qdq(const abi_engine *engine);

/* ---- compiled code (abi_compile.c, abi_code_cache.c) ------------------------------------------------------------ */

/* A port of the compiled partition: where the caller's list has it, and what its tensor must be. */
typedef struct abi_port {
    uint32_t at;
    uint64_t signature;
    bool empty;    /* no elements: may come without a buffer */
    bool constant; /* its content does not change, says the caller */
    abi_lt lt;     /* resolved */
} abi_port;

/* What compile made; shared by all compiled partitions that have the same key. */
typedef struct abi_code {
    atomic_uint refs;
    qdq_compiled *compiled; /* or, of a group of several, */
    qdq_session *session;
    qdq_engine *engine;
    size_t n_in, n_out;
    abi_port *in, *out;
    dnnl_graph_inplace_pair_t *pairs;
    size_t n_pairs;
    dnnl_graph_partition_t partition; /* retained: ops, for constants and verbose lines */
    struct abi_special *special;      /* packed constants; NULL when no input is constant */
    char *line; /* the verbose line but for what happened, the id and the time; NULL: not wanted */
} abi_code;

struct dnnl_graph_compiled_partition {
    dnnl_graph_partition_t partition; /* retained */
    abi_code *code;                   /* NULL until compiled */
    dnnl_engine_t engine;
};

void abi_code_retain(abi_code *code);
void abi_code_release(abi_code *code);

/* The process-wide cache of compiled code. `key` is compared byte by byte. */
abi_code *abi_code_cache_get(const void *key, size_t bytes); /* retained; NULL */
/* What is cached under the key from now on: `code`, or what another thread put there first. Takes the reference to `code`, gives one. */
abi_code *abi_code_cache_put(const void *key, size_t bytes, abi_code *code);

/* The code's ops in a session of their own, with its ports described by `descs` (inputs, then outputs). With `constants`, a buffer
 * for each input, the constant ones of them are no ports but content. */
qdq_status abi_session_create(const abi_code *code, const qdq_tensor_desc *descs, const void *const *constants,
                              qdq_session **out, qdq_error *err);

/* ---- constants (abi_special.c) ---------------------------------------------------------------------------------- */

/* The constant tensor cache: for code with constant inputs, versions of it that have their content packed. Keyed by content.
 * Runs such a version, made now if need be. False: there is none, run the code as it is. */
typedef struct abi_special abi_special;

abi_special *abi_special_create(abi_code *code);
void abi_special_destroy(abi_special *special);
bool abi_special_enabled(void);
bool abi_special_run(const abi_code *code, const void *const *in, void *const *out, dnnl_status_t *status_out);

/* ---- verbose lines and dumps (abi_verbose.c, abi_dump.c) -------------------------------------------------------- */

enum { ABI_VERBOSE_ERROR = 1, ABI_VERBOSE_EXEC = 2, ABI_VERBOSE_CREATE = 4 };

/* What ONEDNN_VERBOSE asks for, read once. */
int abi_verbose(void);
double abi_now_ms(void);
/* The constant part of the line of compiled code. NULL: no memory. */
char *abi_verbose_line(const abi_code *code);
void abi_verbose_print(const char *what, const_dnnl_graph_compiled_partition_t cp, double ms);
/* One line for a call that failed; prints nothing unless asked to. Returns `status`. */
dnnl_status_t abi_fail(dnnl_status_t status, const char *call, const qdq_error *err);

/* ONEDNN_GRAPH_DUMP: files in the working directory. */
void abi_dump_graph(const abi_core *core);
void abi_dump_code(const abi_code *code);

#ifdef __cplusplus
}
#endif
#endif
