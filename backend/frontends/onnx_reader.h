/* The ONNX reader's own contract: what its files share. The way of a model:
 *
 *     onnx_load.c    file -> protobuf message -> graph inputs, initializers -> node by node -> finalized qdq_graph
 *     onnx_ops.c     the table: (domain, op type, opset range) -> converter, libqdq kind, attributes
 *     onnx_conv_*.c  converters of ops that are more than a change of names
 *     onnx_emit.c    building libqdq ops with one sticky error
 *     onnx_tensor.c  TensorProto in all its forms -> dense little-endian content
 */
#ifndef QDQI_ONNX_READER_H
#define QDQI_ONNX_READER_H

#include "base/alloc.h"
#include "base/arena.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"

#include "onnx.pb-c.h"

/* Names longer than this are cut in messages. */
#define QDQI_ONNX_NAME     "%.120s"

#define QDQI_ONNX_NO_ALIAS UINT32_MAX

/* One tensor name of the model. */
typedef struct qdqi_onnx_value {
    const char *name; /* borrowed from the message, or from the arena */
    /* known before inference: all of constants and graph inputs, else often only the id */
    qdq_tensor_desc desc;
    const char *shown; /* what the graph calls it, when that is not `name` */
    bool is_input;
    bool is_output;
    bool is_constant;
    bool is_used;         /* an emitted op reads or writes it */
    bool is_made;         /* an emitted op writes it */
    const char *producer; /* name of the node that makes it, or NULL */
    uint32_t alias;       /* index of the value that this is only another name of */
    /* content of a constant: `proto` until it is decoded, then `data` (dense), owned through `owned` or by the message */
    Onnx__TensorProto *proto;
    const void *data;
    size_t bytes;
    void *owned;
} qdqi_onnx_value;

typedef struct qdqi_onnx_reader {
    const Onnx__ModelProto *model;
    Onnx__GraphProto *graph;
    const qdq_onnx_options *options;
    const char *folder; /* of external data; NULL: refused */
    qdq_graph *out;
    qdqi_arena arena;
    ProtobufCAllocator allocator;
    qdqi_onnx_value *values;
    size_t n_values, cap_values;
    uint32_t *slots; /* name -> value index + 1, open addressing */
    size_t n_slots;
    uint64_t next_op_id;
    int64_t opset; /* of the default domain */
    qdq_dim_binding *dims;
    size_t n_dims;
    qdq_error *err;
} qdqi_onnx_reader;

/* ---- values ---- */

/* The value of a name, made when it is new; NULL when out of memory. Pointers live until the next call that makes one: keep indices
 * across calls. */
qdqi_onnx_value *qdqi_onnx_value_of(qdqi_onnx_reader *r, const char *name);
/* NULL when there is none */
qdqi_onnx_value *qdqi_onnx_find(const qdqi_onnx_reader *r, const char *name);
/* Decode a constant's content if it is not yet. */
qdq_status qdqi_onnx_content(qdqi_onnx_reader *r, qdqi_onnx_value *value);

/* ---- tensors ---- */

/* dtype, dims and dense layout of a TensorProto. `what` names the tensor in messages. */
qdq_status qdqi_onnx_tensor_desc(const Onnx__TensorProto *t, const char *what, qdq_tensor_desc *desc_out,
                                 qdq_error *err);
/* Its content: a pointer into the message when the content lies there as we need it, else `*owned_out` (qdqi_free) too. Typed
 * fields are released as they are converted. */
qdq_status qdqi_onnx_tensor_data(const qdqi_onnx_reader *r, Onnx__TensorProto *t, const char *what,
                                 const qdq_tensor_desc *desc, const void **data_out, void **owned_out, qdq_error *err);
/* ONNX TensorProto.DataType number to ours; UNDEF when there is none. */
qdq_dtype qdqi_onnx_dtype(int64_t data_type);
const char *qdqi_onnx_dtype_text(int64_t data_type);
/* A whole file; freed with qdqi_free. */
qdq_status qdqi_onnx_read_file(const char *path, int64_t offset, int64_t length, void **data_out, size_t *bytes_out,
                               qdq_error *err);

/* ---- nodes ---- */

struct qdqi_onnx_row;
struct qdqi_onnx_emit;

typedef struct qdqi_onnx_node {
    qdqi_onnx_reader *r;
    const Onnx__NodeProto *proto;
    const struct qdqi_onnx_row *row;
    const char *name; /* never empty */
    int64_t opset;    /* of the node's domain */
    uint64_t read; /* bit i: attribute i was looked at; what nobody looks at is an error, not a silent wrong answer */
    qdq_error *err;
} qdqi_onnx_node;

typedef qdq_status (*qdqi_onnx_convert_fn)(qdqi_onnx_node *n);

/* A row of the table. */
typedef struct qdqi_onnx_row {
    const char *op_type;
    const char *domain; /* "" or "com.microsoft" */
    int since, until;   /* opsets, inclusive */
    int min_in, max_in, max_out;
    qdqi_onnx_convert_fn convert;
    const char *kind; /* libqdq kind for converters that take it from the row */
    const char *attrs; /* for qdqi_onnx_simple: "onnx_name>our_name:type=default …"; type f i b s I F; b: an ONNX int */
    int arg;           /* for the converter */
} qdqi_onnx_row;

/* The row of an op at an opset; NULL when there is none. */
const qdqi_onnx_row *qdqi_onnx_row_of(const char *domain, const char *op_type, int64_t opset);
/* The attributes that the row lists. */
qdq_status qdqi_onnx_put_row_attrs(struct qdqi_onnx_emit *e);
/* Same kind, inputs, outputs; attributes as the row says. */
qdq_status qdqi_onnx_simple(qdqi_onnx_node *n);

/* Fail with the node's name and op type in front. */
qdq_status qdqi_onnx_bad(qdqi_onnx_node *n, const char *fmt, ...) QDQI_PRINTF(2, 3);

/* Inputs and outputs; "" names count as missing. */
bool qdqi_onnx_has_in(const qdqi_onnx_node *n, size_t i);
bool qdqi_onnx_has_out(const qdqi_onnx_node *n, size_t i);
const char *qdqi_onnx_in(const qdqi_onnx_node *n, size_t i);
const char *qdqi_onnx_out(const qdqi_onnx_node *n, size_t i);
/* Rank and dtype of an input as far as known now: QDQ_NDIMS_UNKNOWN, UNDEF. */
int32_t qdqi_onnx_in_rank(const qdqi_onnx_node *n, size_t i);
qdq_dtype qdqi_onnx_in_dtype(const qdqi_onnx_node *n, size_t i);
bool qdqi_onnx_in_is_const(const qdqi_onnx_node *n, size_t i);

/* Attributes. A wrong type is an error. */
const Onnx__AttributeProto *qdqi_onnx_attr(qdqi_onnx_node *n, const char *name);
qdq_status qdqi_onnx_attr_i(qdqi_onnx_node *n, const char *name, int64_t fallback, int64_t *out);
qdq_status qdqi_onnx_attr_f(qdqi_onnx_node *n, const char *name, float fallback, float *out);
/* `*out` lives in the arena; `fallback` may be NULL. */
qdq_status qdqi_onnx_attr_s(qdqi_onnx_node *n, const char *name, const char *fallback, const char **out);
/* `*n_out` is -1 when the attribute is absent. */
qdq_status qdqi_onnx_attr_ints(qdqi_onnx_node *n, const char *name, const int64_t **out, int64_t *n_out);

/* Content of a constant input as integers or floats (in the arena). An input that is no constant is an error that says so. */
qdq_status qdqi_onnx_in_ints(qdqi_onnx_node *n, size_t i, const int64_t **out, int64_t *n_out);
qdq_status qdqi_onnx_in_floats(qdqi_onnx_node *n, size_t i, const float **out, int64_t *n_out);

/* ---- emitting: the first failure sticks, later calls do nothing, _end reports it ---- */

typedef struct qdqi_onnx_emit {
    qdqi_onnx_node *n;
    qdq_op *op;
    qdq_status st;
} qdqi_onnx_emit;

qdqi_onnx_emit qdqi_onnx_begin(qdqi_onnx_node *n, const char *kind);
/* By tensor name; "" or NULL is a missing optional input. */
void qdqi_onnx_put_in(qdqi_onnx_emit *e, const char *name);
/* Inputs [from, to) of the node; trailing missing ones are left out. */
void qdqi_onnx_put_ins(qdqi_onnx_emit *e, size_t from, size_t to);
void qdqi_onnx_put_out(qdqi_onnx_emit *e, const char *name);
void qdqi_onnx_put_f32(qdqi_onnx_emit *e, const char *name, float v);
void qdqi_onnx_put_s64(qdqi_onnx_emit *e, const char *name, int64_t v);
void qdqi_onnx_put_s64s(qdqi_onnx_emit *e, const char *name, const int64_t *v, size_t n);
void qdqi_onnx_put_f32s(qdqi_onnx_emit *e, const char *name, const float *v, size_t n);
void qdqi_onnx_put_bool(qdqi_onnx_emit *e, const char *name, bool v);
void qdqi_onnx_put_str(qdqi_onnx_emit *e, const char *name, const char *v);
/* Known rank and dtype of an output made by this node (a promise that inference will check). */
void qdqi_onnx_know(qdqi_onnx_node *n, const char *name, int32_t ndims, qdq_dtype dtype);
/* As above, with the rank of tensor `like`, and its dims when it is a constant. */
void qdqi_onnx_know_like(qdqi_onnx_node *n, const char *name, const char *like, qdq_dtype dtype);
qdq_status qdqi_onnx_end(qdqi_onnx_emit *e);

/* A new name for a tensor between two ops of one node: "<output>/<tag>", unique. NULL when out of memory. */
const char *qdqi_onnx_temp(qdqi_onnx_node *n, const char *tag);
/* A new constant; the content is copied. NULL when out of memory. */
const char *qdqi_onnx_const(qdqi_onnx_node *n, const char *tag, qdq_dtype dtype, int32_t ndims, const int64_t *dims,
                            const void *data);
const char *qdqi_onnx_const_f32(qdqi_onnx_node *n, const char *tag, float v);                         /* rank 0 */
const char *qdqi_onnx_const_s64s(qdqi_onnx_node *n, const char *tag, const int64_t *v, size_t count); /* rank 1 */

#endif
