/* Gather, GatherElements and what makes indices or fills tensors: Shape, Range, ConstantOfShape, GenIndex. */
#include "ref/ref_fns.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

/* Index into a dim, counted from the end when negative. */
static qdq_status index_of(qdqi_ref_ctx *c, int64_t value, int64_t dim, int64_t *out) {
    if (value < -dim || value >= dim)
        return qdqi_ref_fail(c, QDQ_E_BAD_ARG, "index %lld is outside -%lld…%lld", (long long)value, (long long)dim,
                             (long long)dim - 1);
    *out = value < 0 ? value + dim : value;
    return QDQ_OK;
}

qdq_status qdqi_ref_gather(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    const unsigned char *from = qdqi_ref_in_raw(c, 0);
    const int64_t *indices = qdqi_ref_in_i64(c, 1);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    int32_t axis;
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), src->ndims, &axis));
    const int64_t outer = qdqi_ref_count(src, 0, axis), inner = qdqi_ref_count(src, axis + 1, src->ndims);
    const int64_t n = qdqi_n_elems(c->in[1].desc);
    const size_t piece = (size_t)inner * qdqi_ref_raw_bytes(src->dtype);
    if (qdqi_n_elems(c->out[0].desc) != outer * n * inner)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the output has %lld elements, expected %lld",
                             (long long)qdqi_n_elems(c->out[0].desc), (long long)(outer * n * inner));
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++, to += piece) {
            int64_t x = 0;
            QDQI_TRY(index_of(c, indices[i], src->dims[axis], &x));
            memcpy(to, from + (size_t)(o * src->dims[axis] + x) * piece, piece);
        }
    return QDQ_OK;
}

qdq_status qdqi_ref_gatherelements(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc, *idx = c->in[1].desc;
    const unsigned char *from = qdqi_ref_in_raw(c, 0);
    const int64_t *indices = qdqi_ref_in_i64(c, 1);
    unsigned char *to = qdqi_ref_out_raw(c, 0);
    QDQI_REF_READY(c);
    const size_t bytes = qdqi_ref_raw_bytes(src->dtype);
    int32_t axis;
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), src->ndims, &axis));
    if (src->ndims != idx->ndims || !qdqi_same_dims(idx, c->out[0].desc))
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "indices of rank %d for data of rank %d", idx->ndims, src->ndims);
    for (int32_t d = 0; d < src->ndims; d++)
        if (d != axis && idx->dims[d] > src->dims[d])
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "dim %d of the indices is %lld, of the data %lld", d,
                                 (long long)idx->dims[d], (long long)src->dims[d]);
    int64_t strides[QDQ_MAX_NDIMS];
    qdqi_dense_strides(src->ndims, src->dims, strides);
    const int64_t along = strides[axis];
    strides[axis] = 0;
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, idx->ndims, idx->dims);
    qdqi_ref_rows_add(&r, idx->ndims, strides);
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r))
        for (int64_t i = 0; i < r.n; i++, to += bytes) {
            int64_t x = 0;
            QDQI_TRY(index_of(c, *indices++, src->dims[axis], &x));
            memcpy(to, from + (size_t)(r.off[0] + i * r.step[0] + x * along) * bytes, bytes);
        }
    return QDQ_OK;
}

qdq_status qdqi_ref_genindex(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    int32_t *dst = qdqi_ref_out_i32(c, 0);
    QDQI_REF_READY(c);
    int32_t axis;
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), src->ndims, &axis));
    const int64_t n = qdqi_n_elems(src), inner = qdqi_ref_count(src, axis + 1, src->ndims);
    if (src->dims[axis] > INT32_MAX) return qdqi_ref_fail(c, QDQ_E_OVERFLOW, "indices do not fit in s32");
    for (int64_t i = 0; i < n; i++)
        dst[i] = (int32_t)(i / inner % src->dims[axis]);
    return QDQ_OK;
}

/* Dims [start, end) of the input; both count from the end when negative, and are clamped. */
qdq_status qdqi_ref_shape(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    int64_t *dst = qdqi_ref_out_i64(c, 0);
    QDQI_REF_READY(c);
    const int64_t rank = src->ndims;
    const qdqi_attr *end_attr = qdqi_op_attr_or_null(c->op, QDQI_A_END);
    int64_t start = qdqi_op_s64(c->op, QDQI_A_START), end = end_attr == NULL ? rank : end_attr->v.s64;
    if (start < 0) start = start < -rank ? 0 : start + rank;
    if (end < 0) end = end < -rank ? 0 : end + rank;
    if (end > rank) end = rank;
    const int64_t n = end > start ? end - start : 0;
    if (qdqi_n_elems(c->out[0].desc) != n)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the output has %lld elements, expected %lld",
                             (long long)qdqi_n_elems(c->out[0].desc), (long long)n);
    for (int64_t i = 0; i < n; i++)
        dst[i] = src->dims[start + i];
    return QDQ_OK;
}

/* start, limit, delta: start + i * delta while before the limit. */
qdq_status qdqi_ref_range(qdqi_ref_ctx *c) {
    const bool is_float = qdqi_dtype_is_float(c->out[0].desc->dtype);
    const double *f[3] = {NULL, NULL, NULL};
    const int64_t *s[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < 3; i++) {
        if (is_float) {
            f[i] = qdqi_ref_in_f64(c, i);
        } else {
            s[i] = qdqi_ref_in_i64(c, i);
        }
    }
    double *dst_f = is_float ? qdqi_ref_out_f64(c, 0) : NULL;
    int64_t *dst_s = is_float ? NULL : qdqi_ref_out_i64(c, 0);
    QDQI_REF_READY(c);
    const int64_t n = qdqi_n_elems(c->out[0].desc);
    for (uint32_t i = 0; i < 3; i++)
        if (qdqi_n_elems(c->in[i].desc) != 1) return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input %u is not one value", i);
    double expected;
    if (is_float) {
        expected = ceil((*f[1] - *f[0]) / *f[2]);
    } else if (*s[2] == 0) {
        expected = NAN;
    } else {
        /* differences of s64 need 65 bits */
        const uint64_t width = *s[2] > 0 ? (*s[1] > *s[0] ? (uint64_t)*s[1] - (uint64_t)*s[0] : 0)
                                         : (*s[0] > *s[1] ? (uint64_t)*s[0] - (uint64_t)*s[1] : 0);
        const uint64_t step = *s[2] > 0 ? (uint64_t)*s[2] : 0 - (uint64_t)*s[2];
        expected = (double)(width / step + (width % step != 0));
    }
    if (isnan(expected) || (double)n != (expected > 0.0 ? expected : 0.0))
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the range has %g elements, the output %lld", expected, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        if (is_float) dst_f[i] = *f[0] + (double)i * *f[2];
        if (!is_float) dst_s[i] = (int64_t)((uint64_t)*s[0] + (uint64_t)i * (uint64_t)*s[2]);
    }
    return QDQ_OK;
}

qdq_status qdqi_ref_constantofshape(qdqi_ref_ctx *c) {
    const bool is_float = qdqi_dtype_is_float(c->out[0].desc->dtype);
    float *dst_f = is_float ? qdqi_ref_out_f32(c, 0) : NULL;
    int64_t *dst_s = is_float ? NULL : qdqi_ref_out_i64(c, 0);
    QDQI_REF_READY(c);
    const int64_t n = qdqi_n_elems(c->out[0].desc), value = qdqi_op_s64(c->op, QDQI_A_VALUE_INT);
    const float value_f = qdqi_op_f32(c->op, QDQI_A_VALUE_FLOAT);
    for (int64_t i = 0; i < n; i++) {
        if (is_float) dst_f[i] = value_f;
        if (!is_float) dst_s[i] = value;
    }
    return QDQ_OK;
}
