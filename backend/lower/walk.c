#include "lower/walk.h"

#include "base/alloc.h"
#include "base/dtype.h"

#include <string.h>

enum { N_ENDS = QDQI_WALK_SOURCES + 1 };

typedef struct walk_impl {
    qdqi_walk_row row;
    int64_t run, n_rows; /* elements of the inner run; how many of them */
    int32_t n_outer;
    int64_t outer_dims[QDQ_MAX_NDIMS];
    int64_t strides_bytes[N_ENDS][QDQ_MAX_NDIMS];
    int64_t grain;
} walk_impl;

typedef struct walk_job {
    const walk_impl *walk;
    void *const *bufs;
    int64_t rows_per_chunk, elems_per_chunk; /* one of them splits */
} walk_job;

static void walk_rows(const walk_impl *w, void *const *bufs, int64_t first_row, int64_t n_rows, int64_t first,
                      int64_t n) {
    const uint32_t n_src = w->row.n_src;
    int64_t at[QDQ_MAX_NDIMS] = {0};
    const char *src[N_ENDS];
    char *dst = bufs[n_src];
    int64_t rest = first_row;
    for (int32_t d = w->n_outer - 1; d >= 0; d--) {
        at[d] = rest % w->outer_dims[d];
        rest /= w->outer_dims[d];
    }
    for (uint32_t k = 0; k <= n_src; k++) {
        int64_t offset = first * w->row.bytes[k] * w->row.step[k];
        for (int32_t d = 0; d < w->n_outer; d++)
            offset += at[d] * w->strides_bytes[k][d];
        if (k == n_src)
            dst += offset;
        else
            src[k] = (const char *)bufs[k] + offset;
    }
    for (int64_t r = 0; r < n_rows; r++) {
        w->row.run(&w->row, src, dst, n);
        for (int32_t d = w->n_outer - 1; d >= 0; d--) {
            const bool more = ++at[d] < w->outer_dims[d];
            const int64_t move = more ? 1 : 1 - w->outer_dims[d];
            for (uint32_t k = 0; k < n_src; k++)
                src[k] += move * w->strides_bytes[k][d];
            dst += move * w->strides_bytes[n_src][d];
            if (more) break;
            at[d] = 0;
        }
    }
}

static void walk_chunk(int i, void *arg) {
    const walk_job *job = arg;
    const walk_impl *w = job->walk;
    if (job->elems_per_chunk != 0) {
        const int64_t first = i * job->elems_per_chunk, left = w->run - first;
        if (left > 0) walk_rows(w, job->bufs, 0, 1, first, left < job->elems_per_chunk ? left : job->elems_per_chunk);
        return;
    }
    const int64_t first = i * job->rows_per_chunk, left = w->n_rows - first;
    if (left > 0) walk_rows(w, job->bufs, first, left < job->rows_per_chunk ? left : job->rows_per_chunk, 0, w->run);
}

static qdq_status walk_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state, (void)err;
    const walk_impl *w = impl;
    const int threads = qdqi_threads_for(engine, w->run * w->n_rows, w->grain);
    walk_job job = {.walk = w, .bufs = bufs};
    if (w->n_rows == 1)
        job.elems_per_chunk = ((w->run + threads - 1) / threads + 63) / 64 * 64;
    else
        job.rows_per_chunk = (w->n_rows + threads - 1) / threads;
    qdqi_parallel(engine, threads, walk_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops walk_ops = {.provider = "native", .run = walk_run, .impl_destroy = qdqi_free};

/* dst dims in memory order, outermost first, without those of size 1 */
static int32_t order_by_stride(const qdq_tensor_desc *dst, int32_t *order) {
    int32_t n = 0;
    for (int32_t d = 0; d < dst->ndims; d++) {
        if (dst->dims[d] == 1) continue;
        int32_t k = n++;
        for (; k > 0 && dst->strides[order[k - 1]] < dst->strides[d]; k--)
            order[k] = order[k - 1];
        order[k] = d;
    }
    return n;
}

/* Stride of an operand along dst dim d (0 where it broadcasts). */
static int64_t stride_of(const qdq_tensor_desc *desc, int32_t dst_ndims, int32_t d) {
    const int32_t own = d - (dst_ndims - desc->ndims);
    return own < 0 || desc->dims[own] == 1 ? 0 : desc->strides[own];
}

static void set_walk(walk_impl *w, const qdq_tensor_desc descs[N_ENDS]) {
    const uint32_t last = w->row.n_src;
    const int32_t nd = descs[last].ndims;
    int32_t order[QDQ_MAX_NDIMS];
    int32_t inner = order_by_stride(&descs[last], order);
    w->run = 1;
    for (uint32_t k = 0; k <= last; k++)
        w->row.step[k] = inner == 0 ? k == last : stride_of(&descs[k], nd, order[inner - 1]) != 0;
    for (bool fits = true; inner > 0; inner--) {
        const int32_t d = order[inner - 1];
        for (uint32_t k = 0; k <= last; k++)
            fits = fits && stride_of(&descs[k], nd, d) == (w->row.step[k] != 0 ? w->run : 0);
        if (!fits) break;
        w->run *= descs[last].dims[d];
    }
    w->n_rows = 1;
    w->n_outer = inner;
    for (int32_t i = 0; i < inner; i++) {
        w->outer_dims[i] = descs[last].dims[order[i]];
        w->n_rows *= w->outer_dims[i];
        for (uint32_t k = 0; k <= last; k++)
            w->strides_bytes[k][i] = stride_of(&descs[k], nd, order[i]) * w->row.bytes[k];
    }
}

static bool broadcasts_to(const qdq_tensor_desc *src, const qdq_tensor_desc *dst) {
    const int32_t add = dst->ndims - src->ndims;
    for (int32_t d = 0; d < src->ndims; d++)
        if (add < 0 || (src->dims[d] != 1 && src->dims[d] != dst->dims[d + add])) return false;
    return add >= 0;
}

qdq_status qdqi_lower_walk(qdqi_lower *lw, const qdqi_walk_row *row, const uint32_t *in,
                           const qdq_tensor_desc *const *views, uint32_t out, int64_t grain, const char *note,
                           qdq_error *err) {
    const uint32_t n = row->n_src;
    qdq_tensor_desc descs[N_ENDS];
    qdqi_buf bufs[N_ENDS];
    walk_impl w = {.row = *row, .grain = grain};
    if (n > QDQI_WALK_SOURCES) return qdqi_refuse(err, "walk", "too_many_operands");
    descs[n] = qdqi_lower_val(lw, out)->desc;
    qdqi_lower_out_layout(lw, out, &descs[n]);
    if (!qdqi_is_packed(&descs[n])) qdqi_set_dense(&descs[n]);
    for (uint32_t k = n;
         k-- > 0;) { /* the first source of the whole shape gives its layout, where the result has none */
        const qdqi_lval *lv = qdqi_lower_val(lw, in[k]);
        const qdqi_lval *to = qdqi_lower_val(lw, out);
        if ((!to->is_port_out || to->port_any) && lv->data == NULL && qdqi_same_dims(&lv->desc, &descs[n]) &&
            qdqi_is_packed(&lv->desc))
            memcpy(descs[n].strides, lv->desc.strides, sizeof descs[n].strides);
    }
    for (uint32_t k = 0; k < n; k++) {
        descs[k] = qdqi_lower_val(lw, in[k])->desc;
        if (qdqi_same_dims(&descs[k], &descs[n]))
            memcpy(descs[k].strides, descs[n].strides, sizeof descs[k].strides);
        else
            qdqi_set_dense(&descs[k]);
        QDQI_TRY(qdqi_lower_read_as(lw, in[k], &descs[k], &bufs[k], err));
        if (views != NULL && views[k] != NULL) descs[k] = *views[k];
        if (!broadcasts_to(&descs[k], &descs[n])) return qdqi_refuse(err, "walk", "shape");
    }
    for (uint32_t k = 0; k <= n; k++) {
        w.row.dtype[k] = descs[k].dtype;
        w.row.bytes[k] = (int64_t)qdq_dtype_bits(descs[k].dtype) / 8;
        if (w.row.bytes[k] == 0) return qdqi_refuse(err, "walk", "sub_byte_dtype");
    }
    set_walk(&w, descs);
    QDQI_TRY(qdqi_lower_write(lw, out, &descs[n], &bufs[n], err));
    walk_impl *impl = qdqi_malloc(sizeof *impl);
    if (impl == NULL) return QDQI_NO_MEMORY(err);
    *impl = w;
    QDQI_TRY(qdqi_plan_step(lw->plan, &walk_ops, impl, bufs, n + 1, lw->part, note, err));
    return qdqi_lower_written(lw, out, err);
}
