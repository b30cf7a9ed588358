/* Interpolate (oneDNN Graph) and Resize (ONNX): nearest and N-linear, dim by dim.
 *
 * Every output coordinate of a dim takes two source coordinates and a weight; nearest takes one. The taps of all dims are
 * found first; an element is the product of its dims' weights over the corners that have one. */
#include "ref/ref_fns.h"
#include "ref/ref_resize.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

typedef qdqi_ref_tap tap;

typedef enum coords {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL_FOR_NN
} coords;

typedef enum nearest { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL } nearest;

/* `scale` is out / in as the user gave it (or as the sizes say). */
static double source_coord(coords mode, int64_t x, int64_t in, int64_t out, double scale) {
    const double v = (double)x;
    switch (mode) {
    case HALF_PIXEL: return (v + 0.5) / scale - 0.5;
    case HALF_PIXEL_SYMMETRIC: {
        const double whole = scale * (double)in, center = (double)in / 2.0;
        return center * (1.0 - (double)out / whole) + (v + 0.5) / scale - 0.5;
    }
    case PYTORCH_HALF_PIXEL: return out > 1 ? (v + 0.5) / scale - 0.5 : 0.0;
    case ALIGN_CORNERS: return out > 1 ? v * (double)(in - 1) / (double)(out - 1) : 0.0;
    case ASYMMETRIC: return v / scale;
    case TF_HALF_PIXEL_FOR_NN: return (v + 0.5) / scale;
    }
    return 0.0;
}

static double nearest_of(nearest mode, double v) {
    switch (mode) {
    case PREFER_FLOOR: return ceil(v - 0.5);
    case PREFER_CEIL: return floor(v + 0.5);
    case FLOOR: return floor(v);
    case CEIL: return ceil(v);
    }
    return v;
}

static int64_t clamp_index(double v, int64_t n) {
    return v <= 0.0 ? 0 : v >= (double)(n - 1) ? n - 1 : (int64_t)v;
}

static tap tap_of(double v, bool is_nearest, nearest mode, int64_t in) {
    tap t = {0, 0, 0.0};
    if (is_nearest) {
        t.lo = t.hi = clamp_index(nearest_of(mode, v), in);
    } else {
        v = v < 0.0 ? 0.0 : v > (double)(in - 1) ? (double)(in - 1) : v;
        t.lo = clamp_index(floor(v), in);
        t.hi = t.lo + 1 < in ? t.lo + 1 : t.lo;
        t.w = v - (double)t.lo;
    }
    return t;
}

typedef struct plan {
    bool is_nearest;
    coords coord;
    nearest near;
    bool moves[QDQ_MAX_NDIMS]; /* dims that are resized */
    double scale[QDQ_MAX_NDIMS];
    const tap *taps[QDQ_MAX_NDIMS];
} plan;

static tap *ask_taps(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *dst = c->out[0].desc;
    int64_t n = 0;
    for (int32_t d = 0; d < dst->ndims; d++)
        n += dst->dims[d];
    return qdqi_ref_temp(c, n, sizeof(tap));
}

static qdq_status find_taps(qdqi_ref_ctx *c, plan *p, tap *taps) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    if (src->ndims != dst->ndims)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "rank %d is resized to rank %d", src->ndims, dst->ndims);
    for (int32_t d = 0; d < dst->ndims; d++) {
        const int64_t in = src->dims[d], out = dst->dims[d];
        if (in == 0 && out != 0) return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "dim %d has no element to take", d);
        if (!p->moves[d] && in != out)
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "dim %d is %lld, expected %lld", d, (long long)out, (long long)in);
        if (p->moves[d] && !(p->scale[d] > 0.0))
            return qdqi_ref_fail(c, QDQ_E_BAD_ARG, "the scale of dim %d is %g", d, p->scale[d]);
        p->taps[d] = taps;
        for (int64_t x = 0; x < out; x++)
            *taps++ = p->moves[d] ? tap_of(source_coord(p->coord, x, in, out, p->scale[d]), p->is_nearest, p->near, in)
                                  : (tap){x, x, 0.0};
    }
    return QDQ_OK;
}

/* Nearest moves elements as they are. */
static void run_nearest(const qdqi_ref_ctx *c, const plan *p, const unsigned char *from, unsigned char *to) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    const size_t bytes = qdqi_ref_raw_bytes(src->dtype);
    int64_t strides[QDQ_MAX_NDIMS];
    qdqi_dense_strides(src->ndims, src->dims, strides);
    qdqi_ref_rows r;
    qdqi_ref_rows_init(&r, dst->ndims, dst->dims);
    for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
        int64_t off = 0;
        for (int32_t d = 0; d < r.ndims; d++)
            off += p->taps[d][r.idx[d]].lo * strides[d];
        for (int64_t i = 0; i < r.n; i++, to += bytes)
            memcpy(to, from + (size_t)(off + (dst->ndims == 0 ? 0 : p->taps[r.ndims][i].lo)) * bytes, bytes);
    }
}

static void run_linear(const qdqi_ref_ctx *c, const plan *p, const double *from, double *to) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    int64_t strides[QDQ_MAX_NDIMS], idx[QDQ_MAX_NDIMS] = {0};
    int32_t moving[QDQ_MAX_NDIMS], n_moving = 0;
    qdqi_dense_strides(src->ndims, src->dims, strides);
    for (int32_t d = 0; d < dst->ndims; d++)
        if (p->moves[d]) moving[n_moving++] = d;
    const int64_t n = qdqi_n_elems(dst);
    for (int64_t at = 0; at < n; at++) {
        int64_t base = 0;
        for (int32_t d = 0; d < dst->ndims; d++)
            base += p->taps[d][idx[d]].lo * strides[d];
        double sum = 0.0;
        for (uint32_t corner = 0; corner < 1u << n_moving; corner++) {
            double w = 1.0;
            int64_t off = base;
            for (int32_t k = 0; k < n_moving && w != 0.0; k++) {
                const tap *t = &p->taps[moving[k]][idx[moving[k]]];
                const bool is_hi = (corner >> k & 1) != 0;
                w *= is_hi ? t->w : 1.0 - t->w;
                if (is_hi) off += (t->hi - t->lo) * strides[moving[k]];
            }
            if (w != 0.0) sum += w * from[off];
        }
        to[at] = sum;
        for (int32_t d = dst->ndims - 1; d >= 0 && ++idx[d] == dst->dims[d]; d--)
            idx[d] = 0;
    }
}

/* oneDNN takes the scale from the sizes, whatever `scales` says, and rounds halves of nearest away from zero. */
static plan interpolate_plan(const qdqi_op *op, const qdq_tensor_desc *src, const qdq_tensor_desc *dst) {
    plan p = {.near = PREFER_CEIL};
    p.is_nearest = qdqi_op_str_is(op, QDQI_A_MODE, "nearest");
    p.coord = qdqi_op_str_is(op, QDQI_A_COORDINATE_TRANSFORMATION_MODE, "align_corners") ? ALIGN_CORNERS : HALF_PIXEL;
    const bool ncx = qdqi_op_str_is(op, QDQI_A_DATA_FORMAT, "NCX");
    for (int32_t d = 0; d < src->ndims && d < dst->ndims; d++) {
        p.moves[d] = d != 0 && d != (ncx ? 1 : src->ndims - 1);
        p.scale[d] = (double)dst->dims[d] / (double)src->dims[d];
    }
    return p;
}

qdq_status qdqi_ref_interpolate(qdqi_ref_ctx *c) {
    plan p = interpolate_plan(c->op, c->in[0].desc, c->out[0].desc);
    const unsigned char *x_raw = p.is_nearest ? qdqi_ref_in_raw(c, 0) : NULL;
    const double *x = p.is_nearest ? NULL : qdqi_ref_in_f64(c, 0);
    unsigned char *y_raw = p.is_nearest ? qdqi_ref_out_raw(c, 0) : NULL;
    double *y = p.is_nearest ? NULL : qdqi_ref_out_f64(c, 0);
    tap *taps = ask_taps(c);
    QDQI_REF_READY(c);
    QDQI_TRY(find_taps(c, &p, taps));
    if (p.is_nearest) run_nearest(c, &p, x_raw, y_raw);
    if (!p.is_nearest) run_linear(c, &p, x, y);
    return QDQ_OK;
}

static coords coords_of(const qdqi_op *op) {
    static const char *const names[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                        "align_corners", "asymmetric",           "tf_half_pixel_for_nn"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (qdqi_op_str_is(op, QDQI_A_COORDINATE_TRANSFORMATION_MODE, names[i])) return (coords)i;
    return HALF_PIXEL;
}

static nearest nearest_mode_of(const qdqi_op *op) {
    static const char *const names[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (qdqi_op_str_is(op, QDQI_A_NEAREST_MODE, names[i])) return (nearest)i;
    return PREFER_FLOOR;
}

/* The scales are one for each of `axes`, or of all dims; there may be none. */
static void resize_dims(const qdqi_op *op, const qdq_tensor_desc *src, const qdq_tensor_desc *dst, const float *scales,
                        plan *p) {
    uint32_t n_axes;
    const int64_t *axes = qdqi_op_s64s(op, QDQI_A_AXES, &n_axes);
    const int64_t n = n_axes == 0 ? (int64_t)src->ndims : (int64_t)n_axes;
    for (int64_t i = 0; i < n; i++) {
        int32_t d = (int32_t)i;
        if (n_axes != 0 && !qdqi_norm_axis(axes[i], src->ndims, &d)) continue; /* refused before */
        p->scale[d] = scales != NULL ? (double)scales[i] : (double)dst->dims[d] / (double)src->dims[d];
        p->moves[d] = p->scale[d] != 1.0 || src->dims[d] != dst->dims[d];
    }
}

qdq_status qdqi_ref_resize_taps(const qdqi_op *op, const qdq_tensor_desc *src, const qdq_tensor_desc *dst,
                                const float *scales, int32_t d, qdqi_ref_tap *taps, bool *moves_out) {
    plan p;
    if (op->kind == QDQI_OP_INTERPOLATE) {
        p = interpolate_plan(op, src, dst);
    } else {
        p = (plan){.coord = coords_of(op), .near = nearest_mode_of(op)};
        p.is_nearest = qdqi_op_str_is(op, QDQI_A_MODE, "nearest");
        resize_dims(op, src, dst, scales, &p);
    }
    const int64_t in = src->dims[d], out = dst->dims[d];
    *moves_out = p.moves[d];
    if (src->ndims != dst->ndims || (in == 0 && out != 0) || (!p.moves[d] && in != out) ||
        (p.moves[d] && !(p.scale[d] > 0.0)))
        return QDQ_E_BAD_SHAPE;
    for (int64_t x = 0; x < out; x++)
        taps[x] = p.moves[d] ? tap_of(source_coord(p.coord, x, in, out, p.scale[d]), p.is_nearest, p.near, in)
                             : (tap){x, x, 0.0};
    return QDQ_OK;
}

/* X, [roi], [scales], [sizes]: scales as given count, also where out is their rounded product. */
qdq_status qdqi_ref_resize(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    plan p = {.coord = coords_of(c->op), .near = nearest_mode_of(c->op)};
    p.is_nearest = qdqi_op_str_is(c->op, QDQI_A_MODE, "nearest");
    const unsigned char *x_raw = p.is_nearest ? qdqi_ref_in_raw(c, 0) : NULL;
    const double *x = p.is_nearest ? NULL : qdqi_ref_in_f64(c, 0);
    const float *scales = qdqi_ref_in_f32(c, 2);
    unsigned char *y_raw = p.is_nearest ? qdqi_ref_out_raw(c, 0) : NULL;
    double *y = p.is_nearest ? NULL : qdqi_ref_out_f64(c, 0);
    tap *taps = ask_taps(c);
    QDQI_REF_READY(c);
    uint32_t n_axes;
    const int64_t *axes = qdqi_op_s64s(c->op, QDQI_A_AXES, &n_axes);
    const int64_t n_scales = qdqi_ref_has_in(c, 2) ? qdqi_n_elems(c->in[2].desc) : 0;
    const int64_t expected = n_axes == 0 ? (int64_t)src->ndims : (int64_t)n_axes;
    if (n_scales != 0 && n_scales != expected)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "%lld scales, expected %lld", (long long)n_scales,
                             (long long)expected);
    if (src->ndims != dst->ndims)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "rank %d is resized to rank %d", src->ndims, dst->ndims);
    for (int64_t i = 0; i < (int64_t)n_axes; i++) {
        int32_t d;
        QDQI_TRY(qdqi_ref_axis(c, axes[i], src->ndims, &d));
    }
    resize_dims(c->op, src, dst, n_scales != 0 ? scales : NULL, &p);
    QDQI_TRY(find_taps(c, &p, taps));
    if (p.is_nearest) run_nearest(c, &p, x_raw, y_raw);
    if (!p.is_nearest) run_linear(c, &p, x, y);
    return QDQ_OK;
}
