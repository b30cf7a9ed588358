/* Ops that move elements without changing them: any data type, as raw elements. */
#include "ref/ref_fns.h"

#include "base/checked.h"

#include <string.h>

/* n elements of `bytes` bytes from a strided source (in elements) to a dense destination. */
static void copy_elems(unsigned char *dst, const unsigned char *src, int64_t step, int64_t n, size_t bytes) {
    if (step == 1) {
        memcpy(dst, src, (size_t)n * bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + (size_t)i * bytes, src + i * step * (int64_t)bytes, bytes);
}

/* dst (dense) = a strided view of src: element (i0, i1, …) is src[base + sum of i_d * strides_d]. */
static void copy_view(unsigned char *dst, const unsigned char *src, int32_t ndims, const int64_t *dims,
                      const int64_t *strides, int64_t base, size_t bytes) {
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, ndims, dims);
    qdqi_ref_rows_add(&r, ndims, strides);
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        copy_elems(dst, src + (base + r.off[0]) * (int64_t)bytes, r.step[0], r.n, bytes);
        dst += (size_t)r.n * bytes;
    }
}

static qdq_status need_elems(qdqi_ref_ctx *c, int64_t expected) {
    const int64_t n = qdqi_n_elems(c->out[0].desc);
    if (n == expected) return QDQ_OK;
    return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the output has %lld elements, expected %lld", (long long)n,
                         (long long)expected);
}

/* Reorder, Identity and all reshapes: the same elements in the same (dense) order. */
qdq_status qdqi_ref_copy(qdqi_ref_ctx *c) {
    const unsigned char *src = qdqi_ref_in_raw(c, 0);
    unsigned char *dst = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    const int64_t n = qdqi_n_elems(c->in[0].desc);
    QDQI_TRY(need_elems(c, n));
    if (n != 0 && dst != src) memmove(dst, src, (size_t)n * qdqi_ref_raw_bytes(c->in[0].desc->dtype));
    return QDQ_OK;
}

qdq_status qdqi_ref_statictranspose(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    const unsigned char *from = qdqi_ref_in_raw(c, 0);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    int64_t dense[QDQ_MAX_NDIMS], strides[QDQ_MAX_NDIMS], dims[QDQ_MAX_NDIMS];
    bool seen[QDQ_MAX_NDIMS] = {false};
    uint32_t n;
    const int64_t *order = qdqi_op_s64s(c->op, QDQI_A_ORDER, &n);
    if (n != 0 && n != (uint32_t)src->ndims)
        return qdqi_ref_fail(c, QDQ_E_BAD_ATTR, "order has %u values for rank %d", n, src->ndims);
    qdqi_dense_strides(src->ndims, src->dims, dense);
    for (int32_t d = 0; d < src->ndims; d++) {
        int32_t axis = src->ndims - 1 - d;
        if (n != 0) QDQI_TRY(qdqi_ref_axis(c, order[d], src->ndims, &axis));
        if (seen[axis]) return qdqi_ref_fail(c, QDQ_E_BAD_ATTR, "order names axis %d twice", axis);
        seen[axis] = true;
        strides[d] = dense[axis];
        dims[d] = src->dims[axis];
    }
    QDQI_TRY(need_elems(c, qdqi_n_elems(src)));
    copy_view(to, from, src->ndims, dims, strides, 0, qdqi_ref_raw_bytes(src->dtype));
    return QDQ_OK;
}

qdq_status qdqi_ref_concat(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *dst_desc = c->out[0].desc;
    unsigned char *dst = qdqi_ref_out_raw(c, 0);
    const size_t mark = qdqi_ref_mark(c), bytes = qdqi_ref_raw_bytes(dst_desc->dtype);
    int32_t axis;
    int64_t at = 0;
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), dst_desc->ndims, &axis));
    const int64_t outer = qdqi_ref_count(dst_desc, 0, axis);
    const int64_t inner = qdqi_ref_count(dst_desc, axis + 1, dst_desc->ndims);
    for (uint32_t k = 0; k < c->n_in; k++) {
        const unsigned char *src = qdqi_ref_in_raw(c, k);
        const int64_t n = c->in[k].desc->dims[axis];
        if (at + n > dst_desc->dims[axis] || qdqi_n_elems(c->in[k].desc) != outer * n * inner)
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input %u does not fit into the output", k);
        if (src != NULL && dst != NULL)
            for (int64_t o = 0; o < outer; o++)
                memcpy(dst + (size_t)((o * dst_desc->dims[axis] + at) * inner) * bytes,
                       src + (size_t)(o * n * inner) * bytes, (size_t)(n * inner) * bytes);
        at += n;
        qdqi_ref_release(c, mark);
    }
    QDQI_REF_READY(c);
    if (at != dst_desc->dims[axis])
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "inputs have %lld along axis %d, the output %lld", (long long)at, axis,
                             (long long)dst_desc->dims[axis]);
    return QDQ_OK;
}

qdq_status qdqi_ref_split(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src_desc = c->in[0].desc;
    const unsigned char *src = qdqi_ref_in_raw(c, 0);
    const size_t mark = qdqi_ref_mark(c), bytes = qdqi_ref_raw_bytes(src_desc->dtype);
    int32_t axis;
    int64_t at = 0;
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), src_desc->ndims, &axis));
    const int64_t outer = qdqi_ref_count(src_desc, 0, axis);
    const int64_t inner = qdqi_ref_count(src_desc, axis + 1, src_desc->ndims), whole = src_desc->dims[axis];
    for (uint32_t k = 0; k < c->n_out; k++) {
        if (!qdqi_ref_has_out(c, k)) return qdqi_ref_fail(c, QDQ_E_BAD_ARITY, "output %u is missing", k);
        const int64_t n = c->out[k].desc->dims[axis], n_elems = qdqi_n_elems(c->out[k].desc);
        if (at + n > whole || n_elems != outer * n * inner)
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "output %u does not fit into the input", k);
        unsigned char *piece = qdqi_ref_temp(c, n_elems, bytes);
        if (piece != NULL && src != NULL) {
            for (int64_t o = 0; o < outer; o++)
                memcpy(piece + (size_t)(o * n * inner) * bytes, src + (size_t)((o * whole + at) * inner) * bytes,
                       (size_t)(n * inner) * bytes);
            qdqi_ref_put(c, k, QDQI_REF_RAW, piece);
        }
        at += n;
        qdqi_ref_release(c, mark);
    }
    QDQI_REF_READY(c);
    if (at != whole)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "outputs have %lld along axis %d, the input %lld", (long long)at, axis,
                             (long long)whole);
    return QDQ_OK;
}

qdq_status qdqi_ref_expand(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    const unsigned char *from = qdqi_ref_in_raw(c, 0);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    const size_t bytes = qdqi_ref_raw_bytes(src->dtype);
    for (int32_t d = 1; d <= src->ndims; d++)
        if (d > dst->ndims ||
            (src->dims[src->ndims - d] != 1 && src->dims[src->ndims - d] != dst->dims[dst->ndims - d]))
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the input does not broadcast to the output");
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, dst->ndims, dst->dims);
    qdqi_ref_rows_add_broadcast(&r, dst->ndims, src);
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        copy_elems(to, from + r.off[0] * (int64_t)bytes, r.step[0], r.n, bytes);
        to += (size_t)r.n * bytes;
    }
    return QDQ_OK;
}

qdq_status qdqi_ref_tile(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    const unsigned char *from = qdqi_ref_in_raw(c, 0);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    const size_t bytes = qdqi_ref_raw_bytes(src->dtype);
    int64_t strides[QDQ_MAX_NDIMS];
    if (src->ndims != dst->ndims)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "rank %d is tiled to rank %d", src->ndims, dst->ndims);
    for (int32_t d = 0; d < src->ndims; d++)
        if (src->dims[d] == 0 ? dst->dims[d] != 0 : dst->dims[d] % src->dims[d] != 0)
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "dim %d: %lld is no multiple of %lld", d, (long long)dst->dims[d],
                                 (long long)src->dims[d]);
    qdqi_dense_strides(src->ndims, src->dims, strides);
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, dst->ndims, dst->dims);
    const int64_t piece = src->ndims == 0 ? 1 : src->dims[src->ndims - 1];
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        int64_t off = 0;
        for (int32_t d = 0; d < r.ndims; d++)
            off += r.idx[d] % src->dims[d] * strides[d];
        for (int64_t i = 0; i < r.n; i += piece, to += (size_t)piece * bytes)
            memcpy(to, from + (size_t)off * bytes, (size_t)piece * bytes);
    }
    return QDQ_OK;
}

/* NCHW with blocks of b x b points: C' = C / b². */
qdq_status qdqi_ref_depthtospace(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    const unsigned char *from = qdqi_ref_in_raw(c, 0);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    const int64_t b = qdqi_op_s64(c->op, QDQI_A_BLOCKSIZE);
    if (src->ndims != 4 || src->dims[1] % (b * b) != 0)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "rank %d or its channels do not fit blocksize %lld", src->ndims,
                             (long long)b);
    QDQI_TRY(need_elems(c, qdqi_n_elems(src)));
    const int64_t h = src->dims[2], w = src->dims[3], channels = src->dims[1] / (b * b);
    const bool crd = qdqi_op_str_is(c->op, QDQI_A_MODE, "CRD");
    /* destination order: n, c, h, block row, w, block column */
    const int64_t dims[6] = {src->dims[0], channels, h, b, w, b};
    const int64_t strides[6] = {
        src->dims[1] * h * w,        (crd ? b * b : 1) * h * w, w, (crd ? b : b * channels) * h * w, 1,
        (crd ? 1 : channels) * h * w};
    copy_view(to, from, 6, dims, strides, 0, qdqi_ref_raw_bytes(src->dtype));
    return QDQ_OK;
}

qdq_status qdqi_ref_spacetodepth(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    const unsigned char *from = qdqi_ref_in_raw(c, 0);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    const int64_t b = qdqi_op_s64(c->op, QDQI_A_BLOCKSIZE);
    if (src->ndims != 4 || src->dims[2] % b != 0 || src->dims[3] % b != 0)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "rank %d or its dims do not fit blocksize %lld", src->ndims,
                             (long long)b);
    QDQI_TRY(need_elems(c, qdqi_n_elems(src)));
    const int64_t h = src->dims[2], w = src->dims[3];
    /* destination order: n, block row, block column, c, h / b, w / b */
    const int64_t dims[6] = {src->dims[0], b, b, src->dims[1], h / b, w / b};
    const int64_t strides[6] = {src->dims[1] * h * w, w, 1, h * w, b * w, b};
    copy_view(to, from, 6, dims, strides, 0, qdqi_ref_raw_bytes(src->dtype));
    return QDQ_OK;
}

/* ---- Slice: data, starts, ends, [axes], [steps] ---- */

/* Start of a slice and its number of elements, numpy style. */
static int64_t slice_of(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *n_out) {
    const int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? dim : dim - 1;
    if (start < 0) start = start < -dim ? lo : start + dim;
    if (end < 0) end = end < -dim ? lo : end + dim;
    start = start < lo ? lo : start > hi ? hi : start;
    end = end < lo ? lo : end > hi ? hi : end;
    const int64_t width = step > 0 ? end - start : start - end;
    const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    *n_out = width <= 0 ? 0 : (int64_t)(((uint64_t)width - 1) / stride) + 1;
    return start;
}

qdq_status qdqi_ref_slice(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    const unsigned char *from = qdqi_ref_in_raw(c, 0);
    const int64_t *starts = qdqi_ref_in_i64(c, 1), *ends = qdqi_ref_in_i64(c, 2);
    const int64_t *axes = qdqi_ref_in_i64(c, 3), *steps = qdqi_ref_in_i64(c, 4);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    const int64_t n = qdqi_n_elems(c->in[1].desc);
    for (uint32_t port = 2; port <= 4; port++)
        if (qdqi_ref_has_in(c, port) && qdqi_n_elems(c->in[port].desc) != n)
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input %u has %lld values, expected %lld", port,
                                 (long long)qdqi_n_elems(c->in[port].desc), (long long)n);
    int64_t strides[QDQ_MAX_NDIMS], dims[QDQ_MAX_NDIMS], base = 0;
    bool seen[QDQ_MAX_NDIMS] = {false};
    qdqi_dense_strides(src->ndims, src->dims, strides);
    memcpy(dims, src->dims, sizeof dims);
    for (int64_t i = 0; i < n; i++) {
        int32_t axis;
        QDQI_TRY(qdqi_ref_axis(c, axes == NULL ? i : axes[i], src->ndims, &axis));
        const int64_t step = steps == NULL ? 1 : steps[i];
        if (step == 0 || seen[axis]) return qdqi_ref_fail(c, QDQ_E_BAD_ARG, "axis %d: step 0, or named twice", axis);
        seen[axis] = true;
        const int64_t start = slice_of(src->dims[axis], starts[i], ends[i], step, &dims[axis]);
        if (dims[axis] == 0) continue; /* nothing will be read */
        base += start * strides[axis];
        strides[axis] = dims[axis] == 1 ? 0 : strides[axis] * step;
    }
    if (src->ndims != dst->ndims || memcmp(dims, dst->dims, (size_t)src->ndims * sizeof *dims) != 0)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the slice does not have the dims of the output");
    copy_view(to, from, src->ndims, dims, strides, base, qdqi_ref_raw_bytes(src->dtype));
    return QDQ_OK;
}

/* ---- Pad: data, pads, [value], [axes] ---- */

typedef enum pad_mode { CONSTANT, REFLECT, EDGE } pad_mode;

/* Source index of position i of a padded dim; -1: the constant. */
static int64_t pad_source(pad_mode mode, int64_t i, int64_t dim) {
    if (i >= 0 && i < dim) return i;
    if (mode == CONSTANT || dim == 0) return -1;
    if (mode == EDGE) return i < 0 ? 0 : dim - 1;
    if (dim == 1) return 0;
    const int64_t period = 2 * (dim - 1);
    const int64_t x = (i % period + period) % period;
    return x < dim ? x : period - x;
}

qdq_status qdqi_ref_pad(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    const size_t bytes = qdqi_ref_raw_bytes(src->dtype);
    const unsigned char *from = qdqi_ref_in_raw(c, 0), *value = qdqi_ref_in_raw(c, 2);
    const int64_t *pads = qdqi_ref_in_i64(c, 1), *axes = qdqi_ref_in_i64(c, 3);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    static const unsigned char zero[sizeof(double)];
    const int64_t n_axes = axes == NULL ? src->ndims : qdqi_n_elems(c->in[3].desc);
    if (src->ndims != dst->ndims || qdqi_n_elems(c->in[1].desc) != 2 * n_axes)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "%lld pads for %lld axes", (long long)qdqi_n_elems(c->in[1].desc),
                             (long long)n_axes);
    if (value != NULL && qdqi_n_elems(c->in[2].desc) == 0) value = NULL;
    const pad_mode mode = qdqi_op_str_is(c->op, QDQI_A_MODE, "reflect") ? REFLECT
                          : qdqi_op_str_is(c->op, QDQI_A_MODE, "edge")  ? EDGE
                                                                        : CONSTANT;
    int64_t begin[QDQ_MAX_NDIMS] = {0}, end[QDQ_MAX_NDIMS] = {0}, strides[QDQ_MAX_NDIMS];
    for (int64_t i = 0; i < n_axes; i++) {
        int32_t axis;
        QDQI_TRY(qdqi_ref_axis(c, axes == NULL ? i : axes[i], src->ndims, &axis));
        begin[axis] = pads[i];
        end[axis] = pads[i + n_axes];
    }
    for (int32_t d = 0; d < src->ndims; d++) {
        int64_t dim;
        if (!qdqi_add_i64(src->dims[d], begin[d], &dim) || !qdqi_add_i64(dim, end[d], &dim) || dim != dst->dims[d])
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "dim %d: %lld padded does not give %lld", d,
                                 (long long)src->dims[d], (long long)dst->dims[d]);
        if (mode != CONSTANT && src->dims[d] == 0 && dst->dims[d] != 0)
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "dim %d has no element to repeat", d);
    }
    qdqi_dense_strides(src->ndims, src->dims, strides);
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, dst->ndims, dst->dims);
    const int32_t last = dst->ndims - 1;
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        int64_t off = 0;
        for (int32_t d = 0; d < r.ndims && off >= 0; d++) {
            const int64_t i = pad_source(mode, r.idx[d] - begin[d], src->dims[d]);
            off = i < 0 ? -1 : off + i * strides[d];
        }
        for (int64_t i = 0; i < r.n; i++, to += bytes) {
            const int64_t x = off < 0 || last < 0 ? off : pad_source(mode, i - begin[last], src->dims[last]);
            memcpy(to, x < 0 ? (value == NULL ? zero : value) : from + (size_t)(last < 0 ? 0 : off + x) * bytes, bytes);
        }
    }
    return QDQ_OK;
}
