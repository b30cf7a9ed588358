/* Nodes of an ONNX model as libqdq ops: attributes in, ops out. */
#include "onnx_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

qdq_status qdqi_onnx_bad(qdqi_onnx_node *n, const char *fmt, ...) {
    char text[QDQ_ERROR_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return qdqi_fail(n->err, QDQ_E_ONNX, "node \"" QDQI_ONNX_NAME "\" (%.60s, opset %lld): %s", n->name,
                     n->proto->op_type, (long long)n->opset, text);
}

/* ---- inputs and outputs ---- */

const char *qdqi_onnx_in(const qdqi_onnx_node *n, size_t i) {
    return i < n->proto->n_input ? n->proto->input[i] : "";
}

const char *qdqi_onnx_out(const qdqi_onnx_node *n, size_t i) {
    return i < n->proto->n_output ? n->proto->output[i] : "";
}

bool qdqi_onnx_has_in(const qdqi_onnx_node *n, size_t i) {
    return qdqi_onnx_in(n, i)[0] != '\0';
}

bool qdqi_onnx_has_out(const qdqi_onnx_node *n, size_t i) {
    return qdqi_onnx_out(n, i)[0] != '\0';
}

static const qdqi_onnx_value *in_value(const qdqi_onnx_node *n, size_t i) {
    return qdqi_onnx_has_in(n, i) ? qdqi_onnx_find(n->r, qdqi_onnx_in(n, i)) : NULL;
}

int32_t qdqi_onnx_in_rank(const qdqi_onnx_node *n, size_t i) {
    const qdqi_onnx_value *value = in_value(n, i);
    return value == NULL ? QDQ_NDIMS_UNKNOWN : value->desc.ndims;
}

qdq_dtype qdqi_onnx_in_dtype(const qdqi_onnx_node *n, size_t i) {
    const qdqi_onnx_value *value = in_value(n, i);
    return value == NULL ? QDQ_DTYPE_UNDEF : value->desc.dtype;
}

bool qdqi_onnx_in_is_const(const qdqi_onnx_node *n, size_t i) {
    const qdqi_onnx_value *value = in_value(n, i);
    return value != NULL && value->is_constant;
}

/* ---- attributes ---- */

enum { ATTR_FLOAT = 1, ATTR_INT = 2, ATTR_STRING = 3, ATTR_FLOATS = 6, ATTR_INTS = 7 };

const Onnx__AttributeProto *qdqi_onnx_attr(qdqi_onnx_node *n, const char *name) {
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const Onnx__AttributeProto *a = n->proto->attribute[i];
        if (a->name == NULL || strcmp(a->name, name) != 0) continue;
        n->read |= (uint64_t)1 << (i & 63);
        return a;
    }
    return NULL;
}

/* A few old writers leave `type` out; then the field that is there decides. */
static qdq_status check_type(qdqi_onnx_node *n, const Onnx__AttributeProto *a, int32_t type, bool has_field) {
    if (a->has_type && a->type != 0 ? a->type == type : has_field) return QDQ_OK;
    static const char *const names[] = {"?", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings"};
    const size_t n_names = sizeof names / sizeof names[0];
    return qdqi_onnx_bad(n, "attribute %.60s is of type %s, expected %s", a->name,
                         a->has_type && a->type >= 0 && (size_t)a->type < n_names ? names[a->type] : "?", names[type]);
}

qdq_status qdqi_onnx_attr_i(qdqi_onnx_node *n, const char *name, int64_t fallback, int64_t *out) {
    const Onnx__AttributeProto *a = qdqi_onnx_attr(n, name);
    *out = fallback;
    if (a == NULL) return QDQ_OK;
    QDQI_TRY(check_type(n, a, ATTR_INT, a->has_i));
    *out = a->has_i ? a->i : 0;
    return QDQ_OK;
}

qdq_status qdqi_onnx_attr_f(qdqi_onnx_node *n, const char *name, float fallback, float *out) {
    const Onnx__AttributeProto *a = qdqi_onnx_attr(n, name);
    *out = fallback;
    if (a == NULL) return QDQ_OK;
    QDQI_TRY(check_type(n, a, ATTR_FLOAT, a->has_f));
    *out = a->has_f ? a->f : 0.0f;
    return QDQ_OK;
}

qdq_status qdqi_onnx_attr_s(qdqi_onnx_node *n, const char *name, const char *fallback, const char **out) {
    const Onnx__AttributeProto *a = qdqi_onnx_attr(n, name);
    *out = fallback;
    if (a == NULL) return QDQ_OK;
    QDQI_TRY(check_type(n, a, ATTR_STRING, a->has_s));
    char *s = qdqi_arena_alloc(&n->r->arena, a->s.len + 1, 1);
    if (s == NULL) return QDQI_NO_MEMORY(n->err);
    if (a->s.len > 0) memcpy(s, a->s.data, a->s.len);
    *out = s;
    return QDQ_OK;
}

qdq_status qdqi_onnx_attr_ints(qdqi_onnx_node *n, const char *name, const int64_t **out, int64_t *n_out) {
    const Onnx__AttributeProto *a = qdqi_onnx_attr(n, name);
    *out = NULL;
    *n_out = -1;
    if (a == NULL) return QDQ_OK;
    QDQI_TRY(check_type(n, a, ATTR_INTS, true));
    *out = a->ints;
    *n_out = (int64_t)a->n_ints;
    return QDQ_OK;
}

/* ---- constant inputs ---- */

static qdq_status const_input(qdqi_onnx_node *n, size_t i, qdqi_onnx_value **out, int64_t *count) {
    qdqi_onnx_value *value = qdqi_onnx_has_in(n, i) ? qdqi_onnx_find(n->r, qdqi_onnx_in(n, i)) : NULL;
    if (value == NULL || !value->is_constant)
        return qdqi_onnx_bad(n, "input %zu (\"" QDQI_ONNX_NAME "\") must be a constant", i, qdqi_onnx_in(n, i));
    const qdq_status st = qdqi_onnx_content(n->r, value);
    if (st != QDQ_OK) return st;
    QDQI_TRY(qdq_tensor_desc_n_elems(&value->desc, count, n->err));
    *out = value;
    return QDQ_OK;
}

qdq_status qdqi_onnx_in_ints(qdqi_onnx_node *n, size_t i, const int64_t **out, int64_t *n_out) {
    qdqi_onnx_value *value = NULL;
    int64_t count = 0;
    QDQI_TRY(const_input(n, i, &value, &count));
    if (!qdqi_dtype_is_int(value->desc.dtype) && value->desc.dtype != QDQ_DTYPE_BOOLEAN)
        return qdqi_onnx_bad(n, "input %zu (\"" QDQI_ONNX_NAME "\") is of type %s, expected integers", i, value->name,
                             qdq_dtype_name(value->desc.dtype));
    int64_t *ints = qdqi_arena_alloc(&n->r->arena, (size_t)count + 1, sizeof *ints);
    if (ints == NULL) return QDQI_NO_MEMORY(n->err);
    for (int64_t k = 0; k < count; k++)
        ints[k] = qdqi_load_i64(value->data, value->desc.dtype, k);
    *out = ints;
    *n_out = count;
    return QDQ_OK;
}

qdq_status qdqi_onnx_in_floats(qdqi_onnx_node *n, size_t i, const float **out, int64_t *n_out) {
    qdqi_onnx_value *value = NULL;
    int64_t count = 0;
    QDQI_TRY(const_input(n, i, &value, &count));
    float *floats = qdqi_arena_alloc(&n->r->arena, (size_t)count + 1, sizeof *floats);
    if (floats == NULL) return QDQI_NO_MEMORY(n->err);
    for (int64_t k = 0; k < count; k++)
        floats[k] = qdqi_load_f32(value->data, value->desc.dtype, k);
    *out = floats;
    *n_out = count;
    return QDQ_OK;
}

/* ---- emitting ---- */

qdqi_onnx_emit qdqi_onnx_begin(qdqi_onnx_node *n, const char *kind) {
    qdqi_onnx_emit e = {.n = n, .op = NULL, .st = QDQ_OK};
    e.st = qdq_op_create(n->r->next_op_id++, kind, n->name, &e.op, n->err);
    return e;
}

/* Descriptor of a name for an op's port, or NULL with a failure. */
static qdqi_onnx_value *port_value(qdqi_onnx_emit *e, const char *name) {
    qdqi_onnx_value *value = qdqi_onnx_value_of(e->n->r, name);
    if (value == NULL) {
        e->st = QDQI_NO_MEMORY(e->n->err);
        return NULL;
    }
    value->is_used = true;
    return value;
}

void qdqi_onnx_put_in(qdqi_onnx_emit *e, const char *name) {
    if (e->st != QDQ_OK) return;
    const qdqi_onnx_value *value = NULL;
    if (name != NULL && name[0] != '\0') {
        value = port_value(e, name);
        if (value == NULL) return;
    }
    e->st = qdq_op_add_input(e->op, value == NULL ? NULL : &value->desc, e->n->err);
}

void qdqi_onnx_put_ins(qdqi_onnx_emit *e, size_t from, size_t to) {
    while (to > from && !qdqi_onnx_has_in(e->n, to - 1))
        to--;
    for (size_t i = from; i < to; i++)
        qdqi_onnx_put_in(e, qdqi_onnx_in(e->n, i));
}

void qdqi_onnx_put_out(qdqi_onnx_emit *e, const char *name) {
    if (e->st != QDQ_OK) return;
    if (name == NULL || name[0] == '\0') {
        e->st = qdqi_onnx_bad(e->n, "a required output has no name");
        return;
    }
    qdqi_onnx_value *value = port_value(e, name);
    if (value == NULL) return;
    value->is_made = true;
    e->st = qdq_op_add_output(e->op, &value->desc, e->n->err);
}

#define PUT(call)                                                                                                      \
    do {                                                                                                               \
        if (e->st == QDQ_OK) e->st = (call);                                                                           \
    } while (0)

void qdqi_onnx_put_f32(qdqi_onnx_emit *e, const char *name, float v) {
    PUT(qdq_op_set_attr_f32(e->op, name, v, e->n->err));
}
void qdqi_onnx_put_s64(qdqi_onnx_emit *e, const char *name, int64_t v) {
    PUT(qdq_op_set_attr_s64(e->op, name, v, e->n->err));
}
void qdqi_onnx_put_s64s(qdqi_onnx_emit *e, const char *name, const int64_t *v, size_t n) {
    PUT(qdq_op_set_attr_s64s(e->op, name, v, n, e->n->err));
}
void qdqi_onnx_put_f32s(qdqi_onnx_emit *e, const char *name, const float *v, size_t n) {
    PUT(qdq_op_set_attr_f32s(e->op, name, v, n, e->n->err));
}
void qdqi_onnx_put_bool(qdqi_onnx_emit *e, const char *name, bool v) {
    PUT(qdq_op_set_attr_bool(e->op, name, v, e->n->err));
}
void qdqi_onnx_put_str(qdqi_onnx_emit *e, const char *name, const char *v) {
    PUT(qdq_op_set_attr_str(e->op, name, v, e->n->err));
}

void qdqi_onnx_know(qdqi_onnx_node *n, const char *name, int32_t ndims, qdq_dtype dtype) {
    qdqi_onnx_value *value = name[0] == '\0' ? NULL : qdqi_onnx_value_of(n->r, name);
    if (value == NULL || value->is_used || value->is_constant || value->is_input) return;
    if (ndims >= 0 && ndims <= QDQ_MAX_NDIMS) {
        value->desc.ndims = ndims;
        for (int32_t d = 0; d < ndims; d++)
            value->desc.dims[d] = QDQ_DIM_UNKNOWN;
    }
    if (dtype != QDQ_DTYPE_UNDEF) value->desc.dtype = dtype;
}

void qdqi_onnx_know_like(qdqi_onnx_node *n, const char *name, const char *like, qdq_dtype dtype) {
    const qdqi_onnx_value *from = like[0] == '\0' ? NULL : qdqi_onnx_find(n->r, like);
    if (from == NULL) return;
    const qdq_tensor_desc desc = from->desc;
    qdqi_onnx_know(n, name, desc.ndims, dtype);
    qdqi_onnx_value *value = qdqi_onnx_find(n->r, name);
    if (value == NULL || value->is_used || value->is_constant || value->is_input || desc.ndims < 0) return;
    memcpy(value->desc.dims, desc.dims, sizeof desc.dims);
}

qdq_status qdqi_onnx_end(qdqi_onnx_emit *e) {
    if (e->st == QDQ_OK) {
        e->st = qdq_graph_add_op(e->n->r->out, e->op, e->n->err);
        if (e->st != QDQ_OK)
            qdqi_fail_in(e->n->err, e->st, "node \"" QDQI_ONNX_NAME "\" (%.60s, opset %lld)", e->n->name,
                         e->n->proto->op_type, (long long)e->n->opset);
    }
    qdq_op_destroy(&e->op);
    return e->st;
}

/* ---- new names ---- */

const char *qdqi_onnx_temp(qdqi_onnx_node *n, const char *tag) {
    const char *base = qdqi_onnx_has_out(n, 0) ? qdqi_onnx_out(n, 0) : n->name;
    const size_t room = strlen(base) + strlen(tag) + 32;
    char *name = qdqi_arena_alloc(&n->r->arena, room, 1);
    if (name == NULL) return NULL;
    for (unsigned k = 0;; k++) {
        snprintf(name, room, k == 0 ? "%s/%s" : "%s/%s_%u", base, tag, k);
        if (qdqi_onnx_find(n->r, name) == NULL) break;
    }
    qdqi_onnx_value *value = qdqi_onnx_value_of(n->r, name);
    if (value == NULL) return NULL;
    value->producer = n->name;
    return name;
}

const char *qdqi_onnx_const(qdqi_onnx_node *n, const char *tag, qdq_dtype dtype, int32_t ndims, const int64_t *dims,
                            const void *data) {
    const char *name = qdqi_onnx_temp(n, tag);
    qdqi_onnx_value *value = name == NULL ? NULL : qdqi_onnx_find(n->r, name);
    if (value == NULL) return NULL;
    const uint64_t id = value->desc.id;
    if (qdq_tensor_desc_init(id, dtype, ndims, dims, QDQ_LAYOUT_STRIDED, QDQ_PROPERTY_CONSTANT, &value->desc, NULL) !=
            QDQ_OK ||
        qdq_tensor_desc_size_bytes(&value->desc, &value->bytes, NULL) != QDQ_OK)
        return NULL;
    value->owned = qdqi_malloc(value->bytes);
    if (value->owned == NULL) return NULL;
    if (value->bytes > 0) memcpy(value->owned, data, value->bytes);
    value->data = value->owned;
    value->is_constant = true;
    return name;
}

const char *qdqi_onnx_const_f32(qdqi_onnx_node *n, const char *tag, float v) {
    return qdqi_onnx_const(n, tag, QDQ_DTYPE_F32, 0, NULL, &v);
}

const char *qdqi_onnx_const_s64s(qdqi_onnx_node *n, const char *tag, const int64_t *v, size_t count) {
    const int64_t dims[1] = {(int64_t)count};
    return qdqi_onnx_const(n, tag, QDQ_DTYPE_S64, 1, dims, v);
}
