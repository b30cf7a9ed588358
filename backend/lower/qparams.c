#include "lower/qparams.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "ref/ref.h"

#include <math.h>
#include <string.h>

/* ---- reading parameters ----------------------------------------------------------------------------------------- */

/* Constant tensor content as f32 / s32 arrays in the arena. */
static qdq_status const_scales(qdqi_lower *lw, const qdqi_lval *lv, int64_t n, const float **out, qdq_error *err) {
    qdq_tensor_desc dense = lv->desc;
    dense.dtype = QDQ_DTYPE_F32;
    qdqi_set_dense(&dense);
    float *values = qdqi_arena_alloc(&lw->arena, (size_t)(n < 1 ? 1 : n), sizeof *values);
    if (values == NULL) return QDQI_NO_MEMORY(err);
    qdqi_convert_elems(&lv->desc, lv->data, &dense, values);
    *out = values;
    return QDQ_OK;
}

static qdq_status const_zps(qdqi_lower *lw, const qdqi_lval *lv, int64_t n, const int32_t **out, qdq_error *err) {
    qdq_tensor_desc dense = lv->desc;
    dense.dtype = QDQ_DTYPE_S32;
    qdqi_set_dense(&dense);
    int32_t *values = qdqi_arena_alloc(&lw->arena, (size_t)(n < 1 ? 1 : n), sizeof *values);
    if (values == NULL) return QDQI_NO_MEMORY(err);
    if (qdqi_dtype_is_float(lv->desc.dtype))
        memset(values, 0, (size_t)n * sizeof *values); /* f8 zero points are zero by schema */
    else
        qdqi_convert_elems(&lv->desc, lv->data, &dense, values);
    *out = values;
    return QDQ_OK;
}

static void settle_zp(qdqi_qparams *q, int64_t n_zps) {
    if (q->zps == NULL) return;
    q->has_zp = false;
    for (int64_t i = 0; i < n_zps; i++)
        q->has_zp = q->has_zp || q->zps[i] != 0;
    if (!q->has_zp) q->zps = NULL;
}

/* oneDNN allows one zero point for many scales, ONNX a scalar beside [1]. */
static qdq_status spread_zp(qdqi_lower *lw, qdqi_qparams *q, int64_t n_zps, qdq_error *err) {
    if (q->zps == NULL || n_zps == q->n) return QDQ_OK;
    int32_t *all = qdqi_arena_alloc(&lw->arena, (size_t)(q->n < 1 ? 1 : q->n), sizeof *all);
    if (all == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < q->n; i++)
        all[i] = q->zps[0];
    q->zps = all;
    return QDQ_OK;
}

static qdq_status from_attrs(qdqi_lower *lw, const qdqi_op *op, qdqi_qparams *q, qdq_error *err) {
    uint32_t n_scales, n_zps;
    q->scales = qdqi_op_f32s(op, QDQI_A_SCALES, &n_scales);
    q->n = n_scales;
    const int64_t *zps = qdqi_op_s64s(op, QDQI_A_ZPS, &n_zps);
    if (n_zps != 0) {
        int32_t *values = qdqi_arena_alloc(&lw->arena, n_zps, sizeof *values);
        if (values == NULL) return QDQI_NO_MEMORY(err);
        for (uint32_t i = 0; i < n_zps; i++)
            values[i] = (int32_t)zps[i];
        q->zps = values;
        settle_zp(q, n_zps);
        QDQI_TRY(spread_zp(lw, q, n_zps, err));
    }
    return QDQ_OK;
}

qdq_status qdqi_qparams_inputs(qdqi_lower *lw, const qdqi_op *op, uint32_t scale_port, uint32_t zp_port,
                               qdqi_qparams *q, qdq_error *err) {
    if (scale_port != QDQI_NONE) {
        const qdqi_lval *scale = qdqi_lower_val(lw, op->in[scale_port]);
        q->n = qdqi_n_elems(&scale->desc);
        q->scales = NULL;
        if (scale->data != NULL)
            QDQI_TRY(const_scales(lw, scale, q->n, &q->scales, err));
        else
            q->scale_value = op->in[scale_port];
    }
    if (zp_port >= op->n_in || op->in[zp_port] == QDQI_NONE) return QDQ_OK;
    const qdqi_lval *zp = qdqi_lower_val(lw, op->in[zp_port]);
    const int64_t n_zps = qdqi_n_elems(&zp->desc);
    if (scale_port == QDQI_NONE && n_zps != q->n) return qdqi_refuse(err, op->schema->name, "several_zero_points");
    if (zp->data != NULL) {
        QDQI_TRY(const_zps(lw, zp, n_zps, &q->zps, err));
        settle_zp(q, n_zps);
        return spread_zp(lw, q, n_zps, err);
    }
    if (n_zps != q->n) return qdqi_refuse(err, op->schema->name, "runtime_zp_count_differs_from_scales");
    q->zp_value = op->in[zp_port];
    q->has_zp = true;
    return QDQ_OK;
}

static qdq_status set_axis(const qdqi_op *op, const qdq_tensor_desc *tensor, qdqi_qparams *q, qdq_error *err) {
    q->gran = QDQI_GRAN_AXIS;
    if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_AXIS), tensor->ndims, &q->axis))
        return qdqi_refuse(err, op->schema->name, "axis_out_of_range");
    return QDQ_OK;
}

static qdq_status onednn_granularity(const qdqi_op *op, const qdq_tensor_desc *tensor, qdqi_qparams *q,
                                     qdq_error *err) {
    if (qdqi_op_str_is(op, QDQI_A_QTYPE, "per_channel")) return set_axis(op, tensor, q, err);
    if (qdqi_op_str_is(op, QDQI_A_QTYPE, "per_group")) {
        uint32_t n;
        const int64_t *group = qdqi_op_s64s(op, QDQI_A_GROUP_SHAPE, &n);
        q->gran = QDQI_GRAN_GROUP;
        if (n != (uint32_t)tensor->ndims) return qdqi_refuse(err, op->schema->name, "group_rank");
        memcpy(q->group, group, n * sizeof *group);
    }
    return QDQ_OK;
}

static qdq_status onnx_granularity(const qdqi_op *op, const qdq_tensor_desc *tensor, qdqi_qparams *q, qdq_error *err) {
    const int64_t block = qdqi_op_s64(op, QDQI_A_BLOCK_SIZE);
    if (block == 0) return q->n == 1 ? QDQ_OK : set_axis(op, tensor, q, err);
    QDQI_TRY(set_axis(op, tensor, q, err));
    q->gran = QDQI_GRAN_GROUP;
    for (int32_t d = 0; d < tensor->ndims; d++)
        q->group[d] = d == q->axis ? block : 1;
    return QDQ_OK;
}

/* TensorFlow: constant ranges of the modes that are affine. */
static qdq_status from_tf(qdqi_lower *lw, const qdqi_op *op, const qdq_tensor_desc *tensor, qdqi_qparams *q,
                          qdq_error *err) {
    const qdqi_lval *min = qdqi_lower_val(lw, op->in[1]), *max = qdqi_lower_val(lw, op->in[2]);
    if (min->data == NULL || max->data == NULL) return qdqi_refuse(err, op->schema->name, "runtime_range");
    q->n = qdqi_n_elems(&min->desc);
    float *scales = qdqi_arena_alloc(&lw->arena, (size_t)(q->n < 1 ? 1 : q->n), sizeof *scales);
    int32_t *zps = qdqi_arena_alloc(&lw->arena, (size_t)(q->n < 1 ? 1 : q->n), sizeof *zps);
    if (scales == NULL || zps == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < q->n; i++)
        if (!qdqi_ref_tf_affine(op, q->stored, qdqi_load_f32(min->data, min->desc.dtype, i),
                                qdqi_load_f32(max->data, max->desc.dtype, i), &scales[i], &zps[i]))
            return qdqi_refuse(err, op->schema->name, "not_affine");
    q->scales = scales;
    q->zps = zps;
    settle_zp(q, q->n);
    return qdqi_op_s64(op, QDQI_A_AXIS) < 0 ? QDQ_OK : set_axis(op, tensor, q, err);
}

qdq_status qdqi_qparams_of(qdqi_lower *lw, const qdqi_op *op, qdqi_qparams *q, qdq_error *err) {
    *q = (qdqi_qparams){.scale_value = QDQI_NONE, .zp_value = QDQI_NONE, .gran = QDQI_GRAN_TENSOR};
    const bool quantize = (op->schema->flags & QDQI_F_QUANTIZE) != 0;
    const qdq_tensor_desc *src = &qdqi_lower_val(lw, op->in[0])->desc;
    const qdq_tensor_desc *dst = &qdqi_lower_val(lw, op->out[0])->desc;
    q->stored = quantize ? dst->dtype : src->dtype;
    q->real = quantize ? src->dtype : dst->dtype;
    if (op->kind == QDQI_OP_QUANTIZE || op->kind == QDQI_OP_DEQUANTIZE) {
        QDQI_TRY(from_attrs(lw, op, q, err));
        QDQI_TRY(onednn_granularity(op, src, q, err));
    } else if (op->kind == QDQI_OP_DYNAMICQUANTIZE || op->kind == QDQI_OP_DYNAMICDEQUANTIZE) {
        QDQI_TRY(qdqi_qparams_inputs(lw, op, 1, 2, q, err));
        QDQI_TRY(onednn_granularity(op, src, q, err));
    } else if (op->kind == QDQI_OP_QUANTIZELINEAR || op->kind == QDQI_OP_DEQUANTIZELINEAR) {
        q->add_zp_after_rounding = true;
        QDQI_TRY(qdqi_qparams_inputs(lw, op, 1, 2, q, err));
        QDQI_TRY(onnx_granularity(op, src, q, err));
    } else if (op->kind == QDQI_OP_QUANTIZEV2 || op->kind == QDQI_OP_TFDEQUANTIZE) {
        q->add_zp_after_rounding = true;
        q->half_away = op->kind == QDQI_OP_QUANTIZEV2 && !qdqi_op_str_is(op, QDQI_A_ROUND_MODE, "HALF_TO_EVEN");
        QDQI_TRY(from_tf(lw, op, src, q, err));
    } else {
        return qdqi_refuse(err, op->schema->name, "not_affine");
    }
    if (q->gran == QDQI_GRAN_AXIS && q->n == 1 && src->dims[q->axis] == 1) q->gran = QDQI_GRAN_TENSOR;
    return QDQ_OK;
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

bool qdqi_qparams_is_const_tensor(const qdqi_qparams *q) {
    return q->gran == QDQI_GRAN_TENSOR && q->scales != NULL && q->zp_value == QDQI_NONE;
}

int32_t qdqi_qparams_zp0(const qdqi_qparams *q) {
    return q->zps != NULL ? q->zps[0] : 0;
}

bool qdqi_qparams_equal(const qdqi_qparams *a, const qdqi_qparams *b) {
    return qdqi_qparams_is_const_tensor(a) && qdqi_qparams_is_const_tensor(b) && a->stored == b->stored &&
           memcmp(a->scales, b->scales, sizeof *a->scales) == 0 && qdqi_qparams_zp0(a) == qdqi_qparams_zp0(b);
}

bool qdqi_qparams_positive(const qdqi_qparams *q) {
    if (q->scales == NULL) return false;
    for (int64_t i = 0; i < q->n; i++)
        if (!(q->scales[i] > 0.0f)) return false;
    return true;
}

/* ---- bounds after a Quantize ------------------------------------------------------------------------------------- */

void qdqi_stored_range_init(qdqi_stored_range *range, qdq_dtype stored, float scale, int32_t zp,
                            bool add_zp_after_rounding) {
    const int32_t least = (int32_t)qdqi_dtype_min(stored), most = (int32_t)qdqi_dtype_max(stored);
    *range = (qdqi_stored_range){least, most, least, most, scale, zp, add_zp_after_rounding};
}

/* What the Quantize makes of it (kernels/quant/quant.h). */
static int32_t stored_bound(const qdqi_stored_range *range, float bound) {
    const float zp = (float)range->zp, scaled = bound / range->scale;
    const float q = range->add_zp_after_rounding ? rintf(scaled) + zp : rintf(scaled + zp);
    return q < (float)range->least ? range->least : q > (float)range->most ? range->most : (int32_t)q;
}

void qdqi_stored_range_max(qdqi_stored_range *range, float bound) {
    const int32_t q = stored_bound(range, bound);
    if (range->low < q) range->low = q;
    if (range->high < q) range->high = q;
}

void qdqi_stored_range_min(qdqi_stored_range *range, float bound) {
    const int32_t q = stored_bound(range, bound);
    if (range->low > q) range->low = q;
    if (range->high > q) range->high = q;
}

/* ---- runtime arguments ------------------------------------------------------------------------------------------ */

/* The largest |q - zp|. */
static double reach(const qdqi_qparams *q) {
    const double lo = (double)qdqi_dtype_min(q->stored), hi = (double)qdqi_dtype_max(q->stored);
    if (!q->has_zp) return -lo > hi ? -lo : hi;
    double most = 0.0;
    for (int64_t i = 0; q->zps != NULL && i < q->n; i++) {
        const double zp = (double)q->zps[i], up = hi - zp, down = zp - lo;
        if (up > most) most = up;
        if (down > most) most = down;
    }
    return q->zps != NULL ? most : hi - lo; /* a runtime zero point lies in the range */
}

bool qdqi_sum_fits_s32(const qdqi_qparams *a, const qdqi_qparams *w, int64_t k) {
    return (double)k * reach(a) * reach(w) < 2147483648.0;
}

qdq_status qdqi_qparams_scale_buf(qdqi_lower *lw, const qdqi_qparams *q, qdqi_buf *buf_out, qdq_error *err) {
    if (q->scales != NULL) return qdqi_lower_const(lw, q->scales, (size_t)q->n * sizeof *q->scales, buf_out, err);
    const qdqi_lval *lv = qdqi_lower_val(lw, q->scale_value);
    qdq_tensor_desc want = lv->desc;
    want.dtype = QDQ_DTYPE_F32;
    qdqi_set_dense(&want);
    return qdqi_lower_read_as(lw, q->scale_value, &want, buf_out, err);
}

qdq_status qdqi_qparams_zp_buf(qdqi_lower *lw, const qdqi_qparams *q, int32_t zp_add, qdqi_buf *buf_out,
                               qdq_error *err) {
    if (q->zp_value == QDQI_NONE) {
        int32_t *values = qdqi_arena_alloc(&lw->arena, (size_t)(q->n < 1 ? 1 : q->n), sizeof *values);
        if (values == NULL) return QDQI_NO_MEMORY(err);
        for (int64_t i = 0; i < q->n; i++)
            values[i] = (q->zps != NULL ? q->zps[i] : 0) + zp_add;
        return qdqi_lower_const(lw, values, (size_t)q->n * sizeof *values, buf_out, err);
    }
    if (zp_add != 0) return qdqi_refuse(err, "zero_point", "runtime_zp_of_flipped_weights");
    const qdqi_lval *lv = qdqi_lower_val(lw, q->zp_value);
    qdq_tensor_desc want = lv->desc;
    want.dtype = QDQ_DTYPE_S32;
    qdqi_set_dense(&want);
    return qdqi_lower_read_as(lw, q->zp_value, &want, buf_out, err);
}
