#include "ref/ref_fns.h"

#include "base/alloc.h"

#include <string.h>

static const qdqi_ref_fn functions[QDQI_OP_END_OF_BUILTIN] = {
#define QDQI_UNARY(id, ...) [QDQI_OP_##id] = qdqi_ref_unary,
#include "ir/unary.def"
#undef QDQI_UNARY
#define QDQI_OP(id, name, origin, min_in, max_in, min_out, max_out, dtypes, shape, check, fn, ...)                     \
    [QDQI_OP_##id] = qdqi_ref_##fn,
#include "ir/ops.def"
#undef QDQI_OP
};

/* Ops without a meaning: Wildcard. (End has no outputs: the executor never runs it.) */
qdq_status qdqi_ref_none(qdqi_ref_ctx *c) {
    return qdqi_ref_fail(c, QDQ_E_UNSUPPORTED, "the op has no reference meaning");
}

static qdqi_ref_fn function_of(const qdqi_op *op) {
    if (op->schema->custom != NULL) return qdqi_ref_custom;
    return op->kind > QDQI_OP_NONE && op->kind < QDQI_OP_END_OF_BUILTIN ? functions[op->kind] : qdqi_ref_none;
}

/* Missing optional ports are fine; every other one must have a shape and a layout that we can walk. */
static qdq_status check_ports(const qdqi_ref_ctx *c, const qdqi_ref_tensor *ports, uint32_t n, const char *what) {
    for (uint32_t i = 0; i < n; i++) {
        const qdq_tensor_desc *desc = ports[i].desc;
        if (desc == NULL) continue;
        if (!qdqi_dims_known(desc))
            return qdqi_fail(c->err, QDQ_E_BAD_SHAPE, "%s op %llu: dims of %s %u are not known", c->op->schema->name,
                             (unsigned long long)c->op->id, what, i);
        if (desc->layout == QDQ_LAYOUT_OPAQUE || desc->dtype == QDQ_DTYPE_UNDEF)
            return qdqi_fail(c->err, QDQ_E_UNSUPPORTED, "%s op %llu: %s %u has an opaque layout or no data type",
                             c->op->schema->name, (unsigned long long)c->op->id, what, i);
        if (!c->measuring && ports[i].data == NULL && qdqi_n_elems(desc) != 0)
            return qdqi_fail(c->err, QDQ_E_NULL_ARG, "%s op %llu: %s %u has no buffer", c->op->schema->name,
                             (unsigned long long)c->op->id, what, i);
    }
    return QDQ_OK;
}

static qdq_status call(qdqi_ref_ctx *c) {
    QDQI_TRY(check_ports(c, c->in, c->n_in, "input"));
    QDQI_TRY(check_ports(c, c->out, c->n_out, "output"));
    return qdqi_ref_call(c, function_of(c->op));
}

qdq_status qdqi_ref_scratch_bytes(const qdqi_op *op, const qdq_tensor_desc *const *in,
                                  const qdq_tensor_desc *const *out, size_t *bytes_out, qdq_error *err) {
    qdqi_ref_tensor *ports = qdqi_calloc((size_t)op->n_in + op->n_out + 1, sizeof *ports);
    if (ports == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < op->n_in; i++)
        ports[i].desc = in[i];
    for (uint32_t i = 0; i < op->n_out; i++)
        ports[op->n_in + i].desc = out[i];
    qdqi_ref_ctx c = {.op = op, .n_in = op->n_in, .n_out = op->n_out, .in = ports, .out = ports + op->n_in};
    c.err = err;
    c.measuring = true;
    const qdq_status st = call(&c);
    qdqi_free(ports);
    if (st == QDQ_OK) *bytes_out = c.peak;
    return st;
}

/* An odd number of 4-bit elements leaves a nibble of the last byte over: it is zero. */
static void clear_spare_nibble(const qdqi_ref_tensor *t) {
    if (t->desc == NULL || t->data == NULL || qdq_dtype_bits(t->desc->dtype) != 4) return;
    const int64_t n = qdqi_n_elems(t->desc);
    const bool dense = t->desc->layout != QDQ_LAYOUT_STRIDED || qdqi_is_dense(t->desc);
    if (dense && n % 2 == 1) ((uint8_t *)t->data)[n / 2] &= 0x0f;
}

qdq_status qdqi_ref_run(const qdqi_ref_args *args, qdq_error *err) {
    qdqi_ref_ctx c = {.op = args->op, .n_in = args->n_in, .n_out = args->n_out, .in = args->in, .out = args->out};
    c.err = err;
    c.scratch = args->scratch;
    c.capacity = args->scratch_bytes;
    QDQI_TRY(call(&c));
    for (uint32_t i = 0; i < args->n_out; i++)
        clear_spare_nibble(&args->out[i]);
    return QDQ_OK;
}

qdq_status qdqi_ref_custom(qdqi_ref_ctx *c) {
    const qdq_custom_op *custom = c->op->schema->custom;
    qdq_tensor *in = qdqi_ref_temp(c, c->n_in, sizeof *in), *out = qdqi_ref_temp(c, c->n_out, sizeof *out);
    /* strided tensors go through packed copies; 4-bit ones are packed by their own dense descriptor */
    for (uint32_t k = 0; k < c->n_in + c->n_out; k++) {
        const bool is_in = k < c->n_in;
        const qdqi_ref_tensor *t = is_in ? &c->in[k] : &c->out[k - c->n_in];
        qdq_tensor *to = in == NULL || out == NULL ? NULL : is_in ? &in[k] : &out[k - c->n_in];
        if (to != NULL) memset(to, 0, sizeof *to);
        if (t->desc == NULL) continue;
        qdq_tensor_desc dense = *t->desc;
        qdqi_set_dense(&dense);
        const bool copied = t->desc->layout == QDQ_LAYOUT_STRIDED && !qdqi_is_dense(t->desc);
        void *data = copied ? qdqi_ref_temp(c, qdqi_n_elems(t->desc), qdqi_ref_raw_bytes(t->desc->dtype)) : t->data;
        if (to == NULL) continue;
        to->desc = dense;
        to->data = data;
        if (copied && data != NULL && is_in) qdqi_ref_relayout(&dense, data, t->desc, t->data);
    }
    QDQI_REF_READY(c);
    const qdq_status st = custom->run(in, c->n_in, out, c->n_out, custom->user);
    if (st != QDQ_OK) return qdqi_ref_fail(c, st, "the op's own function failed: %s", qdq_status_text(st));
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->out[i].desc != NULL && out[i].data != c->out[i].data)
            qdqi_ref_relayout(c->out[i].desc, c->out[i].data, &out[i].desc, out[i].data);
    return QDQ_OK;
}
