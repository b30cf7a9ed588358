#include "patterns/guards.h"

#include "ir/spelled.h"
#include "patterns/sets.h"

static const char *const words[] = {
#define QDQI_WHY_ROW(id, word, text) [QDQI_WHY_##id] = word,
    QDQI_WHY_MAP(QDQI_WHY_ROW)
#undef QDQI_WHY_ROW
};
static const char *const texts[] = {
#define QDQI_WHY_ROW(id, word, text) [QDQI_WHY_##id] = text,
    QDQI_WHY_MAP(QDQI_WHY_ROW)
#undef QDQI_WHY_ROW
};
enum { N_WORDS = sizeof(words) / sizeof(words[0]) };

const char *qdqi_why_word(qdqi_why why) {
    return (size_t)why < N_WORDS ? words[why] : "unknown";
}

const char *qdqi_why_text(qdqi_why why) {
    return (size_t)why < N_WORDS ? texts[why] : "unknown";
}

const char *qdqi_why_word_at(size_t i) {
    return i < N_WORDS ? words[i] : NULL;
}

static const qdq_tensor_desc *src_desc(const qdq_graph *graph, const qdqi_op *op) {
    if (op->n_in == 0 || op->in[0] == QDQI_NONE) return NULL;
    return &graph->values[op->in[0]].desc;
}

static bool is_8bit(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_S8 || dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_F8_E5M2 || dtype == QDQ_DTYPE_F8_E4M3;
}

static bool float_dst(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    if (op->n_out == 0) return false;
    const qdq_dtype dtype = graph->values[op->out[0]].desc.dtype;
    return dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_BF16 || dtype == QDQ_DTYPE_F16;
}

static bool int_src(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    const qdq_tensor_desc *src = src_desc(graph, op);
    return src && is_8bit(src->dtype);
}

static bool int_weights(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    const qdq_tensor_desc *src = src_desc(graph, op);
    return src && (is_8bit(src->dtype) || src->dtype == QDQ_DTYPE_S4 || src->dtype == QDQ_DTYPE_U4);
}

static bool same_shape(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    const qdq_tensor_desc *src = &graph->values[value].desc;
    const qdq_tensor_desc *dst = &graph->values[op->out[0]].desc;
    if (src->ndims == QDQ_NDIMS_UNKNOWN || dst->ndims == QDQ_NDIMS_UNKNOWN) return true;
    if (src->ndims != dst->ndims) return false;
    for (int32_t d = 0; d < src->ndims; d++) {
        if (src->dims[d] == QDQ_DIM_UNKNOWN || dst->dims[d] == QDQ_DIM_UNKNOWN) continue;
        if (src->dims[d] != dst->dims[d]) return false;
    }
    return true;
}

static bool const_src(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    if (op->n_in == 0 || op->in[0] == QDQI_NONE) return false;
    const qdqi_value *src = &graph->values[op->in[0]];
    return src->data || src->desc.property == QDQ_PROPERTY_CONSTANT;
}

static bool nearest(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)graph, (void)value;
    if (op->kind != QDQI_OP_INTERPOLATE && op->kind != QDQI_OP_RESIZE) return true;
    return qdqi_op_str_is(op, QDQI_A_MODE, "nearest");
}

static bool starts_run(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    const uint32_t producer = op->n_in && op->in[0] != QDQI_NONE ? graph->values[op->in[0]].producer : QDQI_NONE;
    return producer == QDQI_NONE || graph->ops[producer].folded || !qdqi_set_chain.has(&graph->ops[producer]);
}

/* Such an op may be recomputed by every reader: all that it needs is visible everywhere. */
static bool dq_behind(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    for (uint32_t views = 0; views < QDQI_PATTERN_MAX_VIEWS; views++) {
        const uint32_t producer = op->n_in && op->in[0] != QDQI_NONE ? graph->values[op->in[0]].producer : QDQI_NONE;
        if (producer == QDQI_NONE || graph->ops[producer].folded) return true;
        op = &graph->ops[producer];
        if (qdqi_set_dq.has(op)) return true;
        if (!qdqi_set_view.has(op)) return false;
    }
    return false;
}

static bool layernorm_form(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    qdqi_spelled form;
    (void)value;
    return qdqi_spelled_read(graph, op, true, &form);
}

static bool rmsnorm_form(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    qdqi_spelled form;
    (void)value;
    return qdqi_spelled_read(graph, op, false, &form);
}

static bool softmax_form(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    qdqi_spelled_softmax form;
    (void)value;
    return qdqi_spelled_softmax_read(graph, op, &form);
}

static bool is_constant(const qdq_graph *graph, uint32_t value) {
    const qdqi_value *v = &graph->values[value];
    if (v->data || v->desc.property == QDQ_PROPERTY_CONSTANT) return true;
    if (v->producer == QDQI_NONE) return false;
    const qdqi_op *op = &graph->ops[v->producer];
    return op->folded || (qdqi_set_dq.has(op) && const_src(graph, op, QDQI_NONE));
}

static bool of_one(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    return op->kind != QDQI_OP_DIVIDE || is_constant(graph, op->in[0]);
}

static bool quantized_next(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    if (op->kind != QDQI_OP_MAXPOOL) return true;
    const qdqi_value *out = &graph->values[op->out[0]];
    return out->n_uses == 1 && !out->is_output && qdqi_set_q.has(&graph->ops[out->uses[0].op]);
}

static bool few_numbers(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    if (op->n_out != 1) return false;
    const qdq_tensor_desc *dst = &graph->values[op->out[0]].desc;
    return dst->ndims == 0 || dst->ndims == 1;
}

/* `op` is the Quantize or the Dequantize. */
static bool before_affine(const qdq_graph *graph, const qdqi_op *op, uint32_t value) {
    (void)value;
    for (uint32_t step = qdqi_set_dq.has(op) ? 1 : 0; step < 2; step++) {
        const qdqi_value *out = &graph->values[op->out[0]];
        if (out->n_uses != 1 || out->is_output || op->n_out != 1) return false;
        const qdqi_op *user = &graph->ops[out->uses[0].op];
        if (step == 1) return qdqi_set_affine.has(user) && is_constant(graph, user->in[out->uses[0].port == 0 ? 1 : 0]);
        if (!qdqi_set_dq.has(user)) return false;
        op = user;
    }
    return false;
}

#define QDQI_GUARD_ROW(guard, reason, text) const qdqi_guard qdqi_guard_##guard = {#guard, QDQI_WHY_##reason, guard};
QDQI_GUARD_MAP(QDQI_GUARD_ROW)
#undef QDQI_GUARD_ROW

const char *qdqi_guard_text(const qdqi_guard *guard) {
#define QDQI_GUARD_ROW(name, reason, text)                                                                             \
    if (guard == &qdqi_guard_##name) return text;
    QDQI_GUARD_MAP(QDQI_GUARD_ROW)
#undef QDQI_GUARD_ROW
    return "";
}
