/* Elementwise ops on runs of elements (lower/walk.h): what no primitive computes (choices, masks, comparisons, the
 * unary ops without an algorithm), and what primitives do not compute in half precision on this CPU. */
#include "base/dtype.h"
#include "kernels/convert/convert.h"
#include "kernels/select/select.h"
#include "lower/walk.h"
#include "ref/ref_rows.h"

#include <math.h>
#include <stdio.h>

/* Elements of a piece that is converted on the stack, and elements for which a thread pays. */
enum { PIECE = 512, GRAIN_COMPUTE = 8 * 1024 };

typedef void generic_fn(void);

/* ---- pieces in f32 ---------------------------------------------------------------------------------------------- */

/* How floats of 16 bits come to f32, and go back. F32 stays where it is: NULL. */
static qdq_status conversions(qdqi_walk_row *row, const qdqi_lower *lw, const uint32_t *in, qdq_dtype to,
                              qdq_error *err) {
    for (uint32_t k = 0; k <= row->n_src; k++) {
        const qdq_dtype d = k < row->n_src ? qdqi_lower_val((qdqi_lower *)lw, in[k])->desc.dtype : to;
        if (d == QDQ_DTYPE_F32 || (k == row->n_src && d == QDQ_DTYPE_BOOLEAN)) continue;
        if (d != QDQ_DTYPE_F16 && d != QDQ_DTYPE_BF16) return qdqi_refuse(err, "elementwise", "dtype");
        row->convert[k] =
            k < row->n_src ? qk_convert_choose(d, QDQ_DTYPE_F32, NULL) : qk_convert_choose(QDQ_DTYPE_F32, d, NULL);
        if (row->convert[k] == NULL) return qdqi_refuse(err, "elementwise", "no_kernel");
    }
    return QDQ_OK;
}

typedef struct piece {
    const float *src[QDQI_ROW_SOURCES];
    void *dst;
    int64_t n;
    float room[QDQI_ROW_SOURCES + 1][PIECE];
} piece;

/* The piece that starts at element i, all there is where nothing is converted; its floats are where they were, or in the room. */
static void piece_in(const qdqi_walk_row *row, const void *const *src, void *dst, int64_t i, int64_t n, piece *p) {
    const qdqi_walk *w = &row->walk;
    bool converts = false;
    for (uint32_t k = 0; k <= row->n_src; k++)
        converts |= row->convert[k] != NULL;
    p->n = converts && n - i > PIECE ? PIECE : n - i;
    for (uint32_t k = 0; k < row->n_src; k++) {
        const void *from = (const char *)src[k] + i * w->elem_bytes[k] * w->step[k];
        p->src[k] = from;
        if (row->convert[k] == NULL) continue;
        row->convert[k](from, p->room[k], w->step[k] != 0 ? (size_t)p->n : 1);
        p->src[k] = p->room[k];
    }
    p->dst =
        row->convert[row->n_src] != NULL ? (void *)p->room[row->n_src] : (char *)dst + i * w->elem_bytes[row->n_src];
}

static void piece_out(const qdqi_walk_row *row, void *dst, int64_t i, const piece *p) {
    if (row->convert[row->n_src] != NULL)
        row->convert[row->n_src](p->dst, (char *)dst + i * row->walk.elem_bytes[row->n_src], (size_t)p->n);
}

static void unary_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    qdqi_ref_unary_row *const fn = (qdqi_ref_unary_row *)row->kernel;
    piece p;
    for (int64_t i = 0; i < n; i += p.n) {
        piece_in(row, src, dst, i, n, &p);
        if (row->walk.step[0] != 0) {
            fn(p.src[0], p.dst, p.n, row->a, row->b);
        } else {
            for (int64_t k = 0; k < p.n; k++)
                fn(p.src[0], (float *)p.dst + k, 1, row->a, row->b);
        }
        piece_out(row, dst, i, &p);
    }
}

static void binary_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    qdqi_ref_binary_row *const fn = (qdqi_ref_binary_row *)row->kernel;
    piece p;
    for (int64_t i = 0; i < n; i += p.n) {
        piece_in(row, src, dst, i, n, &p);
        fn(p.dst, p.src[0], row->walk.step[0], p.src[1], row->walk.step[1], p.n);
        piece_out(row, dst, i, &p);
    }
}

static void compare_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    qk_compare_fn *const fn = (qk_compare_fn *)row->kernel;
    piece p;
    for (int64_t i = 0; i < n; i += p.n) {
        piece_in(row, src, dst, i, n, &p);
        fn(p.src[0], row->walk.step[0], p.src[1], row->walk.step[1], p.dst, (size_t)p.n);
    }
}

static void prelu_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    qk_prelu_fn *const fn = (qk_prelu_fn *)row->kernel;
    piece p;
    for (int64_t i = 0; i < n; i += p.n) {
        piece_in(row, src, dst, i, n, &p);
        fn(p.src[0], p.src[1], row->walk.step[1], p.dst, (size_t)p.n);
        piece_out(row, dst, i, &p);
    }
}

/* ---- bytes as they are ------------------------------------------------------------------------------------------ */

static void select_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    qk_select_fn *const fn = (qk_select_fn *)row->kernel;
    fn(src[0], row->walk.step[0], src[1], row->walk.step[1], src[2], row->walk.step[2], dst, (size_t)n);
}

static void logic_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    qdqi_ref_binary_row *const fn = (qdqi_ref_binary_row *)row->kernel;
    fn(dst, src[0], row->walk.step[0], src[1], row->walk.step[1], n);
}

static void not_run(const void *impl, const void *const *src, void *dst, int64_t n) {
    const qdqi_walk_row *row = impl;
    const uint8_t *from = src[0];
    uint8_t *to = dst;
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i * row->walk.step[0]] == 0;
}

/* ---- candidates ------------------------------------------------------------------------------------------------- */

/* Of a row that moves, or by way of f32. */
static int64_t grain_of(const qdqi_walk_row *row) {
    for (uint32_t k = 0; k <= row->n_src; k++)
        if (row->convert[k] != NULL) return 2 * GRAIN_COMPUTE;
    return QDQI_WALK_MOVES;
}

static qdq_status walk(qdqi_lower *lw, const qdqi_op *op, const qdqi_walk_row *row, int64_t grain, qdq_error *err) {
    char note[96];
    if (snprintf(note, sizeof note, "native %s", op->schema->name) < 0) note[0] = '\0';
    return qdqi_lower_walk(lw, row, op->in, NULL, op->out[0], grain, note, err);
}

qdq_status qdqi_lower_select(qdqi_lower *lw, const uint32_t in[3], uint32_t out, qdq_error *err) {
    const size_t bits = qdq_dtype_bits(qdqi_lower_val(lw, out)->desc.dtype);
    qdqi_walk_row row = {
        .run = select_run, .n_src = 3, .may_share = 6, .kernel = (generic_fn *)qk_select_choose(bits / 8, NULL)};
    if (row.kernel == NULL) return qdqi_refuse(err, "select", "sub_byte_dtype");
    return qdqi_lower_walk(lw, &row, in, NULL, out, QDQI_WALK_MOVES, "native Select", err);
}

static qdq_status lower_compare(qdqi_lower *lw, const qdqi_op *op, qk_compare_op kind, qdq_error *err) {
    qdqi_walk_row row = {.run = compare_run, .n_src = 2, .kernel = (generic_fn *)qk_compare_choose(kind, NULL)};
    QDQI_TRY(conversions(&row, lw, op->in, QDQ_DTYPE_BOOLEAN, err));
    return walk(lw, op, &row, grain_of(&row), err);
}

/* The slope is one value, one per channel, or broadcasts. */
static qdq_status lower_prelu(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    const qdq_tensor_desc *src = &qdqi_lower_val(lw, op->in[0])->desc, *slope = &qdqi_lower_val(lw, op->in[1])->desc;
    qdqi_walk_row row = {.run = prelu_run, .n_src = 2, .may_share = 1, .kernel = (generic_fn *)qk_prelu_choose(NULL)};
    qdq_tensor_desc along = *slope;
    QDQI_TRY(conversions(&row, lw, op->in, qdqi_lower_val(lw, op->out[0])->desc.dtype, err));
    const int32_t channel = qdqi_op_str_is(op, QDQI_A_DATA_FORMAT, "NCX") ? 1 : src->ndims - 1;
    const bool per_channel = qdqi_op_bool(op, QDQI_A_PER_CHANNEL_BROADCAST) && src->ndims >= 2 && slope->ndims == 1 &&
                             slope->dims[0] == src->dims[channel];
    if (per_channel) {
        along.ndims = src->ndims;
        for (int32_t d = 0; d < src->ndims; d++)
            along.dims[d] = d == channel ? slope->dims[0] : 1;
        qdqi_set_dense(&along);
    }
    const qdq_tensor_desc *views[] = {NULL, per_channel ? &along : NULL};
    return qdqi_lower_walk(lw, &row, op->in, views, op->out[0], grain_of(&row), "native PReLU", err);
}

/* dst[…, i, …] = i: a constant vector, seen with strides of 0 */
static qdq_status lower_genindex(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    qdq_tensor_desc layout;
    qdqi_lower_out_layout(lw, op->out[0], &layout);
    qdq_tensor_desc view = layout;
    int32_t axis;
    if (layout.dtype != QDQ_DTYPE_S32) return qdqi_refuse(err, "genindex", "dtype");
    if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_AXIS), layout.ndims, &axis)) return qdqi_refuse(err, "genindex", "axis");
    const int64_t n = layout.dims[axis];
    if (n > INT32_MAX) return qdqi_refuse(err, "genindex", "size");
    int32_t *index = qdqi_arena_alloc(&lw->arena, n == 0 ? 1 : (size_t)n, sizeof *index);
    if (index == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < n; i++)
        index[i] = (int32_t)i;
    for (int32_t d = 0; d < view.ndims; d++)
        view.strides[d] = d == axis;
    view.layout = QDQ_LAYOUT_STRIDED;
    qdqi_buf from, into;
    QDQI_TRY(qdqi_lower_const(lw, index, (size_t)n * sizeof *index, &from, err));
    QDQI_TRY(qdqi_lower_write(lw, op->out[0], &layout, &into, err));
    QDQI_TRY(qdqi_lower_convert(lw, from, &view, into, &layout, err));
    return qdqi_lower_written(lw, op->out[0], err);
}

static qdq_status lower_unary(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    qdqi_walk_row row = {
        .run = unary_run, .n_src = 1, .may_share = 1, .kernel = (generic_fn *)qdqi_ref_unary_row_of(op->kind)};
    if (row.kernel == NULL) return qdqi_refuse(err, "elementwise", "no_kernel");
    QDQI_TRY(conversions(&row, lw, op->in, qdqi_lower_val(lw, op->out[0])->desc.dtype, err));
    qdqi_op_unary_ab(op, &row.a, &row.b);
    return walk(lw, op, &row, GRAIN_COMPUTE, err);
}

static qdq_status lower_binary(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    const bool raw = op->kind == QDQI_OP_AND || op->kind == QDQI_OP_OR || op->kind == QDQI_OP_XOR;
    qdqi_walk_row row = {.run = raw ? logic_run : binary_run, .n_src = 2, .may_share = 3};
    row.kernel = (generic_fn *)qdqi_ref_binary_row_of(op, raw ? QDQI_REF_RAW : QDQI_REF_F32);
    if (row.kernel == NULL || op->n_in != 2) return qdqi_refuse(err, "elementwise", "no_kernel");
    if (!raw) QDQI_TRY(conversions(&row, lw, op->in, qdqi_lower_val(lw, op->out[0])->desc.dtype, err));
    return walk(lw, op, &row, GRAIN_COMPUTE, err);
}

static qdq_status lower_not(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    const qdqi_walk_row row = {.run = not_run, .n_src = 1, .may_share = 1};
    return walk(lw, op, &row, QDQI_WALK_MOVES, err);
}

qdq_status qdqi_lower_elementwise(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    switch ((int)op->kind) {
    case QDQI_OP_SELECT:
    case QDQI_OP_WHERE: return qdqi_lower_select(lw, op->in, op->out[0], err);
    case QDQI_OP_GREATEREQUAL: return lower_compare(lw, op, QK_COMPARE_GE, err);
    case QDQI_OP_GREATER: return lower_compare(lw, op, QK_COMPARE_GT, err);
    case QDQI_OP_LESSOREQUAL: return lower_compare(lw, op, QK_COMPARE_LE, err);
    case QDQI_OP_LESS: return lower_compare(lw, op, QK_COMPARE_LT, err);
    case QDQI_OP_EQUAL: return lower_compare(lw, op, QK_COMPARE_EQ, err);
    case QDQI_OP_PRELU: return lower_prelu(lw, op, err);
    case QDQI_OP_TYPECAST:
    case QDQI_OP_CAST: return qdqi_lower_cast(lw, op, err);
    case QDQI_OP_GENINDEX: return lower_genindex(lw, op, err);
    case QDQI_OP_AND:
    case QDQI_OP_OR:
    case QDQI_OP_XOR: return lower_binary(lw, op, err);
    case QDQI_OP_NOT: return lower_not(lw, op, err);
    default: break;
    }
    if ((op->schema->flags & QDQI_F_UNARY) != 0) return lower_unary(lw, op, err);
    if ((op->schema->flags & QDQI_F_BINARY) != 0) return lower_binary(lw, op, err);
    return QDQ_E_UNSUPPORTED;
}
