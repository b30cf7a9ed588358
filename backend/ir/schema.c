#include "ir/rule.h"

#include "base/alloc.h"

#include <string.h>

/* ---- attribute rows ---- */

#define ANY_S64                INT64_MIN
#define AUTO_PADS              "None|SAME_UPPER|SAME_LOWER|VALID"
#define AUTO_BROADCASTS        "none|numpy"
#define DATA_FORMATS           "NXC|NCX"
#define ACCUMULATION_MODES     "strict|relaxed|any|f32|s32|f16"
#define TF_MODES               "MIN_COMBINED|MIN_FIRST|SCALED"

#define REQ_F32(id)            {.name = QDQI_A_##id, .type = QDQI_ATTR_F32, .required = true},
#define F32(id, value)         {.name = QDQI_A_##id, .type = QDQI_ATTR_F32, .has_default = true, .f32 = (value)},
#define REQ_F32S(id)           {.name = QDQI_A_##id, .type = QDQI_ATTR_F32S, .required = true},
#define F32S(id)               {.name = QDQI_A_##id, .type = QDQI_ATTR_F32S, .has_default = true},
#define REQ_BOOL(id)           {.name = QDQI_A_##id, .type = QDQI_ATTR_BOOL, .required = true},
#define BOOL(id, value)        {.name = QDQI_A_##id, .type = QDQI_ATTR_BOOL, .has_default = true, .s64 = (value)},
#define BOUNDS(low, high)      .has_min = (low) != INT64_MIN, .has_max = (high) != INT64_MAX, .min = (low), .max = (high)
#define REQ_S64(id, low, high) {.name = QDQI_A_##id, .type = QDQI_ATTR_S64, .required = true, BOUNDS(low, high)},
#define OPT_S64(id)            {.name = QDQI_A_##id, .type = QDQI_ATTR_S64},
#define REQ_S64S(id, low)      {.name = QDQI_A_##id, .type = QDQI_ATTR_S64S, .required = true, BOUNDS(low, INT64_MAX)},
#define OPT_S64S(id, low)      {.name = QDQI_A_##id, .type = QDQI_ATTR_S64S, BOUNDS(low, INT64_MAX)},
#define REQ_STR(id, words)     {.name = QDQI_A_##id, .type = QDQI_ATTR_STR, .required = true, .choices = (words)},
#define OPT_STR(id, words)     {.name = QDQI_A_##id, .type = QDQI_ATTR_STR, .choices = (words)},
#define STR(id, value, words)                                                                                          \
    {.name = QDQI_A_##id, .type = QDQI_ATTR_STR, .has_default = true, .str = (value), .choices = (words)},
#define S64(id, value, low, high)                                                                                      \
    {.name = QDQI_A_##id, .type = QDQI_ATTR_S64, .has_default = true, .s64 = (value), BOUNDS(low, high)},
#define S64S(id, low) {.name = QDQI_A_##id, .type = QDQI_ATTR_S64S, .has_default = true, BOUNDS(low, INT64_MAX)},
/* one row more, so that the array of an op without attributes is not empty */
#define ATTRS(...)                                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__ {                                                                                                  \
            .name = QDQI_A_NONE                                                                                        \
        }                                                                                                              \
    }

#define QDQI_UNARY(id, name, origin, attr_a, attr_b, formula, alg, alpha, beta, attr_rows)                             \
    static const qdqi_attr_schema attrs_##id[] = attr_rows;
#include "ir/unary.def"
#undef QDQI_UNARY
#define QDQI_OP(id, name, origin, min_in, max_in, min_out, max_out, dtype_rule, shape_rule, check, ref, flags,         \
                attr_rows)                                                                                             \
    static const qdqi_attr_schema attrs_##id[] = attr_rows;
#include "ir/ops.def"
#undef QDQI_OP

/* ---- schemas ---- */

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static const qdqi_schema builtin[QDQI_OP_END_OF_BUILTIN] = {
#define QDQI_UNARY(id, text, from, attr_a, attr_b, expression, ...)                                                    \
    [QDQI_OP_##id] = {.kind = QDQI_OP_##id,                                                                            \
                      .name = (text),                                                                                  \
                      .origin = QDQI_ORIGIN_##from,                                                                    \
                      .min_in = 1,                                                                                     \
                      .max_in = 1,                                                                                     \
                      .min_out = 1,                                                                                    \
                      .max_out = 1,                                                                                    \
                      .flags = QDQI_F_UNARY | QDQI_F_FOLD,                                                             \
                      .dtypes = qdqi_dtypes_unary,                                                                     \
                      .shape = qdqi_shape_unary,                                                                       \
                      .check = qdqi_check_unary,                                                                       \
                      .attrs = attrs_##id,                                                                             \
                      .n_attrs = COUNT(attrs_##id) - 1,                                                                \
                      .dtype_rule = "unary",                                                                           \
                      .shape_rule = "unary",                                                                           \
                      .check_rule = "unary",                                                                           \
                      .formula = #expression},
#include "ir/unary.def"
#undef QDQI_UNARY
#define QDQI_OP(id, text, from, least_in, most_in, least_out, most_out, dtypes_, shape_, check_, ref, bits, attr_rows) \
    [QDQI_OP_##id] = {.kind = QDQI_OP_##id,                                                                            \
                      .name = (text),                                                                                  \
                      .origin = QDQI_ORIGIN_##from,                                                                    \
                      .min_in = (least_in),                                                                            \
                      .max_in = (most_in),                                                                             \
                      .min_out = (least_out),                                                                          \
                      .max_out = (most_out),                                                                           \
                      .flags = (bits),                                                                                 \
                      .dtypes = qdqi_dtypes_##dtypes_,                                                                 \
                      .shape = qdqi_shape_##shape_,                                                                    \
                      .check = qdqi_check_##check_,                                                                    \
                      .attrs = attrs_##id,                                                                             \
                      .n_attrs = COUNT(attrs_##id) - 1,                                                                \
                      .dtype_rule = #dtypes_,                                                                          \
                      .shape_rule = #shape_,                                                                           \
                      .check_rule = #check_},
#include "ir/ops.def"
#undef QDQI_OP
};

static const char *const attr_texts[QDQI_N_ATTR_NAMES] = {
#define QDQI_ATTR(id, text) [QDQI_A_##id] = (text),
#include "ir/attrs.def"
#undef QDQI_ATTR
};

const char *qdqi_attr_text(qdqi_attr_name name) {
    return (size_t)name < QDQI_N_ATTR_NAMES ? attr_texts[name] : "?";
}

qdqi_attr_name qdqi_attr_from_text(const char *text) {
    for (size_t i = 0; i < QDQI_N_ATTR_NAMES; i++)
        if (attr_texts[i][0] == text[0] && strcmp(attr_texts[i], text) == 0) return (qdqi_attr_name)i;
    return QDQI_N_ATTR_NAMES;
}

/* ---- a host's own kinds: a table that only grows; readers take no lock ---- */

enum { MAX_CUSTOM = 256, N_BUILTIN = QDQI_OP_END_OF_BUILTIN - 1 };

static qdqi_schema customs[MAX_CUSTOM];
static atomic_size_t n_customs; /* rows below it are complete */
static atomic_flag writing = ATOMIC_FLAG_INIT;

const qdqi_schema *qdqi_schema_of(qdqi_kind kind) {
    const size_t k = (size_t)kind;
    if (k == QDQI_OP_NONE) return NULL;
    if (k < QDQI_OP_END_OF_BUILTIN) return &builtin[k];
    const size_t i = k - QDQI_OP_END_OF_BUILTIN;
    return i < atomic_load_explicit(&n_customs, memory_order_acquire) ? &customs[i] : NULL;
}

size_t qdqi_schema_count(void) {
    return N_BUILTIN + atomic_load_explicit(&n_customs, memory_order_acquire);
}

const qdqi_schema *qdqi_schema_at(size_t i) {
    return qdqi_schema_of((qdqi_kind)(i + 1));
}

const qdqi_schema *qdqi_schema_find(const char *name) {
    const size_t n = qdqi_schema_count();
    for (size_t i = 0; i < n; i++) {
        const qdqi_schema *schema = qdqi_schema_at(i);
        if (schema->name[0] == name[0] && strcmp(schema->name, name) == 0) return schema;
    }
    return NULL;
}

/* The kind, its strings and its copy of the host's struct. */
static qdq_status add_custom(const qdq_custom_op *op, qdq_error *err) {
    const size_t n = atomic_load_explicit(&n_customs, memory_order_relaxed);
    if (qdqi_schema_find(op->kind) != NULL)
        return qdqi_fail(err, QDQ_E_DUPLICATE_ID, "op kind \"%.64s\" is registered already", op->kind);
    if (n == MAX_CUSTOM)
        return qdqi_fail(err, QDQ_E_OVERFLOW, "op kind \"%.64s\": %d kinds are registered already", op->kind,
                         MAX_CUSTOM);
    char *kind = qdqi_strdup(op->kind);
    qdq_custom_op *copy = qdqi_malloc(sizeof *copy);
    if (kind == NULL || copy == NULL) {
        qdqi_free(kind);
        qdqi_free(copy);
        return QDQI_NO_MEMORY(err);
    }
    *copy = *op;
    copy->kind = kind;
    customs[n] = (qdqi_schema){.kind = (qdqi_kind)(QDQI_OP_END_OF_BUILTIN + n),
                               .name = kind,
                               .origin = QDQI_ORIGIN_CUSTOM,
                               .min_in = (uint8_t)op->min_inputs,
                               .max_in = (uint8_t)op->max_inputs,
                               .min_out = (uint8_t)op->min_outputs,
                               .max_out = (uint8_t)op->max_outputs,
                               .dtypes = qdqi_dtypes_any,
                               .shape = qdqi_shape_custom,
                               .custom = copy};
    atomic_store_explicit(&n_customs, n + 1, memory_order_release);
    return QDQ_OK;
}

qdq_status qdqi_schema_register(const qdq_custom_op *op, qdq_error *err) {
    QDQI_NOT_NULL(err, op);
    if (op->struct_bytes != sizeof *op)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "custom op: struct_bytes: found %zu, expected %zu", op->struct_bytes,
                         sizeof *op);
    QDQI_NOT_NULL(err, op->kind);
    QDQI_NOT_NULL(err, op->infer);
    QDQI_NOT_NULL(err, op->run);
    if (op->kind[0] == '\0') return qdqi_fail(err, QDQ_E_BAD_ARG, "custom op: its kind is empty");
    if (op->min_inputs < 0 || op->max_inputs < op->min_inputs || op->max_inputs > QDQI_VARIADIC ||
        op->min_outputs < 1 || op->max_outputs < op->min_outputs || op->max_outputs > QDQI_VARIADIC)
        return qdqi_fail(err, QDQ_E_BAD_ARG,
                         "op kind \"%.64s\": found %d to %d inputs and %d to %d outputs, expected 0 to %d and 1 to %d",
                         op->kind, op->min_inputs, op->max_inputs, op->min_outputs, op->max_outputs, QDQI_VARIADIC,
                         QDQI_VARIADIC);
    while (atomic_flag_test_and_set_explicit(&writing, memory_order_acquire)) {
    }
    const qdq_status st = add_custom(op, err);
    atomic_flag_clear_explicit(&writing, memory_order_release);
    return st;
}
