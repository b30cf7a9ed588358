/* Arithmetic that ONNX and libqdq spell differently. */
#include "onnx_ops.h"

#include <math.h>
#include <string.h>

static qdq_status emit_binary(qdqi_onnx_node *n, const char *kind, const char *a, const char *b, const char *out) {
    qdqi_onnx_emit e = qdqi_onnx_begin(n, kind);
    qdqi_onnx_put_in(&e, a);
    qdqi_onnx_put_in(&e, b);
    qdqi_onnx_put_out(&e, out);
    return qdqi_onnx_end(&e);
}

static qdq_status emit_unary(qdqi_onnx_node *n, const char *kind, const char *in, const char *out) {
    qdqi_onnx_emit e = qdqi_onnx_begin(n, kind);
    qdqi_onnx_put_in(&e, in);
    qdqi_onnx_put_out(&e, out);
    return qdqi_onnx_end(&e);
}

/* Gemm is MatMul with a bias in the common case: alpha and beta 1, C one value per column. */
qdq_status qdqi_onnx_gemm(qdqi_onnx_node *n) {
    float alpha = 1.0f, beta = 1.0f;
    int64_t trans_a = 0, trans_b = 0;
    QDQI_TRY(qdqi_onnx_attr_f(n, "alpha", 1.0f, &alpha));
    QDQI_TRY(qdqi_onnx_attr_f(n, "beta", 1.0f, &beta));
    QDQI_TRY(qdqi_onnx_attr_i(n, "transA", 0, &trans_a));
    QDQI_TRY(qdqi_onnx_attr_i(n, "transB", 0, &trans_b));
    const bool has_c = qdqi_onnx_has_in(n, 2);
    const qdqi_onnx_value *c = has_c ? qdqi_onnx_find(n->r, qdqi_onnx_in(n, 2)) : NULL;
    /* a single value may be broadcast: only a longer vector is a bias for sure */
    const bool is_bias = c != NULL && c->desc.ndims == 1 && c->desc.dims[0] > 1;
    const bool is_matmul = alpha == 1.0f && (!has_c || (beta == 1.0f && is_bias));
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), 2, QDQ_DTYPE_UNDEF);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, is_matmul ? "MatMul" : "Gemm");
    qdqi_onnx_put_bool(&e, is_matmul ? "transpose_a" : "transA", trans_a != 0);
    qdqi_onnx_put_bool(&e, is_matmul ? "transpose_b" : "transB", trans_b != 0);
    if (!is_matmul) {
        qdqi_onnx_put_f32(&e, "alpha", alpha);
        qdqi_onnx_put_f32(&e, "beta", beta);
    }
    qdqi_onnx_put_ins(&e, 0, 3);
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* One bound of Clip as a number, if it is one at load; absent gives `fallback`. */
static qdq_status bound_of(qdqi_onnx_node *n, size_t i, const char *attr, float fallback, float *out, bool *is_number) {
    *out = fallback;
    *is_number = true;
    if (n->opset < 11) return qdqi_onnx_attr_f(n, attr, fallback, out);
    if (!qdqi_onnx_has_in(n, i)) return QDQ_OK;
    *is_number = qdqi_onnx_in_is_const(n, i) && qdqi_dtype_is_float(qdqi_onnx_in_dtype(n, i));
    if (!*is_number) return QDQ_OK;
    const float *values = NULL;
    int64_t count = 0;
    QDQI_TRY(qdqi_onnx_in_floats(n, i, &values, &count));
    if (count != 1) return qdqi_onnx_bad(n, "input %zu has %lld values, expected one", i, (long long)count);
    *out = values[0];
    return QDQ_OK;
}

qdq_status qdqi_onnx_clip(qdqi_onnx_node *n) {
    float min = 0.0f, max = 0.0f;
    bool has_min = false, has_max = false;
    QDQI_TRY(bound_of(n, 1, "min", -INFINITY, &min, &has_min));
    QDQI_TRY(bound_of(n, 2, "max", INFINITY, &max, &has_max));
    const char *in = qdqi_onnx_in(n, 0), *out = qdqi_onnx_out(n, 0);
    qdqi_onnx_know(n, out, qdqi_onnx_in_rank(n, 0), qdqi_onnx_in_dtype(n, 0));
    if (n->opset < 11 && n->proto->n_input > 1)
        return qdqi_onnx_bad(n, "has %zu inputs, expected 1", n->proto->n_input);
    if (has_min && has_max && min <= max) {
        if (min == 0.0f && max == INFINITY) return emit_unary(n, "ReLU", in, out);
        if (min == -INFINITY && max == INFINITY && !qdqi_onnx_has_in(n, 1) && !qdqi_onnx_has_in(n, 2))
            return emit_unary(n, "Identity", in, out);
        qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
        qdqi_onnx_put_f32(&e, "min", min);
        qdqi_onnx_put_f32(&e, "max", max);
        qdqi_onnx_put_in(&e, in);
        qdqi_onnx_put_out(&e, out);
        return qdqi_onnx_end(&e);
    }
    /* bounds known only at run time, integers, or crossed bounds: min(max(x, low), high) */
    const char *low = qdqi_onnx_in(n, 1), *high = qdqi_onnx_in(n, 2);
    if (n->opset < 11) {
        low = qdqi_onnx_const_f32(n, "min", min);
        QDQI_ONNX_NEED(n, low);
        high = qdqi_onnx_const_f32(n, "max", max);
        QDQI_ONNX_NEED(n, high);
    }
    if (low[0] == '\0') return emit_binary(n, "Minimum", in, high, out);
    if (high[0] == '\0') return emit_binary(n, "Maximum", in, low, out);
    const char *raised = qdqi_onnx_temp(n, "raised");
    QDQI_ONNX_NEED(n, raised);
    QDQI_TRY(emit_binary(n, "Maximum", in, low, raised));
    return emit_binary(n, "Minimum", raised, high, out);
}

/* A constant scalar exponent is an attribute of the unary Pow, which fuses. */
qdq_status qdqi_onnx_pow(qdqi_onnx_node *n) {
    const qdq_dtype base = qdqi_onnx_in_dtype(n, 0), exponent = qdqi_onnx_in_dtype(n, 1);
    const int32_t rank = qdqi_onnx_in_rank(n, 1);
    const qdqi_onnx_value *value = qdqi_onnx_find(n->r, qdqi_onnx_in(n, 1));
    const bool is_single =
        value != NULL && (rank == 0 || (rank == 1 && value->desc.dims[0] == 1 && qdqi_onnx_in_rank(n, 0) >= 1));
    const bool is_float = base == QDQ_DTYPE_UNDEF ? qdqi_dtype_is_float(exponent) : qdqi_dtype_is_float(base);
    if (!qdqi_onnx_in_is_const(n, 1) || !is_single || !is_float) {
        if (base != QDQ_DTYPE_UNDEF && exponent != QDQ_DTYPE_UNDEF && base != exponent)
            return qdqi_onnx_bad(n, "a base of type %s with an exponent of type %s is not supported",
                                 qdq_dtype_name(base), qdq_dtype_name(exponent));
        return qdqi_onnx_simple(n);
    }
    const float *values = NULL;
    int64_t count = 0;
    QDQI_TRY(qdqi_onnx_in_floats(n, 1, &values, &count));
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), base);
    const bool is_square = values[0] == 2.0f;
    qdqi_onnx_emit e = qdqi_onnx_begin(n, is_square ? "Square" : "Pow");
    if (!is_square) qdqi_onnx_put_f32(&e, "beta", values[0]);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* kind(kind(a, b), c) … into `out` */
static qdq_status emit_chain(qdqi_onnx_node *n, const char *kind, const char *out) {
    const char *left = qdqi_onnx_in(n, 0);
    const size_t count = n->proto->n_input;
    if (count == 1) return emit_unary(n, "Identity", left, out);
    for (size_t i = 1; i < count; i++) {
        const char *to = i + 1 == count ? out : qdqi_onnx_temp(n, "chain");
        QDQI_ONNX_NEED(n, to);
        QDQI_TRY(emit_binary(n, kind, left, qdqi_onnx_in(n, i), to));
        left = to;
    }
    return QDQ_OK;
}

static qdq_status all_present(qdqi_onnx_node *n) {
    for (size_t i = 0; i < n->proto->n_input; i++)
        if (!qdqi_onnx_has_in(n, i)) return qdqi_onnx_bad(n, "input %zu is missing", i);
    return QDQ_OK;
}

qdq_status qdqi_onnx_nary(qdqi_onnx_node *n) {
    QDQI_TRY(all_present(n));
    return emit_chain(n, n->row->kind, qdqi_onnx_out(n, 0));
}

qdq_status qdqi_onnx_sum(qdqi_onnx_node *n) {
    QDQI_TRY(all_present(n));
    const bool is_mean = n->row->arg == 1;
    const size_t count = n->proto->n_input;
    const char *out = qdqi_onnx_out(n, 0), *sum = is_mean ? qdqi_onnx_temp(n, "sum") : out;
    QDQI_ONNX_NEED(n, sum);
    if (count <= 2) {
        QDQI_TRY(emit_chain(n, "Add", sum));
    } else {
        qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
        qdqi_onnx_put_ins(&e, 0, count);
        qdqi_onnx_put_out(&e, sum);
        QDQI_TRY(qdqi_onnx_end(&e));
    }
    if (!is_mean) return QDQ_OK;
    const char *divisor = qdqi_onnx_const_f32(n, "count", (float)count);
    QDQI_ONNX_NEED(n, divisor);
    return emit_binary(n, "Divide", sum, divisor, out);
}

qdq_status qdqi_onnx_reduce(qdqi_onnx_node *n) {
    int64_t keep_dims = 1, noop = 0, n_axes = -1;
    const int64_t *axes = NULL;
    int64_t all[QDQ_MAX_NDIMS];
    const bool is_input = n->opset >= n->row->arg;
    QDQI_TRY(qdqi_onnx_attr_i(n, "keepdims", 1, &keep_dims));
    QDQI_TRY(qdqi_onnx_attr_i(n, "noop_with_empty_axes", 0, &noop));
    if (!is_input) {
        if (n->proto->n_input > 1) return qdqi_onnx_bad(n, "has %zu inputs, expected 1", n->proto->n_input);
        QDQI_TRY(qdqi_onnx_attr_ints(n, "axes", &axes, &n_axes));
    } else if (qdqi_onnx_in_is_const(n, 1)) {
        QDQI_TRY(qdqi_onnx_in_ints(n, 1, &axes, &n_axes));
    }
    const bool has_runtime_axes = is_input && qdqi_onnx_has_in(n, 1) && !qdqi_onnx_in_is_const(n, 1);
    const int32_t rank = qdqi_onnx_in_rank(n, 0);
    const char *in = qdqi_onnx_in(n, 0), *out = qdqi_onnx_out(n, 0);
    if (n_axes <= 0 && !has_runtime_axes) {
        if (is_input && noop != 0) return emit_unary(n, "Identity", in, out);
        if (rank == 0) return emit_unary(n, "Identity", in, out);
        n_axes = rank;
        axes = all;
        for (int64_t i = 0; i < n_axes; i++)
            all[i] = i;
        if (rank < 0 && keep_dims != 0) return qdqi_onnx_bad(n, "without axes, the rank of the input must be known");
        if (rank < 0) { /* to a scalar, whatever the rank: over one flat dimension */
            const int64_t minus_one[1] = {-1};
            const char *shape = qdqi_onnx_const_s64s(n, "flat_shape", minus_one, 1), *flat = qdqi_onnx_temp(n, "flat");
            QDQI_ONNX_NEED(n, shape);
            QDQI_ONNX_NEED(n, flat);
            QDQI_TRY(emit_binary(n, "Reshape", in, shape, flat));
            in = flat;
            all[0] = 0;
            n_axes = 1;
        }
    }
    if (keep_dims != 0) qdqi_onnx_know(n, out, rank, QDQ_DTYPE_UNDEF);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    if (!has_runtime_axes) qdqi_onnx_put_s64s(&e, "axes", axes, (size_t)n_axes);
    qdqi_onnx_put_bool(&e, "keep_dims", keep_dims != 0);
    qdqi_onnx_put_in(&e, in);
    if (has_runtime_axes) qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 1));
    qdqi_onnx_put_out(&e, out);
    return qdqi_onnx_end(&e);
}

static qdq_status emit_gelu(qdqi_onnx_node *n, const char *mode, const char *in) {
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    qdqi_onnx_put_str(&e, "mode", mode);
    qdqi_onnx_put_in(&e, in);
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

qdq_status qdqi_onnx_gelu(qdqi_onnx_node *n) {
    const char *approximate = NULL;
    QDQI_TRY(qdqi_onnx_attr_s(n, "approximate", "none", &approximate));
    const bool is_tanh = strcmp(approximate, "tanh") == 0;
    if (!is_tanh && strcmp(approximate, "none") != 0)
        return qdqi_onnx_bad(n, "attribute approximate is \"%.40s\", expected none or tanh", approximate);
    return emit_gelu(n, is_tanh ? "gelu_tanh" : "gelu_erf", qdqi_onnx_in(n, 0));
}

qdq_status qdqi_onnx_fast_gelu(qdqi_onnx_node *n) {
    const char *in = qdqi_onnx_in(n, 0);
    if (qdqi_onnx_has_in(n, 1)) {
        const char *sum = qdqi_onnx_temp(n, "biased");
        QDQI_ONNX_NEED(n, sum);
        QDQI_TRY(emit_binary(n, "Add", in, qdqi_onnx_in(n, 1), sum));
        in = sum;
    }
    return emit_gelu(n, "gelu_tanh", in);
}

/* ONNX's slope broadcasts like numpy (from the last dim), which oneDNN's PReLU does not: max(x, 0) + slope * min(x, 0) */
qdq_status qdqi_onnx_prelu(qdqi_onnx_node *n) {
    const char *in = qdqi_onnx_in(n, 0);
    const char *zero = qdqi_onnx_const_f32(n, "zero", 0.0f), *above = qdqi_onnx_temp(n, "above");
    const char *below = qdqi_onnx_temp(n, "below"), *scaled = qdqi_onnx_temp(n, "scaled");
    QDQI_ONNX_NEED(n, zero);
    QDQI_ONNX_NEED(n, above);
    QDQI_ONNX_NEED(n, below);
    QDQI_ONNX_NEED(n, scaled);
    QDQI_TRY(emit_unary(n, "ReLU", in, above));
    QDQI_TRY(emit_binary(n, "Minimum", in, zero, below));
    QDQI_TRY(emit_binary(n, "Multiply", below, qdqi_onnx_in(n, 1), scaled));
    return emit_binary(n, "Add", above, scaled, qdqi_onnx_out(n, 0));
}
