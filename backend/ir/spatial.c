/* Spatial attributes of convolutions and pools, resolved against the shapes. */
#include "ir/rule.h"

/* A list with one value per spatial dim. Absent or (as oneDNN Graph dumps its defaults) twelve times the default: the default. */
static qdq_status list_of(const qdqi_op *op, qdqi_attr_name name, int32_t n, int64_t otherwise,
                          const qdq_tensor_desc *src, int64_t *out, qdq_error *err) {
    const qdqi_attr *attr = qdqi_op_attr_or_null(op, name);
    const uint32_t found = attr == NULL ? 0 : attr->n;
    bool is_default =
        found == 0 && (attr == NULL || !attr->is_set || name == QDQI_A_DILATIONS || name == QDQI_A_OUTPUT_PADDING);
    if (found == QDQ_MAX_NDIMS && n != QDQ_MAX_NDIMS) {
        is_default = true;
        for (uint32_t i = 0; i < found; i++)
            is_default = is_default && attr->v.s64s[i] == otherwise;
    }
    if (!is_default && found != (uint32_t)n)
        return qdqi_attr_fail(op, err, QDQ_E_BAD_ATTR, name,
                              "found %" PRIu32 " values, expected %d (spatial dims of src %s)", found, (int)n,
                              qdqi_shape_str(src->ndims, src->dims).s);
    for (int32_t i = 0; i < n; i++)
        out[i] = is_default ? otherwise : attr->v.s64s[i];
    return QDQ_OK;
}

static void place_weights(const qdqi_op *op, qdqi_spatial *s) {
    const qdqi_attr *attr = qdqi_op_attr_or_null(op, QDQI_A_WEIGHTS_FORMAT);
    if (attr == NULL) return;
    const char *format = attr->v.str;
    const int32_t first = format[0] == 'X' ? s->n : 0; /* the first of the two channel dims */
    s->w_sp_dim = format[0] == 'X' ? 0 : 2;
    const bool o_first = format[format[0] == 'X' ? 1 : 0] == 'O';
    s->w_oc_dim = first + (o_first ? 0 : 1);
    s->w_ic_dim = first + (o_first ? 1 : 0);
}

/* Extent of the dilated kernel: (k - 1) * d + 1. */
static bool extent(int64_t kernel, int64_t dilation, int64_t *out) {
    return qdqi_mul_i64(kernel - 1, dilation, out) && qdqi_add_i64(*out, 1, out);
}

/* SAME: as many outputs as strides fit; the padding that makes it so, the odd one at the end (UPPER) or the begin. */
static bool same_pads(int64_t src, int64_t stride, int64_t window, int64_t out_pad, bool transposed, bool upper,
                      int64_t *begin, int64_t *end) {
    int64_t total = 0, reach = 0;
    if (transposed) { /* dst is to be src * stride: crop what is more */
        total = window - stride + out_pad;
    } else {
        const int64_t dst = src / stride + (src % stride != 0);
        if (dst > 0 && (!qdqi_mul_i64(dst - 1, stride, &reach) || !qdqi_add_i64(reach, window, &reach))) return false;
        total = reach - src;
    }
    if (total < 0) total = 0;
    *begin = upper ? total / 2 : total - total / 2;
    *end = total - *begin;
    return true;
}

static qdq_status resolve_pads(const qdqi_op *op, const qdq_tensor_desc *src, qdqi_spatial *s, qdq_error *err) {
    const qdqi_attr *auto_pad = qdqi_op_attr_or_null(op, QDQI_A_AUTO_PAD);
    const char *mode = auto_pad == NULL ? "None" : auto_pad->v.str;
    if (mode[0] == 'N') {
        QDQI_TRY(list_of(op, QDQI_A_PADS_BEGIN, s->n, 0, src, s->pads_begin, err));
        return list_of(op, QDQI_A_PADS_END, s->n, 0, src, s->pads_end, err);
    }
    if (mode[0] == 'V') return QDQ_OK;
    for (int32_t i = 0; i < s->n; i++) {
        int64_t window = 0;
        if (!extent(s->kernel[i], s->dilations[i], &window) ||
            !same_pads(src->dims[(s->nxc ? 1 : 2) + i], s->strides[i], window, s->output_padding[i],
                       op->kind == QDQI_OP_CONVTRANSPOSE, mode[5] == 'U', &s->pads_begin[i], &s->pads_end[i]))
            return qdqi_op_fail(op, err, QDQ_E_BAD_SHAPE, "spatial dim %d: its window overflows", (int)i);
    }
    return QDQ_OK;
}

static qdq_status kernel_of(const qdqi_op *op, const qdq_tensor_desc *src, const qdq_tensor_desc *weights,
                            qdqi_spatial *s, qdq_error *err) {
    if (op->kind == QDQI_OP_GLOBALAVERAGEPOOL || op->kind == QDQI_OP_GLOBALMAXPOOL) {
        for (int32_t i = 0; i < s->n; i++)
            s->kernel[i] = src->dims[(s->nxc ? 1 : 2) + i];
        return QDQ_OK;
    }
    if (qdqi_op_attr_or_null(op, QDQI_A_KERNEL) != NULL)
        return list_of(op, QDQI_A_KERNEL, s->n, 1, src, s->kernel, err);
    if (weights == NULL) return qdqi_op_fail(op, err, QDQ_E_INTERNAL, "no weights to resolve the kernel from");
    if (weights->ndims != src->ndims)
        return qdqi_op_fail(op, err, QDQ_E_BAD_SHAPE, "weights: found shape %s, expected the rank of src %s",
                            qdqi_shape_str(weights->ndims, weights->dims).s, qdqi_shape_str(src->ndims, src->dims).s);
    for (int32_t i = 0; i < s->n; i++)
        s->kernel[i] = weights->dims[s->w_sp_dim + i];
    return QDQ_OK;
}

qdq_status qdqi_op_spatial(const qdqi_op *op, const qdq_tensor_desc *src, const qdq_tensor_desc *weights,
                           qdqi_spatial *out, qdq_error *err) {
    qdqi_spatial s = {.n = src->ndims - 2, .groups = 1};
    if (s.n < 1)
        return qdqi_op_fail(op, err, QDQ_E_BAD_SHAPE, "src: found shape %s, expected rank 3 or more",
                            qdqi_shape_str(src->ndims, src->dims).s);
    s.nxc = qdqi_op_str_is(op, QDQI_A_DATA_FORMAT, "NXC");
    place_weights(op, &s);
    QDQI_TRY(kernel_of(op, src, weights, &s, err));
    QDQI_TRY(list_of(op, QDQI_A_STRIDES, s.n, 1, src, s.strides, err));
    QDQI_TRY(list_of(op, QDQI_A_DILATIONS, s.n, 1, src, s.dilations, err));
    QDQI_TRY(list_of(op, QDQI_A_OUTPUT_PADDING, s.n, 0, src, s.output_padding, err));
    QDQI_TRY(resolve_pads(op, src, &s, err));
    const qdqi_attr *groups = qdqi_op_attr_or_null(op, QDQI_A_GROUPS);
    if (groups != NULL) s.groups = groups->v.s64;
    const qdqi_attr *rounding = qdqi_op_attr_or_null(op, QDQI_A_ROUNDING_TYPE);
    s.ceil_mode = rounding != NULL && rounding->v.str[0] == 'c';
    *out = s;
    return QDQ_OK;
}
