#include "lower/walk.h"

#include "base/alloc.h"
#include "base/dtype.h"

#include <string.h>

/* ---- running it -------------------------------------------------------------------------------------------------- */

typedef struct walk_job {
    const qdqi_walk *walk;
    qdqi_walk_fn *fn;
    const void *impl;
    void *const *bufs;
    int64_t rows_per_chunk, elems_per_chunk; /* one of them splits */
} walk_job;

/* n elements from `first` on of each of n_rows rows. */
static void walk_rows(const walk_job *job, int64_t first_row, int64_t n_rows, int64_t first, int64_t n) {
    const qdqi_walk *w = job->walk;
    const uint32_t n_src = w->n_src;
    int64_t at[QDQ_MAX_NDIMS] = {0};
    const void *src[QDQI_WALK_SOURCES];
    char *dst = job->bufs[n_src];
    int64_t rest = first_row;
    for (int32_t d = w->n_outer - 1; d >= 0; d--) {
        at[d] = rest % w->outer_dims[d];
        rest /= w->outer_dims[d];
    }
    for (uint32_t k = 0; k <= n_src; k++) {
        int64_t offset = first * w->elem_bytes[k] * w->step[k];
        for (int32_t d = 0; d < w->n_outer; d++)
            offset += at[d] * w->strides_bytes[k][d];
        if (k == n_src)
            dst += offset;
        else
            src[k] = (const char *)job->bufs[k] + offset;
    }
    for (int64_t r = 0; r < n_rows; r++) {
        job->fn(job->impl, src, dst, n);
        for (int32_t d = w->n_outer - 1; d >= 0; d--) {
            const bool more = ++at[d] < w->outer_dims[d];
            const int64_t move = more ? 1 : 1 - w->outer_dims[d];
            for (uint32_t k = 0; k < n_src; k++)
                src[k] = (const char *)src[k] + move * w->strides_bytes[k][d];
            dst += move * w->strides_bytes[n_src][d];
            if (more) break;
            at[d] = 0;
        }
    }
}

static void walk_chunk(int i, void *arg) {
    const walk_job *job = arg;
    const qdqi_walk *w = job->walk;
    if (job->elems_per_chunk != 0) {
        const int64_t first = i * job->elems_per_chunk, left = w->run - first;
        if (left > 0) walk_rows(job, 0, 1, first, left < job->elems_per_chunk ? left : job->elems_per_chunk);
        return;
    }
    const int64_t first = i * job->rows_per_chunk, left = w->n_rows - first;
    if (left > 0) walk_rows(job, first, left < job->rows_per_chunk ? left : job->rows_per_chunk, 0, w->run);
}

void qdqi_walk_run(const qdqi_walk *w, qdqi_walk_fn *fn, const void *impl, int64_t grain, void *const *bufs,
                   const qdq_engine *engine) {
    const int threads = qdqi_threads_for(engine, w->run * w->n_rows, grain);
    walk_job job = {.walk = w, .fn = fn, .impl = impl, .bufs = bufs};
    if (w->n_rows == 1)
        job.elems_per_chunk = ((w->run + threads - 1) / threads + 63) / 64 * 64;
    else
        job.rows_per_chunk = (w->n_rows + threads - 1) / threads;
    qdqi_parallel(engine, threads, walk_chunk, &job);
}

bool qdqi_walk_is_alike(const qdqi_walk *w, uint32_t k) {
    const uint32_t dst = w->n_src;
    if (k >= dst || w->elem_bytes[k] != w->elem_bytes[dst] || w->step[k] != 1) return false;
    for (int32_t d = 0; d < w->n_outer; d++)
        if (w->strides_bytes[k][d] != w->strides_bytes[dst][d]) return false;
    return true;
}

/* ---- planning it ------------------------------------------------------------------------------------------------- */

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

static bool broadcasts_to(const qdq_tensor_desc *src, const qdq_tensor_desc *dst) {
    const int32_t add = dst->ndims - src->ndims;
    for (int32_t d = 0; d < src->ndims; d++)
        if (add < 0 || (src->dims[d] != 1 && src->dims[d] != dst->dims[d + add])) return false;
    return add >= 0;
}

qdq_status qdqi_walk_init(const qdq_tensor_desc *descs, uint32_t n_src, qdqi_walk *w, qdq_error *err) {
    const qdq_tensor_desc *dst = &descs[n_src];
    const int32_t nd = dst->ndims;
    int32_t order[QDQ_MAX_NDIMS];
    int32_t inner = order_by_stride(dst, order);
    *w = (qdqi_walk){.n_src = n_src, .run = 1, .n_rows = 1};
    for (uint32_t k = 0; k <= n_src; k++) {
        if (!broadcasts_to(&descs[k], dst)) return qdqi_refuse(err, "walk", "shape");
        w->elem_bytes[k] = (int64_t)qdq_dtype_bits(descs[k].dtype) / 8;
        if (w->elem_bytes[k] == 0) return qdqi_refuse(err, "walk", "sub_byte_dtype");
        w->step[k] = inner == 0 ? k == n_src : stride_of(&descs[k], nd, order[inner - 1]) != 0;
    }
    for (bool fits = true; inner > 0; inner--) {
        const int32_t d = order[inner - 1];
        for (uint32_t k = 0; k <= n_src; k++)
            fits = fits && stride_of(&descs[k], nd, d) == (w->step[k] != 0 ? w->run : 0);
        if (!fits) break;
        w->run *= dst->dims[d];
    }
    w->n_outer = inner;
    for (int32_t i = 0; i < inner; i++) {
        w->outer_dims[i] = dst->dims[order[i]];
        w->n_rows *= w->outer_dims[i];
        for (uint32_t k = 0; k <= n_src; k++)
            w->strides_bytes[k][i] = stride_of(&descs[k], nd, order[i]) * w->elem_bytes[k];
    }
    return QDQ_OK;
}

/* ---- a step of one function -------------------------------------------------------------------------------------- */

static qdq_status row_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state, (void)err;
    const qdqi_walk_row *row = impl;
    qdqi_walk_run(&row->walk, row->run, row, row->grain, bufs, engine);
    return QDQ_OK;
}

static bool row_may_share(const void *impl, uint32_t k) {
    const qdqi_walk_row *row = impl;
    return k < row->n_src && (row->may_share >> k & 1) != 0 && qdqi_walk_is_alike(&row->walk, k);
}

static const qdqi_step_ops row_ops = {
    .provider = "native", .run = row_run, .impl_destroy = qdqi_free, .may_share = row_may_share};

/* Bytes that an element of the result moves. */
static int64_t bytes_each(const qdqi_walk *w) {
    int64_t bytes = w->elem_bytes[w->n_src];
    for (uint32_t k = 0; k < w->n_src; k++)
        bytes += w->step[k] * w->elem_bytes[k];
    return bytes;
}

qdq_status qdqi_lower_walk(qdqi_lower *lw, const qdqi_walk_row *row, const uint32_t *in,
                           const qdq_tensor_desc *const *views, uint32_t out, int64_t grain, const char *note,
                           qdq_error *err) {
    const uint32_t n = row->n_src;
    qdq_tensor_desc descs[QDQI_ROW_SOURCES + 1];
    qdqi_buf bufs[QDQI_ROW_SOURCES + 1];
    qdqi_walk_row filled = *row;
    if (n > QDQI_ROW_SOURCES) return qdqi_refuse(err, "walk", "too_many_operands");
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
    }
    for (uint32_t k = 0; k <= n; k++)
        filled.dtype[k] = descs[k].dtype;
    QDQI_TRY(qdqi_walk_init(descs, n, &filled.walk, err));
    filled.grain = grain == QDQI_WALK_MOVES ? QDQI_WALK_GRAIN_BYTES / bytes_each(&filled.walk) : grain;
    QDQI_TRY(qdqi_lower_write(lw, out, &descs[n], &bufs[n], err));
    qdqi_walk_row *impl = qdqi_malloc(sizeof *impl);
    if (impl == NULL) return QDQI_NO_MEMORY(err);
    *impl = filled;
    QDQI_TRY(qdqi_plan_step(lw->plan, &row_ops, impl, bufs, n + 1, lw->part, note, err));
    return qdqi_lower_written(lw, out, err);
}
