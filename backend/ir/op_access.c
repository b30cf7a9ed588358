/* Attribute access on a checked op, and what derives from attributes alone. */
#include "ir/graph.h"

#include <assert.h>
#include <string.h>

const qdqi_attr *qdqi_op_attr_or_null(const qdqi_op *op, qdqi_attr_name name) {
    for (uint32_t i = 0; i < op->schema->n_attrs; i++)
        if (op->schema->attrs[i].name == name) return op->attrs[i].is_present ? &op->attrs[i] : NULL;
    return NULL;
}

const qdqi_attr *qdqi_op_attr(const qdqi_op *op, qdqi_attr_name name) {
    for (uint32_t i = 0; i < op->schema->n_attrs; i++)
        if (op->schema->attrs[i].name == name) return &op->attrs[i];
    const bool schema_has_the_attribute = false;
    assert(schema_has_the_attribute);
    (void)schema_has_the_attribute;
    static const qdqi_attr none = {.type = QDQI_ATTR_STR, .v.str = ""};
    return &none;
}

float qdqi_op_f32(const qdqi_op *op, qdqi_attr_name name) {
    return qdqi_op_attr(op, name)->v.f32;
}

int64_t qdqi_op_s64(const qdqi_op *op, qdqi_attr_name name) {
    return qdqi_op_attr(op, name)->v.s64;
}

bool qdqi_op_bool(const qdqi_op *op, qdqi_attr_name name) {
    return qdqi_op_attr(op, name)->v.boolean;
}

const char *qdqi_op_str(const qdqi_op *op, qdqi_attr_name name) {
    const qdqi_attr *attr = qdqi_op_attr(op, name);
    return attr->is_present ? attr->v.str : "";
}

bool qdqi_op_str_is(const qdqi_op *op, qdqi_attr_name name, const char *value) {
    return strcmp(qdqi_op_str(op, name), value) == 0;
}

const int64_t *qdqi_op_s64s(const qdqi_op *op, qdqi_attr_name name, uint32_t *n_out) {
    const qdqi_attr *attr = qdqi_op_attr_or_null(op, name);
    *n_out = attr == NULL ? 0 : attr->n;
    return *n_out == 0 ? NULL : attr->v.s64s;
}

const float *qdqi_op_f32s(const qdqi_op *op, qdqi_attr_name name, uint32_t *n_out) {
    const qdqi_attr *attr = qdqi_op_attr_or_null(op, name);
    *n_out = attr == NULL ? 0 : attr->n;
    return *n_out == 0 ? NULL : attr->v.f32s;
}

/* The index of a string among "x|y|z"; it is one of them. */
static float choice_index(const char *choices, const char *value) {
    const size_t n = strlen(value);
    float index = 0.0f;
    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        if (*at == '|') at++, index += 1.0f;
        if (strncmp(at, value, n) == 0 && (at[n] == '|' || at[n] == '\0')) return index;
    }
    return 0.0f;
}

static float unary_param(const qdqi_op *op, qdqi_attr_name name) {
    for (uint32_t i = 0; i < op->schema->n_attrs; i++) {
        const qdqi_attr_schema *schema = &op->schema->attrs[i];
        if (schema->name == name)
            return schema->type == QDQI_ATTR_STR ? choice_index(schema->choices, op->attrs[i].v.str)
                                                 : op->attrs[i].v.f32;
    }
    return 0.0f;
}

void qdqi_op_unary_ab(const qdqi_op *op, float *a_out, float *b_out) {
    static const struct {
        qdqi_attr_name a, b;
    } names[] = {
#define QDQI_UNARY(id, name, origin, attr_a, attr_b, ...) [QDQI_OP_##id] = {QDQI_A_##attr_a, QDQI_A_##attr_b},
#include "ir/unary.def"
#undef QDQI_UNARY
    };
    assert(op->kind > QDQI_OP_NONE && op->kind < sizeof names / sizeof names[0]);
    *a_out = unary_param(op, names[op->kind].a);
    *b_out = unary_param(op, names[op->kind].b);
}
