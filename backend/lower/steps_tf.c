/* TensorFlow's QuantizeV2 and Dequantize on kernels/tf, bit-exact to the reference. */
#include "base/alloc.h"
#include "kernels/tf/tf.h"
#include "lower/single.h"
#include "ref/ref.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct tf_impl {
    const qdq_graph *graph; /* retained: op lives in it */
    const qdqi_op *op;
    const struct qk_tf_row *row;
    qk_tf kernel; /* but for what a slice brings */
    size_t stored_bytes, n, n_slices, inner;
} tf_impl;

typedef struct tf_job {
    const tf_impl *impl;
    void *const *bufs;
    size_t chunk;
} tf_job;

static void tf_destroy(void *p) {
    tf_impl *impl = p;
    qdqi_graph_release(impl->graph);
    qdqi_free(impl);
}

/* bufs: x, min, max, y, and of QuantizeV2 the range that goes out */
static void tf_chunk(int i, void *arg) {
    const tf_job *job = arg;
    const tf_impl *tf = job->impl;
    const float *mins = job->bufs[1], *maxs = job->bufs[2];
    qk_tf kernel = tf->kernel;
    const bool quantizes = tf->op->kind == QDQI_OP_QUANTIZEV2;
    for (size_t at = (size_t)i * job->chunk, end = at + job->chunk < tf->n ? at + job->chunk : tf->n, n; at < end;
         at += n) {
        const size_t slice = at / tf->inner % tf->n_slices, left = tf->inner - at % tf->inner;
        n = tf->n_slices == 1 || end - at < left ? end - at : left;
        qdqi_tf_params p;
        (void)qdqi_ref_tf_params(tf->op, kernel.stored, mins[slice], maxs[slice], &p);
        kernel.low = p.low;
        kernel.high = p.high;
        kernel.factor = p.factor;
        kernel.base = p.base;
        kernel.half = p.half;
        kernel.top = p.top;
        if (quantizes)
            qk_tf_quantize(tf->row, &kernel, (const float *)job->bufs[0] + at,
                           (char *)job->bufs[3] + at * tf->stored_bytes, n);
        else
            qk_tf_dequantize(tf->row, &kernel, (const char *)job->bufs[0] + at * tf->stored_bytes,
                             (float *)job->bufs[3] + at, n);
    }
}

static qdq_status fail_range(size_t i, float min, float max, const char *expected, qdq_error *err) {
    return qdqi_fail(err, QDQ_E_BAD_SCALE, "range %zu: found %g to %g, expected %s", i, (double)min, (double)max,
                     expected);
}

static qdq_status tf_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state;
    const tf_impl *tf = impl;
    const float *mins = bufs[1], *maxs = bufs[2];
    for (size_t i = 0; i < tf->n_slices; i++) {
        if (!isfinite(mins[i]) || !isfinite(maxs[i]) || maxs[i] < mins[i])
            return fail_range(i, mins[i], maxs[i], "finite values, max not below min", err);
        qdqi_tf_params p;
        if (!qdqi_ref_tf_params(tf->op, tf->kernel.stored, mins[i], maxs[i], &p))
            return fail_range(i, mins[i], maxs[i], "a range with a finite step", err);
        if (tf->op->kind != QDQI_OP_QUANTIZEV2) continue;
        ((float *)bufs[4])[i] = p.out_min;
        ((float *)bufs[5])[i] = p.out_max;
    }
    const size_t threads = (size_t)qdqi_threads_for(engine, (int64_t)tf->n, QK_TF_GRAIN);
    tf_job job = {tf, bufs, (tf->n + threads - 1) / threads};
    job.chunk = (job.chunk + 63) / 64 * 64;
    qdqi_parallel(engine, (int)threads, tf_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops tf_ops = {.provider = "native", .run = tf_run, .impl_destroy = tf_destroy};

/* The slices of the axis; a wrong axis, number of ranges or rounding is left to the reference, which says so. */
static qdq_status describe(qdqi_lower *lw, const qdqi_op *op, tf_impl *impl, qdq_error *err) {
    const bool quantizes = op->kind == QDQI_OP_QUANTIZEV2;
    const qdq_tensor_desc *x = &qdqi_lower_val(lw, op->in[0])->desc, *y = &qdqi_lower_val(lw, op->out[0])->desc;
    const qdqi_tf_mode mode = qdqi_ref_tf_mode(op);
    const int64_t axis = qdqi_op_s64(op, QDQI_A_AXIS);
    impl->op = op;
    impl->kernel.stored = quantizes ? y->dtype : x->dtype;
    impl->kernel.form = mode == QDQI_TF_MIN_COMBINED ? QK_TF_OFFSET
                        : mode == QDQI_TF_MIN_FIRST  ? QK_TF_STEPS
                                                     : QK_TF_SCALED;
    impl->kernel.even = quantizes && qdqi_op_str_is(op, QDQI_A_ROUND_MODE, "HALF_TO_EVEN");
    impl->stored_bytes = qdq_dtype_bits(impl->kernel.stored) / 8;
    impl->n = (size_t)qdqi_n_elems(x);
    impl->n_slices = impl->inner = 1;
    if (axis < -1 || axis >= x->ndims) return qdqi_refuse(err, op->schema->name, "axis_out_of_range");
    for (int32_t d = axis == -1 ? x->ndims : (int32_t)axis + 1; d < x->ndims; d++)
        impl->inner *= (size_t)x->dims[d];
    if (axis != -1) impl->n_slices = (size_t)x->dims[axis];
    if ((quantizes ? x : y)->dtype != QDQ_DTYPE_F32 || (!quantizes && mode == QDQI_TF_SCALED))
        return qdqi_refuse(err, op->schema->name, "dtype");
    for (uint32_t i = 1; i <= 2; i++) {
        const qdq_tensor_desc *range = &qdqi_lower_val(lw, op->in[i])->desc;
        if (range->dtype != QDQ_DTYPE_F32 || qdqi_n_elems(range) != (int64_t)impl->n_slices)
            return qdqi_refuse(err, op->schema->name, "operands");
    }
    if ((impl->kernel.even && mode != QDQI_TF_SCALED) || (impl->n_slices != 1 && mode == QDQI_TF_MIN_FIRST))
        return qdqi_refuse(err, op->schema->name, "mode");
    if (impl->n == 0) return qdqi_refuse(err, op->schema->name, "zero_size");
    impl->row = qk_tf_choose(impl->kernel.stored, NULL);
    return impl->row != NULL ? QDQ_OK : qdqi_refuse(err, op->schema->name, "dtype");
}

qdq_status qdqi_lower_tf_quant(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    tf_impl impl = {0};
    QDQI_TRY(describe(lw, op, &impl, err));
    const uint32_t n_out = op->kind == QDQI_OP_QUANTIZEV2 ? 3 : 1;
    qdqi_buf bufs[6];
    for (uint32_t i = 0; i < 3; i++) {
        qdq_tensor_desc dense = qdqi_lower_val(lw, op->in[i])->desc;
        qdqi_set_dense(&dense);
        QDQI_TRY(qdqi_lower_read_as(lw, op->in[i], &dense, &bufs[i], err));
    }
    for (uint32_t i = 0; i < n_out; i++) {
        qdq_tensor_desc dense = qdqi_lower_val(lw, op->out[i])->desc;
        qdqi_set_dense(&dense);
        QDQI_TRY(qdqi_lower_write(lw, op->out[i], &dense, &bufs[3 + i], err));
    }
    tf_impl *kept = qdqi_malloc(sizeof *kept);
    if (kept == NULL) return QDQI_NO_MEMORY(err);
    *kept = impl;
    kept->graph = lw->graph;
    qdqi_graph_retain(lw->graph);
    char note[64];
    if (snprintf(note, sizeof note, "native %s %s", op->schema->name, qdq_dtype_name(impl.kernel.stored)) < 0)
        note[0] = '\0';
    QDQI_TRY(qdqi_plan_step(lw->plan, &tf_ops, kept, bufs, 3 + n_out, lw->part, note, err));
    for (uint32_t i = 0; i < n_out; i++)
        QDQI_TRY(qdqi_lower_written(lw, op->out[i], err));
    return QDQ_OK;
}
