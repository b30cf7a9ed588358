/* Ops that only move data: views where the bytes already lie right, else strided copies. Any data type of whole bytes. */
#include "base/dtype.h"
#include "lower/single.h"

#include <string.h>

/* Elements of a dense 4-bit tensor share bytes: no views into the middle of one. */
static bool whole_bytes(qdq_dtype dtype) {
    return qdq_dtype_bits(dtype) >= 8;
}

static qdq_status shape_only(qdqi_lower *lw, uint32_t in, uint32_t out, qdq_error *err) {
    const qdqi_lval *src = qdqi_lower_val(lw, in);
    qdqi_lval *dst = qdqi_lower_val(lw, out);
    if (qdqi_is_dense(&src->desc)) return qdqi_lower_alias(lw, out, in, err);
    if (qdqi_same_dims(&src->desc, &dst->desc)) { /* Reorder, Identity: as it lies */
        memcpy(dst->desc.strides, src->desc.strides, sizeof dst->desc.strides);
        dst->desc.layout = QDQ_LAYOUT_STRIDED;
        return qdqi_lower_see(lw, out, in, err);
    }
    if (src->data != NULL) return qdqi_refuse(err, "reshape", "strided_constant");
    qdq_tensor_desc dense = src->desc, layout = qdqi_lower_val(lw, out)->desc;
    qdqi_set_dense(&dense);
    qdqi_set_dense(&layout);
    qdqi_buf from, into;
    QDQI_TRY(qdqi_lower_read(lw, in, &from, err));
    QDQI_TRY(qdqi_lower_write(lw, out, &layout, &into, err));
    QDQI_TRY(qdqi_lower_convert(lw, from, &src->desc, into, &dense, err));
    return qdqi_lower_written(lw, out, err);
}

bool qdqi_transpose_perm(const qdqi_op *op, int32_t ndims, int32_t *perm) {
    uint32_t n;
    const int64_t *order = qdqi_op_s64s(op, QDQI_A_ORDER, &n);
    for (int32_t i = 0; i < ndims; i++) {
        perm[i] = ndims - 1 - i;
        if (n != 0 && (i >= (int32_t)n || !qdqi_norm_axis(order[i], ndims, &perm[i]))) return false;
    }
    return true;
}

/* The value's only reader multiplies matrices: it reads any two dims of which one is contiguous. */
static bool feeds_product(const qdqi_lower *lw, uint32_t value) {
    const qdqi_value *v = &lw->graph->values[value];
    return v->n_uses == 1 && lw->graph->ops[v->uses[0].op].kind == QDQI_OP_MATMUL;
}

/* out[i0, i1…] = in[perm]: a copy from a permuted view */
static qdq_status transpose(qdqi_lower *lw, const qdqi_op *op, uint32_t in, uint32_t out, qdq_error *err) {
    const qdqi_lval *src = qdqi_lower_val(lw, in);
    qdq_tensor_desc layout, view = src->desc;
    int32_t perm[QDQ_MAX_NDIMS];
    if (!qdqi_transpose_perm(op, view.ndims, perm)) return qdqi_refuse(err, "transpose", "order");
    for (int32_t i = 0; i < view.ndims; i++) {
        view.dims[i] = src->desc.dims[perm[i]];
        view.strides[i] = src->desc.strides[perm[i]];
    }
    qdqi_buf from, into;
    /* its only reader may well take it as it lies */
    qdqi_lval *lv = qdqi_lower_val(lw, out);
    const bool wanted = qdqi_is_dense(&view) || (out < lw->graph->n_values && feeds_product(lw, out));
    if (wanted && !lv->is_port_out && src->data == NULL) {
        memcpy(lv->desc.strides, view.strides, sizeof lv->desc.strides);
        lv->desc.layout = QDQ_LAYOUT_STRIDED;
        return qdqi_lower_see(lw, out, in, err);
    }
    qdqi_lower_out_layout(lw, out, &layout);
    QDQI_TRY(qdqi_lower_read(lw, in, &from, err));
    QDQI_TRY(qdqi_lower_write(lw, out, &layout, &into, err));
    QDQI_TRY(qdqi_lower_convert(lw, from, &view, into, &layout, err));
    return qdqi_lower_written(lw, out, err);
}

qdq_status qdqi_lower_view(qdqi_lower *lw, qdqi_buf whole, const qdq_tensor_desc *part, int64_t offset,
                           qdqi_buf *view_out, qdq_error *err) {
    int64_t span;
    if (!qdqi_span_elems(part, &span)) return qdqi_fail(err, QDQ_E_OVERFLOW, "a view's size overflows");
    const size_t elem = qdq_dtype_bits(part->dtype) / 8;
    return qdqi_plan_view(lw->plan, whole, (size_t)offset * elem, (size_t)span * elem, view_out, err);
}

static qdq_status concat(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, uint32_t out, qdq_error *err) {
    qdq_tensor_desc layout;
    qdqi_lower_out_layout(lw, out, &layout);
    const qdqi_lval *lv = qdqi_lower_val(lw, out);
    const qdq_tensor_desc *first = &qdqi_lower_val(lw, in[0])->desc;
    int32_t axis;
    if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_AXIS), layout.ndims, &axis)) return qdqi_refuse(err, "concat", "axis");
    if ((!lv->is_port_out || lv->port_any) && !qdqi_is_dense(first) && qdqi_is_packed(first)) {
        /* the inputs are channels-last: so is the output, then */
        qdq_tensor_desc last = layout;
        qdqi_set_channels_last(&last);
        qdq_tensor_desc probe = *first;
        qdqi_set_channels_last(&probe);
        if (qdqi_same_strides(&probe, first)) layout = last;
    }
    qdqi_buf into;
    QDQI_TRY(qdqi_lower_write(lw, out, &layout, &into, err));
    int64_t at = 0;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const qdqi_lval *src = qdqi_lower_val(lw, in[i]);
        if (qdqi_n_elems(&src->desc) != 0) {
            qdq_tensor_desc box = layout;
            memcpy(box.dims, src->desc.dims, sizeof box.dims);
            qdqi_buf from, view;
            QDQI_TRY(qdqi_lower_view(lw, into, &box, at * layout.strides[axis], &view, err));
            QDQI_TRY(qdqi_lower_read(lw, in[i], &from, err));
            QDQI_TRY(qdqi_lower_convert(lw, from, &src->desc, view, &box, err));
        }
        at += src->desc.dims[axis];
    }
    return qdqi_lower_written(lw, out, err);
}

/* out = a box of in */
static qdq_status box_out(qdqi_lower *lw, uint32_t in, const qdq_tensor_desc *box, int64_t offset, uint32_t out,
                          qdq_error *err) {
    qdq_tensor_desc layout;
    qdqi_buf whole, view, into;
    if (qdqi_n_elems(box) == 0) return qdqi_refuse(err, "slice", "zero_size");
    qdqi_lower_out_layout(lw, out, &layout);
    QDQI_TRY(qdqi_lower_read(lw, in, &whole, err));
    QDQI_TRY(qdqi_lower_view(lw, whole, box, offset, &view, err));
    QDQI_TRY(qdqi_lower_write(lw, out, &layout, &into, err));
    QDQI_TRY(qdqi_lower_convert(lw, view, box, into, &layout, err));
    return qdqi_lower_written(lw, out, err);
}

static qdq_status split(qdqi_lower *lw, const qdqi_op *op, uint32_t in, const uint32_t *out, qdq_error *err) {
    const qdq_tensor_desc src = qdqi_lower_val(lw, in)->desc;
    int32_t axis;
    int64_t at = 0;
    if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_AXIS), src.ndims, &axis)) return qdqi_refuse(err, "split", "axis");
    for (uint32_t i = 0; i < op->n_out; i++) {
        qdq_tensor_desc box = src;
        box.dims[axis] = qdqi_lower_val(lw, out[i])->desc.dims[axis];
        QDQI_TRY(box_out(lw, in, &box, at * src.strides[axis], out[i], err));
        at += box.dims[axis];
    }
    return QDQ_OK;
}

qdq_status qdqi_lower_split_piece(qdqi_lower *lw, const qdqi_op *op, uint32_t port, uint32_t in, uint32_t out,
                                  qdq_error *err) {
    qdq_tensor_desc box = qdqi_lower_val(lw, in)->desc;
    int32_t axis;
    int64_t at = 0;
    if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_AXIS), box.ndims, &axis)) return qdqi_refuse(err, "split", "axis");
    for (uint32_t i = 0; i < port; i++)
        at += qdqi_lower_val(lw, op->out[i])->desc.dims[axis];
    box.dims[axis] = qdqi_lower_val(lw, out)->desc.dims[axis];
    return box_out(lw, in, &box, at * box.strides[axis], out, err);
}

static bool const_i64(qdqi_lower *lw, const qdqi_op *op, uint32_t port, int64_t i, int64_t *out) {
    if (port >= op->n_in || op->in[port] == QDQI_NONE) return false;
    const qdqi_lval *lv = qdqi_lower_val(lw, op->in[port]);
    if (lv->data == NULL || !qdqi_is_dense(&lv->desc)) return false;
    *out = qdqi_load_i64(lv->data, lv->desc.dtype, i);
    return true;
}

/* Slice with constant bounds and positive steps is a strided box. */
static qdq_status slice(qdqi_lower *lw, const qdqi_op *op, uint32_t in, uint32_t out, qdq_error *err) {
    const qdq_tensor_desc src = qdqi_lower_val(lw, in)->desc;
    const qdq_tensor_desc dst = qdqi_lower_val(lw, out)->desc;
    qdq_tensor_desc box = src;
    int64_t offset = 0;
    const int64_t n = qdqi_n_elems(&qdqi_lower_val(lw, op->in[1])->desc);
    for (int64_t i = 0; i < n; i++) {
        int64_t start, axis = i, step = 1;
        int32_t d;
        if (!const_i64(lw, op, 1, i, &start)) return qdqi_refuse(err, "slice", "runtime_bounds");
        if (op->n_in > 3 && op->in[3] != QDQI_NONE && !const_i64(lw, op, 3, i, &axis))
            return qdqi_refuse(err, "slice", "runtime_bounds");
        if (op->n_in > 4 && op->in[4] != QDQI_NONE && !const_i64(lw, op, 4, i, &step))
            return qdqi_refuse(err, "slice", "runtime_bounds");
        if (step <= 0 || !qdqi_norm_axis(axis, src.ndims, &d)) return qdqi_refuse(err, "slice", "step");
        if (start < 0) start = start < -src.dims[d] ? 0 : start + src.dims[d];
        if (start > src.dims[d]) start = src.dims[d];
        offset += start * src.strides[d];
        box.strides[d] = src.strides[d] * step;
    }
    memcpy(box.dims, dst.dims, sizeof box.dims);
    return box_out(lw, in, &box, offset, out, err);
}

/* Gather of one constant index is a box; Expand is a copy from strides of 0. */
static qdq_status expand(qdqi_lower *lw, uint32_t in, uint32_t out, qdq_error *err) {
    const qdq_tensor_desc src = qdqi_lower_val(lw, in)->desc;
    qdq_tensor_desc view = qdqi_lower_val(lw, out)->desc, layout;
    for (int32_t i = 0; i < view.ndims; i++) {
        const int32_t k = i - (view.ndims - src.ndims);
        view.strides[i] = k < 0 || src.dims[k] == 1 ? 0 : src.strides[k];
    }
    view.layout = QDQ_LAYOUT_STRIDED;
    qdqi_buf from, into;
    qdqi_lower_out_layout(lw, out, &layout);
    QDQI_TRY(qdqi_lower_read(lw, in, &from, err));
    QDQI_TRY(qdqi_lower_write(lw, out, &layout, &into, err));
    QDQI_TRY(qdqi_lower_convert(lw, from, &view, into, &layout, err));
    return qdqi_lower_written(lw, out, err);
}

/* Floats are padded with floats: a constant, or 0. */
static qdq_status pad(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, uint32_t out, qdq_error *err) {
    const qdqi_lval *value = op->n_in > 2 && in[2] != QDQI_NONE ? qdqi_lower_val(lw, in[2]) : NULL;
    if (value != NULL && (value->data == NULL || qdqi_n_elems(&value->desc) != 1))
        return qdqi_refuse(err, "pad", "runtime_bounds");
    return qdqi_lower_index(lw, op, in, out, value == NULL ? NULL : value->data, err);
}

bool qdqi_moves_elements(const qdqi_op *op) {
    if (op->kind == QDQI_OP_INTERPOLATE || op->kind == QDQI_OP_RESIZE)
        return qdqi_op_str_is(op, QDQI_A_MODE, "nearest");
    return (op->schema->flags & (QDQI_F_MOVE | QDQI_F_SHAPE_ONLY)) != 0;
}

qdq_status qdqi_lower_move(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, const uint32_t *out, qdq_error *err) {
    if (!whole_bytes(qdqi_lower_val(lw, in[0])->desc.dtype))
        return qdqi_refuse(err, op->schema->name, "sub_byte_dtype");
    if ((op->schema->flags & QDQI_F_SHAPE_ONLY) != 0) return shape_only(lw, in[0], out[0], err);
    switch ((int)op->kind) {
    case QDQI_OP_STATICTRANSPOSE: return transpose(lw, op, in[0], out[0], err);
    case QDQI_OP_CONCAT: return concat(lw, op, in, out[0], err);
    case QDQI_OP_SPLIT: return split(lw, op, in[0], out, err);
    case QDQI_OP_SLICE: {
        const qdqi_lower_point here = qdqi_lower_here(lw);
        const qdq_status st = slice(lw, op, in[0], out[0], err);
        if (!qdqi_is_refusal(st)) return st;
        qdqi_lower_undo(lw, here);
        break;
    }
    case QDQI_OP_EXPAND: return expand(lw, in[0], out[0], err);
    case QDQI_OP_PAD:
        if (in != op->in) return qdqi_refuse(err, "pad", "pad_value"); /* it is a value of the float type */
        return pad(lw, op, in, out[0], err);
    default: break;
    }
    if (qdqi_moves_elements(op)) {
        const qdqi_lower_point here = qdqi_lower_here(lw);
        const qdq_status st = qdqi_lower_index(lw, op, in, out[0], NULL, err);
        if (!qdqi_is_refusal(st)) return st;
        qdqi_lower_undo(lw, here);
    }
    if (op->kind == QDQI_OP_GATHER) return qdqi_lower_gather(lw, op, in, out[0], err);
    /* GatherElements and others: integers move by the reference as well as floats do, and are a quarter of the bytes */
    if (in == op->in || !qdqi_moves_elements(op)) return qdqi_refuse(err, op->schema->name, "no_copy_form");
    return qdqi_lower_reference_on(lw, op, in, out, err);
}
