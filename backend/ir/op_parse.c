#include "ir/op_parse.h"

#include "ir/rule.h"

#include <math.h>
#include <string.h>

static const char *type_text(qdqi_attr_type type) {
    switch (type) {
    case QDQI_ATTR_F32: return "f32";
    case QDQI_ATTR_F32S: return "f32[]";
    case QDQI_ATTR_S64: return "s64";
    case QDQI_ATTR_S64S: return "s64[]";
    case QDQI_ATTR_BOOL: return "bool";
    case QDQI_ATTR_STR: return "string";
    }
    return "?";
}

static bool is_choice(const char *choices, const char *value) {
    const size_t n = strlen(value);
    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        if (*at == '|') at++;
        if (strncmp(at, value, n) == 0 && (at[n] == '|' || at[n] == '\0')) return true;
    }
    return false;
}

static qdq_status check_bounds(const qdqi_op *op, const qdqi_attr_schema *row, const int64_t *values, uint32_t n,
                               qdq_error *err) {
    for (uint32_t i = 0; i < n; i++) {
        if (row->has_min && values[i] < row->min)
            return qdqi_attr_fail(op, err, QDQ_E_BAD_ATTR, row->name, "found %" PRId64 ", expected %" PRId64 " or more",
                                  values[i], row->min);
        if (row->has_max && values[i] > row->max)
            return qdqi_attr_fail(op, err, QDQ_E_BAD_ATTR, row->name, "found %" PRId64 ", expected at most %" PRId64,
                                  values[i], row->max);
    }
    return QDQ_OK;
}

static qdq_status check_value(const qdqi_op *op, const qdqi_attr_schema *row, const qdqi_attr *value, qdq_error *err) {
    if (value->type != row->type)
        return qdqi_attr_fail(op, err, QDQ_E_BAD_ATTR, row->name, "found type %s, expected %s", type_text(value->type),
                              type_text(row->type));
    switch (value->type) {
    case QDQI_ATTR_F32:
        if (isnan(value->v.f32)) return qdqi_attr_fail(op, err, QDQ_E_BAD_ATTR, row->name, "found NaN");
        return QDQ_OK;
    case QDQI_ATTR_S64: return check_bounds(op, row, &value->v.s64, 1, err);
    case QDQI_ATTR_S64S: return check_bounds(op, row, value->v.s64s, value->n, err);
    case QDQI_ATTR_STR:
        if (row->choices != NULL && !is_choice(row->choices, value->v.str))
            return qdqi_attr_fail(op, err, QDQ_E_BAD_ATTR, row->name, "found \"%.64s\", expected %s", value->v.str,
                                  row->choices);
        return QDQ_OK;
    case QDQI_ATTR_F32S:
    case QDQI_ATTR_BOOL: return QDQ_OK;
    }
    return QDQ_OK;
}

/* The value with its own copy of what it borrows. */
static qdq_status copy_value(qdqi_arena *arena, const qdqi_attr *from, qdqi_attr *to, qdq_error *err) {
    *to = *from;
    if (from->type == QDQI_ATTR_STR) {
        to->v.str = qdqi_arena_strdup(arena, from->v.str);
        return to->v.str != NULL ? QDQ_OK : QDQI_NO_MEMORY(err);
    }
    if (from->n == 0 || (from->type != QDQI_ATTR_F32S && from->type != QDQI_ATTR_S64S)) return QDQ_OK;
    const bool floats = from->type == QDQI_ATTR_F32S;
    const size_t bytes = from->n * (floats ? sizeof(float) : sizeof(int64_t));
    const void *copy = qdqi_arena_dup(arena, floats ? (const void *)from->v.f32s : (const void *)from->v.s64s, bytes);
    if (copy == NULL) return QDQI_NO_MEMORY(err);
    if (floats)
        to->v.f32s = copy;
    else
        to->v.s64s = copy;
    return QDQ_OK;
}

qdqi_attr qdqi_attr_default(const qdqi_attr_schema *row) {
    qdqi_attr value = {.type = row->type, .is_present = row->has_default};
    switch (row->type) {
    case QDQI_ATTR_F32: value.n = 1, value.v.f32 = row->f32; break;
    case QDQI_ATTR_S64: value.n = 1, value.v.s64 = row->s64; break;
    case QDQI_ATTR_BOOL: value.n = 1, value.v.boolean = row->s64 != 0; break;
    case QDQI_ATTR_STR: value.n = 1, value.v.str = row->str; break; /* a literal of the table */
    case QDQI_ATTR_F32S:
    case QDQI_ATTR_S64S: break;
    }
    return value;
}

static qdq_status parse_attrs(const qdq_op *from, qdqi_arena *arena, qdqi_op *op, qdq_error *err) {
    const qdqi_schema *schema = op->schema;
    op->attrs = qdqi_arena_alloc(arena, schema->n_attrs == 0 ? 1 : schema->n_attrs, sizeof *op->attrs);
    if (op->attrs == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t k = 0; k < schema->n_attrs; k++)
        op->attrs[k] = qdqi_attr_default(&schema->attrs[k]);
    for (uint32_t i = 0; i < from->n_attrs; i++) {
        const qdqi_builder_attr *given = &from->attrs[i];
        uint32_t k = 0;
        while (k < schema->n_attrs && strcmp(qdqi_attr_text(schema->attrs[k].name), given->name) != 0)
            k++;
        if (k == schema->n_attrs)
            return qdqi_op_fail(op, err, QDQ_E_BAD_ATTR, "attribute \"%.64s\": the kind has no such attribute",
                                given->name);
        QDQI_TRY(check_value(op, &schema->attrs[k], &given->value, err));
        QDQI_TRY(copy_value(arena, &given->value, &op->attrs[k], err));
    }
    for (uint32_t k = 0; k < schema->n_attrs; k++)
        if (schema->attrs[k].required && !op->attrs[k].is_set)
            return qdqi_attr_fail(op, err, QDQ_E_BAD_ATTR, schema->attrs[k].name,
                                  "missing, expected a value of type %s", type_text(schema->attrs[k].type));
    return QDQ_OK;
}

static qdq_status check_count(const qdqi_op *op, const char *what, uint32_t n, uint8_t min, uint8_t max,
                              qdq_error *err) {
    if (n >= min && (max == QDQI_VARIADIC || n <= max)) return QDQ_OK;
    if (max == QDQI_VARIADIC)
        return qdqi_op_fail(op, err, QDQ_E_BAD_ARITY, "found %" PRIu32 " %s, expected %d or more", n, what, min);
    if (min == max) return qdqi_op_fail(op, err, QDQ_E_BAD_ARITY, "found %" PRIu32 " %s, expected %d", n, what, min);
    return qdqi_op_fail(op, err, QDQ_E_BAD_ARITY, "found %" PRIu32 " %s, expected %d to %d", n, what, min, max);
}

static qdq_status check_ports(const qdqi_op *op, const char *what, const qdqi_builder_ports *ports, uint32_t n,
                              uint32_t n_required, qdq_error *err) {
    for (uint32_t i = 0; i < n; i++) {
        if (!ports->ports[i].is_present) {
            if (i >= n_required) continue;
            return qdqi_op_fail(op, err, QDQ_E_BAD_ARITY, "%s %" PRIu32 " is left out, but it is required", what, i);
        }
        qdq_error why = {0};
        const qdq_status st = qdqi_desc_check(&ports->ports[i].desc, &why);
        if (st != QDQ_OK)
            return qdqi_op_fail(op, err, st, "%s %" PRIu32 " (tensor %" PRIu64 "): %s", what, i,
                                ports->ports[i].desc.id, why.text);
    }
    return QDQ_OK;
}

qdq_status qdqi_op_parse(const qdq_op *from, qdqi_arena *arena, qdqi_op *op, qdq_error *err) {
    *op = (qdqi_op){.id = from->id, .schema = qdqi_schema_find(from->kind), .name = from->name};
    if (op->schema == NULL)
        return qdqi_fail(err, QDQ_E_UNKNOWN_OP, "op %" PRIu64 " \"%.64s\": kind \"%.64s\" has no schema", from->id,
                         from->name, from->kind);
    op->kind = op->schema->kind;
    op->n_in = from->in.n;
    op->n_out = from->out.n;
    /* optional inputs left out at the end say nothing */
    while (op->n_in > 0 && !from->in.ports[op->n_in - 1].is_present)
        op->n_in--;
    QDQI_TRY(check_count(op, "inputs", op->n_in, op->schema->min_in, op->schema->max_in, err));
    QDQI_TRY(check_count(op, "outputs", op->n_out, op->schema->min_out, op->schema->max_out, err));
    const bool variadic = op->schema->max_in == QDQI_VARIADIC;
    QDQI_TRY(check_ports(op, "input", &from->in, op->n_in, variadic ? op->n_in : op->schema->min_in, err));
    QDQI_TRY(check_ports(op, "output", &from->out, op->n_out, op->n_out, err));
    return parse_attrs(from, arena, op, err);
}
