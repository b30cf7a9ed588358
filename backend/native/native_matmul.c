/* Products on kernels/igemm with the epilogue of kernels/post: integers of 8 bits with exact sums, or floats: bf16 by bf16 as they are
 * where the CPU has it, other half floats as f32.
 *
 * Weights that are constant (`any`) are packed when the plan is made; others into the scratch, at each execution, or read where they lie
 * by a few rows. Sources whose k is not contiguous, or which become f32, are copied there, too. Zero points become compensations:
 *
 *     Σ (a - za)(w - zw) = Σ a' w' + za' (K zw' - col_sum) - zw' row_sum          (kernels/igemm/igemm.h)
 */
#include "base/checked.h"
#include "base/dtype.h"
#include "kernels/igemm/igemm.h"
#include "native/native_post.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    TILE_BYTES = 256 * 1024, /* of the rows that meet one panel after the other */
    PART_ROWS = 6,           /* fewer are no part of their own */
    FEW_ROWS = 12,           /* do not pay for packing what can be read where it lies, … */
    DOT_ROWS = 3,            /* … nor columns whose k are consecutive */
    LINE_PANELS = 8,         /* of the columns of a few rows of integers, at a time */
    FOLD_K = 16384,          /* sums of so many products and a bias of up to 2^30 fit in s32 */
};
#define GRAIN_INT8 3e5 /* multiplications that pay for another thread */
#define GRAIN_F32  1e5

typedef struct mm_impl {
    qk_igemm gemm;
    qk_igemm one_panel, last_panel; /* of one that stands alone: a whole one, and the last of the matrix */
    qdqi_native_post post;
    qk_post folded; /* the program with an s32 bias already in col_add, which is cheaper; fn NULL: there is none */
    qk_post_fn *folded_fn;
    bool has_end, folded_has_end; /* qk_igemm_end can say the program: results are made while sums are in registers */
    qk_igemm_end end;             /* what of it no run changes, of both programs */
    bool is_small;                /* one product for one thread, little enough for each step of the way to count */
    size_t m, k, n, n_batch, n_mats; /* products; matrices of weights */
    int32_t n_outer;                 /* batch dims, first to last */
    int64_t outer[QDQ_MAX_NDIMS];
    ptrdiff_t src_outer[QDQ_MAX_NDIMS], mat_outer[QDQ_MAX_NDIMS]; /* elements; matrices */
    ptrdiff_t src_row, src_k;
    qdq_dtype src_dtype;
    size_t src_elem, row_elem, mat_bytes; /* row_elem: as the kernel takes it */
    size_t n_cols;                        /* padded */
    qk_post widen;                        /* half floats to f32, where k is consecutive; fn NULL: not */
    qk_post_fn *widen_fn;
    bool copy_src, packed, has_zw, zw_per_col, has_col_add;
    qdqi_dnnl_md weights;
    uint32_t src, wei, bias, dst, scratch, scale_col;
    qdqi_native_attr_args args;
    size_t at_src, at_packed, at_row_sums, at_col_add, at_col_mul, scratch_bytes;
    double macs;
} mm_impl;

/* ---- running ------------------------------------------------------------------------------------------------------------ */

typedef struct mm_job {
    const mm_impl *mm;
    void *const *bufs;
    char *scratch;
    const char *packed;
    const int32_t *bias; /* folded; NULL: not */
    const qk_post *post;
    qk_post_fn *post_fn;
    bool has_end, packs_as_it_goes, is_line; /* weights are not packed at all */
    size_t m_parts, n_units, chunk;
} mm_job;

/* Batch index b: its index in each dim. */
static void unravel(const mm_impl *mm, size_t b, int64_t *index) {
    for (int32_t d = mm->n_outer - 1; d >= 0; d--) {
        index[d] = (int64_t)(b % (size_t)mm->outer[d]);
        b /= (size_t)mm->outer[d];
    }
}

static ptrdiff_t offset_of(const mm_impl *mm, const int64_t *index, const ptrdiff_t *strides) {
    ptrdiff_t at = 0;
    for (int32_t d = 0; d < mm->n_outer; d++)
        at += (ptrdiff_t)index[d] * strides[d];
    return at;
}

/* 16 k of all rows, then the next: lines of a transposed source are met again while they are in L1. */
#define COPY_ROWS(type, load)                                                                                          \
    do {                                                                                                               \
        type *to = (type *)(void *)dst;                                                                                \
        for (size_t first = 0; first < mm->k; first += 16) {                                                           \
            const size_t end = mm->k - first < 16 ? mm->k : first + 16;                                                \
            for (size_t r = 0; r < mm->m; r++)                                                                         \
                for (size_t k = first; k < end; k++) {                                                                 \
                    const ptrdiff_t at = (ptrdiff_t)r * mm->src_row + (ptrdiff_t)k * mm->src_k;                        \
                    to[r * mm->k + k] = (load);                                                                        \
                }                                                                                                      \
        }                                                                                                              \
    } while (0)

/* One matrix of the source, rows contiguous, floats as f32. */
static void copy_rows(const mm_impl *mm, const char *src, char *dst) {
    if (mm->widen_fn != NULL) {
        const qk_post_args a = {.dst = dst, .dst_stride = (ptrdiff_t)mm->k};
        mm->widen_fn(&mm->widen, &a, src, (size_t)mm->src_row, 0, mm->m, 0, mm->k);
    } else if (mm->src_elem == 1) {
        COPY_ROWS(uint8_t, ((const uint8_t *)src)[at]);
    } else if (mm->row_elem == 2) {
        COPY_ROWS(uint16_t, ((const uint16_t *)(const void *)src)[at]);
    } else if (mm->src_elem == 4) {
        COPY_ROWS(float, ((const float *)(const void *)src)[at]);
    } else {
        COPY_ROWS(float, qdqi_load_f32(src, mm->src_dtype, (int64_t)at));
    }
}

static const char *src_matrix(const mm_job *job, size_t b, const int64_t *index, ptrdiff_t *row_bytes) {
    const mm_impl *mm = job->mm;
    if (mm->copy_src) {
        *row_bytes = (ptrdiff_t)(mm->k * mm->row_elem);
        return job->scratch + mm->at_src + b * mm->m * (size_t)*row_bytes;
    }
    *row_bytes = mm->src_row * (ptrdiff_t)mm->src_elem;
    return (const char *)job->bufs[mm->src] + offset_of(mm, index, mm->src_outer) * (ptrdiff_t)mm->src_elem;
}

static qk_igemm_source source_of(const qdqi_dnnl_md *md, const char *data, size_t mat) {
    ptrdiff_t at = 0;
    for (int32_t d = md->ndims - 3; d >= 0; d--) {
        at += (ptrdiff_t)(mat % (size_t)md->dims[d]) * (ptrdiff_t)md->strides[d];
        mat /= (size_t)md->dims[d];
    }
    return (qk_igemm_source){data + at * (ptrdiff_t)(qdq_dtype_bits(md->dtype) / 8), md->dtype,
                             (ptrdiff_t)md->strides[md->ndims - 2], (ptrdiff_t)md->strides[md->ndims - 1]};
}

static void pack_matrix(const mm_impl *mm, const qdqi_dnnl_md *md, const char *data, size_t mat, void *packed,
                        size_t first, size_t n) {
    const qk_igemm_source s = source_of(md, data, mat);
    qk_igemm_pack(&mm->gemm, &s, packed, first, n);
}

/* Before the product: what has to be copied, and sums of rows; units are matrices of weights, then batches. */
static void prepare_chunk(int i, void *arg) {
    const mm_job *job = arg;
    const mm_impl *mm = job->mm;
    const size_t n_panels = mm->packed || job->packs_as_it_goes ? 0 : mm->n_mats * mm->gemm.n_panels;
    const size_t begin = (size_t)i * job->chunk,
                 end = begin + job->chunk < job->n_units ? begin + job->chunk : job->n_units;
    for (size_t u = begin; u < end; u++) {
        if (u < n_panels) {
            const size_t mat = u / mm->gemm.n_panels;
            pack_matrix(mm, &mm->weights, job->bufs[mm->wei], mat, job->scratch + mm->at_packed + mat * mm->mat_bytes,
                        u % mm->gemm.n_panels, 1);
            continue;
        }
        const size_t b = u - n_panels;
        int64_t index[QDQ_MAX_NDIMS];
        unravel(mm, b, index);
        if (mm->copy_src)
            copy_rows(mm,
                      (const char *)job->bufs[mm->src] + offset_of(mm, index, mm->src_outer) * (ptrdiff_t)mm->src_elem,
                      job->scratch + mm->at_src + b * mm->m * mm->k * mm->row_elem);
        if (!mm->has_zw) continue;
        ptrdiff_t row_bytes;
        const char *src = src_matrix(job, b, index, &row_bytes);
        int32_t *sums = (int32_t *)(void *)(job->scratch + mm->at_row_sums) + b * mm->m;
        mm->gemm.row_sums(&mm->gemm, &(qk_igemm_rows){src, row_bytes, mm->m}, sums);
    }
}

static int32_t *col_mul_of(const mm_job *job) {
    return (int32_t *)(void *)(job->scratch + job->mm->at_col_mul);
}
static int32_t *col_add_of(const mm_job *job, size_t mat) {
    return (int32_t *)(void *)(job->scratch + job->mm->at_col_add) + mat * job->mm->n_cols;
}

static void make_col_mul(const mm_job *job) {
    const mm_impl *mm = job->mm;
    const int32_t *zw = mm->args.zp_weights == QDQI_NO_ARG ? NULL : job->bufs[mm->args.zp_weights];
    int32_t *col_mul = col_mul_of(job);
    for (size_t c = 0; c < mm->n; c++)
        col_mul[c] = mm->gemm.weights_shift - (zw == NULL ? 0 : zw[mm->zw_per_col ? c : 0]);
}

/* col_add of n columns from column `first` of a matrix on, the folded bias in it; `sums` are those columns' sums. */
static void make_col_add(const mm_job *job, size_t mat, const int32_t *sums, size_t first, size_t n) {
    const mm_impl *mm = job->mm;
    if (!mm->has_col_add && job->bias == NULL) return;
    const uint32_t za = (uint32_t)(qdqi_native_zp(job->bufs, mm->args.zp_src) + mm->gemm.src_shift);
    const int32_t *col_mul = col_mul_of(job) + first;
    int32_t *out = col_add_of(job, mat) + first;
#pragma omp simd
    for (size_t c = 0; c < n; c++)
        out[c] = (int32_t)(0u - za * (uint32_t)sums[c]);
    for (size_t c = 0; mm->has_zw && c < n; c++)
        out[c] = (int32_t)((uint32_t)out[c] - za * (uint32_t)mm->k * (uint32_t)col_mul[c]);
    for (size_t c = 0; job->bias != NULL && c < n; c++)
        out[c] = (int32_t)((uint32_t)out[c] + (uint32_t)job->bias[first + c]);
}

static float scale_common(const mm_impl *mm, void *const *bufs) {
    const float src = qdqi_native_scale(bufs, mm->args.scale_src);
    if (mm->args.scale_weights == QDQI_NO_ARG || mm->post.post.scale != QK_POST_SCALE_COMMON) return src;
    return src * *(const float *)bufs[mm->args.scale_weights];
}

static void bind(const mm_job *job, size_t b, size_t mat, const int64_t *index, qk_post_args *a) {
    const mm_impl *mm = job->mm;
    qdqi_native_post_bind(&mm->post, &mm->args, mm->dst, job->bufs, mm->n_outer == 0 ? NULL : index, a);
    a->scale_common = scale_common(mm, job->bufs);
    if (mm->scale_col != QDQI_NO_ARG) a->scale = job->bufs[mm->scale_col];
    if (mm->bias != QDQI_NO_ARG) a->bias = job->bufs[mm->bias];
    a->col_add = col_add_of(job, mat);
    a->col_mul = col_mul_of(job);
    a->row_sum = (const int32_t *)(const void *)(job->scratch + mm->at_row_sums) + b * mm->m;
}

/* Where a block of one product is. */
typedef struct mm_block {
    const mm_job *job;
    const qk_post_args *args;
    const char *src, *packed;
    const qk_igemm *gemm; /* of the panels in `packed`, … */
    size_t first_panel;   /* … which begin with this one of the matrix */
    ptrdiff_t row_bytes;
    bool has_end;
    qk_igemm_end end; /* of row 0 and that panel */
} mm_block;

/* The program as the kernel's end. Results begin at dst. */
static qk_igemm_end end_of(const mm_job *job, const int32_t *col_add, void *dst) {
    const mm_impl *mm = job->mm;
    const qk_post *p = job->post;
    void *const *bufs = job->bufs;
    qk_igemm_end e = mm->end;
    e.add = p->has_col_add ? col_add : NULL;
    e.scale = p->scale == QK_POST_SCALE_COL ? bufs[mm->scale_col] : NULL;
    e.bias = p->bias == QDQ_DTYPE_UNDEF ? NULL : bufs[mm->bias];
    e.scale_common = scale_common(mm, bufs);
    e.zp = p->dst_has_zp ? (float)qdqi_native_zp(bufs, mm->args.zp_dst) : 0.0f;
    e.data = dst;
    return e;
}

/* The whole of a small product; false where an end refuses. */
static bool run_small(const mm_job *job) {
    const mm_impl *mm = job->mm;
    const qk_igemm_rows rows = {job->bufs[mm->src], mm->src_row * (ptrdiff_t)mm->src_elem, mm->m};
    const qk_igemm_end end =
        end_of(job, mm->has_col_add || job->bias != NULL ? col_add_of(job, 0) : NULL, job->bufs[mm->dst]);
    for (size_t p = 0; p < mm->gemm.n_panels; p++)
        if (!mm->gemm.run_to_end(&mm->gemm, job->packed, &rows, p, &end)) return false;
    return true;
}

static size_t end_elem(const qk_igemm_end *end) {
    return qdq_dtype_bits(end->dst) / 8;
}

/* Rows row … row + m - 1 of one panel. */
static void run_rows(const mm_block *b, size_t row, size_t m, size_t panel) {
    const mm_impl *mm = b->job->mm;
    const size_t col = panel * QK_IGEMM_COLS, n_cols = mm->n - col < QK_IGEMM_COLS ? mm->n - col : QK_IGEMM_COLS;
    qk_igemm_rows rows = {b->src + (ptrdiff_t)row * b->row_bytes, b->row_bytes, m};
    if (b->has_end) {
        qk_igemm_end end = b->end;
        end.data = (char *)end.data + (ptrdiff_t)row * end.stride * (ptrdiff_t)end_elem(&end);
        if (b->gemm->run_to_end(b->gemm, b->packed, &rows, panel - b->first_panel, &end)) return;
    }
    _Alignas(64) int32_t acc[QK_IGEMM_ROWS * QK_IGEMM_COLS];
    for (size_t done = 0; done < m; done += rows.m) {
        rows.data = b->src + (ptrdiff_t)(row + done) * b->row_bytes;
        rows.m = m - done < QK_IGEMM_ROWS ? m - done : QK_IGEMM_ROWS;
        b->gemm->run(b->gemm, b->packed, &rows, panel - b->first_panel, acc);
        b->job->post_fn(b->job->post, b->args, acc, QK_IGEMM_COLS, row + done, rows.m, col, n_cols);
    }
}

/* Rows begin … end - 1 of panels first … last - 1. All panels of a few rows where they stay in L2, so that rows are written whole;
 * else all rows of a panel that stay there. */
static void run_block(const mm_block *b, size_t begin, size_t end, size_t first, size_t last) {
    const mm_impl *mm = b->job->mm;
    size_t at_once = QK_IGEMM_ROWS;
    if ((last - first) * mm->gemm.panel_bytes > TILE_BYTES) {
        const size_t row_len = mm->k * mm->row_elem;
        at_once = TILE_BYTES / row_len / QK_IGEMM_ROWS * QK_IGEMM_ROWS;
        if (at_once < 2 * QK_IGEMM_ROWS) at_once = 2 * QK_IGEMM_ROWS;
    } else if (last - first == 1) {
        at_once = end - begin;
    }
    for (size_t top = begin; top < end; top += at_once)
        for (size_t p = first; p < last; p++)
            run_rows(b, top, end - top < at_once ? end - top : at_once, p);
}

/* Whether a panel is read where it lies; as floats whose rows are one panel lie as they are packed on some levels. */
static bool can_stay(const mm_impl *mm, const qk_igemm *g, const qk_igemm_source *s) {
    const bool is_packed = s->dtype == QDQ_DTYPE_F32 && g->nr == QK_IGEMM_COLS && s->k_stride == QK_IGEMM_COLS;
    return g->n == QK_IGEMM_COLS && g->row_sums == NULL && s->dtype == g->weights && s->n_stride == 1 &&
           s->k_stride >= QK_IGEMM_COLS && (mm->m <= FEW_ROWS || is_packed);
}

/* Rows of one panel times its columns, whose k are consecutive. */
static void run_dots(const mm_block *b, const qk_igemm *g, const qk_igemm_source *s, size_t panel) {
    const mm_impl *mm = b->job->mm;
    const qk_igemm_rows columns = {s->data, s->n_stride * (ptrdiff_t)mm->row_elem, g->n};
    _Alignas(64) float acc[DOT_ROWS * QK_IGEMM_COLS];
    for (size_t r = 0; r < mm->m; r++)
        g->dots(g, b->src + (ptrdiff_t)r * b->row_bytes, &columns, acc + r * QK_IGEMM_COLS);
    b->job->post_fn(b->job->post, b->args, acc, QK_IGEMM_COLS, 0, mm->m, panel * QK_IGEMM_COLS, g->n);
}

/* One panel that is packed right before it is multiplied, while it is in a cache: as much as a chunk needs of the scratch. */
static void run_panel(const mm_job *job, mm_block *b, int chunk, size_t mat, size_t panel, size_t begin, size_t end) {
    const mm_impl *mm = job->mm;
    const size_t col = panel * QK_IGEMM_COLS;
    const qk_igemm *g = panel + 1 == mm->gemm.n_panels ? &mm->last_panel : &mm->one_panel;
    char *packed = job->scratch + mm->at_packed + (size_t)chunk * mm->one_panel.packed_bytes;
    qk_igemm_source s = source_of(&mm->weights, job->bufs[mm->wei], mat);
    s.data = (const char *)s.data + (ptrdiff_t)col * s.n_stride * (ptrdiff_t)(qdq_dtype_bits(s.dtype) / 8);
    if (g->dots != NULL && mm->m <= DOT_ROWS && s.dtype == g->weights && s.k_stride == 1) {
        run_dots(b, g, &s, panel);
        return;
    }
    mm_block one = *b;
    qk_igemm in_place;
    if (can_stay(mm, g, &s)) {
        in_place = *g;
        in_place.k_step = (size_t)s.k_stride;
        one.packed = s.data;
        one.gemm = &in_place;
    } else {
        qk_igemm_pack(g, &s, packed, 0, 1);
        if (g->row_sums != NULL) make_col_add(job, mat, qk_igemm_col_sums(g, packed), col, g->n);
        one.packed = packed;
        one.gemm = g;
    }
    one.first_panel = panel;
    if (one.end.add != NULL) one.end.add += col;
    if (one.end.scale != NULL) one.end.scale += col;
    if (one.end.bias != NULL) one.end.bias += col;
    if (one.has_end) one.end.data = (char *)one.end.data + col * end_elem(&one.end);
    run_block(&one, begin, end, panel, panel + 1);
}

/* A few rows by the columns of panels first … last - 1, whose weights stay where they are. */
static bool run_line(const mm_job *job, const mm_block *b, size_t mat, size_t first, size_t last) {
    const mm_impl *mm = job->mm;
    const qk_igemm_source s = source_of(&mm->weights, job->bufs[mm->wei], mat);
    const int32_t zero = qdqi_native_zp(job->bufs, mm->args.zp_src) + mm->gemm.src_shift;
    int32_t acc[LINE_PANELS * QK_IGEMM_COLS];
    for (size_t p = first; p < last; p += LINE_PANELS) {
        const size_t end = last - p < LINE_PANELS ? last : p + LINE_PANELS, col = p * QK_IGEMM_COLS;
        const size_t n = (end * QK_IGEMM_COLS < mm->n ? end * QK_IGEMM_COLS : mm->n) - col;
        memset(acc, 0, n * sizeof *acc);
        make_col_add(job, mat, acc, col,
                     n); /* zero is taken off beforehand: no more than what the weights' zero points add */
        for (size_t r = 0; r < mm->m; r++) {
            if (!mm->gemm.line(&mm->gemm, (const uint8_t *)b->src + (ptrdiff_t)r * b->row_bytes, zero, &s, col, n, acc))
                return false;
            job->post_fn(job->post, b->args, acc, 0, r, 1, col, n);
        }
    }
    return true;
}

/* A chunk of units; a unit is a panel of a part of the rows of a batch. */
static void product_chunk(int i, void *arg) {
    const mm_job *job = arg;
    const mm_impl *mm = job->mm;
    const size_t n_panels = mm->gemm.n_panels;
    size_t u = (size_t)i * job->chunk;
    const size_t end = u + job->chunk < job->n_units ? u + job->chunk : job->n_units;
    qk_post_args a = {0};
    while (u < end) {
        const size_t first = u % n_panels, part = u / n_panels % job->m_parts, b = u / n_panels / job->m_parts;
        const size_t last = end - u < n_panels - first ? first + (end - u) : n_panels;
        const size_t top = mm->m * part / job->m_parts, bottom = mm->m * (part + 1) / job->m_parts;
        int64_t index[QDQ_MAX_NDIMS];
        ptrdiff_t row_bytes;
        unravel(mm, b, index);
        const size_t mat = (size_t)offset_of(mm, index, mm->mat_outer);
        bind(job, b, mat, index, &a);
        const char *src = src_matrix(job, b, index, &row_bytes);
        mm_block block = {.job = job,
                          .args = &a,
                          .src = src,
                          .packed = job->packed + mat * mm->mat_bytes,
                          .gemm = &mm->gemm,
                          .row_bytes = row_bytes,
                          .has_end = job->has_end};
        if (job->has_end) block.end = end_of(job, a.col_add, a.dst);
        if (job->is_line && run_line(job, &block, mat, first, last)) {
            u += last - first;
            continue;
        }
        if (!job->packs_as_it_goes)
            run_block(&block, top, bottom, first, last);
        else
            for (size_t p = first; p < last; p++)
                run_panel(job, &block, i, mat, p, top, bottom);
        u += last - first;
    }
}

static bool fits(const int32_t *bias, size_t n) {
    int32_t outside = 0;
    for (size_t c = 0; c < n; c++)
        outside |= bias[c] > 1 << 30 || bias[c] < -(1 << 30);
    return !outside;
}

static void parallel(const qdq_engine *engine, int n, void (*body)(int i, void *arg), void *arg) {
    if (n == 1)
        body(0, arg);
    else
        qdqi_parallel(engine, n, body, arg);
}

static qdq_status run(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const mm_impl *mm = impl;
    mm_job job = {
        .mm = mm, .bufs = bufs, .post = &mm->post.post, .post_fn = mm->post.fn, .has_end = mm->has_end, .m_parts = 1};
    job.scratch = mm->scratch == QDQI_NO_ARG ? NULL : bufs[mm->scratch];
    job.packed = mm->packed ? bufs[mm->wei] : job.scratch + mm->at_packed;
    const int threads = mm->is_small ? 1
                                     : qdqi_threads_for(engine, (int64_t)(mm->macs < 0x1p62 ? mm->macs : 0x1p62),
                                                        (int64_t)(mm->gemm.row_sums != NULL ? GRAIN_INT8 : GRAIN_F32));
    const size_t columns = mm->n_batch * mm->gemm.n_panels, wanted = threads == 1 ? 1 : 4 * (size_t)threads;
    if (columns < wanted) {
        const size_t most = (mm->m + PART_ROWS - 1) / PART_ROWS, parts = (wanted + columns - 1) / columns;
        job.m_parts = parts < most ? parts : most;
    }
    job.packs_as_it_goes = !mm->packed && mm->n_mats == mm->n_batch && job.m_parts == 1;
    job.is_line = job.packs_as_it_goes && mm->m <= mm->gemm.line_rows;
    job.n_units = (mm->packed || job.packs_as_it_goes ? 0 : mm->n_mats * mm->gemm.n_panels) +
                  (mm->copy_src || mm->has_zw ? mm->n_batch : 0);
    if (job.n_units != 0) {
        job.chunk = (job.n_units + (size_t)threads - 1) / (size_t)threads;
        parallel(engine, threads, prepare_chunk, &job);
    }
    if (mm->folded_fn != NULL && fits(bufs[mm->bias], mm->n)) {
        job.bias = bufs[mm->bias];
        job.post = &mm->folded;
        job.post_fn = mm->folded_fn;
        job.has_end = mm->folded_has_end;
    }
    if (mm->has_zw) make_col_mul(&job);
    for (size_t mat = 0; (mm->has_col_add || job.bias != NULL) && !job.packs_as_it_goes && mat < mm->n_mats; mat++)
        make_col_add(&job, mat, qk_igemm_col_sums(&mm->gemm, job.packed + mat * mm->mat_bytes), 0, mm->n);
    if (mm->is_small && job.has_end && run_small(&job)) return QDQ_OK;
    job.n_units = columns * job.m_parts;
    job.chunk = (job.n_units + (size_t)threads - 1) / (size_t)threads;
    parallel(engine, threads, product_chunk, &job);
    return QDQ_OK;
}

static qdq_status pack(const void *impl, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src, const void *src_data, void *dst,
                       qdq_error *err) {
    const mm_impl *mm = impl;
    bool same = arg == QDQI_DNNL_WEIGHTS && src->ndims == mm->weights.ndims && src->dtype == mm->weights.dtype;
    for (int32_t d = 0; same && d < src->ndims; d++)
        same = src->dims[d] == mm->weights.dims[d];
    if (!same) return qdqi_fail(err, QDQ_E_INTERNAL, "native matmul: packing weights of another form");
    for (size_t mat = 0; mat < mm->n_mats; mat++)
        pack_matrix(mm, src, src_data, mat, (char *)dst + mat * mm->mat_bytes, 0, mm->gemm.n_panels);
    return QDQ_OK;
}

/* ---- the request ---------------------------------------------------------------------------------------------------------- */

static bool is_half(qdq_dtype d) {
    return d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16;
}
static bool is_float(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || is_half(d);
}

/* One value, or one per column (mask) of f32 or s32. */
static bool value_mask_ok(bool has, int mask, int col_mask, const int64_t *group) {
    return !has || (group[0] <= 0 && group[1] <= 0 && (mask == 0 || mask == col_mask));
}

static const char *check_quant(const qdqi_dnnl_attr *attr, int32_t nd, bool integers) {
    if (attr == NULL) return NULL;
    const qdqi_dnnl_quant *s = &attr->src, *w = &attr->weights;
    if (attr->src1.has_scale || attr->src1.has_zp) return "no_native_kernel";
    if (!integers && (s->has_zp || w->has_zp)) return "no_native_kernel";
    if (!value_mask_ok(s->has_scale, s->scale_mask, 0, s->group) || !value_mask_ok(s->has_zp, s->zp_mask, 0, s->group))
        return "src_not_per_tensor";
    if (!value_mask_ok(w->has_scale, w->scale_mask, 1 << (nd - 1), w->group) ||
        !value_mask_ok(w->has_zp, w->zp_mask, 1 << (nd - 1), w->group))
        return "weights_axis_not_n";
    const qdq_dtype none = QDQ_DTYPE_UNDEF, f32 = QDQ_DTYPE_F32, s32 = QDQ_DTYPE_S32;
    const bool scales = (!s->has_scale || s->scale_dtype == f32 || s->scale_dtype == none) &&
                        (!w->has_scale || w->scale_dtype == f32 || w->scale_dtype == none);
    const bool zps = (!s->has_zp || s->zp_dtype == s32 || s->zp_dtype == none) &&
                     (!w->has_zp || w->zp_dtype == s32 || w->zp_dtype == none);
    return scales && zps ? NULL : "dtype";
}

/* Dims of the product, and which matrices meet. */
static const char *read_shapes(mm_impl *mm, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                               const qdqi_dnnl_md *dst) {
    const int32_t nd = dst->ndims;
    if (nd < 2 || src->ndims != nd || weights->ndims != nd) return "rank";
    mm->m = (size_t)dst->dims[nd - 2];
    mm->n = (size_t)dst->dims[nd - 1];
    mm->k = (size_t)src->dims[nd - 1];
    if (src->dims[nd - 2] != dst->dims[nd - 2] || weights->dims[nd - 1] != dst->dims[nd - 1] ||
        weights->dims[nd - 2] != src->dims[nd - 1])
        return "no_native_kernel";
    mm->n_outer = nd - 2;
    mm->n_batch = mm->n_mats = 1;
    for (int32_t d = nd - 3; d >= 0; d--) {
        const int64_t n = dst->dims[d];
        if ((src->dims[d] != n && src->dims[d] != 1) || (weights->dims[d] != n && weights->dims[d] != 1))
            return "broadcast";
        mm->outer[d] = n;
        mm->src_outer[d] = src->dims[d] == 1 ? 0 : (ptrdiff_t)src->strides[d];
        mm->mat_outer[d] = weights->dims[d] == 1 ? 0 : (ptrdiff_t)mm->n_mats;
        mm->n_batch *= (size_t)n;
        mm->n_mats *= (size_t)weights->dims[d];
    }
    mm->src_row = (ptrdiff_t)src->strides[nd - 2];
    mm->src_k = (ptrdiff_t)src->strides[nd - 1];
    mm->src_dtype = src->dtype;
    mm->src_elem = qdq_dtype_bits(src->dtype) / 8;
    mm->macs = (double)mm->n_batch * (double)mm->m * (double)mm->n * (double)mm->k;
    return NULL;
}

static const char *read_bias(mm_impl *mm, const qdqi_dnnl_md *bias, qk_post *post) {
    if (bias == NULL || bias->ndims == 0) return NULL;
    for (int32_t d = 0; d < bias->ndims; d++)
        if (bias->dims[d] != (d + 1 == bias->ndims ? (int64_t)mm->n : 1)) return "bias_shape";
    if (mm->n > 1 && bias->strides[bias->ndims - 1] != 1) return "bias_shape";
    post->bias = bias->dtype;
    return NULL;
}

static const char *choose_gemm(mm_impl *mm, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights) {
    qk_igemm *g = &mm->gemm;
    if (is_float(src->dtype) != is_float(weights->dtype)) return "operand_dtype";
    g->src = src->dtype;
    g->weights = weights->dtype;
    g->kc = mm->k;
    g->n = mm->n;
    g->is_lasting = mm->packed;
    if (!qk_igemm_init(g)) {
        if (!is_float(src->dtype)) return "operand_dtype";
        g->src = g->weights = QDQ_DTYPE_F32;
        if (!qk_igemm_init(g)) return "operand_dtype";
    }
    const bool is_row = mm->k == 1 || mm->src_k == 1, is_widened = g->src != src->dtype;
    mm->row_elem = qdq_dtype_bits(g->src) / 8;
    mm->copy_src = is_widened || !is_row;
    if (is_widened && is_row) {
        mm->widen = (qk_post){.acc = src->dtype, .dst = QDQ_DTYPE_F32};
        mm->widen_fn = qk_post_choose(&mm->widen, NULL);
    }
    mm->one_panel = mm->last_panel = *g;
    mm->one_panel.n = mm->n < QK_IGEMM_COLS ? mm->n : QK_IGEMM_COLS;
    mm->last_panel.n = mm->n - (g->n_panels - 1) * QK_IGEMM_COLS;
    if (!qk_igemm_init(&mm->one_panel) || !qk_igemm_init(&mm->last_panel)) return "operand_dtype";
    mm->mat_bytes = (g->packed_bytes + 63) / 64 * 64;
    mm->n_cols = g->n_panels * QK_IGEMM_COLS;
    mm->weights = *weights;
    return NULL;
}

/* Adds `count` elements of `elem` bytes to the scratch. */
static bool place(mm_impl *mm, size_t count, size_t each, size_t elem, size_t *at) {
    size_t bytes;
    *at = mm->scratch_bytes;
    return qdqi_mul_size(count, each, &bytes) && qdqi_mul_size(bytes, elem, &bytes) && bytes < SIZE_MAX / 64 &&
           qdqi_add_size(mm->scratch_bytes, (bytes + 63) / 64 * 64, &mm->scratch_bytes);
}

static bool place_scratch(mm_impl *mm) {
    const bool sums = mm->has_col_add || mm->folded_fn != NULL;
    return place(mm, mm->packed ? 0 : mm->n_mats, mm->mat_bytes, 1, &mm->at_packed) &&
           place(mm, mm->copy_src ? mm->n_batch * mm->m : 0, mm->k, mm->row_elem, &mm->at_src) &&
           place(mm, mm->has_zw ? mm->n_batch : 0, mm->m, 4, &mm->at_row_sums) &&
           place(mm, sums ? mm->n_mats : 0, mm->n_cols, 4, &mm->at_col_add) &&
           place(mm, mm->has_zw ? 1 : 0, mm->n_cols, 4, &mm->at_col_mul);
}

/* A first post-op that multiplies the columns by constants is the scale of an integer sum. */
static void first_factor_as_scale(mm_impl *mm) {
    qdqi_native_post *np = &mm->post;
    qk_post *p = &np->post;
    bool fixed = p->n_steps > 0 && p->scale == QK_POST_SCALE_NONE && (p->bias == QDQ_DTYPE_UNDEF || p->bias_first) &&
                 p->steps[0].op == QK_POST_MUL && p->steps[0].dtype == QDQ_DTYPE_F32 && p->steps[0].per_col &&
                 np->operands[0].row == 0;
    for (int32_t d = 0; fixed && d < QDQ_MAX_NDIMS; d++)
        fixed = np->operands[0].outer[d] == 0;
    if (!fixed) return;
    mm->scale_col = mm->args.post[0];
    p->scale = QK_POST_SCALE_COL;
    p->n_steps--;
    memmove(p->steps, p->steps + 1, p->n_steps * sizeof p->steps[0]);
    memmove(np->operands, np->operands + 1, p->n_steps * sizeof np->operands[0]);
    memmove(mm->args.post, mm->args.post + 1, p->n_steps * sizeof mm->args.post[0]);
}

/* Whether qk_igemm_end can say it; if so, what is known of it already. */
static bool end_can_say(const qk_igemm *g, const qk_post *p, ptrdiff_t stride, qk_igemm_end *end) {
    const bool is_bytes = p->dst == QDQ_DTYPE_U8 || p->dst == QDQ_DTYPE_S8;
    if (g->run_to_end == NULL || p->dst_quantized || p->has_add_common || p->has_row_sum || p->bias_first ||
        p->bias_per_row || (p->bias != QDQ_DTYPE_UNDEF && p->bias != QDQ_DTYPE_F32))
        return false;
    if (p->scale == QK_POST_SCALE_ROW || (p->scale == QK_POST_SCALE_NONE && p->acc != QDQ_DTYPE_F32)) return false;
    const bool is_half = p->dst == QDQ_DTYPE_BF16 && g->src == QDQ_DTYPE_BF16;
    if (is_bytes ? p->acc != QDQ_DTYPE_S32 : (p->dst != QDQ_DTYPE_F32 && !is_half) || p->dst_has_zp) return false;
    *end = (qk_igemm_end){.dst = p->dst, .stride = stride};
    if (!qk_post_bounds(p, &end->low, &end->high, &end->is_rounded)) return false;
    const bool is_bare_or_relu = p->n_steps == 0 || p->steps[0].op == QK_POST_RELU;
    return is_bytes ? end->low <= end->high : is_bare_or_relu && !end->is_rounded;
}

static qdq_status choose_post(mm_impl *mm, qdq_error *err) {
    qk_post *p = &mm->post.post;
    p->acc = mm->gemm.row_sums != NULL ? QDQ_DTYPE_S32 : QDQ_DTYPE_F32;
    p->has_col_add = mm->has_col_add;
    p->has_row_sum = mm->has_zw;
    p->bias_first = p->acc == QDQ_DTYPE_S32 && p->bias == QDQ_DTYPE_S32 && p->scale == QK_POST_SCALE_NONE;
    if (p->acc == QDQ_DTYPE_S32) first_factor_as_scale(mm);
    QDQI_TRY(qdqi_native_post_choose(&mm->post, "matmul", err));
    mm->has_end = end_can_say(&mm->gemm, p, mm->post.dst_row, &mm->end);
    if (!p->bias_first || mm->k > FOLD_K) return QDQ_OK;
    mm->folded = *p;
    mm->folded.bias_first = false;
    mm->folded.bias = QDQ_DTYPE_UNDEF;
    mm->folded.has_col_add = true;
    mm->folded_fn = qk_post_choose(&mm->folded, NULL);
    mm->folded_has_end = end_can_say(&mm->gemm, &mm->folded, mm->post.dst_row, &mm->end);
    return QDQ_OK;
}

/* What the packed bytes depend on. */
typedef struct mm_key {
    char family[24];
    int32_t weights_dtype, elem_bytes;
    uint64_t k, n, n_mats, nr, kr;
} mm_key;

static void add_weights(mm_impl *mm, qdqi_native_prim *prim) {
    if (!mm->packed) {
        mm->wei = qdqi_native_add_md(prim, QDQI_DNNL_WEIGHTS, &mm->weights);
        return;
    }
    mm_key key;
    memset(&key, 0, sizeof key);
    memcpy(key.family, "native igemm 1", sizeof "native igemm 1");
    key.weights_dtype = (int32_t)mm->weights.dtype;
    key.elem_bytes = (int32_t)mm->gemm.elem_bytes;
    key.k = mm->k;
    key.n = mm->n;
    key.n_mats = mm->n_mats;
    key.nr = mm->gemm.nr;
    key.kr = mm->gemm.kr;
    mm->wei = qdqi_native_add_packed(prim, QDQI_DNNL_WEIGHTS, mm->n_mats * mm->mat_bytes, &key, sizeof key);
}

qdq_status qdqi_native_matmul(const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *bias,
                              const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                              qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run, .pack = pack};
    mm_impl mm = {.packed = weights->any, .bias = QDQI_NO_ARG, .scratch = QDQI_NO_ARG, .scale_col = QDQI_NO_ARG};
    qdqi_dnnl_md s, w, d, b = {0};
    QDQI_TRY(qdqi_native_layout(src, "matmul", &s, err));
    QDQI_TRY(qdqi_native_layout(weights, "matmul", &w, err));
    QDQI_TRY(qdqi_native_layout(dst, "matmul", &d, err));
    if (bias != NULL && bias->ndims != 0) QDQI_TRY(qdqi_native_layout(bias, "matmul", &b, err));
    const char *why = read_shapes(&mm, &s, &w, &d);
    if (why == NULL) why = choose_gemm(&mm, &s, &w);
    const bool integers = mm.gemm.row_sums != NULL;
    if (why == NULL) why = check_quant(attr, d.ndims, integers);
    if (why != NULL) return qdqi_native_refuse(err, "matmul", why);
    const qdqi_native_matrix matrix = {.n_row_dims = 1, .row_dims = {d.ndims - 2}, .col_dim = d.ndims - 1};
    QDQI_TRY(qdqi_native_post_plan(attr, &d, &matrix, "matmul", &mm.post, err));
    why = read_bias(&mm, &b, &mm.post.post);
    if (why != NULL) return qdqi_native_refuse(err, "matmul", why);
    const qdqi_dnnl_quant no_quant = {0}, *sq = attr == NULL ? &no_quant : &attr->src,
                          *wq = attr == NULL ? &no_quant : &attr->weights;
    mm.is_small = mm.n_batch == 1 && mm.packed && !mm.copy_src && mm.macs < 2 * (integers ? GRAIN_INT8 : GRAIN_F32);
    mm.has_zw = integers && (wq->has_zp || mm.gemm.weights_shift != 0);
    mm.zw_per_col = wq->has_zp && wq->zp_mask != 0;
    mm.has_col_add = integers && (sq->has_zp || mm.gemm.src_shift != 0);
    mm.post.post.scale = wq->has_scale && wq->scale_mask != 0 ? QK_POST_SCALE_COL
                         : wq->has_scale || sq->has_scale     ? QK_POST_SCALE_COMMON
                                                              : QK_POST_SCALE_NONE;

    char kernel[32];
    snprintf(kernel, sizeof kernel, "igemm:%s", qk_isa_name(mm.gemm.isa));
    mm_impl *impl;
    qdqi_native_prim *prim = qdqi_native_new(&ops, "matmul", kernel, sizeof *impl, (void **)&impl);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    mm.src = qdqi_native_add_md(prim, QDQI_DNNL_SRC, &s);
    add_weights(&mm, prim);
    if (b.ndims != 0) mm.bias = qdqi_native_add_md(prim, QDQI_DNNL_BIAS, &b);
    mm.dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, &d);
    qdqi_native_add_attr(prim, attr, &s, NULL, &w, &d, &mm.args);
    if (mm.post.post.scale == QK_POST_SCALE_COL) mm.scale_col = mm.args.scale_weights;
    const qdq_status st = choose_post(&mm, err);
    if (st != QDQ_OK) {
        qdqi_native_drop(prim);
        return st;
    }
    if (!place_scratch(&mm)) {
        qdqi_native_drop(prim);
        return qdqi_native_refuse(err, "matmul", "size");
    }
    mm.scratch = qdqi_native_add_scratch(prim, mm.scratch_bytes);
    *impl = mm;
    return qdqi_native_finish(prim, out, err);
}
