/* MatMul, Gemm, MatMulInteger, QLinearMatMul: numpy.matmul shapes. Integer products are exact; an s32 result saturates. */
#include "ref/ref_fns.h"
#include "ref/ref_gemm.h"
#include "ref/ref_quant.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

/* What a batch of products looks like; strides in elements of the dense operands. */
typedef struct shape_plan {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
    int32_t n_batch_dims;
    int64_t batch[QDQ_MAX_NDIMS], a_batch[QDQ_MAX_NDIMS], b_batch[QDQ_MAX_NDIMS];
    int64_t n_batches;
} shape_plan;

static void batch_strides(const qdq_tensor_desc *desc, int32_t n_batch_dims, int64_t matrix, int64_t *dims,
                          int64_t *strides) {
    const int32_t own = desc->ndims > 2 ? desc->ndims - 2 : 0;
    int64_t stride = matrix;
    for (int32_t d = 0; d < n_batch_dims; d++)
        strides[d] = 0;
    for (int32_t d = own - 1; d >= 0; d--) {
        const int32_t to = d + n_batch_dims - own;
        if (desc->dims[d] != 1) {
            strides[to] = stride;
            dims[to] = desc->dims[d];
        }
        stride *= desc->dims[d];
    }
}

static qdq_status find_plan(qdqi_ref_ctx *c, const qdq_tensor_desc *a, const qdq_tensor_desc *b, bool ta, bool tb,
                            shape_plan *p) {
    memset(p, 0, sizeof *p);
    if (a->ndims < 1 || b->ndims < 1)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "operands of rank %d and %d", a->ndims, b->ndims);
    const int64_t a1 = a->dims[a->ndims - 1], a0 = a->ndims > 1 ? a->dims[a->ndims - 2] : 1;
    const int64_t b1 = b->ndims > 1 ? b->dims[b->ndims - 1] : 1;
    const int64_t b0 = b->ndims > 1 ? b->dims[b->ndims - 2] : b->dims[0];
    ta = ta && a->ndims > 1;
    tb = tb && b->ndims > 1;
    p->m = ta ? a1 : a0;
    p->k = ta ? a0 : a1;
    p->n = tb ? b0 : b1;
    p->a_row = ta ? 1 : a1;
    p->a_col = ta ? a1 : 1;
    p->b_row = tb ? 1 : b1;
    p->b_col = tb ? b1 : 1;
    if ((tb ? b1 : b0) != p->k)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the operands have %lld and %lld terms", (long long)p->k,
                             (long long)(tb ? b1 : b0));
    const int32_t na = a->ndims > 2 ? a->ndims - 2 : 0, nb = b->ndims > 2 ? b->ndims - 2 : 0;
    p->n_batch_dims = na > nb ? na : nb;
    for (int32_t d = 0; d < p->n_batch_dims; d++)
        p->batch[d] = 1;
    batch_strides(a, p->n_batch_dims, a0 * a1, p->batch, p->a_batch);
    batch_strides(b, p->n_batch_dims, b0 * b1, p->batch, p->b_batch);
    p->n_batches = 1;
    for (int32_t d = 0; d < p->n_batch_dims; d++)
        p->n_batches *= p->batch[d];
    /* one matrix for all batches of plain rows: one long product, so that it is packed once */
    if (!ta && nb == 0 && na > 0) {
        p->m *= p->n_batches;
        p->n_batches = 1;
        p->n_batch_dims = 0;
    }
    return QDQ_OK;
}

typedef struct mm_job {
    shape_plan p;
    int64_t batch;
    float *y_f;
    int32_t *y_q;
    /* addend of a float product, broadcast to [batch x m, n] */
    const float *add;
    const int64_t *add_rows; /* offset of each row, NULL: 0 */
    int64_t add_col;
    double alpha, beta;
    /* requantization */
    const float *sa, *sb, *sy;
    int64_t sa_stride, sb_stride;
    int64_t zp, lo, hi;
} mm_job;

static void emit_float(void *arg, int64_t row, int64_t col, int64_t n, const double *acc) {
    const mm_job *j = arg;
    const int64_t at = j->batch * j->p.m + row;
    float *to = j->y_f + at * j->p.n + col;
    const float *add = j->add == NULL ? NULL : j->add + (j->add_rows == NULL ? 0 : j->add_rows[at]);
    for (int64_t i = 0; i < n; i++) {
        double v = j->alpha * acc[i];
        if (add != NULL) v += j->beta * (double)add[(col + i) * j->add_col];
        to[i] = (float)v;
    }
}

static void emit_s32(void *arg, int64_t row, int64_t col, int64_t n, const double *acc) {
    const mm_job *j = arg;
    int32_t *to = j->y_q + (j->batch * j->p.m + row) * j->p.n + col;
    for (int64_t i = 0; i < n; i++)
        to[i] = qdqi_ref_sat(acc[i], INT32_MIN, INT32_MAX, 0);
}

static void emit_requantized(void *arg, int64_t row, int64_t col, int64_t n, const double *acc) {
    const mm_job *j = arg;
    int32_t *to = j->y_q + (j->batch * j->p.m + row) * j->p.n + col;
    for (int64_t i = 0; i < n; i++) {
        const double real = acc[i] * (double)j->sa[row * j->sa_stride] * (double)j->sb[(col + i) * j->sb_stride];
        to[i] = qdqi_ref_sat(rint(real / (double)*j->sy) + (double)j->zp, j->lo, j->hi, j->zp);
    }
}

static void run_batches(mm_job *j, qdqi_ref_mat a, qdqi_ref_mat b, double *scratch, qdqi_ref_emit emit) {
    const shape_plan *p = &j->p;
    qdqi_ref_rows r;
    a.row_stride = p->a_row;
    a.col_stride = p->a_col;
    b.row_stride = p->b_row;
    b.col_stride = p->b_col;
    /* a last dim of 1 makes every batch a row of its own */
    int64_t dims[QDQ_MAX_NDIMS + 1], sa[QDQ_MAX_NDIMS + 1] = {0}, sb[QDQ_MAX_NDIMS + 1] = {0};
    for (int32_t d = 0; d < p->n_batch_dims; d++) {
        dims[d] = p->batch[d];
        sa[d] = p->a_batch[d];
        sb[d] = p->b_batch[d];
    }
    dims[p->n_batch_dims] = 1;
    qdqi_ref_rows_init(&r, p->n_batch_dims + 1, dims);
    qdqi_ref_rows_add(&r, p->n_batch_dims + 1, sa);
    qdqi_ref_rows_add(&r, p->n_batch_dims + 1, sb);
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        qdqi_ref_mat at = a, bt = b;
        if (at.f != NULL) at.f += r.off[0];
        if (at.q != NULL) at.q += r.off[0];
        if (bt.f != NULL) bt.f += r.off[1];
        if (bt.q != NULL) bt.q += r.off[1];
        j->batch = r.row;
        qdqi_ref_product(p->m, p->n, p->k, &at, &bt, scratch, emit, j);
    }
}

/* Offsets of an addend for every row of [rows, n]: numpy broadcast of `add` to the dims of dst (rank >= 1). */
static void addend_rows(const qdq_tensor_desc *add, const qdq_tensor_desc *dst, bool has_cols, int64_t *rows_out,
                        int64_t *col_out) {
    qdqi_ref_rows r;
    int32_t nd = dst->ndims;
    int64_t dims[QDQ_MAX_NDIMS + 1];
    memcpy(dims, dst->dims, sizeof dst->dims);
    int64_t dense[QDQ_MAX_NDIMS], strides[QDQ_MAX_NDIMS + 1] = {0};
    qdqi_dense_strides(add->ndims, add->dims, dense);
    for (int32_t d = 0; d < add->ndims && d < nd; d++)
        strides[nd - 1 - d] = add->dims[add->ndims - 1 - d] == 1 ? 0 : dense[add->ndims - 1 - d];
    if (!has_cols) { /* dst lost its column dim: put it back */
        dims[nd] = 1;
        strides[nd++] = 0;
    }
    qdqi_ref_rows_init(&r, nd, dims);
    qdqi_ref_rows_add(&r, nd, strides);
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r))
        rows_out[r.row] = r.off[0];
    *col_out = nd > 0 ? strides[nd - 1] : 0;
}

static qdq_status float_product(qdqi_ref_ctx *c, bool ta, bool tb, double alpha, double beta) {
    mm_job j = {.alpha = alpha, .beta = beta};
    const qdq_tensor_desc *dst = c->out[0].desc;
    QDQI_TRY(find_plan(c, c->in[0].desc, c->in[1].desc, ta, tb, &j.p));
    const int64_t n_rows = j.p.m * j.p.n_batches;
    const qdqi_ref_mat a = {.f = qdqi_ref_in_f32(c, 0)}, b = {.f = qdqi_ref_in_f32(c, 1)};
    j.add = qdqi_ref_in_f32(c, 2);
    int64_t *rows = qdqi_ref_temp(c, qdqi_ref_has_in(c, 2) ? n_rows : 0, sizeof *rows);
    double *scratch = qdqi_ref_temp(c, qdqi_ref_product_doubles(j.p.k), sizeof *scratch);
    j.y_f = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    if (j.add != NULL && qdqi_n_elems(dst) != 0) {
        addend_rows(c->in[2].desc, dst, c->in[1].desc->ndims > 1, rows, &j.add_col);
        j.add_rows = rows;
    }
    run_batches(&j, a, b, scratch, emit_float);
    return QDQ_OK;
}

qdq_status qdqi_ref_matmul(qdqi_ref_ctx *c) {
    return float_product(c, qdqi_op_bool(c->op, QDQI_A_TRANSPOSE_A), qdqi_op_bool(c->op, QDQI_A_TRANSPOSE_B), 1.0, 1.0);
}

qdq_status qdqi_ref_gemm(qdqi_ref_ctx *c) {
    return float_product(c, qdqi_op_bool(c->op, QDQI_A_TRANSA), qdqi_op_bool(c->op, QDQI_A_TRANSB),
                         (double)qdqi_op_f32(c->op, QDQI_A_ALPHA), (double)qdqi_op_f32(c->op, QDQI_A_BETA));
}

/* Parameters per row or column: one for all, or one each. */
static qdq_status param_stride(qdqi_ref_ctx *c, uint32_t port, int64_t each, int64_t *stride_out) {
    const int64_t n = qdqi_ref_has_in(c, port) ? qdqi_n_elems(c->in[port].desc) : 1;
    *stride_out = n == 1 ? 0 : 1;
    if (n == 1 || n == each) return QDQ_OK;
    return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input %u has %lld values, expected 1 or %lld", port, (long long)n,
                         (long long)each);
}

qdq_status qdqi_ref_matmulinteger(qdqi_ref_ctx *c) {
    mm_job j = {0};
    QDQI_TRY(find_plan(c, c->in[0].desc, c->in[1].desc, false, false, &j.p));
    qdqi_ref_mat a = {.q = qdqi_ref_in_i32(c, 0), .zp = qdqi_ref_in_i64(c, 2)};
    qdqi_ref_mat b = {.q = qdqi_ref_in_i32(c, 1), .zp = qdqi_ref_in_i64(c, 3)};
    double *scratch = qdqi_ref_temp(c, qdqi_ref_product_doubles(j.p.k), sizeof *scratch);
    j.y_q = qdqi_ref_out_i32(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(param_stride(c, 2, j.p.m, &a.zp_stride));
    QDQI_TRY(param_stride(c, 3, j.p.n, &b.zp_stride));
    run_batches(&j, a, b, scratch, emit_s32);
    return QDQ_OK;
}

qdq_status qdqi_ref_qlinearmatmul(qdqi_ref_ctx *c) {
    const qdq_dtype dtype = c->out[0].desc->dtype;
    mm_job j = {.lo = qdqi_dtype_min(dtype), .hi = qdqi_dtype_max(dtype)};
    QDQI_TRY(find_plan(c, c->in[0].desc, c->in[3].desc, false, false, &j.p));
    qdqi_ref_mat a = {.q = qdqi_ref_in_i32(c, 0), .zp = qdqi_ref_in_i64(c, 2)};
    qdqi_ref_mat b = {.q = qdqi_ref_in_i32(c, 3), .zp = qdqi_ref_in_i64(c, 5)};
    j.sa = qdqi_ref_in_f32(c, 1);
    j.sb = qdqi_ref_in_f32(c, 4);
    j.sy = qdqi_ref_in_f32(c, 6);
    const int64_t *zp = qdqi_ref_in_i64(c, 7);
    double *scratch = qdqi_ref_temp(c, qdqi_ref_product_doubles(j.p.k), sizeof *scratch);
    j.y_q = qdqi_ref_out_i32(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(param_stride(c, 1, j.p.m, &j.sa_stride));
    QDQI_TRY(param_stride(c, 2, j.p.m, &a.zp_stride));
    QDQI_TRY(param_stride(c, 4, j.p.n, &j.sb_stride));
    QDQI_TRY(param_stride(c, 5, j.p.n, &b.zp_stride));
    int64_t one;
    QDQI_TRY(param_stride(c, 6, 1, &one));
    QDQI_TRY(param_stride(c, 7, 1, &one));
    if (!isfinite(*j.sy) || *j.sy == 0.0f) return qdqi_ref_fail(c, QDQ_E_BAD_SCALE, "y_scale is %g", (double)*j.sy);
    j.zp = zp == NULL ? 0 : *zp;
    run_batches(&j, a, b, scratch, emit_requantized);
    return QDQ_OK;
}
