#include "ir/op_builder.h"

#include "base/alloc.h"

#include <string.h>

/* Room for one more element of an array that doubles. */
static bool grow(void **array, uint32_t n, uint32_t *capacity, size_t elem_bytes) {
    if (n < *capacity) return true;
    const uint32_t bigger = *capacity == 0 ? 4 : *capacity * 2;
    if (bigger <= *capacity) return false;
    void *grown = qdqi_realloc_array(*array, bigger, elem_bytes);
    if (grown == NULL) return false;
    *array = grown;
    *capacity = bigger;
    return true;
}

qdqi_attr qdqi_attr_of_f32(float value) {
    return (qdqi_attr){.type = QDQI_ATTR_F32, .n = 1, .v.f32 = value};
}
qdqi_attr qdqi_attr_of_f32s(const float *values, size_t n) {
    return (qdqi_attr){.type = QDQI_ATTR_F32S, .n = (uint32_t)n, .v.f32s = values};
}
qdqi_attr qdqi_attr_of_s64(int64_t value) {
    return (qdqi_attr){.type = QDQI_ATTR_S64, .n = 1, .v.s64 = value};
}
qdqi_attr qdqi_attr_of_s64s(const int64_t *values, size_t n) {
    return (qdqi_attr){.type = QDQI_ATTR_S64S, .n = (uint32_t)n, .v.s64s = values};
}
qdqi_attr qdqi_attr_of_bool(bool value) {
    return (qdqi_attr){.type = QDQI_ATTR_BOOL, .n = 1, .v.boolean = value};
}
qdqi_attr qdqi_attr_of_str(const char *value) {
    return (qdqi_attr){.type = QDQI_ATTR_STR, .n = 1, .v.str = value};
}

qdq_status qdqi_builder_create(uint64_t id, const char *kind, const char *name, qdq_op **op_out, qdq_error *err) {
    qdq_op *op = qdqi_calloc(1, sizeof *op);
    if (op == NULL) return QDQI_NO_MEMORY(err);
    op->id = id;
    op->kind = qdqi_strdup(kind);
    op->name = qdqi_strdup(name);
    if (op->kind == NULL || op->name == NULL) {
        qdqi_builder_destroy(op);
        return QDQI_NO_MEMORY(err);
    }
    *op_out = op;
    return QDQ_OK;
}

void qdqi_builder_destroy(qdq_op *op) {
    if (op == NULL) return;
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        qdqi_free(op->attrs[i].name);
        qdqi_free(op->attrs[i].owned);
    }
    qdqi_free(op->attrs);
    qdqi_free(op->in.ports);
    qdqi_free(op->out.ports);
    qdqi_free(op->kind);
    qdqi_free(op->name);
    qdqi_free(op);
}

qdq_status qdqi_builder_add_port(qdqi_builder_ports *ports, const qdq_tensor_desc *desc, qdq_error *err) {
    void *array = ports->ports;
    if (!grow(&array, ports->n, &ports->capacity, sizeof *ports->ports)) return QDQI_NO_MEMORY(err);
    ports->ports = array;
    qdqi_builder_port *port = &ports->ports[ports->n++];
    *port = (qdqi_builder_port){.is_present = desc != NULL};
    if (desc != NULL) port->desc = *desc;
    return QDQ_OK;
}

/* A copy of what `value` borrows; NULL with *failed false when it borrows nothing. */
static void *own(qdqi_attr *value, bool *failed) {
    const void *from = NULL;
    size_t bytes = 0;
    switch (value->type) {
    case QDQI_ATTR_F32:
    case QDQI_ATTR_S64:
    case QDQI_ATTR_BOOL: return NULL;
    case QDQI_ATTR_F32S: from = value->v.f32s, bytes = value->n * sizeof(float); break;
    case QDQI_ATTR_S64S: from = value->v.s64s, bytes = value->n * sizeof(int64_t); break;
    case QDQI_ATTR_STR: from = value->v.str, bytes = strlen(value->v.str) + 1; break;
    }
    void *copy = qdqi_malloc(bytes);
    *failed = copy == NULL;
    if (copy == NULL) return NULL;
    if (bytes > 0) memcpy(copy, from, bytes);
    switch (value->type) {
    case QDQI_ATTR_F32:
    case QDQI_ATTR_S64:
    case QDQI_ATTR_BOOL: break;
    case QDQI_ATTR_F32S: value->v.f32s = copy; break;
    case QDQI_ATTR_S64S: value->v.s64s = copy; break;
    case QDQI_ATTR_STR: value->v.str = copy; break;
    }
    return copy;
}

qdq_status qdqi_builder_set_attr(qdq_op *op, const char *name, qdqi_attr value, qdq_error *err) {
    bool failed = false;
    value.is_set = value.is_present = true;
    void *owned = own(&value, &failed);
    if (failed) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0) {
            qdqi_free(op->attrs[i].owned);
            op->attrs[i].owned = owned;
            op->attrs[i].value = value;
            return QDQ_OK;
        }
    void *array = op->attrs;
    char *name_copy = qdqi_strdup(name);
    if (name_copy == NULL || !grow(&array, op->n_attrs, &op->cap_attrs, sizeof *op->attrs)) {
        qdqi_free(name_copy);
        qdqi_free(owned);
        return QDQI_NO_MEMORY(err);
    }
    op->attrs = array;
    op->attrs[op->n_attrs++] = (qdqi_builder_attr){name_copy, owned, value};
    return QDQ_OK;
}
