/* libqdq: a quantized-graph backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The one public header. The object model follows oneDNN Graph:
 *
 *     tensor descriptors -> ops -> graph -> partitions -> compiled partition -> execute
 *
 * and adds a session, which partitions, compiles and plans the memory of a whole graph and runs it.
 *
 * Conventions that hold for every function:
 *   - A function that can fail returns a qdq_status. Outputs come after inputs and end in `_out`; they are written
 *     only on success unless a function says otherwise.
 *   - The last parameter is an optional qdq_error owned by the caller (NULL is legal). On failure it holds one line:
 *     what failed, where (op id and name, port or attribute), what was found and what was expected.
 *   - `qdq_X_destroy(&x)` accepts NULL and a pointer to NULL, and sets the pointer to NULL.
 *   - Sizes are in elements unless the name ends in `_bytes`. Strides are in elements.
 *   - The library prints nothing unless QDQ_VERBOSE is set, and never aborts.
 *   - Objects are not locked: one object is built by one thread at a time. Finalized graphs, partitions, compiled
 *     partitions and sessions are immutable, and may be used by many threads at once.
 */
#ifndef QDQ_QDQ_H
#define QDQ_QDQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define QDQ_API __declspec(dllexport)
#elif defined(__GNUC__)
#define QDQ_API __attribute__((visibility("default")))
#else
#define QDQ_API
#endif

#if defined(__GNUC__)
#define QDQ_MUST_USE __attribute__((warn_unused_result))
#else
#define QDQ_MUST_USE
#endif

#define QDQ_VERSION_MAJOR 0
#define QDQ_VERSION_MINOR 1
#define QDQ_VERSION_PATCH 0

/* Largest rank of a tensor, as in oneDNN. */
#define QDQ_MAX_NDIMS     12
/* A dimension not known yet, and a rank not known yet (the values of oneDNN Graph). */
#define QDQ_DIM_UNKNOWN   INT64_MIN
#define QDQ_NDIMS_UNKNOWN (-1)

/* ---- status and errors ------------------------------------------------------------------------------------------ */

/* The one list of statuses: name, pinned value (it never changes between versions; gaps are left by theme), text. */
#define QDQ_STATUS_MAP(X)                                                                                              \
    X(OK, 0, "no error")                                                                                               \
    /* caller's argument */                                                                                            \
    X(E_NULL_ARG, 1, "a required argument is NULL")                                                                    \
    X(E_BAD_HANDLE, 2, "an object is not what it should be")                                                           \
    X(E_BAD_STATE, 3, "the object is not in a state that allows the call")                                             \
    X(E_BAD_ARG, 4, "an argument has an illegal value")                                                                \
    X(E_NOT_FOUND, 5, "there is no such item")                                                                         \
    /* graph or schema */                                                                                              \
    X(E_UNKNOWN_OP, 10, "the op kind has no schema")                                                                   \
    X(E_BAD_ARITY, 11, "an op has a wrong number of inputs or outputs")                                                \
    X(E_BAD_DTYPE, 12, "a data type is not allowed here")                                                              \
    X(E_BAD_SHAPE, 13, "a shape is illegal or does not fit")                                                           \
    X(E_BAD_ATTR, 14, "an attribute is missing, unknown or illegal")                                                   \
    X(E_CYCLE, 15, "the graph has a cycle")                                                                            \
    X(E_DUPLICATE_ID, 16, "an id is used twice")                                                                       \
    X(E_BAD_GRAPH, 17, "the graph is inconsistent")                                                                    \
    /* quantization */                                                                                                 \
    X(E_BAD_SCALE, 30, "a scale is illegal")                                                                           \
    X(E_BAD_ZERO_POINT, 31, "a zero point is illegal")                                                                 \
    X(E_BAD_AXIS, 32, "a quantization axis is illegal")                                                                \
    /* not supported */                                                                                                \
    X(E_UNSUPPORTED, 40, "not supported")                                                                              \
    X(E_NO_ISA, 41, "the CPU lacks an instruction set that this needs")                                                \
    X(E_NO_ONEDNN, 42, "this build has no oneDNN")                                                                     \
    /* resources */                                                                                                    \
    X(E_NO_MEMORY, 50, "out of memory")                                                                                \
    X(E_OVERFLOW, 51, "a size does not fit")                                                                           \
    /* files */                                                                                                        \
    X(E_IO, 60, "a file cannot be read or written")                                                                    \
    X(E_JSON, 61, "malformed JSON graph")                                                                              \
    X(E_ONNX, 62, "malformed or unsupported ONNX model")                                                               \
    X(E_NPY, 63, "malformed npy file")                                                                                 \
    /* inside */                                                                                                       \
    X(E_ONEDNN, 90, "oneDNN reported an error")                                                                        \
    X(E_INTERNAL, 91, "internal error: please report it")

typedef enum qdq_status {
#define QDQ_STATUS_ROW(name, value, text) QDQ_##name = value,
    QDQ_STATUS_MAP(QDQ_STATUS_ROW)
#undef QDQ_STATUS_ROW
} qdq_status;

#define QDQ_ERROR_BYTES 512

/* Caller-owned error text, always NUL-terminated after a failed call. Initialise with `= {0}`. */
typedef struct qdq_error {
    qdq_status status;
    char text[QDQ_ERROR_BYTES];
} qdq_error;

/* The name of a status ("QDQ_E_BAD_SHAPE"), and a short sentence for it. Static strings; never NULL. */
QDQ_API const char *qdq_status_name(qdq_status status);
QDQ_API const char *qdq_status_text(qdq_status status);
/* "0.1.0". Static. */
QDQ_API const char *qdq_version(void);

/* ---- data types ------------------------------------------------------------------------------------------------- */

/* The one list of types: name, pinned value, spelling in graph files, bits of an element. The first values are those of
 * dnnl_data_type_t; types that oneDNN lacks start at 64. s4 and u4 pack two to a byte, element 0 in the low nibble. */
#define QDQ_DTYPE_MAP(X)                                                                                               \
    X(UNDEF, 0, "undef", 0)                                                                                            \
    X(F16, 1, "f16", 16)                                                                                               \
    X(BF16, 2, "bf16", 16)                                                                                             \
    X(F32, 3, "f32", 32)                                                                                               \
    X(S32, 4, "s32", 32)                                                                                               \
    X(S8, 5, "s8", 8)                                                                                                  \
    X(U8, 6, "u8", 8)                                                                                                  \
    X(F64, 7, "f64", 64)                                                                                               \
    X(BOOLEAN, 8, "boolean", 8)                                                                                        \
    X(F8_E5M2, 9, "f8_e5m2", 8)                                                                                        \
    X(F8_E4M3, 10, "f8_e4m3", 8)                                                                                       \
    X(S4, 11, "s4", 4)                                                                                                 \
    X(U4, 12, "u4", 4)                                                                                                 \
    X(S64, 64, "s64", 64)                                                                                              \
    X(S16, 65, "s16", 16)                                                                                              \
    X(U16, 66, "u16", 16)

typedef enum qdq_dtype {
#define QDQ_DTYPE_ROW(name, value, text, bits) QDQ_DTYPE_##name = value,
    QDQ_DTYPE_MAP(QDQ_DTYPE_ROW)
#undef QDQ_DTYPE_ROW
} qdq_dtype;

/* "f32", "s8", …; "undef" for a value outside the enum. */
QDQ_API const char *qdq_dtype_name(qdq_dtype dtype);
/* The dtype of a name as written in graph dumps; QDQ_DTYPE_UNDEF when the name is none. */
QDQ_API qdq_dtype qdq_dtype_from_name(const char *name);
/* Bits of one element (4 for s4/u4, 8 for boolean); 0 for undef. */
QDQ_API size_t qdq_dtype_bits(qdq_dtype dtype);

/* ---- tensor descriptor ------------------------------------------------------------------------------------------ */

typedef enum qdq_layout {
    QDQ_LAYOUT_UNDEF = 0,
    QDQ_LAYOUT_ANY = 1,     /* the library chooses at compile; query the choice afterwards */
    QDQ_LAYOUT_STRIDED = 2, /* `strides` holds the layout */
    QDQ_LAYOUT_OPAQUE = 3   /* `layout_id` names a layout private to the library */
} qdq_layout;

typedef enum qdq_property {
    QDQ_PROPERTY_UNDEF = 0,
    QDQ_PROPERTY_VARIABLE = 1,
    QDQ_PROPERTY_CONSTANT = 2 /* content never changes once attached or first executed */
} qdq_property;

/* What a tensor is, without its data. Plain value; copy freely. `id` names the edge in the graph: ops that mention the
 * same id are connected. */
typedef struct qdq_tensor_desc {
    uint64_t id;
    qdq_dtype dtype;
    int32_t ndims; /* 0…12, or QDQ_NDIMS_UNKNOWN */
    int64_t dims[QDQ_MAX_NDIMS];
    qdq_property property;
    qdq_layout layout;
    int64_t strides[QDQ_MAX_NDIMS]; /* elements; valid when layout is STRIDED and all dims are known */
    uint64_t layout_id;             /* valid when layout is OPAQUE */
} qdq_tensor_desc;

/* Fill a descriptor. `dims` may be NULL when ndims is 0 or unknown; a dimension may be QDQ_DIM_UNKNOWN; a layout of
 * STRIDED gives row-major (dense) strides. `strides` version: strides ≥ 0 in elements.
 * Errors: BAD_SHAPE for ndims outside -1…12, a negative dimension, or sizes whose product overflows. */
QDQ_API QDQ_MUST_USE qdq_status qdq_tensor_desc_init(uint64_t id, qdq_dtype dtype, int32_t ndims, const int64_t *dims,
                                                     qdq_layout layout, qdq_property property,
                                                     qdq_tensor_desc *desc_out, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_tensor_desc_init_strided(uint64_t id, qdq_dtype dtype, int32_t ndims,
                                                             const int64_t *dims, const int64_t *strides,
                                                             qdq_property property, qdq_tensor_desc *desc_out,
                                                             qdq_error *err);
/* Bytes that the tensor's buffer needs (0 for a zero-size tensor; s4/u4 round up to whole bytes).
 * Errors: BAD_STATE when dims are unknown or the layout is ANY/UNDEF; OVERFLOW. */
QDQ_API QDQ_MUST_USE qdq_status qdq_tensor_desc_size_bytes(const qdq_tensor_desc *desc, size_t *bytes_out,
                                                           qdq_error *err);
/* Elements (product of dims). Errors: BAD_STATE when a dim is unknown; OVERFLOW. */
QDQ_API QDQ_MUST_USE qdq_status qdq_tensor_desc_n_elems(const qdq_tensor_desc *desc, int64_t *n_out, qdq_error *err);

/* A tensor handed to execute: a descriptor and a buffer. The library never owns `data`; buffers of outputs are written,
 * those of inputs are only read. Alignment: that of the element is enough; 64 bytes is fastest. `data` may be NULL
 * for a zero-size tensor. */
typedef struct qdq_tensor {
    qdq_tensor_desc desc;
    void *data;
} qdq_tensor;

/* ---- engine: where and how things run ------------------------------------------------------------------------- */

typedef struct qdq_engine qdq_engine;

/* Memory for graphs' packed weights, scratch and session arenas. `alignment` is a power of two. Called during compile,
 * and by the first execute of each concurrent caller; never by later ones. Both or neither must be set. */
typedef void *(*qdq_malloc_fn)(size_t bytes, size_t alignment, void *user);
typedef void (*qdq_free_fn)(void *ptr, void *user);
/* A host's own thread pool for the library's own kernels: call body(i, arg) for i in [0, n), return when all are done.
 * oneDNN's primitives keep OpenMP. */
typedef void (*qdq_parallel_for_fn)(int n, void (*body)(int i, void *arg), void *arg, void *user);

typedef struct qdq_engine_options {
    size_t struct_bytes; /* sizeof(qdq_engine_options): lets the struct grow */
    qdq_malloc_fn malloc_fn;
    qdq_free_fn free_fn;
    qdq_parallel_for_fn parallel_for;
    void *user;               /* passed to the three callbacks */
    int n_threads;            /* 0: OpenMP's default */
    size_t const_cache_bytes; /* bound of the packed-constant cache; 0: 1 GiB */
} qdq_engine_options;

/* Create an engine; `options` may be NULL for the defaults. Engines are reference counted by what is compiled on them:
 * destroying one that compiled objects still use is legal. */
QDQ_API QDQ_MUST_USE qdq_status qdq_engine_create(const qdq_engine_options *options, qdq_engine **engine_out,
                                                  qdq_error *err);
QDQ_API void qdq_engine_destroy(qdq_engine **engine);

typedef struct qdq_cache_stats {
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
    size_t bytes; /* held now */
} qdq_cache_stats;
/* Counters of the engine's packed-constant cache (keyed by content, never by address). */
QDQ_API QDQ_MUST_USE qdq_status qdq_engine_cache_stats(const qdq_engine *engine, qdq_cache_stats *stats_out,
                                                       qdq_error *err);

/* ---- ops -------------------------------------------------------------------------------------------------------- */

typedef struct qdq_op qdq_op;

/* Create an op. `kind` is spelled as in the schema table ("MatMul", "DynamicDequantize"; see doc/ops); it is checked by
 * qdq_graph_add_op. `name` may be "" but not NULL. Both strings are copied. */
QDQ_API QDQ_MUST_USE qdq_status qdq_op_create(uint64_t id, const char *kind, const char *name, qdq_op **op_out,
                                              qdq_error *err);
QDQ_API void qdq_op_destroy(qdq_op **op);
/* Append an input or output edge, in port order. The descriptor is copied. An input that is left out before a later
 * one (ONNX's empty name) is given as NULL. */
QDQ_API QDQ_MUST_USE qdq_status qdq_op_add_input(qdq_op *op, const qdq_tensor_desc *desc, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_op_add_output(qdq_op *op, const qdq_tensor_desc *desc, qdq_error *err);
/* Set an attribute by its schema name ("strides"). Values are copied; setting twice replaces. The type is checked
 * against the schema by qdq_graph_add_op. `n` may be 0 for an empty list. */
QDQ_API QDQ_MUST_USE qdq_status qdq_op_set_attr_f32(qdq_op *op, const char *name, float value, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_op_set_attr_f32s(qdq_op *op, const char *name, const float *values, size_t n,
                                                     qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_op_set_attr_s64(qdq_op *op, const char *name, int64_t value, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_op_set_attr_s64s(qdq_op *op, const char *name, const int64_t *values, size_t n,
                                                     qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_op_set_attr_bool(qdq_op *op, const char *name, bool value, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_op_set_attr_str(qdq_op *op, const char *name, const char *value, qdq_error *err);

/* ---- graph ------------------------------------------------------------------------------------------------------ */

typedef struct qdq_graph qdq_graph;

QDQ_API QDQ_MUST_USE qdq_status qdq_graph_create(qdq_graph **graph_out, qdq_error *err);
QDQ_API void qdq_graph_destroy(qdq_graph **graph);

/* Check `op` against its schema (arity, dtypes, attributes, quantization parameters) and add a copy of it. The caller
 * keeps its own op and may change, re-use or destroy it.
 * Errors: UNKNOWN_OP, BAD_ARITY, BAD_DTYPE, BAD_ATTR, BAD_SCALE, BAD_ZERO_POINT, BAD_AXIS, BAD_SHAPE, DUPLICATE_ID (an op
 * with this id is there), BAD_STATE (finalized). */
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_add_op(qdq_graph *graph, const qdq_op *op, qdq_error *err);

typedef enum qdq_data_mode {
    QDQ_DATA_COPY = 0,  /* the graph keeps its own copy */
    QDQ_DATA_BORROW = 1 /* the caller keeps `data` alive and unchanged for the life of the graph and of what is
                           partitioned and compiled from it */
} qdq_data_mode;

/* Attach the content of a constant tensor (weights, bias, scales, zero points). `desc` gives id, dtype, dims and dense or
 * strided layout; `bytes` must equal its size. The tensor becomes constant: compile packs it once, and execute
 * takes no buffer for it. Before qdq_graph_finalize; the id may be mentioned by ops added earlier or later. */
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_set_constant(qdq_graph *graph, const qdq_tensor_desc *desc, const void *data,
                                                       size_t bytes, qdq_data_mode mode, qdq_error *err);

/* Name the graph's inputs and outputs and their order (session ports; ids of tensors). Without these calls, inputs are
 * the tensors that no op produces and that hold no constant, and outputs those that no op consumes, both in op order.
 * An intermediate tensor may be an output too. Before qdq_graph_finalize. */
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_set_inputs(qdq_graph *graph, const uint64_t *ids, size_t n, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_set_outputs(qdq_graph *graph, const uint64_t *ids, size_t n, qdq_error *err);
/* A human name for a tensor (messages, qdq run). Optional; copied. */
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_set_tensor_name(qdq_graph *graph, uint64_t id, const char *name,
                                                          qdq_error *err);

/* Check the whole graph, link its edges, sort it, and infer shapes as far as input shapes are known. Idempotent.
 * Errors: CYCLE, DUPLICATE_ID (a tensor produced twice), BAD_GRAPH (one id with two descriptors, unknown ids in
 * set_inputs/set_outputs), BAD_SHAPE, and the quantization errors. */
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_finalize(qdq_graph *graph, qdq_error *err);
QDQ_API bool qdq_graph_is_finalized(const qdq_graph *graph);

/* Ports of a finalized graph. Descriptors carry what shape inference found. */
QDQ_API size_t qdq_graph_n_ops(const qdq_graph *graph);
QDQ_API size_t qdq_graph_n_inputs(const qdq_graph *graph);
QDQ_API size_t qdq_graph_n_outputs(const qdq_graph *graph);
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_input_desc(const qdq_graph *graph, size_t i, qdq_tensor_desc *desc_out,
                                                     const char **name_out, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_output_desc(const qdq_graph *graph, size_t i, qdq_tensor_desc *desc_out,
                                                      const char **name_out, qdq_error *err);
/* Descriptor of any tensor of the graph by id. NOT_FOUND when no op mentions it. */
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_tensor_desc(const qdq_graph *graph, uint64_t id, qdq_tensor_desc *desc_out,
                                                      qdq_error *err);

/* Run the graph op by op with the reference implementation of each op (the oracle; slow). `inputs` are matched by
 * desc.id and must cover every graph input; `outputs` may name any tensor of the graph by id, with the dims of the graph
 * and any strides. Thread-safe. */
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_run_reference(const qdq_graph *graph, const qdq_tensor *inputs,
                                                        size_t n_inputs, const qdq_tensor *outputs, size_t n_outputs,
                                                        qdq_error *err);

/* ---- partitions ------------------------------------------------------------------------------------------------- */

typedef enum qdq_policy {
    QDQ_POLICY_FUSION = 0, /* the largest patterns first */
    QDQ_POLICY_SINGLE = 1  /* every op alone (node by node) */
} qdq_policy;

typedef struct qdq_partition qdq_partition;
typedef struct qdq_partition_list qdq_partition_list;

/* Partition a finalized graph. The list keeps the graph's content alive: the graph may be destroyed first.
 * Linear in the number of ops. Partitions come in topological order; every op is in one of them. A Dequantize that
 * several partitions absorbed is listed in each; it appears on its own as well only when its float result is needed.
 * Errors: BAD_STATE when not finalized; NO_MEMORY. */
QDQ_API QDQ_MUST_USE qdq_status qdq_graph_partition(const qdq_graph *graph, qdq_policy policy,
                                                    qdq_partition_list **list_out, qdq_error *err);
QDQ_API void qdq_partition_list_destroy(qdq_partition_list **list);
QDQ_API size_t qdq_partition_list_count(const qdq_partition_list *list);
/* Borrowed: lives as long as the list. NULL when i is out of range. */
QDQ_API const qdq_partition *qdq_partition_list_get(const qdq_partition_list *list, size_t i);

QDQ_API size_t qdq_partition_id(const qdq_partition *partition);
/* True when compile will succeed for every legal shape. Only a graph with unknown kinds could say no. */
QDQ_API bool qdq_partition_is_supported(const qdq_partition *partition);
/* Name of the pattern that made it ("x8_matmul_post_ops"), or "single". Static. */
QDQ_API const char *qdq_partition_pattern(const qdq_partition *partition);
QDQ_API size_t qdq_partition_n_ops(const qdq_partition *partition);
QDQ_API size_t qdq_partition_n_inputs(const qdq_partition *partition); /* constants with data are not ports */
QDQ_API size_t qdq_partition_n_outputs(const qdq_partition *partition);
/* Ids of its ops in topological order / descriptors of its ports. Errors: NOT_FOUND when i is out of range. */
QDQ_API QDQ_MUST_USE qdq_status qdq_partition_op(const qdq_partition *partition, size_t i, uint64_t *id_out,
                                                 const char **kind_out, const char **name_out, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_partition_input(const qdq_partition *partition, size_t i, qdq_tensor_desc *desc_out,
                                                    qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_partition_output(const qdq_partition *partition, size_t i,
                                                     qdq_tensor_desc *desc_out, qdq_error *err);

/* ---- compiled partition ----------------------------------------------------------------------------------------- */

typedef struct qdq_compiled qdq_compiled;

/* Compile for concrete shapes and layouts. `inputs`/`outputs` are matched by id and must cover every port; extra ones are
 * ignored. Input dims must be known; output dims may be unknown (inferred) or must agree. A layout of ANY lets the library
 * choose; ask qdq_compiled_desc. Packs constants, creates primitives. The object keeps what it needs: graph, list and
 * engine may be destroyed first (not data attached with QDQ_DATA_BORROW).
 * Errors: BAD_SHAPE, BAD_ARG (a port is missing), NO_MEMORY, ONEDNN. */
QDQ_API QDQ_MUST_USE qdq_status qdq_partition_compile(const qdq_partition *partition, qdq_engine *engine,
                                                      const qdq_tensor_desc *inputs, size_t n_inputs,
                                                      const qdq_tensor_desc *outputs, size_t n_outputs,
                                                      qdq_compiled **compiled_out, qdq_error *err);
QDQ_API void qdq_compiled_destroy(qdq_compiled **compiled);
/* The resolved descriptor (dims, strides) of a port. NOT_FOUND for an id that is no port. */
QDQ_API QDQ_MUST_USE qdq_status qdq_compiled_desc(const qdq_compiled *compiled, uint64_t id, qdq_tensor_desc *desc_out,
                                                  qdq_error *err);

typedef struct qdq_inplace_pair {
    uint64_t input_id;
    uint64_t output_id;
} qdq_inplace_pair;
/* Input/output ports that may share one buffer: of partitions that are one elementwise pass over tensors of equal layout and width.
 * An output shares with one input at most. `pairs_out` is borrowed from the compiled partition. */
QDQ_API QDQ_MUST_USE qdq_status qdq_compiled_inplace_pairs(const qdq_compiled *compiled, size_t *n_out,
                                                           const qdq_inplace_pair **pairs_out, qdq_error *err);
/* One line on how the partition is computed: implementation and layout per step. Borrowed. */
QDQ_API const char *qdq_compiled_summary(const qdq_compiled *compiled);

/* Run. Tensors are matched by id; their descriptors must equal the compiled ones (NULL data only where zero-size).
 * Buffers may not overlap except declared in-place pairs. May be called by many threads at once on one object; allocates
 * nothing once each concurrent caller has run once (up to 1024 ports); takes no lock.
 * Errors: BAD_ARG (missing port), BAD_SHAPE/BAD_DTYPE (differs from the compiled descriptor), NULL_ARG, ONEDNN. */
QDQ_API QDQ_MUST_USE qdq_status qdq_compiled_execute(const qdq_compiled *compiled, const qdq_tensor *inputs,
                                                     size_t n_inputs, const qdq_tensor *outputs, size_t n_outputs,
                                                     qdq_error *err);
/* The same with buffers only, in the order of the partition's ports (qdq_partition_input, _output) and laid out as
 * qdq_compiled_desc says: nothing is compared, which is the shortest way to run. Errors: BAD_ARG (a number of ports), NULL_ARG, ONEDNN. */
QDQ_API QDQ_MUST_USE qdq_status qdq_compiled_run(const qdq_compiled *compiled, const void *const *inputs,
                                                 size_t n_inputs, void *const *outputs, size_t n_outputs,
                                                 qdq_error *err);

/* ---- session: a whole graph ------------------------------------------------------------------------------------- */

typedef struct qdq_session qdq_session;

typedef struct qdq_session_options {
    size_t struct_bytes; /* sizeof(qdq_session_options) */
    qdq_policy policy;
    bool reference; /* every op on the reference provider, node by node */
    bool profile;   /* keep a time per partition (qdq_session_part) */
} qdq_session_options;

/* Partition, compile and plan a finalized graph whose input shapes are all known. `options` may be NULL. Inputs and outputs
 * of the session have dense row-major layout unless the graph's descriptors give strides. The session keeps what it
 * needs of graph and engine. */
QDQ_API QDQ_MUST_USE qdq_status qdq_session_create(const qdq_graph *graph, qdq_engine *engine,
                                                   const qdq_session_options *options, qdq_session **session_out,
                                                   qdq_error *err);
QDQ_API void qdq_session_destroy(qdq_session **session);
QDQ_API size_t qdq_session_n_inputs(const qdq_session *session);
QDQ_API size_t qdq_session_n_outputs(const qdq_session *session);
QDQ_API QDQ_MUST_USE qdq_status qdq_session_input_desc(const qdq_session *session, size_t i, qdq_tensor_desc *desc_out,
                                                       const char **name_out, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_session_output_desc(const qdq_session *session, size_t i, qdq_tensor_desc *desc_out,
                                                        const char **name_out, qdq_error *err);
/* Run with buffers in port order: `inputs[i]` holds the input i, `outputs[i]` receives the output i, laid out as the
 * descriptors say. Same guarantees as qdq_compiled_execute. */
QDQ_API QDQ_MUST_USE qdq_status qdq_session_run(const qdq_session *session, const void *const *inputs, size_t n_inputs,
                                                void *const *outputs, size_t n_outputs, qdq_error *err);

/* What one partition of the session is and costs. Strings are borrowed from the session. */
typedef struct qdq_session_part_info {
    const char *pattern; /* "single" for an op on its own */
    const char *ops;     /* "Dequantize;MatMul;ReLU;Quantize" */
    const char *impl;    /* how it is computed, one line */
    const char *name;    /* name of its main op */
    size_t n_ops;
    bool folded;     /* all inputs are constant: computed at compile, not at run */
    uint64_t n_runs; /* with options.profile */
    double total_ms; /* sum over n_runs, profiled runs only */
} qdq_session_part_info;
QDQ_API size_t qdq_session_n_parts(const qdq_session *session);
QDQ_API QDQ_MUST_USE qdq_status qdq_session_part(const qdq_session *session, size_t i, qdq_session_part_info *info_out,
                                                 qdq_error *err);

/* ---- graphs from files ------------------------------------------------------------------------------------------ */

/* Value of a symbolic dimension (ONNX dim_param) at load. */
typedef struct qdq_dim_binding {
    const char *name;
    int64_t value;
} qdq_dim_binding;

/* Shape of a graph input by name, for inputs whose dimensions are symbolic without a name or to be overridden. */
typedef struct qdq_input_shape {
    const char *name;
    int32_t ndims;
    const int64_t *dims;
} qdq_input_shape;

typedef struct qdq_onnx_options {
    size_t struct_bytes; /* sizeof(qdq_onnx_options) */
    const qdq_dim_binding *dims;
    size_t n_dims;
    const qdq_input_shape *shapes;
    size_t n_shapes;
    int64_t default_dim; /* value of dimensions still unbound; 0: 1 */
    /* Shapes of the data at hand, by input name, or by input position where the name is NULL: they bind symbolic dimensions and must
     * agree with fixed ones (`shapes` overrides those). */
    const qdq_input_shape *data_shapes;
    size_t n_data_shapes;
} qdq_onnx_options;

/* Read an ONNX model (opset 10…28) into a finalized graph. External data is read relative to the model's folder (the _bytes
 * form refuses it). `options` may be NULL. Errors: IO; ONNX for a malformed or unsupported model, naming the node, its op type and the
 * opset; the schema errors of qdq_graph_add_op, naming the node. */
QDQ_API QDQ_MUST_USE qdq_status qdq_onnx_load_file(const char *path, const qdq_onnx_options *options,
                                                   qdq_graph **graph_out, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_onnx_load_bytes(const void *data, size_t bytes, const qdq_onnx_options *options,
                                                    qdq_graph **graph_out, qdq_error *err);

/* Rewrites of a JSON case, in benchdnn's words; each may be NULL.
 *   in_shapes "ID:SHAPE[*TAG]+ID:SHAPE…", op_attrs "ID:NAME:VAL*NAME:VAL+…", mb: 0 = as in the file, dt "DT" or "ID:DT+…". */
typedef struct qdq_json_options {
    size_t struct_bytes; /* sizeof(qdq_json_options) */
    const char *in_shapes;
    const char *op_attrs;
    const char *dt;
    int64_t mb;
} qdq_json_options;

/* Read a graph in oneDNN Graph's dump format into a graph that is not finalized yet, so that a caller can attach constants
 * first. Unknown keys are skipped. Errors: IO; JSON with line and column; the schema errors of qdq_graph_add_op. */
QDQ_API QDQ_MUST_USE qdq_status qdq_json_load_file(const char *path, const qdq_json_options *options,
                                                   qdq_graph **graph_out, qdq_error *err);
QDQ_API QDQ_MUST_USE qdq_status qdq_json_load_bytes(const char *text, size_t bytes, const qdq_json_options *options,
                                                    qdq_graph **graph_out, qdq_error *err);

/* ---- the backend module ----------------------------------------------------------------------------------------- */

typedef struct qdq_op_info {
    const char *kind;
    const char *origin;                                   /* "oneDNN Graph", "ONNX", "TensorFlow", "custom" */
    int min_inputs, max_inputs, min_outputs, max_outputs; /* a max of -1: any number */
    size_t n_attrs;                                       /* see qdq_backend_op_attr */
    const char *inputs, *outputs; /* names of the ports in order, "[y]" may be left out; "" when there is no note */
    const char *formula;          /* one line; "" when there is none */
    const char *dtype_rule, *shape_rule, *check_rule; /* their names in the op table; "" of a custom op */
} qdq_op_info;
/* What is registered: op schemas (custom ones last), patterns, and providers ("onednn", "native", "reference"). */
QDQ_API size_t qdq_backend_n_ops(void);
QDQ_API QDQ_MUST_USE qdq_status qdq_backend_op(size_t i, qdq_op_info *info_out, qdq_error *err);
/* One attribute of an op kind. */
typedef struct qdq_op_attr_info {
    const char *name;
    const char *type; /* "f32", "f32[]", "s64", "s64[]", "bool", "string": as in graph files */
    bool required, has_default;
    double default_number;      /* of f32, s64 and bool */
    const char *default_string; /* of string, else NULL. The default of a list is the empty list. */
    const char *choices;        /* of string: the legal values, separated by '|'; NULL: any */
    bool has_min, has_max;      /* of s64, and of every element of s64[] */
    int64_t min, max;
} qdq_op_attr_info;
/* NOT_FOUND when there is no such op or attribute. */
QDQ_API QDQ_MUST_USE qdq_status qdq_backend_op_attr(size_t op, size_t attr, qdq_op_attr_info *info_out, qdq_error *err);
/* Whether a port (0, 1, …) of the op may have the data type, when nothing is known about its other ports. */
QDQ_API bool qdq_backend_op_takes(size_t op, bool output, size_t port, qdq_dtype dtype);
QDQ_API size_t qdq_backend_n_patterns(void);
QDQ_API const char *qdq_backend_pattern(size_t i);
QDQ_API size_t qdq_backend_n_providers(void);
QDQ_API const char *qdq_backend_provider(size_t i);

/* A host's own op kind: it lives in graphs as a single-op partition, computed by `run`. All tensors are dense row-major. */
typedef struct qdq_custom_op {
    size_t struct_bytes; /* sizeof(qdq_custom_op) */
    const char *kind;    /* unique, not a built-in kind */
    int min_inputs, max_inputs, min_outputs, max_outputs;
    /* Fill dims and dtype of outputs from inputs (known dims). Return QDQ_OK or an error code. */
    qdq_status (*infer)(const qdq_tensor_desc *inputs, size_t n_inputs, qdq_tensor_desc *outputs, size_t n_outputs,
                        void *user);
    /* Compute. Must be thread-safe. */
    qdq_status (*run)(const qdq_tensor *inputs, size_t n_inputs, qdq_tensor *outputs, size_t n_outputs, void *user);
    void *user;
} qdq_custom_op;
/* Register for the life of the process; thread-safe. Errors: DUPLICATE_ID, BAD_ARG, NULL_ARG. */
QDQ_API QDQ_MUST_USE qdq_status qdq_backend_register_op(const qdq_custom_op *op, qdq_error *err);

/* ---- explanations ----------------------------------------------------------------------------------------------- */

/* What became of each op of a graph, and why: partitions, how each is computed, which candidates refused, and for every op
 * that is in no fused chain the nearest pattern and where it failed. An immutable object; all that it hands out is
 * borrowed from it. */
typedef struct qdq_explanation qdq_explanation;

/* Index of no op. */
#define QDQ_EXPLAIN_NONE SIZE_MAX

/* What became of an op, or of a partition: name, pinned value, word, sentence. */
#define QDQ_EXPLAIN_HOW_MAP(X)                                                                                         \
    X(FUSED, 0, "fused", "computed together with other ops")                                                           \
    X(ALONE, 1, "alone", "computed on its own, one op at a time")                                                      \
    X(VIEW, 2, "view", "no work: the result is the input seen otherwise, or there is none")                            \
    X(FOLDED, 3, "folded", "computed once, before the first run: all inputs are constant")

typedef enum qdq_explain_how {
#define QDQ_EXPLAIN_HOW_ROW(name, value, word, text) QDQ_EXPLAIN_##name = value,
    QDQ_EXPLAIN_HOW_MAP(QDQ_EXPLAIN_HOW_ROW)
#undef QDQ_EXPLAIN_HOW_ROW
} qdq_explain_how;

/* Where a reason comes from. */
typedef enum qdq_explain_source {
    QDQ_EXPLAIN_NEAREST = 0, /* the entry of the catalogue that gets furthest from this op; `node` failed */
    QDQ_EXPLAIN_END = 1,     /* a chain: it was matched up to here and went no further */
    QDQ_EXPLAIN_REFUSAL = 2  /* a candidate of lowering, which refused; the next one was tried */
} qdq_explain_source;

typedef struct qdq_explain_tensor {
    qdq_tensor_desc desc; /* layout as compiled */
    const char *name;     /* "" when it has none */
    bool is_constant;     /* its content was known at compile */
    bool is_input;        /* of the graph */
    bool is_output;
} qdq_explain_tensor;

typedef struct qdq_explain_reason {
    qdq_explain_source source;
    const char *word;     /* of the fixed vocabulary (qdq_backend_reason) */
    const char *sentence; /* of the word */
    const char *who;      /* name of the pattern, or of the candidate that refused */
    const char *wanted;   /* what stood in the pattern where it failed: a kind, or a set of kinds; "" for a refusal */
    const char *guard;    /* the guard that failed and what it asks for; NULL when the word says all */
    const char *guard_text;
    size_t n_matched;                 /* ops that had matched by then */
    size_t part;                      /* the partition whose chain ended (END), or QDQ_EXPLAIN_NONE */
    size_t op;                        /* the op that was refused, or QDQ_EXPLAIN_NONE */
    const qdq_explain_tensor *tensor; /* the value by which it was reached, or NULL */
    const char *text;                 /* all of it in one line */
} qdq_explain_reason;

typedef struct qdq_explain_op {
    uint64_t id;
    const char *kind, *name;
    qdq_explain_how how;
    size_t part; /* the first partition that holds it; QDQ_EXPLAIN_NONE when it was folded before there were any */
    const qdq_explain_tensor *const *inputs; /* NULL: a missing optional input */
    size_t n_inputs;
    const qdq_explain_tensor *const *outputs;
    size_t n_outputs;
    const qdq_explain_reason *reasons; /* why it is not fused; none when it is fused or folded */
    size_t n_reasons;
} qdq_explain_op;

typedef struct qdq_explain_step {
    const char *provider; /* of qdq_backend_provider */
    const char *note;     /* implementation and data types */
} qdq_explain_step;

typedef struct qdq_explain_part {
    const char *pattern; /* "single" for an op on its own */
    const char *recipe;  /* how such a pattern is lowered: "conv" */
    qdq_explain_how how; /* ALONE with a pattern: its recipe refused, and the ops were lowered one by one */
    size_t root;         /* its main op */
    const size_t *ops;   /* in topological order */
    size_t n_ops;
    const qdq_explain_tensor *const *inputs;
    size_t n_inputs;
    const qdq_explain_tensor *const *constants; /* weights, scales, … */
    size_t n_constants;
    const qdq_explain_tensor *const *outputs;
    size_t n_outputs;
    const qdq_explain_step *steps; /* in the order in which they run */
    size_t n_steps;
    const qdq_explain_reason *reasons; /* candidates that refused, in that order; then why the chain ended, if it did */
    size_t n_reasons;
} qdq_explain_part;

/* Partition and compile a finalized graph as qdq_session_create does (`options` as there), and keep what there is to tell. When
 * the graph does not compile (a shape is not known, say), the object is made all the same: partitions and patterns are there, steps and
 * refusals are not, and qdq_explanation_compile_error tells. Costs what a session costs; the plan is not kept.
 * Errors: NULL_ARG, BAD_ARG, BAD_STATE (not finalized), NO_MEMORY. */
QDQ_API QDQ_MUST_USE qdq_status qdq_explanation_create(const qdq_graph *graph, qdq_engine *engine,
                                                       const qdq_session_options *options,
                                                       qdq_explanation **explanation_out, qdq_error *err);
QDQ_API void qdq_explanation_destroy(qdq_explanation **explanation);
/* NULL when the graph compiled. */
QDQ_API const char *qdq_explanation_compile_error(const qdq_explanation *explanation);
QDQ_API size_t qdq_explanation_n_ops(const qdq_explanation *explanation);
QDQ_API size_t qdq_explanation_n_parts(const qdq_explanation *explanation);
/* The i-th op (in the order in which they were added) or partition (in the order in which they run); NULL when i is out of range. */
QDQ_API const qdq_explain_op *qdq_explanation_op(const qdq_explanation *explanation, size_t i);
QDQ_API const qdq_explain_part *qdq_explanation_part(const qdq_explanation *explanation, size_t i);

typedef struct qdq_reason_info {
    const char *word, *sentence;
    const char *group; /* "match", "guard" or "lowering" */
} qdq_reason_info;
/* The fixed vocabulary of reasons. A word may be in two groups. Static strings. Errors: NOT_FOUND. */
QDQ_API size_t qdq_backend_n_reasons(void);
QDQ_API QDQ_MUST_USE qdq_status qdq_backend_reason(size_t i, qdq_reason_info *info_out, qdq_error *err);

typedef struct qdq_pattern_info {
    const char *name;
    const char *family;  /* entries of a family stand together */
    const char *recipe;  /* how its matches are lowered */
    const char *picture; /* lines that end in \n */
    size_t n_required;   /* ops that every match has */
} qdq_pattern_info;
/* The i-th pattern, in the order in which they are tried. Static strings. Errors: NOT_FOUND. */
QDQ_API QDQ_MUST_USE qdq_status qdq_backend_pattern_info(size_t i, qdq_pattern_info *info_out, qdq_error *err);
/* A set of op kinds that pictures name ("chain"), and what is in it; a false return ends the list. */
QDQ_API bool qdq_backend_pattern_set(size_t i, const char **name_out, const char **text_out);

/* ---- function table for hosts that dlopen ----------------------------------------------------------------------- */

#define QDQ_API_VERSION 1

/* The functions above under one pointer. Fields are only ever appended; `n_bytes` is the size of the table that the library
 * filled. */
typedef struct qdq_api qdq_api;

/* The table of API version `version` (1…QDQ_API_VERSION), or NULL when the library does not know it. Static. */
QDQ_API const qdq_api *qdq_get_api(uint32_t version);

struct qdq_api {
    size_t n_bytes;
    const char *(*version)(void);
    const char *(*status_name)(qdq_status);
    const char *(*status_text)(qdq_status);
    const char *(*dtype_name)(qdq_dtype);
    qdq_dtype (*dtype_from_name)(const char *);
    size_t (*dtype_bits)(qdq_dtype);
    qdq_status (*tensor_desc_init)(uint64_t, qdq_dtype, int32_t, const int64_t *, qdq_layout, qdq_property,
                                   qdq_tensor_desc *, qdq_error *);
    qdq_status (*tensor_desc_init_strided)(uint64_t, qdq_dtype, int32_t, const int64_t *, const int64_t *, qdq_property,
                                           qdq_tensor_desc *, qdq_error *);
    qdq_status (*tensor_desc_size_bytes)(const qdq_tensor_desc *, size_t *, qdq_error *);
    qdq_status (*tensor_desc_n_elems)(const qdq_tensor_desc *, int64_t *, qdq_error *);
    qdq_status (*engine_create)(const qdq_engine_options *, qdq_engine **, qdq_error *);
    void (*engine_destroy)(qdq_engine **);
    qdq_status (*engine_cache_stats)(const qdq_engine *, qdq_cache_stats *, qdq_error *);
    qdq_status (*op_create)(uint64_t, const char *, const char *, qdq_op **, qdq_error *);
    void (*op_destroy)(qdq_op **);
    qdq_status (*op_add_input)(qdq_op *, const qdq_tensor_desc *, qdq_error *);
    qdq_status (*op_add_output)(qdq_op *, const qdq_tensor_desc *, qdq_error *);
    qdq_status (*op_set_attr_f32)(qdq_op *, const char *, float, qdq_error *);
    qdq_status (*op_set_attr_f32s)(qdq_op *, const char *, const float *, size_t, qdq_error *);
    qdq_status (*op_set_attr_s64)(qdq_op *, const char *, int64_t, qdq_error *);
    qdq_status (*op_set_attr_s64s)(qdq_op *, const char *, const int64_t *, size_t, qdq_error *);
    qdq_status (*op_set_attr_bool)(qdq_op *, const char *, bool, qdq_error *);
    qdq_status (*op_set_attr_str)(qdq_op *, const char *, const char *, qdq_error *);
    qdq_status (*graph_create)(qdq_graph **, qdq_error *);
    void (*graph_destroy)(qdq_graph **);
    qdq_status (*graph_add_op)(qdq_graph *, const qdq_op *, qdq_error *);
    qdq_status (*graph_set_constant)(qdq_graph *, const qdq_tensor_desc *, const void *, size_t, qdq_data_mode,
                                     qdq_error *);
    qdq_status (*graph_set_inputs)(qdq_graph *, const uint64_t *, size_t, qdq_error *);
    qdq_status (*graph_set_outputs)(qdq_graph *, const uint64_t *, size_t, qdq_error *);
    qdq_status (*graph_set_tensor_name)(qdq_graph *, uint64_t, const char *, qdq_error *);
    qdq_status (*graph_finalize)(qdq_graph *, qdq_error *);
    bool (*graph_is_finalized)(const qdq_graph *);
    size_t (*graph_n_ops)(const qdq_graph *);
    size_t (*graph_n_inputs)(const qdq_graph *);
    size_t (*graph_n_outputs)(const qdq_graph *);
    qdq_status (*graph_input_desc)(const qdq_graph *, size_t, qdq_tensor_desc *, const char **, qdq_error *);
    qdq_status (*graph_output_desc)(const qdq_graph *, size_t, qdq_tensor_desc *, const char **, qdq_error *);
    qdq_status (*graph_tensor_desc)(const qdq_graph *, uint64_t, qdq_tensor_desc *, qdq_error *);
    qdq_status (*graph_run_reference)(const qdq_graph *, const qdq_tensor *, size_t, const qdq_tensor *, size_t,
                                      qdq_error *);
    qdq_status (*graph_partition)(const qdq_graph *, qdq_policy, qdq_partition_list **, qdq_error *);
    void (*partition_list_destroy)(qdq_partition_list **);
    size_t (*partition_list_count)(const qdq_partition_list *);
    const qdq_partition *(*partition_list_get)(const qdq_partition_list *, size_t);
    size_t (*partition_id)(const qdq_partition *);
    bool (*partition_is_supported)(const qdq_partition *);
    const char *(*partition_pattern)(const qdq_partition *);
    size_t (*partition_n_ops)(const qdq_partition *);
    size_t (*partition_n_inputs)(const qdq_partition *);
    size_t (*partition_n_outputs)(const qdq_partition *);
    qdq_status (*partition_op)(const qdq_partition *, size_t, uint64_t *, const char **, const char **, qdq_error *);
    qdq_status (*partition_input)(const qdq_partition *, size_t, qdq_tensor_desc *, qdq_error *);
    qdq_status (*partition_output)(const qdq_partition *, size_t, qdq_tensor_desc *, qdq_error *);
    qdq_status (*partition_compile)(const qdq_partition *, qdq_engine *, const qdq_tensor_desc *, size_t,
                                    const qdq_tensor_desc *, size_t, qdq_compiled **, qdq_error *);
    void (*compiled_destroy)(qdq_compiled **);
    qdq_status (*compiled_desc)(const qdq_compiled *, uint64_t, qdq_tensor_desc *, qdq_error *);
    qdq_status (*compiled_inplace_pairs)(const qdq_compiled *, size_t *, const qdq_inplace_pair **, qdq_error *);
    const char *(*compiled_summary)(const qdq_compiled *);
    qdq_status (*compiled_execute)(const qdq_compiled *, const qdq_tensor *, size_t, const qdq_tensor *, size_t,
                                   qdq_error *);
    qdq_status (*session_create)(const qdq_graph *, qdq_engine *, const qdq_session_options *, qdq_session **,
                                 qdq_error *);
    void (*session_destroy)(qdq_session **);
    size_t (*session_n_inputs)(const qdq_session *);
    size_t (*session_n_outputs)(const qdq_session *);
    qdq_status (*session_input_desc)(const qdq_session *, size_t, qdq_tensor_desc *, const char **, qdq_error *);
    qdq_status (*session_output_desc)(const qdq_session *, size_t, qdq_tensor_desc *, const char **, qdq_error *);
    qdq_status (*session_run)(const qdq_session *, const void *const *, size_t, void *const *, size_t, qdq_error *);
    size_t (*session_n_parts)(const qdq_session *);
    qdq_status (*session_part)(const qdq_session *, size_t, qdq_session_part_info *, qdq_error *);
    qdq_status (*onnx_load_file)(const char *, const qdq_onnx_options *, qdq_graph **, qdq_error *);
    qdq_status (*onnx_load_bytes)(const void *, size_t, const qdq_onnx_options *, qdq_graph **, qdq_error *);
    qdq_status (*json_load_file)(const char *, const qdq_json_options *, qdq_graph **, qdq_error *);
    qdq_status (*json_load_bytes)(const char *, size_t, const qdq_json_options *, qdq_graph **, qdq_error *);
    size_t (*backend_n_ops)(void);
    qdq_status (*backend_op)(size_t, qdq_op_info *, qdq_error *);
    size_t (*backend_n_patterns)(void);
    const char *(*backend_pattern)(size_t);
    size_t (*backend_n_providers)(void);
    const char *(*backend_provider)(size_t);
    qdq_status (*backend_register_op)(const qdq_custom_op *, qdq_error *);
    qdq_status (*backend_op_attr)(size_t, size_t, qdq_op_attr_info *, qdq_error *);
    bool (*backend_op_takes)(size_t, bool, size_t, qdq_dtype);
    qdq_status (*explanation_create)(const qdq_graph *, qdq_engine *, const qdq_session_options *, qdq_explanation **,
                                     qdq_error *);
    void (*explanation_destroy)(qdq_explanation **);
    const char *(*explanation_compile_error)(const qdq_explanation *);
    size_t (*explanation_n_ops)(const qdq_explanation *);
    size_t (*explanation_n_parts)(const qdq_explanation *);
    const qdq_explain_op *(*explanation_op)(const qdq_explanation *, size_t);
    const qdq_explain_part *(*explanation_part)(const qdq_explanation *, size_t);
    size_t (*backend_n_reasons)(void);
    qdq_status (*backend_reason)(size_t, qdq_reason_info *, qdq_error *);
    qdq_status (*backend_pattern_info)(size_t, qdq_pattern_info *, qdq_error *);
    bool (*backend_pattern_set)(size_t, const char **, const char **);
    qdq_status (*compiled_run)(const qdq_compiled *, const void *const *, size_t, void *const *, size_t, qdq_error *);
};

#ifdef __cplusplus
}
#endif
#endif /* QDQ_QDQ_H */
