#include "lower/lower.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/log.h"
#include "lower/single.h"
#include "ref/ref.h"

#include <string.h>

/* The context that keeps notes on this thread, if any: a refusal comes from places that have no context at hand. Lowering
 * of one context stays on one thread. */
static _Thread_local qdqi_lower *noting;

static void note_refusal(const qdqi_lower *lw, const char *who, const char *why) {
    qdqi_notes_refusal(lw->notes, &(qdqi_refusal){.part = lw->part, .op = lw->op, .who = who, .why = why});
}

qdq_status qdqi_refuse(qdq_error *err, const char *who, const char *why) {
    qdqi_log(QDQI_LOG_REFUSE, "%s,%s", who, why);
    if (noting != NULL) note_refusal(noting, who, why);
    return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: %s", who, why);
}

void *qdqi_lower_scratch(qdqi_lower *lw, size_t bytes) {
    return qdqi_arena_alloc(&lw->scratch, 1, bytes);
}

qdqi_lval *qdqi_lower_val(qdqi_lower *lw, uint32_t value) {
    uint32_t lo = 0, hi = lw->n_vals;
    if (value >= lw->graph->n_values) return lw->extra[value - lw->graph->n_values];
    if (value < lw->n_vals && lw->vals[value].value == value) return &lw->vals[value]; /* a whole graph */
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (lw->vals[mid].value < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < lw->n_vals && lw->vals[lo].value == value ? &lw->vals[lo] : NULL;
}

static qdq_status note_made(qdqi_lower *lw, uint32_t value, qdq_error *err) {
    if (lw->n_journal == lw->cap_journal) {
        const uint32_t cap = lw->cap_journal == 0 ? 64 : lw->cap_journal * 2;
        uint32_t *grown = qdqi_realloc_array(lw->journal, cap, sizeof *grown);
        if (grown == NULL) return QDQI_NO_MEMORY(err);
        lw->journal = grown;
        lw->cap_journal = cap;
    }
    lw->journal[lw->n_journal++] = value;
    return QDQ_OK;
}

qdq_status qdqi_lower_new_value(qdqi_lower *lw, const qdq_tensor_desc *desc, uint32_t *value_out, qdq_error *err) {
    if (lw->n_extra == lw->cap_extra) {
        const uint32_t cap = lw->cap_extra == 0 ? 16 : lw->cap_extra * 2;
        qdqi_lval **grown = qdqi_realloc_array(lw->extra, cap, sizeof(qdqi_lval *));
        if (grown == NULL) return QDQI_NO_MEMORY(err);
        lw->extra = grown;
        lw->cap_extra = cap;
    }
    qdqi_lval *lv = qdqi_arena_alloc(&lw->arena, 1, sizeof *lv);
    if (lv == NULL) return QDQI_NO_MEMORY(err);
    *value_out = lw->graph->n_values + lw->n_extra;
    *lv = (qdqi_lval){.value = *value_out, .desc = *desc, .buf = QDQI_NO_BUF};
    lw->extra[lw->n_extra++] = lv;
    return QDQ_OK;
}

qdq_status qdqi_lower_make(qdqi_lower *lw, uint32_t value, qdq_error *err) {
    const qdqi_lval *lv = qdqi_lower_val(lw, value);
    if (lv->buf != QDQI_NO_BUF || lv->data != NULL) return QDQ_OK;
    const uint32_t producer = value < lw->graph->n_values ? lw->graph->values[value].producer : QDQI_NONE;
    if (producer == QDQI_NONE)
        return qdqi_fail(err, QDQ_E_INTERNAL, "tensor %llu has no data and no producer",
                         (unsigned long long)lv->desc.id);
    const qdqi_op *op = &lw->graph->ops[producer];
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] != QDQI_NONE) QDQI_TRY(qdqi_lower_make(lw, op->in[i], err));
    return qdqi_lower_op(lw, producer, err);
}

static qdq_status keep_folded(qdqi_lower *lw, void *ptr, qdq_error *err) {
    if (lw->n_folded == lw->cap_folded) {
        const uint32_t cap = lw->cap_folded == 0 ? 32 : lw->cap_folded * 2;
        void **grown = qdqi_realloc_array(lw->folded, cap, sizeof *grown);
        if (grown == NULL) return QDQI_NO_MEMORY(err);
        lw->folded = grown;
        lw->cap_folded = cap;
    }
    lw->folded[lw->n_folded++] = ptr;
    return QDQ_OK;
}

void qdqi_lower_free(qdqi_lower *lw) {
    for (uint32_t i = 0; i < lw->n_folded; i++)
        qdqi_free_aligned(lw->folded[i]);
    qdqi_free(lw->folded);
    qdqi_free(lw->journal);
    qdqi_free(lw->vals);
    qdqi_free(lw->extra);
    qdqi_arena_free(&lw->arena);
    qdqi_arena_free(&lw->scratch);
    *lw = (qdqi_lower){0};
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static qdq_status desc_bytes(const qdq_tensor_desc *desc, size_t *bytes, qdq_error *err) {
    return qdq_tensor_desc_size_bytes(desc, bytes, err);
}

struct copy_arg {
    const void *src;
    size_t bytes;
};
static qdq_status pack_copy(void *dst, size_t bytes, void *arg, qdq_error *err) {
    (void)err;
    const struct copy_arg *c = arg;
    if (bytes != 0) memcpy(dst, c->src, c->bytes);
    return QDQ_OK;
}

qdq_status qdqi_lower_const(qdqi_lower *lw, const void *data, size_t bytes, qdqi_buf *buf_out, qdq_error *err) {
    static const char recipe[] = "raw";
    struct copy_arg arg = {data, bytes};
    qdqi_const c;
    QDQI_TRY(qdqi_const_get(lw->engine, data, bytes, recipe, sizeof recipe, bytes, pack_copy, &arg, &c, err));
    return qdqi_plan_const(lw->plan, c, buf_out, err);
}

qdq_status qdqi_lower_temp(qdqi_lower *lw, const qdq_tensor_desc *desc, qdqi_buf *buf_out, qdq_error *err) {
    size_t bytes;
    QDQI_TRY(desc_bytes(desc, &bytes, err));
    return qdqi_plan_temp(lw->plan, bytes, buf_out, err);
}

qdq_status qdqi_lower_read(qdqi_lower *lw, uint32_t value, qdqi_buf *buf_out, qdq_error *err) {
    qdqi_lval *lv = qdqi_lower_val(lw, value);
    if (lv->buf == QDQI_NO_BUF) {
        if (lv->data == NULL)
            return qdqi_fail(err, QDQ_E_INTERNAL, "lowering reads tensor %llu before it is made",
                             (unsigned long long)lv->desc.id);
        size_t bytes;
        QDQI_TRY(desc_bytes(&lv->desc, &bytes, err));
        QDQI_TRY(qdqi_lower_const(lw, lv->data, bytes, &lv->buf, err));
        QDQI_TRY(note_made(lw, value, err));
    }
    *buf_out = lv->buf;
    return QDQ_OK;
}

qdq_status qdqi_lower_read_as(qdqi_lower *lw, uint32_t value, const qdq_tensor_desc *want, qdqi_buf *buf_out,
                              qdq_error *err) {
    qdqi_lval *lv = qdqi_lower_val(lw, value);
    if (qdqi_same_strides(&lv->desc, want) && lv->desc.dtype == want->dtype)
        return qdqi_lower_read(lw, value, buf_out, err);
    size_t bytes;
    QDQI_TRY(desc_bytes(want, &bytes, err));
    if (lv->data != NULL) {
        void *moved = qdqi_malloc_aligned(bytes);
        if (moved == NULL) return QDQI_NO_MEMORY(err);
        memset(moved, 0, bytes);
        qdqi_convert_elems(&lv->desc, lv->data, want, moved);
        const qdq_status st = qdqi_lower_const(lw, moved, bytes, buf_out, err);
        qdqi_free_aligned(moved);
        return st;
    }
    qdqi_buf src;
    QDQI_TRY(qdqi_lower_read(lw, value, &src, err));
    QDQI_TRY(qdqi_plan_temp(lw->plan, bytes, buf_out, err));
    return qdqi_lower_convert(lw, src, &lv->desc, *buf_out, want, err);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

void qdqi_lower_out_layout(qdqi_lower *lw, uint32_t value, qdq_tensor_desc *desc_out) {
    const qdqi_lval *lv = qdqi_lower_val(lw, value);
    *desc_out = lv->desc;
    if (lv->is_port_out && !lv->port_any && !lv->port_done)
        *desc_out = lv->port_desc;
    else
        qdqi_set_dense(desc_out);
}

qdq_status qdqi_lower_write(qdqi_lower *lw, uint32_t value, const qdq_tensor_desc *layout, qdqi_buf *buf_out,
                            qdq_error *err) {
    qdqi_lval *lv = qdqi_lower_val(lw, value);
    lv->desc.layout = QDQ_LAYOUT_STRIDED;
    memcpy(lv->desc.strides, layout->strides, sizeof lv->desc.strides);
    size_t bytes;
    QDQI_TRY(desc_bytes(&lv->desc, &bytes, err));
    const bool to_port =
        lv->is_port_out && !lv->port_done && (lv->port_any || qdqi_same_strides(&lv->port_desc, &lv->desc));
    if (to_port) {
        if (lv->port_any) {
            lv->port_desc.layout = QDQ_LAYOUT_STRIDED;
            memcpy(lv->port_desc.strides, layout->strides, sizeof lv->port_desc.strides);
        }
        QDQI_TRY(qdqi_plan_output(lw->plan, lv->port, bytes, &lv->buf, err));
        lv->port_done = true;
    } else {
        QDQI_TRY(qdqi_plan_temp(lw->plan, bytes, &lv->buf, err));
    }
    *buf_out = lv->buf;
    return note_made(lw, value, err);
}

qdq_status qdqi_lower_written(qdqi_lower *lw, uint32_t value, qdq_error *err) {
    qdqi_lval *lv = qdqi_lower_val(lw, value);
    if (!lv->is_port_out || lv->port_done) return QDQ_OK;
    if (lv->port_any) { /* a view or an input that is an output as well: the port takes its layout */
        lv->port_desc.layout = QDQ_LAYOUT_STRIDED;
        memcpy(lv->port_desc.strides, lv->desc.strides, sizeof lv->port_desc.strides);
    }
    qdqi_buf src, dst;
    size_t bytes;
    QDQI_TRY(qdqi_lower_read(lw, value, &src, err));
    QDQI_TRY(desc_bytes(&lv->port_desc, &bytes, err));
    QDQI_TRY(qdqi_plan_output(lw->plan, lv->port, bytes, &dst, err));
    QDQI_TRY(qdqi_lower_convert(lw, src, &lv->desc, dst, &lv->port_desc, err));
    lv->port_done = true;
    return QDQ_OK;
}

qdq_status qdqi_lower_alias(qdqi_lower *lw, uint32_t value, uint32_t base, qdq_error *err) {
    qdqi_set_dense(&qdqi_lower_val(lw, value)->desc);
    return qdqi_lower_see(lw, value, base, err);
}

qdq_status qdqi_lower_see(qdqi_lower *lw, uint32_t value, uint32_t base, qdq_error *err) {
    qdqi_lval *lv = qdqi_lower_val(lw, value);
    const qdqi_lval *from = qdqi_lower_val(lw, base);
    if (from->data != NULL) {
        lv->data = from->data;
        return qdqi_lower_written(lw, value, err);
    }
    qdqi_buf buf;
    size_t bytes;
    QDQI_TRY(qdqi_lower_read(lw, base, &buf, err));
    QDQI_TRY(desc_bytes(&lv->desc, &bytes, err));
    QDQI_TRY(qdqi_plan_view(lw->plan, buf, 0, bytes, &lv->buf, err));
    QDQI_TRY(note_made(lw, value, err));
    return qdqi_lower_written(lw, value, err);
}

qdq_status qdqi_lower_finish_ports(qdqi_lower *lw, qdq_error *err) {
    for (uint32_t i = 0; i < lw->n_vals; i++)
        if (lw->vals[i].is_port_out) QDQI_TRY(qdqi_lower_written(lw, lw->vals[i].value, err));
    return QDQ_OK;
}

/* ---- folding ---------------------------------------------------------------------------------------------------- */

static bool all_constant(qdqi_lower *lw, const qdqi_op *op) {
    if (op->n_in == 0 || (op->schema->flags & (QDQI_F_OPAQUE | QDQI_F_NO_OUTPUT)) != 0) return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] != QDQI_NONE && qdqi_lower_val(lw, op->in[i])->data == NULL) return false;
    return true;
}

/* Compute an op on constants now; its outputs become constants. */
static qdq_status fold(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    qdq_status st = QDQ_OK;
    const uint32_t n = op->n_in + op->n_out;
    const qdq_tensor_desc **descs = qdqi_arena_alloc(&lw->arena, n, sizeof *descs);
    qdqi_ref_tensor *tensors = qdqi_arena_alloc(&lw->arena, n, sizeof *tensors);
    if (descs == NULL || tensors == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i] == QDQI_NONE) continue;
        qdqi_lval *lv = qdqi_lower_val(lw, op->in[i]);
        descs[i] = &lv->desc;
        tensors[i] = (qdqi_ref_tensor){&lv->desc, (void *)(uintptr_t)lv->data};
    }
    for (uint32_t i = 0; i < op->n_out; i++) {
        qdqi_lval *lv = qdqi_lower_val(lw, op->out[i]);
        size_t bytes;
        qdqi_set_dense(&lv->desc);
        QDQI_TRY(desc_bytes(&lv->desc, &bytes, err));
        void *data = qdqi_malloc_aligned(bytes);
        if (data == NULL) return QDQI_NO_MEMORY(err);
        st = keep_folded(lw, data, err);
        if (st != QDQ_OK) {
            qdqi_free_aligned(data);
            return st;
        }
        memset(data, 0, bytes);
        descs[op->n_in + i] = &lv->desc;
        tensors[op->n_in + i] = (qdqi_ref_tensor){&lv->desc, data};
    }
    qdqi_ref_args args = {.op = op, .n_in = op->n_in, .n_out = op->n_out, .in = tensors, .out = tensors + op->n_in};
    QDQI_TRY(qdqi_ref_scratch_bytes(op, descs, descs + op->n_in, &args.scratch_bytes, err));
    args.scratch = qdqi_malloc_aligned(args.scratch_bytes);
    if (args.scratch == NULL) return QDQI_NO_MEMORY(err);
    st = qdqi_ref_run(&args, err);
    qdqi_free_aligned(args.scratch);
    QDQI_TRY(st);
    for (uint32_t i = 0; i < op->n_out; i++) {
        qdqi_lower_val(lw, op->out[i])->data = tensors[op->n_in + i].data;
        QDQI_TRY(qdqi_lower_written(lw, op->out[i], err));
    }
    return QDQ_OK;
}

/* The range that QuantizeV2 gives out depends on the range that comes in alone: known now when that is constant. The op is
 * computed on no elements. */
static qdq_status tf_ranges(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    const qdqi_lval *min = qdqi_lower_val(lw, op->in[1]), *max = qdqi_lower_val(lw, op->in[2]);
    if (min->data == NULL || max->data == NULL || qdqi_lower_val(lw, op->out[1])->data != NULL) return QDQ_OK;
    qdq_tensor_desc x = qdqi_lower_val(lw, op->in[0])->desc, y = qdqi_lower_val(lw, op->out[0])->desc;
    const int64_t axis = qdqi_op_s64(op, QDQI_A_AXIS);
    if (x.ndims == 0 || (x.ndims == 1 && axis == 0)) return QDQ_OK; /* no dim could be empty */
    const int32_t none = axis == 0 ? 1 : 0;
    x.dims[none] = y.dims[none] = 0;
    qdqi_set_dense(&x);
    qdqi_set_dense(&y);
    qdqi_ref_tensor in[3] = {
        {&x, NULL}, {&min->desc, (void *)(uintptr_t)min->data}, {&max->desc, (void *)(uintptr_t)max->data}};
    qdqi_ref_tensor out[3] = {{&y, NULL}};
    const qdq_tensor_desc *in_descs[3] = {&x, &min->desc, &max->desc}, *out_descs[3] = {&y};
    for (uint32_t i = 1; i < 3; i++) {
        qdqi_lval *lv = qdqi_lower_val(lw, op->out[i]);
        size_t bytes;
        qdqi_set_dense(&lv->desc);
        QDQI_TRY(desc_bytes(&lv->desc, &bytes, err));
        out[i] = (qdqi_ref_tensor){&lv->desc, qdqi_arena_alloc(&lw->arena, 1, bytes)};
        if (out[i].data == NULL) return QDQI_NO_MEMORY(err);
        out_descs[i] = &lv->desc;
    }
    qdqi_ref_args args = {.op = op, .n_in = 3, .n_out = 3, .in = in, .out = out};
    QDQI_TRY(qdqi_ref_scratch_bytes(op, in_descs, out_descs, &args.scratch_bytes, err));
    args.scratch = qdqi_malloc_aligned(args.scratch_bytes);
    if (args.scratch == NULL) return QDQI_NO_MEMORY(err);
    const qdq_status st = qdqi_ref_run(&args, err);
    qdqi_free_aligned(args.scratch);
    QDQI_TRY(st);
    for (uint32_t i = 1; i < 3; i++)
        qdqi_lower_val(lw, op->out[i])->data = out[i].data;
    return QDQ_OK;
}

/* ---- one op, one partition -------------------------------------------------------------------------------------- */

qdq_status qdqi_lower_op(qdqi_lower *lw, uint32_t op_index, qdq_error *err) {
    const qdqi_op *op = &lw->graph->ops[op_index];
    bool made = op->n_out != 0;
    bool empty = op->n_out != 0;
    for (uint32_t i = 0; i < op->n_out; i++) {
        const qdqi_lval *lv = qdqi_lower_val(lw, op->out[i]);
        made = made && (lv->buf != QDQI_NO_BUF || lv->data != NULL);
        empty = empty && qdqi_n_elems(&lv->desc) == 0;
    }
    if (made) return QDQ_OK; /* an absorbed Dequantize that an earlier partition had to materialise */
    if (all_constant(lw, op)) return fold(lw, op, err);
    if (op->kind == QDQI_OP_QUANTIZEV2) QDQI_TRY(tf_ranges(lw, op, err));
    if (empty) {
        for (uint32_t i = 0; i < op->n_out; i++) {
            qdq_tensor_desc layout;
            qdqi_buf buf;
            qdqi_lower_out_layout(lw, op->out[i], &layout);
            QDQI_TRY(qdqi_lower_write(lw, op->out[i], &layout, &buf, err));
            QDQI_TRY(qdqi_lower_written(lw, op->out[i], err));
        }
        return QDQ_OK;
    }
    const uint32_t outer = lw->op, n_steps = qdqi_plan_here(lw->plan).n_steps;
    lw->op = op_index;
    const qdq_status st = lw->reference_only ? qdqi_lower_reference(lw, op_index, err) : qdqi_lower_single(lw, op, err);
    lw->op = outer;
    /* a view costs no step of its own */
    if (lw->notes != NULL && st == QDQ_OK && qdqi_plan_here(lw->plan).n_steps != n_steps)
        qdqi_notes_alone(lw->notes, op_index);
    return st;
}

qdqi_lower_point qdqi_lower_here(const qdqi_lower *lw) {
    return (qdqi_lower_point){qdqi_plan_here(lw->plan), lw->n_journal, lw->notes != NULL ? lw->notes->n_alone : 0};
}

void qdqi_lower_undo(qdqi_lower *lw, qdqi_lower_point point) {
    qdqi_plan_rollback(lw->plan, point.plan);
    for (uint32_t i = point.n_journal; i < lw->n_journal; i++) {
        qdqi_lval *lv = qdqi_lower_val(lw, lw->journal[i]);
        lv->buf = QDQI_NO_BUF;
        lv->port_done = false;
    }
    lw->n_journal = point.n_journal;
    if (lw->notes != NULL) lw->notes->n_alone = point.n_alone;
}

uint32_t qdqi_lower_n_refusals(const qdqi_lower *lw) {
    return lw->notes == NULL ? 0 : lw->notes->n_seen;
}

void qdqi_lower_refused(qdqi_lower *lw, const char *who, qdq_status st, uint32_t n_before) {
    if (lw->notes == NULL || lw->notes->n_seen != n_before) return;
    note_refusal(lw, who,
                 st != QDQ_E_NO_ONEDNN ? "not_implemented_by_onednn"
                 : qdqi_dnnl_jit_off() ? "jit_off"
                                       : "no_onednn");
}

static qdq_status lower_part(qdqi_lower *lw, const qdqi_part *part, bool nested, qdq_error *err) {
    lw->part = part->id;
    const bool fused = !lw->reference_only && part->n_inputs != 0 && part->recipe != qdqi_recipe_single;
    bool empty = false;
    for (uint32_t i = 0; i < part->n_outputs; i++)
        empty = empty || qdqi_n_elems(&qdqi_lower_val(lw, part->outputs[i])->desc) == 0;
    if (fused && !empty) {
        const qdqi_lower_point here = qdqi_lower_here(lw);
        const uint32_t n_refusals = qdqi_lower_n_refusals(lw);
        qdq_error why = {0};
        const qdqi_op *closing = &lw->graph->ops[part->ops[part->n_ops - 1]];
        qdq_status st = QDQ_OK;
        if (closing->kind == QDQI_OP_QUANTIZEV2) st = tf_ranges(lw, closing, &why);
        if (st == QDQ_OK) st = part->recipe(lw, part, &why);
        for (uint32_t i = 1; st == QDQ_OK && i < closing->n_out; i++) /* a recipe makes the first output */
            if (qdqi_lower_val(lw, closing->out[i])->data != NULL) st = qdqi_lower_written(lw, closing->out[i], &why);
        if (st == QDQ_OK) return QDQ_OK;
        if (!qdqi_is_refusal(st)) {
            if (err != NULL) *err = why;
            return st;
        }
        qdqi_lower_undo(lw, here);
        qdqi_lower_refused(lw, qdqi_recipe_name(part->recipe), st, n_refusals);
        if (lw->notes != NULL && lw->notes->refused != NULL && !nested) lw->notes->refused[part->id] = true;
    }
    const uint32_t last = part->ops[part->n_ops - 1];
    const qdqi_op *op = &lw->graph->ops[last];
    qdq_status st = QDQ_OK;
    for (uint32_t i = 0; i < op->n_in && st == QDQ_OK; i++)
        if (op->in[i] != QDQI_NONE) st = qdqi_lower_make(lw, op->in[i], err);
    if (st == QDQ_OK) st = qdqi_lower_op(lw, last, err);
    if (st != QDQ_OK)
        return qdqi_fail_in(err, st, "op %llu \"%s\" (%s)", (unsigned long long)op->id, op->name, op->schema->name);
    return QDQ_OK;
}

qdq_status qdqi_lower_part(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    qdqi_lower *outer = noting;
    const bool nested = lw->notes != NULL && outer == lw; /* a partition inside of one */
    noting = lw->notes != NULL ? lw : NULL;
    lw->op = QDQI_NONE;
    lw->depth++;
    const qdq_status st = lower_part(lw, part, nested, err);
    if (--lw->depth == 0) qdqi_arena_free(&lw->scratch);
    noting = outer;
    return st;
}

qdq_status qdqi_recipe_single(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    return qdqi_lower_op(lw, part->root, err);
}

qdq_status qdqi_recipe_children(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    for (uint32_t i = 0; i < part->n_children; i++)
        QDQI_TRY(qdqi_lower_part(lw, &part->children[i], err));
    return QDQ_OK;
}
