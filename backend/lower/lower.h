/* Lowering: partitions to plan steps. Private to lower/ and api/.
 *
 * One context serves a whole session or one compiled partition. It knows for every value its concrete descriptor and where its
 * data is: a plan buffer, or constant content. Recipes read values with qdqi_lower_read*, claim outputs with
 * qdqi_lower_write, append steps, and close outputs with qdqi_lower_written. */
#ifndef QDQI_LOWER_H
#define QDQI_LOWER_H

#include "ir/desc.h"
#include "lower/choice.h"
#include "lower/notes.h"
#include "lower/recipe.h"
#include "onednn/onednn.h"
#include "runtime/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a value is while lowering. */
typedef struct qdqi_lval {
    uint32_t value;       /* index in the graph */
    qdq_tensor_desc desc; /* dims and dtype concrete; strides of the data at `buf` (or `data`) */
    qdqi_buf buf;         /* QDQI_NO_BUF until a step makes it */
    const void *data;     /* constant content in desc's layout, or NULL */
    bool is_port_out;     /* an output of the plan … */
    bool port_any;        /* … whose layout the recipe may choose */
    bool port_done;       /* … and that a step has written */
    uint32_t port;
    qdq_tensor_desc port_desc; /* layout the caller sees */
} qdqi_lval;

typedef struct qdqi_lower {
    const qdq_graph *graph;
    qdq_engine *engine;
    qdqi_plan *plan;
    qdqi_lval *vals; /* ascending by value index */
    uint32_t n_vals;
    qdqi_lval **extra; /* values that the graph does not have: index graph->n_values + i */
    uint32_t n_extra, cap_extra;
    uint32_t part;       /* of the steps being appended */
    bool reference_only; /* every op on the reference provider */
    qdqi_arena arena;    /* qparams and other things of compile time */
    qdqi_arena scratch;  /* of the partition being lowered */
    uint32_t depth;      /* partitions inside of partitions */
    void **folded;       /* constant results made at compile */
    uint32_t n_folded, cap_folded;
    uint32_t *journal; /* values made since the last mark */
    uint32_t n_journal, cap_journal;
    uint32_t op;       /* being lowered on its own, or QDQI_NONE */
    qdqi_notes *notes; /* for an explanation; NULL: none are kept */
} qdqi_lower;

/* Lower one partition: its recipe, or when that refuses, its ops one by one. */
qdq_status qdqi_lower_part(qdqi_lower *lw, const qdqi_part *part, qdq_error *err);
/* Lower one op with the first candidate that accepts (folds it when all its inputs are constants). */
qdq_status qdqi_lower_op(qdqi_lower *lw, uint32_t op, qdq_error *err);
/* Copy to output ports that no step wrote (an output that is an input, a constant, or in another layout). */
qdq_status qdqi_lower_finish_ports(qdqi_lower *lw, qdq_error *err);
void qdqi_lower_free(qdqi_lower *lw);

/* Zeroed memory for a recipe's own state, until the outermost partition is lowered: a graph may have a million of them. */
void *qdqi_lower_scratch(qdqi_lower *lw, size_t bytes);

/* ---- values ---- */
qdqi_lval *qdqi_lower_val(qdqi_lower *lw, uint32_t value); /* never NULL for a value of the partitions being lowered */
/* A value of lowering's own (the integers behind a reshaped Dequantize, say); its index through value_out. */
qdq_status qdqi_lower_new_value(qdqi_lower *lw, const qdq_tensor_desc *desc, uint32_t *value_out, qdq_error *err);
/* Make `value` if nothing has made it yet: lowers the ops that it depends on, as far back as needed. */
qdq_status qdqi_lower_make(qdqi_lower *lw, uint32_t value, qdq_error *err);
/* A buffer with the value in the layout of its descriptor; constants become CONST buffers. */
qdq_status qdqi_lower_read(qdqi_lower *lw, uint32_t value, qdqi_buf *buf_out, qdq_error *err);
/* The same in the layout of `want` (dims and dtype equal, strides differ): reordered by a step, or at compile for constants. */
qdq_status qdqi_lower_read_as(qdqi_lower *lw, uint32_t value, const qdq_tensor_desc *want, qdqi_buf *buf_out,
                              qdq_error *err);
/* The layout in which `value` is best written when the recipe has no wish of its own: the port's, else dense. */
void qdqi_lower_out_layout(qdqi_lower *lw, uint32_t value, qdq_tensor_desc *desc_out);
/* Claim an output with the strides of `layout`. */
qdq_status qdqi_lower_write(qdqi_lower *lw, uint32_t value, const qdq_tensor_desc *layout, qdqi_buf *buf_out,
                            qdq_error *err);
/* The steps that write it are appended: bring it to its port when it is one with another layout. */
qdq_status qdqi_lower_written(qdqi_lower *lw, uint32_t value, qdq_error *err);
/* The value is `base` reinterpreted (same bytes). */
qdq_status qdqi_lower_alias(qdqi_lower *lw, uint32_t value, uint32_t base, qdq_error *err);
/* The value is the bytes of `base` in the dims and strides that its own descriptor says. */
qdq_status qdqi_lower_see(qdqi_lower *lw, uint32_t value, uint32_t base, qdq_error *err);

/* ---- constants and small steps ---- */
qdq_status qdqi_lower_const(qdqi_lower *lw, const void *data, size_t bytes, qdqi_buf *buf_out, qdq_error *err);
qdq_status qdqi_lower_temp(qdqi_lower *lw, const qdq_tensor_desc *desc, qdqi_buf *buf_out, qdq_error *err);
/* dst = convert(src) element by element: other strides, other dtype (rounded and saturated). */
qdq_status qdqi_lower_convert(qdqi_lower *lw, qdqi_buf src, const qdq_tensor_desc *src_desc, qdqi_buf dst,
                              const qdq_tensor_desc *dst_desc, qdq_error *err);
/* dst = src ^ 0x80 per byte: u8 to s8 and back, for packed buffers of n bytes. */
qdq_status qdqi_lower_flip_sign(qdqi_lower *lw, qdqi_buf src, qdqi_buf dst, size_t n, qdq_error *err);
/* Run `op` on the reference provider as a step. */
qdq_status qdqi_lower_reference(qdqi_lower *lw, uint32_t op, qdq_error *err);
/* The same on the values `in`/`out` in place of the op's own: for ops that only move data, on integers. */
qdq_status qdqi_lower_reference_on(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, const uint32_t *out,
                                   qdq_error *err);

/* Plain conversion of strided tensors, at compile time. */
void qdqi_convert_elems(const qdq_tensor_desc *src_desc, const void *src, const qdq_tensor_desc *dst_desc, void *dst);

/* ---- oneDNN helpers ---- */
/* Multiplications of a product below which a second thread costs more than it brings (2 us of VNNI work). */
#define QDQI_GRAIN_MACS 2e5
void qdqi_md_of(const qdq_tensor_desc *desc, qdqi_dnnl_md *md);
/* perm[i]: which dim of desc becomes dim i of md */
void qdqi_md_permuted(const qdq_tensor_desc *desc, const int32_t *perm, qdqi_dnnl_md *md);
/* Put dims of size 1 in front (or drop none): rank becomes `ndims`. */
void qdqi_md_unsqueeze_front(qdqi_dnnl_md *md, int32_t ndims);
/* Row-major without gaps; strides of dims of 1 set aside. */
bool qdqi_md_is_row_major(const qdqi_dnnl_md *md);
/* The stride of a dim of 1 says nothing, but oneDNN 3.7.2 reckons with it (it sorts dims by their strides, and takes that of a
 * softmax' axis for the size of what is inside): it becomes the usual one when row-major, else one beyond all others. */
void qdqi_md_unit_strides(qdqi_dnnl_md *md);

typedef struct qdqi_args {
    uint32_t n;
    struct {
        qdqi_dnnl_arg arg;
        qdqi_buf buf;
    } rows[QDQI_DNNL_MAX_POSTS + 64];
} qdqi_args;
void qdqi_args_add(qdqi_args *args, qdqi_dnnl_arg arg, qdqi_buf buf);
/* Append the primitive as a step with these buffers (scratch is added). Owns `prim`, on failure too. */
qdq_status qdqi_lower_prim(qdqi_lower *lw, qdqi_dnnl_prim *prim, const qdqi_args *args, qdq_error *err);
/* Pack constant content (strided `md`) into the layout that prim chose for `arg`; flip: ^0x80 each byte first. */
qdq_status qdqi_lower_pack(qdqi_lower *lw, const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *md,
                           const void *data, size_t data_bytes, bool flip, qdqi_buf *buf_out, qdq_error *err);
/* A candidate's way to say "not I": the next one is tried. */
static inline bool qdqi_is_refusal(qdq_status status) {
    return status == QDQ_E_UNSUPPORTED || status == QDQ_E_NO_ONEDNN;
}
/* Refusal: logs the reason, notes it in the context that this thread is lowering (qdqi_lower_part), and returns
 * QDQ_E_UNSUPPORTED. `who` is static; `why` is a word of why.def. */
qdq_status qdqi_refuse(qdq_error *err, const char *who, const char *why);

#ifdef __cplusplus
}
#endif
#endif
