/* Ops. Their content is shared with the graphs that they were added to; the first change after that makes a copy. */
#include "abi.h"

#include <string.h>

void abi_op_retain(abi_op *op) {
    atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
}

static void free_attr(abi_attr *a) {
    switch (abi_attr_type(a->attr)) {
    case 'F': free(a->v.f32s); break;
    case 'I': free(a->v.s64s); break;
    case 's': free(a->v.text); break;
    default: break;
    }
}

void abi_op_release(abi_op *op) {
    if (op == NULL || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) > 1) return;
    for (size_t i = 0; i < op->n_attrs; i++)
        free_attr(&op->attrs[i]);
    free(op->attrs);
    free(op->in);
    free(op->out);
    free(op->name);
    free(op);
}

static char *copy_text(const char *text) {
    const size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    if (copy != NULL) memcpy(copy, text, bytes);
    return copy;
}

/* A list of n elements; of none: a byte. */
static void *copy_list(const void *from, size_t n, size_t elem_bytes) {
    if (n > SIZE_MAX / elem_bytes) return NULL;
    void *copy = malloc(n == 0 ? 1 : n * elem_bytes);
    if (copy != NULL && n > 0) memcpy(copy, from, n * elem_bytes);
    return copy;
}

static bool copy_attr(const abi_attr *from, abi_attr *to) {
    *to = *from;
    switch (abi_attr_type(from->attr)) {
    case 'F': return (to->v.f32s = copy_list(from->v.f32s, from->n, sizeof *to->v.f32s)) != NULL;
    case 'I': return (to->v.s64s = copy_list(from->v.s64s, from->n, sizeof *to->v.s64s)) != NULL;
    case 's': return (to->v.text = copy_text(from->v.text)) != NULL;
    default: return true;
    }
}

static abi_op *make(size_t id, dnnl_graph_op_kind_t kind, const char *name) {
    abi_op *op = abi_calloc(1, sizeof *op);
    if (op == NULL) return NULL;
    atomic_init(&op->refs, 1);
    op->id = id;
    op->kind = kind;
    op->name = copy_text(name);
    if (op->name != NULL) return op;
    abi_op_release(op);
    return NULL;
}

static abi_op *clone(const abi_op *from) {
    abi_op *op = make(from->id, from->kind, from->name);
    if (op == NULL) return NULL;
    op->in = copy_list(from->in, from->n_in, sizeof *op->in);
    op->out = copy_list(from->out, from->n_out, sizeof *op->out);
    op->attrs = abi_calloc(from->n_attrs, sizeof *op->attrs);
    bool ok = op->in != NULL && op->out != NULL && op->attrs != NULL;
    op->n_in = op->cap_in = ok ? from->n_in : 0;
    op->n_out = op->cap_out = ok ? from->n_out : 0;
    op->cap_attrs = ok ? from->n_attrs : 0;
    for (size_t i = 0; ok && i < from->n_attrs; i++) {
        ok = copy_attr(&from->attrs[i], &op->attrs[i]);
        op->n_attrs = i + 1;
    }
    if (ok) return op;
    abi_op_release(op);
    return NULL;
}

/* The content, to be written: nobody else holds it. NULL: no memory. */
static abi_op *own(dnnl_graph_op_t handle) {
    if (atomic_load_explicit(&handle->op->refs, memory_order_acquire) == 1) return handle->op;
    abi_op *copy = clone(handle->op);
    if (copy == NULL) return NULL;
    abi_op_release(handle->op);
    handle->op = copy;
    return copy;
}

dnnl_status_t dnnl_graph_op_create(dnnl_graph_op_t *op, size_t id, dnnl_graph_op_kind_t kind,
                                   const char *verbose_name) {
    if (op == NULL || verbose_name == NULL) return dnnl_invalid_arguments;
    dnnl_graph_op_t handle = abi_calloc(1, sizeof *handle);
    if (handle == NULL) return dnnl_out_of_memory;
    handle->op = make(id, kind, verbose_name);
    if (handle->op == NULL) {
        free(handle);
        return dnnl_out_of_memory;
    }
    *op = handle;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_op_destroy(dnnl_graph_op_t op) {
    if (op != NULL) abi_op_release(op->op);
    free(op);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_op_add_input(dnnl_graph_op_t op, const dnnl_graph_logical_tensor_t *input) {
    if (op == NULL || input == NULL) return dnnl_invalid_arguments;
    abi_op *o = own(op);
    if (o == NULL || !abi_grow(&o->in, o->n_in, &o->cap_in, sizeof *o->in)) return dnnl_out_of_memory;
    o->in[o->n_in++] = *input;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_op_add_output(dnnl_graph_op_t op, const dnnl_graph_logical_tensor_t *output) {
    if (op == NULL || output == NULL) return dnnl_invalid_arguments;
    abi_op *o = own(op);
    if (o == NULL || !abi_grow(&o->out, o->n_out, &o->cap_out, sizeof *o->out)) return dnnl_out_of_memory;
    o->out[o->n_out++] = *output;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_op_get_id(const_dnnl_graph_op_t op, size_t *id) {
    if (op == NULL || id == NULL) return dnnl_invalid_arguments;
    *id = op->op->id;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_op_get_kind(const_dnnl_graph_op_t op, dnnl_graph_op_kind_t *kind) {
    if (op == NULL || kind == NULL) return dnnl_invalid_arguments;
    *kind = op->op->kind;
    return dnnl_success;
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

/* Takes the value over, on failure too. */
static dnnl_status_t put(dnnl_graph_op_t handle, abi_attr *value) {
    abi_op *op = own(handle);
    size_t i = 0;
    while (op != NULL && i < op->n_attrs && op->attrs[i].attr < value->attr)
        i++;
    if (op == NULL || !abi_grow(&op->attrs, op->n_attrs, &op->cap_attrs, sizeof *op->attrs)) {
        free_attr(value);
        return dnnl_out_of_memory;
    }
    if (i < op->n_attrs && op->attrs[i].attr == value->attr) {
        free_attr(&op->attrs[i]);
    } else {
        memmove(&op->attrs[i + 1], &op->attrs[i], (op->n_attrs - i) * sizeof *op->attrs);
        op->n_attrs++;
    }
    op->attrs[i] = *value;
    return dnnl_success;
}

/* An attribute of one of two types, one value or a list. */
static bool takes(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const void *value, char one, char list) {
    const char type = abi_attr_type(name);
    return op != NULL && value != NULL && type != 0 && (type == one || type == list);
}

dnnl_status_t dnnl_graph_op_set_attr_f32(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const float *value,
                                         size_t value_len) {
    if (!takes(op, name, value, 'f', 'F')) return dnnl_invalid_arguments;
    abi_attr a = {.attr = name, .n = value_len};
    if (abi_attr_type(name) == 'f')
        a.v.f32 = *value; /* the length is not looked at: callers give 0 */
    else if ((a.v.f32s = copy_list(value, value_len, sizeof *value)) == NULL)
        return dnnl_out_of_memory;
    return put(op, &a);
}

dnnl_status_t dnnl_graph_op_set_attr_s64(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const int64_t *value,
                                         size_t value_len) {
    if (!takes(op, name, value, 'i', 'I')) return dnnl_invalid_arguments;
    abi_attr a = {.attr = name, .n = value_len};
    if (abi_attr_type(name) == 'i')
        a.v.s64 = *value;
    else if ((a.v.s64s = copy_list(value, value_len, sizeof *value)) == NULL)
        return dnnl_out_of_memory;
    return put(op, &a);
}

dnnl_status_t dnnl_graph_op_set_attr_bool(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const uint8_t *value,
                                          size_t value_len) {
    if (!takes(op, name, value, 'b', 'b') || value_len != 1) return dnnl_invalid_arguments;
    abi_attr a = {.attr = name, .v.flag = *value != 0};
    return put(op, &a);
}

dnnl_status_t dnnl_graph_op_set_attr_str(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const char *value,
                                         size_t value_len) {
    if (!takes(op, name, value, 's', 's') || value_len == 0) return dnnl_invalid_arguments;
    abi_attr a = {.attr = name, .v.text = copy_text(value)}; /* callers give lengths that are not the string's */
    return a.v.text == NULL ? dnnl_out_of_memory : put(op, &a);
}

const abi_attr *abi_op_attr(const abi_op *op, dnnl_graph_op_attr_t attr) {
    for (size_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].attr == attr) return &op->attrs[i];
    return NULL;
}

/* ---- to libqdq -------------------------------------------------------------------------------------------------- */

static qdq_status set_attr(qdq_op *op, const abi_attr *a, qdq_error *err) {
    const char *name = abi_attr_name(a->attr);
    switch (abi_attr_type(a->attr)) {
    case 'f': return qdq_op_set_attr_f32(op, name, a->v.f32, err);
    case 'F': return qdq_op_set_attr_f32s(op, name, a->v.f32s, a->n, err);
    case 'i': return qdq_op_set_attr_s64(op, name, a->v.s64, err);
    case 'I': return qdq_op_set_attr_s64s(op, name, a->v.s64s, a->n, err);
    case 'b': return qdq_op_set_attr_bool(op, name, a->v.flag, err);
    default: return qdq_op_set_attr_str(op, name, a->v.text, err);
    }
}

static qdq_status fill(qdq_op *to, const abi_op *op, bool shapes, qdq_error *err) {
    qdq_tensor_desc desc;
    qdq_status st = QDQ_OK;
    /* a kind that libqdq does not know is a Wildcard to it, whose attributes mean nothing */
    const bool opaque = abi_kind_qdq(op->kind) != abi_kind_name(op->kind);
    for (size_t i = 0; !opaque && st == QDQ_OK && i < op->n_attrs; i++)
        st = set_attr(to, &op->attrs[i], err);
    for (size_t i = 0; st == QDQ_OK && i < op->n_in; i++) {
        st = abi_lt_edge(&op->in[i], shapes, &desc);
        if (st == QDQ_OK) st = qdq_op_add_input(to, &desc, err);
    }
    for (size_t i = 0; st == QDQ_OK && i < op->n_out; i++) {
        st = abi_lt_edge(&op->out[i], shapes, &desc);
        if (st == QDQ_OK) st = qdq_op_add_output(to, &desc, err);
    }
    return st;
}

qdq_status abi_op_to_qdq(const abi_op *op, bool shapes, qdq_op **out, qdq_error *err) {
    const char *kind = abi_kind_qdq(op->kind);
    if (kind == NULL) return QDQ_E_UNKNOWN_OP;
    qdq_status st = qdq_op_create(op->id, kind, op->name, out, err);
    if (st == QDQ_OK) st = fill(*out, op, shapes, err);
    if (st != QDQ_OK) qdq_op_destroy(out);
    return st;
}
