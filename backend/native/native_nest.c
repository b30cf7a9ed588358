#include "native/native_nest.h"
#include "kernels/isa/isa.h"

#include <string.h>

enum { BLOCK = 4096, LONE_BLOCK = 16384, STAGE = QK_POST_COLS, MAX_TENSORS = 2 + QK_POST_MAX_STEPS };
/* Elements for each thread that is asked. */
#define NEST_GRAIN (16 * 1024)

typedef struct axis {
    int64_t n;
    ptrdiff_t stride[MAX_TENSORS]; /* dst, src, operands */
} axis;

static qdq_status set_strides(axis *axes, const qdqi_dnnl_md *dst, const qdqi_dnnl_md *md, size_t t,
                              const char *primitive, qdq_error *err) {
    if (md->ndims != dst->ndims) return qdqi_native_refuse(err, primitive, "shape");
    for (int32_t d = 0; d < dst->ndims; d++) {
        const bool broadcast = md->dims[d] == 1 && dst->dims[d] != 1;
        if (!broadcast && md->dims[d] != dst->dims[d]) return qdqi_native_refuse(err, primitive, "broadcast");
        if (broadcast && t < 2) return qdqi_native_refuse(err, primitive, "shape");
        axes[d].stride[t] = broadcast ? 0 : (ptrdiff_t)md->strides[d];
    }
    return QDQ_OK;
}

static bool mergeable(const axis *outer, const axis *inner, size_t n_tensors) {
    for (size_t t = 0; t < n_tensors; t++)
        if (outer->stride[t] != inner->stride[t] * (ptrdiff_t)inner->n) return false;
    return true;
}

/* Without dims of 1, the destination's smallest stride last, neighbours that are one index merged. */
static uint32_t tidy(axis *axes, uint32_t n, size_t n_tensors) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (axes[i].n == 1) continue;
        const axis a = axes[i];
        uint32_t at = kept++;
        for (; at > 0 && axes[at - 1].stride[0] < a.stride[0]; at--)
            axes[at] = axes[at - 1];
        axes[at] = a;
    }
    uint32_t merged = 0;
    for (uint32_t i = 0; i < kept; i++) {
        if (merged > 0 && mergeable(&axes[merged - 1], &axes[i], n_tensors)) {
            const int64_t outer = axes[merged - 1].n;
            axes[merged - 1] = axes[i];
            axes[merged - 1].n *= outer;
        } else {
            axes[merged++] = axes[i];
        }
    }
    return merged;
}

static void set_tensor(qdqi_nest_tensor *t, const axis *axes, uint32_t n_outer, const axis *row, const axis *col,
                       size_t i, qdq_dtype dtype) {
    for (uint32_t d = 0; d < n_outer; d++)
        t->outer[d] = axes[d].stride[i];
    t->row = row == NULL ? 0 : row->stride[i];
    t->col = col == NULL ? 1 : col->stride[i];
    t->bytes = qdq_dtype_bits(dtype) / 8;
}

/* Blocks of some thousand elements: what threads share, and what stays in the first cache. */
static void set_blocks(qdqi_nest *nest) {
    const int64_t block = nest->lone != NULL ? LONE_BLOCK : BLOCK, most = nest->staged ? STAGE : block;
    nest->col_block = nest->cols < most ? nest->cols : most;
    nest->row_block = block / nest->col_block < nest->rows ? block / nest->col_block : nest->rows;
    nest->n_col_blocks = (nest->cols + nest->col_block - 1) / nest->col_block;
    nest->n_row_blocks = (nest->rows + nest->row_block - 1) / nest->row_block;
    nest->n_outer_tasks = 1;
    for (uint32_t d = 0; d < nest->n_outer; d++)
        nest->n_outer_tasks *= nest->outer[d];
}

/* One operation, between floats of one type, and nothing else. */
static bool is_lone(const qdqi_nest *nest, const qdqi_dnnl_md *operand, qk_pointwise_op *op) {
    const qk_post *p = &nest->post;
    const qk_post_step *s = &p->steps[0];
    if (nest->staged || p->n_steps != 1 || p->acc != p->dst || p->has_add_common || p->has_col_add || p->has_row_sum ||
        p->scale != QK_POST_SCALE_NONE || p->bias != QDQ_DTYPE_UNDEF || p->dst_quantized || p->dst_has_zp ||
        (operand != NULL && s->dtype != p->dst))
        return false;
    switch (s->op) {
    case QK_POST_RELU: *op = s->alpha == 0.0f ? QK_POINTWISE_RELU : QK_POINTWISE_LEAKY_RELU; return true;
#define SAME(name)                                                                                                     \
    case QK_POST_##name: *op = QK_POINTWISE_##name; return true
        SAME(TANH);
        SAME(ELU);
        SAME(SQUARE);
        SAME(ABS);
        SAME(SQRT);
        SAME(LINEAR);
        SAME(SOFT_RELU);
        SAME(LOGISTIC);
        SAME(EXP);
        SAME(LOG);
        SAME(CLIP);
        SAME(GELU_ERF);
        SAME(GELU_TANH);
        SAME(ROUND);
        SAME(MISH);
        SAME(HARDSWISH);
        SAME(HARDSIGMOID);
        SAME(SWISH);
        SAME(ADD);
        SAME(SUB);
        SAME(MUL);
        SAME(DIV);
        SAME(MAX);
        SAME(MIN);
        SAME(GE);
        SAME(PRELU);
#undef SAME
    default: return false;
    }
}

static void set_lone(qdqi_nest *nest, const qdqi_dnnl_md *dst, const qdqi_dnnl_md *operand) {
    qk_pointwise_op op;
    if (!is_lone(nest, operand, &op)) return;
    const ptrdiff_t bytes = (ptrdiff_t)nest->dst.bytes;
    nest->lone = qk_pointwise_choose(op, nest->post.dst, &nest->isa);
    nest->lone_args = (qk_pointwise){
        .alpha = nest->post.steps[0].alpha,
        .beta = nest->post.steps[0].beta,
        .stream = (size_t)qdqi_native_n_elems(dst) * nest->dst.bytes >= qk_isa_stream_bytes(),
        .common = !nest->post.steps[0].per_col,
        .src_row = nest->src.row * bytes,
        .w_row = operand == NULL ? 0 : nest->operands[0].row * bytes,
        .dst_row = nest->dst.row * bytes,
    };
}

qdq_status qdqi_nest_plan(qdqi_nest *nest, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                          const qdqi_dnnl_md *const *operands, const char *primitive, qdq_error *err) {
    axis axes[QDQ_MAX_NDIMS] = {0};
    const uint32_t n_steps = nest->post.n_steps;
    for (int32_t d = 0; d < dst->ndims; d++)
        axes[d].n = dst->dims[d];
    QDQI_TRY(set_strides(axes, dst, dst, 0, primitive, err));
    QDQI_TRY(set_strides(axes, dst, src, 1, primitive, err));
    for (uint32_t k = 0; k < n_steps; k++)
        if (operands[k] != NULL) QDQI_TRY(set_strides(axes, dst, operands[k], 2 + k, primitive, err));
    const uint32_t n = tidy(axes, (uint32_t)dst->ndims, 2 + n_steps);
    const axis *col = n > 0 ? &axes[n - 1] : NULL, *row = n > 1 ? &axes[n - 2] : NULL;
    nest->n_outer = n > 2 ? n - 2 : 0;
    nest->rows = row == NULL ? 1 : row->n;
    nest->cols = col == NULL ? 1 : col->n;
    for (uint32_t d = 0; d < nest->n_outer; d++)
        nest->outer[d] = axes[d].n;
    nest->post.acc = src->dtype;
    nest->post.dst = dst->dtype;
    set_tensor(&nest->dst, axes, nest->n_outer, row, col, 0, dst->dtype);
    set_tensor(&nest->src, axes, nest->n_outer, row, col, 1, src->dtype);
    nest->staged = nest->cols > 1 && (nest->dst.col != 1 || nest->src.col != 1);
    for (uint32_t k = 0; k < n_steps; k++) {
        if (operands[k] == NULL) continue;
        set_tensor(&nest->operands[k], axes, nest->n_outer, row, col, 2 + k, operands[k]->dtype);
        nest->post.steps[k].per_col = nest->cols > 1 && nest->operands[k].col != 0;
        nest->staged = nest->staged || (nest->post.steps[k].per_col && nest->operands[k].col != 1);
    }
    for (uint32_t k = 0; nest->staged && k < n_steps; k++)
        if (nest->post.steps[k].op == QK_POST_SUM) return qdqi_native_refuse(err, primitive, "layout");
    nest->scale_src = nest->zp_src = nest->scale_dst = nest->zp_dst = QDQI_NO_ARG;
    nest->fn = qk_post_choose(&nest->post, &nest->isa);
    nest->lone = NULL;
    set_lone(nest, dst, operands[0]);
    set_blocks(nest);
    return nest->fn == NULL ? qdqi_native_refuse(err, primitive, "dtype") : QDQ_OK;
}

/* ---- running ---- */

typedef struct job {
    const qdqi_nest *nest;
    void *const *bufs;
    int64_t n_tasks;
    int n_chunks;
} job;

static const char *place(const qdqi_nest_tensor *t, void *const *bufs, const int64_t *outer, uint32_t n_outer) {
    ptrdiff_t at = 0;
    for (uint32_t d = 0; d < n_outer; d++)
        at += (ptrdiff_t)outer[d] * t->outer[d];
    return (const char *)bufs[t->arg] + at * (ptrdiff_t)t->bytes;
}

static void gather(char *to, const char *from, size_t n, ptrdiff_t stride, size_t bytes) {
    if (bytes == 4)
        for (size_t i = 0; i < n; i++)
            memcpy(to + 4 * i, from + (ptrdiff_t)i * stride * 4, 4);
    else if (bytes == 2)
        for (size_t i = 0; i < n; i++)
            memcpy(to + 2 * i, from + (ptrdiff_t)i * stride * 2, 2);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[(ptrdiff_t)i * stride];
}

static void scatter(char *to, const char *from, size_t n, ptrdiff_t stride, size_t bytes) {
    if (bytes == 4)
        for (size_t i = 0; i < n; i++)
            memcpy(to + (ptrdiff_t)i * stride * 4, from + 4 * i, 4);
    else if (bytes == 2)
        for (size_t i = 0; i < n; i++)
            memcpy(to + (ptrdiff_t)i * stride * 2, from + 2 * i, 2);
    else
        for (size_t i = 0; i < n; i++)
            to[(ptrdiff_t)i * stride] = from[i];
}

/* Row by row through buffers of STAGE elements. `args` has the scales; addresses are set here. */
static void run_staged(const qdqi_nest *nest, qk_post_args *args, const char *src, char *dst,
                       const char *const *operand, int64_t row, int64_t n_rows, int64_t col, int64_t n_cols) {
    _Alignas(64) char staged[MAX_TENSORS][STAGE * 4];
    const size_t n = (size_t)n_cols;
    for (int64_t r = row; r < row + n_rows; r++) {
        const qdqi_nest_tensor *s = &nest->src, *d = &nest->dst;
        gather(staged[0], src + (r * s->row + col * s->col) * (ptrdiff_t)s->bytes, n, s->col, s->bytes);
        for (uint32_t k = 0; k < nest->post.n_steps; k++) {
            const qdqi_nest_tensor *o = &nest->operands[k];
            if (o->bytes == 0) continue;
            const char *from = operand[k] + (r * o->row + col * o->col) * (ptrdiff_t)o->bytes;
            gather(staged[2 + k], from, nest->post.steps[k].per_col ? n : 1, o->col, o->bytes);
            args->operands[k] = (qk_post_operand){staged[2 + k], 0};
        }
        args->dst = staged[1];
        nest->fn(&nest->post, args, staged[0], n, 0, 1, 0, n);
        scatter(dst + (r * d->row + col * d->col) * (ptrdiff_t)d->bytes, staged[1], n, d->col, d->bytes);
    }
}

static void run_task(const qdqi_nest *nest, void *const *bufs, qk_post_args *args, int64_t task) {
    int64_t outer[QDQ_MAX_NDIMS];
    const int64_t col = task % nest->n_col_blocks * nest->col_block;
    task /= nest->n_col_blocks;
    const int64_t row = task % nest->n_row_blocks * nest->row_block;
    task /= nest->n_row_blocks;
    for (uint32_t d = nest->n_outer; d-- > 0; task /= nest->outer[d])
        outer[d] = task % nest->outer[d];
    const int64_t n_rows = nest->rows - row < nest->row_block ? nest->rows - row : nest->row_block;
    const int64_t n_cols = nest->cols - col < nest->col_block ? nest->cols - col : nest->col_block;
    const char *src = place(&nest->src, bufs, outer, nest->n_outer);
    char *dst = (char *)(uintptr_t)place(&nest->dst, bufs, outer, nest->n_outer);
    const char *operand[QK_POST_MAX_STEPS];
    for (uint32_t k = 0; k < nest->post.n_steps; k++)
        if (nest->operands[k].bytes != 0) {
            operand[k] = place(&nest->operands[k], bufs, outer, nest->n_outer);
            args->operands[k] = (qk_post_operand){operand[k], nest->operands[k].row};
        }
    if (nest->staged) {
        run_staged(nest, args, src, dst, operand, row, n_rows, col, n_cols);
        return;
    }
    if (nest->lone != NULL) {
        const ptrdiff_t at = col * (ptrdiff_t)nest->dst.bytes;
        const char *w = nest->operands[0].bytes == 0 ? NULL : operand[0] + row * nest->lone_args.w_row;
        if (w != NULL && !nest->lone_args.common) w += at;
        nest->lone(&nest->lone_args, src + row * nest->lone_args.src_row + at, w,
                   dst + row * nest->lone_args.dst_row + at, (size_t)n_rows, (size_t)n_cols);
        return;
    }
    args->dst = dst;
    args->dst_stride = nest->dst.row;
    nest->fn(&nest->post, args, src + (row * nest->src.row + col) * (ptrdiff_t)nest->src.bytes, (size_t)nest->src.row,
             (size_t)row, (size_t)n_rows, (size_t)col, (size_t)n_cols);
}

static void run_chunk(int i, void *arg) {
    const job *j = arg;
    qk_post_args args;
    args.scale_common = qdqi_native_scale(j->bufs, j->nest->scale_src);
    args.add_common = -qdqi_native_zp(j->bufs, j->nest->zp_src);
    args.dst_scale = qdqi_native_scale(j->bufs, j->nest->scale_dst);
    args.dst_zp = qdqi_native_zp(j->bufs, j->nest->zp_dst);
    const int64_t first = j->n_tasks * i / j->n_chunks, end = j->n_tasks * (i + 1) / j->n_chunks;
    for (int64_t t = first; t < end; t++)
        run_task(j->nest, j->bufs, &args, t);
}

qdq_status qdqi_nest_run(const qdqi_nest *nest, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    job j = {nest, bufs, nest->n_outer_tasks * nest->n_row_blocks * nest->n_col_blocks, 1};
    j.n_chunks = qdqi_threads_for(engine, nest->n_outer_tasks * nest->rows * nest->cols, NEST_GRAIN);
    if (j.n_chunks > j.n_tasks) j.n_chunks = (int)j.n_tasks;
    qdqi_parallel(engine, j.n_chunks, run_chunk, &j);
    return QDQ_OK;
}
