/* The graph IR: ops and values (edges) in two arrays, linked by index. Built through the public API, checked by finalize, then
 * immutable and reference counted. */
#ifndef QDQI_GRAPH_H
#define QDQI_GRAPH_H

#include "base/arena.h"
#include "ir/schema.h"

#ifdef __cplusplus
typedef unsigned qdqi_refs; /* the tests, which are C++, only read the struct */
#else
#include <stdatomic.h>
typedef atomic_uint qdqi_refs;
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define QDQI_NONE UINT32_MAX /* no op, no value: a missing optional input, a graph input's producer */

typedef struct qdqi_use {
    uint32_t op;
    uint32_t port;
} qdqi_use;

typedef struct qdqi_value {
    qdq_tensor_desc desc; /* desc.id is the public id */
    uint32_t producer;    /* op index or QDQI_NONE */
    uint32_t producer_port;
    uint32_t n_uses;
    qdqi_use *uses;   /* in topological order of the consumers */
    const void *data; /* content of a constant, laid out as desc says (dense after a fold); else NULL */
    size_t data_bytes;
    bool is_input, is_output; /* of the graph */
    const char *name;         /* "" when not named */
} qdqi_value;

typedef struct qdqi_op {
    uint64_t id;
    qdqi_kind kind;
    const qdqi_schema *schema;
    const char *name;
    qdqi_attr *attrs; /* parallel to schema->attrs */
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* value indices; QDQI_NONE for a missing optional input */
    bool folded;        /* finalize computed its outputs; it takes no part in partitions */
} qdqi_op;

struct qdq_graph {
    qdqi_refs refs;
    qdqi_arena arena;
    qdqi_op *ops;
    uint32_t n_ops, cap_ops;
    qdqi_value *values;
    uint32_t n_values, cap_values;
    struct qdqi_idmap *op_ids, *value_ids; /* id -> index */
    uint32_t *topo;                        /* op indices in topological order (stable: by op index among ready ones) */
    uint32_t *inputs, *outputs;            /* value indices */
    uint32_t n_inputs, n_outputs;
    bool inputs_named, outputs_named;
    bool finalized;
    const qdq_error *link_error; /* the first conflict between ops, found while adding and reported by finalize */
    void **owned;                /* copies of constants (aligned) */
    uint32_t n_owned, cap_owned;
};

/* Computes one op on constant inputs: given by the room that knows how (ref). `out_data[i]` are dense buffers to fill. */
typedef qdq_status (*qdqi_fold_fn)(const struct qdq_graph *graph, const qdqi_op *op, void *const *out_data,
                                   qdq_error *err);

qdq_status qdqi_graph_create(qdq_graph **graph_out, qdq_error *err);
void qdqi_graph_retain(const qdq_graph *graph);
void qdqi_graph_release(const qdq_graph *graph); /* NULL is legal */
qdq_status qdqi_graph_add_op(qdq_graph *graph, const qdq_op *op, qdq_error *err);
qdq_status qdqi_graph_set_constant(qdq_graph *graph, const qdq_tensor_desc *desc, const void *data, size_t bytes,
                                   qdq_data_mode mode, qdq_error *err);
qdq_status qdqi_graph_set_ports(qdq_graph *graph, const uint64_t *ids, size_t n, bool outputs, qdq_error *err);
qdq_status qdqi_graph_set_tensor_name(qdq_graph *graph, uint64_t id, const char *name, qdq_error *err);
/* `fold` may be NULL: nothing is folded then. */
qdq_status qdqi_graph_finalize(qdq_graph *graph, qdqi_fold_fn fold, qdq_error *err);
/* Index of the value or op with a public id, or QDQI_NONE. */
uint32_t qdqi_graph_value(const qdq_graph *graph, uint64_t id);
uint32_t qdqi_graph_op(const qdq_graph *graph, uint64_t id);

/* Re-run dtype and shape rules of one op on other descriptors (partition compile with other shapes). `in`/`out` as in
 * qdqi_infer_ctx. */
qdq_status qdqi_op_infer(const qdq_graph *graph, const qdqi_op *op, const qdq_tensor_desc *const *in,
                         qdq_tensor_desc *const *out, qdq_error *err);

/* ---- attribute access: the attribute must be in the op's schema (an assert otherwise) ---- */
const qdqi_attr *qdqi_op_attr(const qdqi_op *op, qdqi_attr_name name);
/* NULL when the schema has no such attribute or the attribute has no value. */
const qdqi_attr *qdqi_op_attr_or_null(const qdqi_op *op, qdqi_attr_name name);
float qdqi_op_f32(const qdqi_op *op, qdqi_attr_name name);
int64_t qdqi_op_s64(const qdqi_op *op, qdqi_attr_name name);
bool qdqi_op_bool(const qdqi_op *op, qdqi_attr_name name);
const char *qdqi_op_str(const qdqi_op *op, qdqi_attr_name name);
bool qdqi_op_str_is(const qdqi_op *op, qdqi_attr_name name, const char *value);
/* A list and its length (0 and NULL when absent). */
const int64_t *qdqi_op_s64s(const qdqi_op *op, qdqi_attr_name name, uint32_t *n_out);
const float *qdqi_op_f32s(const qdqi_op *op, qdqi_attr_name name, uint32_t *n_out);

/* `a` and `b` of an elementwise unary op, as its row in unary.def says. */
void qdqi_op_unary_ab(const qdqi_op *op, float *a_out, float *b_out);

/* Spatial attributes of conv and pool ops, resolved: auto_pad applied, defaults filled, per spatial dim in order. */
typedef struct qdqi_spatial {
    int32_t n; /* spatial dims */
    bool nxc;  /* data_format NXC: dims are N, spatial…, C */
    int64_t kernel[QDQ_MAX_NDIMS], strides[QDQ_MAX_NDIMS], dilations[QDQ_MAX_NDIMS]; /* dilation 1 = dense */
    int64_t pads_begin[QDQ_MAX_NDIMS], pads_end[QDQ_MAX_NDIMS], output_padding[QDQ_MAX_NDIMS];
    int64_t groups;
    /* weights (conv): position of output channels and input channels per group and the first spatial dim */
    int32_t w_oc_dim, w_ic_dim, w_sp_dim;
    bool ceil_mode;
} qdqi_spatial;
/* For Convolution, ConvTranspose, AvgPool, MaxPool, GlobalAveragePool, … `src`/`weights` descriptors with known dims
 * (weights NULL for pools). */
qdq_status qdqi_op_spatial(const qdqi_op *op, const qdq_tensor_desc *src, const qdq_tensor_desc *weights,
                           qdqi_spatial *out, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
