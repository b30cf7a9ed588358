/* A JSON graph between text and graph object: what was read, with the rewrites applied.
 *
 *     text --read--> case --rewrite--> case --build--> qdq_graph
 *
 * The case keeps the parsed document and the text, so that an error found at any later step still names line and column. */
#ifndef QDQI_JSON_CASE_H
#define QDQI_JSON_CASE_H

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_json_attr {
    const char *name;
    char type;       /* 'f' f32, 'F' f32[], 'i' s64, 'I' s64[], 'b' bool, 's' string */
    bool overridden; /* set by op_attrs: later adaptations leave it alone */
    size_t n;        /* elements of a list */
    union {
        float f32;
        int64_t s64;
        bool boolean;
        const char *str;
        float *f32s;
        int64_t *s64s;
    } v;
} qdqi_json_attr;

typedef struct qdqi_json_op {
    uint64_t id;
    const char *name, *kind;
    qdqi_json_attr *attrs;
    size_t n_attrs, cap_attrs;
    qdq_tensor_desc *in, *out;
    size_t n_in, n_out;
} qdqi_json_op;

typedef struct qdqi_json_case {
    qdqi_arena arena; /* owns everything below but root */
    const char *file; /* for messages */
    const char *text; /* borrowed from the caller, or in `owned_text` */
    size_t n_text;
    char *owned_text;
    void *root; /* json_t */
    qdqi_json_op *ops;
    size_t n_ops;
} qdqi_json_case;

/* The rewrites of qdq_json_options, and op_kind "ID:KIND+ID:KIND". NULL or "": none. */
typedef struct qdqi_json_rewrites {
    const char *in_shapes, *op_attrs, *dt, *op_kind;
    int64_t mb;
    bool skip_strangers; /* in_shapes may name tensors that are no graph inputs, as in benchdnn's own batch files */
} qdqi_json_rewrites;

/* Parse `text`, which must outlive the case. `file` goes into messages. Errors: JSON with "file:line:col: ". */
qdq_status qdqi_json_case_read(const char *file, const char *text, size_t bytes, qdqi_json_case **case_out,
                               qdq_error *err);
/* The same from a file. Errors: IO too. */
qdq_status qdqi_json_case_read_file(const char *path, qdqi_json_case **case_out, qdq_error *err);
void qdqi_json_case_free(qdqi_json_case **c);

/* Apply rewrites in benchdnn's order: kinds, data types, shapes, mb, attributes; then adapt what depends on shapes
 * (see json_rewrite.c). Errors: BAD_ARG for a rewrite that cannot be read or names nothing in the graph; the errors of
 * shape inference when the rewritten graph does not fit together. */
qdq_status qdqi_json_case_rewrite(qdqi_json_case *c, const qdqi_json_rewrites *rewrites, qdq_error *err);
/* Build a graph that is not finalized. Errors of qdq_graph_add_op with "file:line:col: " of the op. */
qdq_status qdqi_json_case_graph(const qdqi_json_case *c, qdq_graph **graph_out, qdq_error *err);

/* NULL when the op has no such attribute. */
qdqi_json_attr *qdqi_json_find_attr(const qdqi_json_op *op, const char *name);
/* A new attribute of the op, zeroed but for its name; NULL when out of memory. */
qdqi_json_attr *qdqi_json_add_attr(qdqi_json_case *c, qdqi_json_op *op, const char *name);
/* Put "file:line:col: " of op number `i` in front of the text of `err`. */
qdq_status qdqi_json_fail_at_op(const qdqi_json_case *c, size_t i, qdq_status status, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
