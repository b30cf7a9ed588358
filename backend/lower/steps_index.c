/* Movement by index: every dim of the result has a table that says where its elements come from.
 *
 *   dst[i0, i1, …] = src[base + table0[i0] + table1[i1] + …], or the fill value where a table says so
 *
 * Nearest resizing, padding of every mode, gathering constant indices, tiling, reversed slices, depth to space and back are all of this
 * form. Nothing here knows what the op means: its reference function is run once, at compile time, on the numbers 1, 2, 3…
 * and the tables are read off the result; where that has another form, the candidate refuses. */
#include "base/alloc.h"
#include "base/dtype.h"
#include "lower/single.h"
#include "ref/ref.h"

#include <stdio.h>
#include <string.h>

enum { FILL = -1, MAX_ELEMS = 1 << 24, GRAIN_BYTES = 32 * 1024 };

typedef struct index_impl {
    int32_t n_outer;
    int64_t dims[QDQ_MAX_NDIMS];      /* slowest first; dims[n_outer] is the row */
    int64_t dst_bytes[QDQ_MAX_NDIMS]; /* from element to element */
    int32_t *tables[QDQ_MAX_NDIMS];   /* byte offsets, or FILL */
    int64_t base, n_rows;
    int64_t first, n; /* of a row: elements that lie side by side in both, all others are filled; n 0: look each up */
    uint32_t elem;
    uint8_t fill[8];
} index_impl;

static void index_destroy(void *p) {
    index_impl *impl = p;
    for (int32_t d = 0; d <= impl->n_outer; d++)
        qdqi_free(impl->tables[d]);
    qdqi_free(impl);
}

static void fill_elems(const index_impl *x, char *dst, int64_t n) {
    if (x->elem == 1) {
        memset(dst, x->fill[0], (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + i * x->elem, x->fill, x->elem);
}

/* One row whose elements are looked up one by one. */
static void look_up(const index_impl *x, const char *src, char *dst) {
    const int32_t *table = x->tables[x->n_outer];
    const int64_t n = x->dims[x->n_outer], step = x->dst_bytes[x->n_outer];
#define LOOK_UP(bytes)                                                                                                 \
    for (int64_t i = 0; i < n; i++)                                                                                    \
    memcpy(dst + i * step, table[i] == FILL ? (const char *)x->fill : src + table[i], bytes)
    switch (x->elem) {
    case 1: LOOK_UP(1); break;
    case 2: LOOK_UP(2); break;
    case 4: LOOK_UP(4); break;
    default: LOOK_UP(8); break;
    }
#undef LOOK_UP
}

static void run_row(const index_impl *x, const char *src, char *dst) {
    if (x->n == 0) {
        look_up(x, src, dst);
        return;
    }
    const int64_t row = x->dims[x->n_outer], last = x->first + x->n;
    if (x->first != 0) fill_elems(x, dst, x->first);
    memcpy(dst + x->first * x->elem, src + x->tables[x->n_outer][x->first], (size_t)(x->n * x->elem));
    if (last != row) fill_elems(x, dst + last * x->elem, row - last);
}

typedef struct index_job {
    const index_impl *impl;
    void *const *bufs;
    int64_t rows;
} index_job;

static void index_chunk(int c, void *arg) {
    const index_job *job = arg;
    const index_impl *x = job->impl;
    const int64_t begin = c * job->rows, end = begin + job->rows < x->n_rows ? begin + job->rows : x->n_rows;
    const int32_t inner = x->n_outer - 1; /* of the outer dims the fastest */
    const bool dense = x->dst_bytes[x->n_outer] == x->elem;
    for (int64_t r = begin; r < end; r++) {
        int64_t rest = r, from = x->base, to = 0, at = 0;
        bool filled = false;
        for (int32_t d = inner; d >= 0; d--) {
            const int64_t i = rest % x->dims[d];
            rest /= x->dims[d];
            if (d == inner) at = i;
            filled = filled || x->tables[d][i] == FILL;
            from += x->tables[d][i];
            to += i * x->dst_bytes[d];
        }
        char *dst = (char *)job->bufs[1] + to;
        if (dense && filled)
            fill_elems(x, dst, x->dims[x->n_outer]);
        else if (filled)
            for (int64_t i = 0; i < x->dims[x->n_outer]; i++)
                memcpy(dst + i * x->dst_bytes[x->n_outer], x->fill, x->elem);
        else if (dense && at > 0 && r > begin && x->tables[inner][at] == x->tables[inner][at - 1])
            memcpy(dst, dst - x->dst_bytes[inner], (size_t)(x->dims[x->n_outer] * x->elem)); /* a row again */
        else
            run_row(x, (const char *)job->bufs[0] + from, dst);
    }
}

static qdq_status index_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine,
                            qdq_error *err) {
    (void)state, (void)err;
    const index_impl *x = impl;
    const int threads = qdqi_threads_for(engine, x->n_rows * x->dims[x->n_outer] * x->elem, GRAIN_BYTES);
    index_job job = {x, bufs, (x->n_rows + threads - 1) / threads};
    qdqi_parallel(engine, threads, index_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops index_ops = {.provider = "native", .run = index_run, .impl_destroy = index_destroy};

/* ---- reading the tables off the reference ------------------------------------------------------------------------ */

typedef struct builder {
    const qdqi_op *op;
    qdq_tensor_desc src, dst; /* src as it lies; dst dense */
    int64_t *from;            /* by dense index of dst: 1 + dense index in src, or 0 */
    int64_t anchor;           /* the first that is not 0; -1: none */
    int32_t *tables[QDQ_MAX_NDIMS];
    int64_t base;
} builder;

/* The op on 1, 2, 3… */
static qdq_status run_op(qdqi_lower *lw, builder *b, const uint32_t *in, int64_t *numbers, qdq_error *err) {
    const qdqi_op *op = b->op;
    qdq_tensor_desc src = b->src, dst = b->dst;
    const qdq_tensor_desc zero_desc = {.dtype = QDQ_DTYPE_S64, .layout = QDQ_LAYOUT_STRIDED};
    int64_t zero = 0;
    src.dtype = dst.dtype = QDQ_DTYPE_S64;
    qdqi_set_dense(&src);
    const qdq_tensor_desc **descs = qdqi_arena_alloc(&lw->arena, op->n_in, sizeof *descs);
    qdqi_ref_tensor *tensors = qdqi_arena_alloc(&lw->arena, op->n_in, sizeof *tensors);
    if (descs == NULL || tensors == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const qdqi_lval *lv = in[i] == QDQI_NONE ? NULL : qdqi_lower_val(lw, in[i]);
        if (i == 0) {
            tensors[i] = (qdqi_ref_tensor){&src, numbers};
        } else if (op->kind == QDQI_OP_PAD && i == 2) {
            if (lv != NULL) tensors[i] = (qdqi_ref_tensor){&zero_desc, &zero};
        } else if (lv != NULL) {
            if (lv->data == NULL) return qdqi_refuse(err, "index", "runtime_bounds");
            tensors[i] = (qdqi_ref_tensor){&lv->desc, (void *)(uintptr_t)lv->data};
        }
        descs[i] = tensors[i].desc;
    }
    const qdq_tensor_desc *dst_desc = &dst;
    qdqi_ref_tensor out = {&dst, b->from};
    qdqi_ref_args args = {.op = op, .n_in = op->n_in, .n_out = 1, .in = tensors, .out = &out};
    QDQI_TRY(qdqi_ref_scratch_bytes(op, descs, &dst_desc, &args.scratch_bytes, err));
    args.scratch = qdqi_malloc_aligned(args.scratch_bytes);
    if (args.scratch == NULL) return QDQI_NO_MEMORY(err);
    const qdq_status st = qdqi_ref_run(&args, err);
    qdqi_free_aligned(args.scratch);
    return st;
}

/* Place in memory of the dense index `at` of src, in elements. */
static int64_t place(const builder *b, int64_t at) {
    int64_t offset = 0;
    for (int32_t d = b->src.ndims - 1; d >= 0; d--) {
        offset += at % b->src.dims[d] * b->src.strides[d];
        at /= b->src.dims[d];
    }
    return offset;
}

static qdq_status read_tables(qdqi_lower *lw, builder *b, qdq_error *err) {
    const int64_t n = qdqi_n_elems(&b->dst), elem = (int64_t)qdq_dtype_bits(b->src.dtype) / 8;
    for (b->anchor = 0; b->anchor < n && b->from[b->anchor] == 0;)
        b->anchor++;
    if (b->anchor == n) b->anchor = -1;
    const int64_t origin = b->anchor < 0 ? 0 : place(b, b->from[b->anchor] - 1);
    b->base = origin * elem;
    for (int32_t d = 0; d < b->dst.ndims; d++) {
        const int64_t dim = b->dst.dims[d], stride = b->dst.strides[d];
        const int64_t line = b->anchor < 0 ? 0 : b->anchor - b->anchor / stride % dim * stride;
        int64_t least = 0;
        b->tables[d] = qdqi_arena_alloc(&lw->arena, (size_t)dim, sizeof *b->tables[d]);
        if (b->tables[d] == NULL) return QDQI_NO_MEMORY(err);
        for (int64_t i = 0; i < dim; i++) {
            const int64_t v = b->from[line + i * stride];
            if (v != 0 && place(b, v - 1) - origin < least) least = place(b, v - 1) - origin;
        }
        for (int64_t i = 0; i < dim; i++) {
            const int64_t v = b->from[line + i * stride];
            const int64_t offset = v == 0 ? 0 : (place(b, v - 1) - origin - least) * elem;
            if (offset > INT32_MAX) return qdqi_refuse(err, "index", "size");
            b->tables[d][i] = v == 0 ? FILL : (int32_t)offset;
        }
        b->base += least * elem;
    }
    return QDQ_OK;
}

/* The tables together give what the op gave, for all elements. */
static bool tables_hold(const builder *b) {
    const int64_t n = qdqi_n_elems(&b->dst), elem = (int64_t)qdq_dtype_bits(b->src.dtype) / 8;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = b->base, rest = k;
        bool filled = false;
        for (int32_t d = b->dst.ndims - 1; d >= 0; d--) {
            const int32_t t = b->tables[d][rest % b->dst.dims[d]];
            rest /= b->dst.dims[d];
            filled = filled || t == FILL;
            at += t;
        }
        if (filled != (b->from[k] == 0) || (!filled && at != place(b, b->from[k] - 1) * elem)) return false;
    }
    return true;
}

static qdq_status append(qdqi_lower *lw, builder *b, uint32_t in, uint32_t out, const void *fill, qdq_error *err) {
    qdq_tensor_desc layout;
    qdqi_lower_out_layout(lw, out, &layout);
    const qdqi_lval *lv = qdqi_lower_val(lw, out);
    qdq_tensor_desc last = b->src;
    qdqi_set_channels_last(&last);
    if ((!lv->is_port_out || lv->port_any) && b->src.ndims == b->dst.ndims && !qdqi_is_dense(&b->src) &&
        qdqi_same_strides(&last, &b->src))
        qdqi_set_channels_last(&layout);
    int32_t order[QDQ_MAX_NDIMS], n = 0;
    for (int32_t d = 0; d < layout.ndims; d++) {
        int32_t k = n++;
        for (; k > 0 && layout.strides[order[k - 1]] < layout.strides[d]; k--)
            order[k] = order[k - 1];
        order[k] = d;
    }
    index_impl *x = qdqi_calloc(1, sizeof *x);
    if (x == NULL) return QDQI_NO_MEMORY(err);
    x->elem = (uint32_t)qdq_dtype_bits(b->src.dtype) / 8;
    if (fill != NULL) memcpy(x->fill, fill, x->elem);
    x->base = b->base;
    x->n_rows = 1;
    x->n_outer = n - 1;
    for (int32_t k = 0; k < n; k++) {
        const int32_t d = order[k];
        x->dims[k] = layout.dims[d];
        x->dst_bytes[k] = layout.strides[d] * x->elem;
        if (k < n - 1) x->n_rows *= x->dims[k];
        x->tables[k] = qdqi_calloc((size_t)x->dims[k], sizeof *x->tables[k]);
        if (x->tables[k] == NULL) {
            index_destroy(x);
            return QDQI_NO_MEMORY(err);
        }
        memcpy(x->tables[k], b->tables[d], (size_t)x->dims[k] * sizeof *x->tables[k]);
    }
    const int32_t *row = x->tables[n - 1];
    const int64_t len = x->dims[n - 1];
    while (x->first < len && row[x->first] == FILL)
        x->first++;
    while (x->first + x->n < len && row[x->first + x->n] == row[x->first] + x->n * x->elem)
        x->n++;
    for (int64_t i = x->first + x->n; i < len; i++)
        if (row[i] != FILL) x->n = 0;
    if (x->dst_bytes[n - 1] != x->elem) x->n = 0;
    qdqi_buf bufs[2];
    qdq_status st = qdqi_lower_read(lw, in, &bufs[0], err);
    if (st == QDQ_OK) st = qdqi_lower_write(lw, out, &layout, &bufs[1], err);
    if (st != QDQ_OK) {
        index_destroy(x);
        return st;
    }
    char note[64];
    if (snprintf(note, sizeof note, "native index %s", b->op->schema->name) < 0) note[0] = '\0';
    QDQI_TRY(qdqi_plan_step(lw->plan, &index_ops, x, bufs, 2, lw->part, note, err));
    return qdqi_lower_written(lw, out, err);
}

qdq_status qdqi_lower_index(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, uint32_t out, const void *fill,
                            qdq_error *err) {
    builder b = {.op = op, .src = qdqi_lower_val(lw, in[0])->desc, .dst = qdqi_lower_val(lw, out)->desc};
    const size_t bits = qdq_dtype_bits(b.src.dtype);
    const int64_t n_src = qdqi_n_elems(&b.src), n_dst = qdqi_n_elems(&b.dst);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return qdqi_refuse(err, "index", "sub_byte_dtype");
    if (op->n_out != 1 || b.dst.ndims == 0) return qdqi_refuse(err, "index", "rank");
    if (n_src < 1 || n_dst < 1) return qdqi_refuse(err, "index", "zero_size");
    if (n_src > MAX_ELEMS || n_dst > MAX_ELEMS) return qdqi_refuse(err, "index", "size");
    qdqi_set_dense(&b.dst);
    int64_t *numbers = qdqi_malloc_aligned((size_t)n_src * sizeof *numbers);
    b.from = qdqi_malloc_aligned((size_t)n_dst * sizeof *b.from);
    qdq_status st = numbers == NULL || b.from == NULL ? QDQI_NO_MEMORY(err) : QDQ_OK;
    for (int64_t i = 0; st == QDQ_OK && i < n_src; i++)
        numbers[i] = i + 1;
    if (st == QDQ_OK) st = run_op(lw, &b, in, numbers, err);
    if (st == QDQ_OK) st = read_tables(lw, &b, err);
    if (st == QDQ_OK && !tables_hold(&b)) st = qdqi_refuse(err, "index", "no_copy_form");
    qdqi_free_aligned(numbers);
    qdqi_free_aligned(b.from);
    return st == QDQ_OK ? append(lw, &b, in[0], out, fill, err) : st;
}
