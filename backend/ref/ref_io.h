/* How a reference function sees its tensors: dense row-major arrays of one compute type, whatever dtype and strides are.
 *
 * A reference function has two halves. The first asks for all its arrays (inputs, outputs, temporaries); then QDQI_REF_READY;
 * the second computes. qdqi_ref_scratch_bytes runs the first half only, so that the bound and the use are one piece of
 * code. The first half may look at descriptors and attributes, never at data. Arrays are zero-copy where the tensor is
 * dense and of the compute type already. Outputs are converted and scattered when the function has returned QDQ_OK. */
#ifndef QDQI_REF_IO_H
#define QDQI_REF_IO_H

#include "ref/ref.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compute types. RAW: the stored bytes, one element per byte for 4-bit types (unpacked codes). */
typedef enum qdqi_ref_type {
    QDQI_REF_F32,
    QDQI_REF_F64,
    QDQI_REF_I32, /* saturates what does not fit */
    QDQI_REF_I64,
    QDQI_REF_RAW
} qdqi_ref_type;

enum { QDQI_REF_MAX_PENDING = 8 };

typedef struct qdqi_ref_ctx {
    const qdqi_op *op;
    uint32_t n_in, n_out;
    const qdqi_ref_tensor *in, *out;
    qdq_error *err;
    unsigned char *scratch; /* NULL while measuring */
    size_t used, peak, capacity;
    bool measuring;
    qdq_status status; /* sticky: the first failure of an accessor */
    uint32_t n_pending;
    struct {
        uint32_t port;
        qdqi_ref_type type;
        const void *dense;
    } pending[QDQI_REF_MAX_PENDING];
} qdqi_ref_ctx;

typedef qdq_status (*qdqi_ref_fn)(qdqi_ref_ctx *c);

#define QDQI_REF_READY(c)                                                                                              \
    do {                                                                                                               \
        if ((c)->status != QDQ_OK) return (c)->status;                                                                 \
        if ((c)->measuring) return QDQ_OK;                                                                             \
    } while (0)

/* An optional port that is there. */
bool qdqi_ref_has_in(const qdqi_ref_ctx *c, uint32_t port);
bool qdqi_ref_has_out(const qdqi_ref_ctx *c, uint32_t port);
/* Descriptor of a port; NULL when missing. */
const qdq_tensor_desc *qdqi_ref_in_desc(const qdqi_ref_ctx *c, uint32_t port);
const qdq_tensor_desc *qdqi_ref_out_desc(const qdqi_ref_ctx *c, uint32_t port);

/* Inputs. NULL when the port is missing (and while measuring); never NULL for a zero-size tensor at run. */
const void *qdqi_ref_in(qdqi_ref_ctx *c, uint32_t port, qdqi_ref_type type);
const float *qdqi_ref_in_f32(qdqi_ref_ctx *c, uint32_t port);
const double *qdqi_ref_in_f64(qdqi_ref_ctx *c, uint32_t port);
const int32_t *qdqi_ref_in_i32(qdqi_ref_ctx *c, uint32_t port);
const int64_t *qdqi_ref_in_i64(qdqi_ref_ctx *c, uint32_t port);
const unsigned char *qdqi_ref_in_raw(qdqi_ref_ctx *c, uint32_t port);

/* Outputs, to be filled completely. Float -> integer dtype: half-even, saturated, NaN gives 0. */
void *qdqi_ref_out(qdqi_ref_ctx *c, uint32_t port, qdqi_ref_type type);
float *qdqi_ref_out_f32(qdqi_ref_ctx *c, uint32_t port);
double *qdqi_ref_out_f64(qdqi_ref_ctx *c, uint32_t port);
int32_t *qdqi_ref_out_i32(qdqi_ref_ctx *c, uint32_t port);
int64_t *qdqi_ref_out_i64(qdqi_ref_ctx *c, uint32_t port);
unsigned char *qdqi_ref_out_raw(qdqi_ref_ctx *c, uint32_t port);

/* A temporary of n elements, 64-byte aligned, not initialised. */
void *qdqi_ref_temp(qdqi_ref_ctx *c, int64_t n, size_t size);
/* Give back everything asked for since the mark (variadic ops: one port at a time). Only for inputs, temporaries, and
 * outputs written by qdqi_ref_put. */
size_t qdqi_ref_mark(const qdqi_ref_ctx *c);
void qdqi_ref_release(qdqi_ref_ctx *c, size_t mark);
/* Write a dense array into an output at once (ops with any number of outputs). */
void qdqi_ref_put(qdqi_ref_ctx *c, uint32_t port, qdqi_ref_type type, const void *dense);

/* ---- used by the dispatcher and the executor ---- */

/* A tensor to a dense array of `type`, and back. Layouts other than STRIDED count as dense. */
void qdqi_ref_to_dense(const qdq_tensor_desc *desc, const void *data, qdqi_ref_type type, void *dense_out);
void qdqi_ref_from_dense(const qdq_tensor_desc *desc, void *data, qdqi_ref_type type, const void *dense);
/* Copy between two layouts of the same dims and dtype. */
void qdqi_ref_relayout(const qdq_tensor_desc *dst_desc, void *dst, const qdq_tensor_desc *src_desc, const void *src);
/* Run `fn`'s two halves as the context says, then write pending outputs. */
qdq_status qdqi_ref_call(qdqi_ref_ctx *c, qdqi_ref_fn fn);

/* ---- small helpers of the families ---- */

/* Bytes of an element of a RAW array. */
size_t qdqi_ref_raw_bytes(qdq_dtype dtype);
/* Product of dims [from, to). */
int64_t qdqi_ref_count(const qdq_tensor_desc *desc, int32_t from, int32_t to);
/* Axis of the op's attribute, normalised; the schema's check has refused what does not fit, this refuses again. */
qdq_status qdqi_ref_axis(qdqi_ref_ctx *c, int64_t axis, int32_t ndims, int32_t *axis_out);
/* Failure text with the op in front: "MatMul op 7 (name): …". */
qdq_status qdqi_ref_fail(qdqi_ref_ctx *c, qdq_status status, const char *fmt, ...) QDQI_PRINTF(3, 4);
/* The wider of f32 and f64: F64 when one of the first `n` inputs or the output 0 is f64. */
qdqi_ref_type qdqi_ref_float_type(const qdqi_ref_ctx *c, uint32_t n);

/* Walk the elements of a shape in row-major order with up to 4 running offsets, one last-dim row at a time.
 *
 *     for (qdqi_ref_rows r = qdqi_ref_rows_of(ndims, dims); qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) … r.off[i]
 *
 * strides[i] (per dim) may be 0 for a broadcast dim. Row length is r.n, the step within a row r.step[i]. */
typedef struct qdqi_ref_rows {
    int32_t ndims; /* without the last */
    int32_t n_offsets;
    int64_t n, n_rows, row;
    int64_t dims[QDQ_MAX_NDIMS], idx[QDQ_MAX_NDIMS];
    int64_t strides[4][QDQ_MAX_NDIMS];
    int64_t off[4], step[4];
} qdqi_ref_rows;
void qdqi_ref_rows_init(qdqi_ref_rows *r, int32_t ndims, const int64_t *dims);
/* Add an offset; `strides` per dim of the walked shape. */
void qdqi_ref_rows_add(qdqi_ref_rows *r, int32_t ndims, const int64_t *strides);
/* Add an offset of a dense tensor that broadcasts (numpy) to the walked shape. */
void qdqi_ref_rows_add_broadcast(qdqi_ref_rows *r, int32_t ndims, const qdq_tensor_desc *desc);
bool qdqi_ref_row_ok(const qdqi_ref_rows *r);
void qdqi_ref_row_next(qdqi_ref_rows *r);

#ifdef __cplusplus
}
#endif
#endif
