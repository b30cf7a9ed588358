/* The module's descriptor: what it registers. Op schemas and patterns are static tables; providers close every candidate list. */
#include "base/error.h"
#include "ir/schema.h"
#include "lower/notes.h"
#include "patterns/guards.h"
#include "patterns/sets.h"

static const char *const providers[] = {"onednn", "native", "reference"};

static const char *origin_name(qdqi_origin origin) {
    switch (origin) {
    case QDQI_ORIGIN_ONEDNN: return "oneDNN Graph";
    case QDQI_ORIGIN_ONNX: return "ONNX";
    case QDQI_ORIGIN_TF: return "TensorFlow";
    case QDQI_ORIGIN_CUSTOM: return "custom";
    }
    return "";
}

static const char *rule_name(const char *name) {
    return name == NULL ? "" : name;
}

size_t qdq_backend_n_ops(void) {
    return qdqi_schema_count();
}

qdq_status qdq_backend_op(size_t i, qdq_op_info *info_out, qdq_error *err) {
    QDQI_NOT_NULL(err, info_out);
    const qdqi_schema *schema = qdqi_schema_at(i);
    if (schema == NULL)
        return qdqi_fail(err, QDQ_E_NOT_FOUND, "%zu op kinds are registered, asked for number %zu", qdqi_schema_count(),
                         i);
    const qdqi_note note = qdqi_schema_note(schema);
    *info_out = (qdq_op_info){.kind = schema->name,
                              .origin = origin_name(schema->origin),
                              .min_inputs = schema->min_in,
                              .max_inputs = schema->max_in == QDQI_VARIADIC ? -1 : schema->max_in,
                              .min_outputs = schema->min_out,
                              .max_outputs = schema->max_out == QDQI_VARIADIC ? -1 : schema->max_out,
                              .n_attrs = schema->n_attrs,
                              .inputs = note.inputs,
                              .outputs = note.outputs,
                              .formula = note.formula,
                              .dtype_rule = rule_name(schema->dtype_rule),
                              .shape_rule = rule_name(schema->shape_rule),
                              .check_rule = rule_name(schema->check_rule)};
    return QDQ_OK;
}

static const char *type_name(qdqi_attr_type type) {
    switch (type) {
    case QDQI_ATTR_F32: return "f32";
    case QDQI_ATTR_F32S: return "f32[]";
    case QDQI_ATTR_S64: return "s64";
    case QDQI_ATTR_S64S: return "s64[]";
    case QDQI_ATTR_BOOL: return "bool";
    case QDQI_ATTR_STR: return "string";
    }
    return "";
}

qdq_status qdq_backend_op_attr(size_t op, size_t attr, qdq_op_attr_info *info_out, qdq_error *err) {
    QDQI_NOT_NULL(err, info_out);
    const qdqi_schema *schema = qdqi_schema_at(op);
    if (schema == NULL || attr >= schema->n_attrs)
        return qdqi_fail(err, QDQ_E_NOT_FOUND, "op kind %zu has no attribute %zu", op, attr);
    const qdqi_attr_schema *row = &schema->attrs[attr];
    *info_out = (qdq_op_attr_info){.name = qdqi_attr_text(row->name),
                                   .type = type_name(row->type),
                                   .required = row->required,
                                   .has_default = row->has_default,
                                   .default_number = row->type == QDQI_ATTR_F32 ? (double)row->f32 : (double)row->s64,
                                   .default_string = row->type == QDQI_ATTR_STR ? row->str : NULL,
                                   .choices = row->choices,
                                   .has_min = row->has_min,
                                   .has_max = row->has_max,
                                   .min = row->min,
                                   .max = row->max};
    return QDQ_OK;
}

bool qdq_backend_op_takes(size_t op, bool output, size_t port, qdq_dtype dtype) {
    const qdqi_schema *schema = qdqi_schema_at(op);
    const uint8_t max = schema == NULL ? 0 : output ? schema->max_out : schema->max_in;
    if (port >= max && max != QDQI_VARIADIC) return false;
    return port < UINT32_MAX && qdqi_schema_takes(schema, output, (uint32_t)port, dtype);
}

size_t qdq_backend_n_patterns(void) {
    return qdqi_pattern_count();
}

const char *qdq_backend_pattern(size_t i) {
    const qdqi_pattern *pattern = qdqi_pattern_at(i);
    return pattern == NULL ? NULL : pattern->name;
}

size_t qdq_backend_n_providers(void) {
    return sizeof providers / sizeof providers[0];
}

const char *qdq_backend_provider(size_t i) {
    return i < sizeof providers / sizeof providers[0] ? providers[i] : NULL;
}

qdq_status qdq_backend_register_op(const qdq_custom_op *op, qdq_error *err) {
    QDQI_NOT_NULL(err, op);
    return qdqi_schema_register(op, err);
}

qdq_status qdq_backend_pattern_info(size_t i, qdq_pattern_info *info_out, qdq_error *err) {
    QDQI_NOT_NULL(err, info_out);
    const qdqi_pattern *pattern = qdqi_pattern_at(i);
    if (pattern == NULL)
        return qdqi_fail(err, QDQ_E_NOT_FOUND, "there are %zu patterns, asked for number %zu", qdqi_pattern_count(), i);
    *info_out = (qdq_pattern_info){.name = pattern->name,
                                   .family = qdqi_pattern_family_name(i),
                                   .recipe = qdqi_recipe_name(pattern->recipe),
                                   .picture = pattern->picture,
                                   .n_required = qdqi_pattern_n_required(pattern)};
    return QDQ_OK;
}

bool qdq_backend_pattern_set(size_t i, const char **name_out, const char **text_out) {
    static const struct {
        const char *name, *text;
    } sets[] = {
#define QDQI_SET_ROW(set, meaning) {#set, meaning},
        QDQI_SET_MAP(QDQI_SET_ROW)
#undef QDQI_SET_ROW
    };
    if (i >= sizeof sets / sizeof sets[0] || name_out == NULL || text_out == NULL) return false;
    *name_out = sets[i].name;
    *text_out = sets[i].text;
    return true;
}

/* ---- the vocabulary: the matcher's words (without "none"), its guards, lowering's words ---- */

static const struct {
    const char *name, *text;
} guards[] = {
#define QDQI_GUARD_ROW(guard, reason, meaning) {#guard, meaning},
    QDQI_GUARD_MAP(QDQI_GUARD_ROW)
#undef QDQI_GUARD_ROW
};
enum { N_GUARDS = sizeof guards / sizeof guards[0] };

static size_t n_match_words(void) {
    size_t n = 0;
    while (qdqi_why_word_at(n + 1) != NULL)
        n++;
    return n;
}

size_t qdq_backend_n_reasons(void) {
    return n_match_words() + N_GUARDS + qdqi_refusal_count();
}

qdq_status qdq_backend_reason(size_t i, qdq_reason_info *info_out, qdq_error *err) {
    QDQI_NOT_NULL(err, info_out);
    const size_t n_match = n_match_words(), n = qdq_backend_n_reasons();
    if (i >= n) return qdqi_fail(err, QDQ_E_NOT_FOUND, "there are %zu reasons, asked for number %zu", n, i);
    if (i < n_match)
        *info_out = (qdq_reason_info){qdqi_why_word((qdqi_why)(i + 1)), qdqi_why_text((qdqi_why)(i + 1)), "match"};
    else if (i - n_match < N_GUARDS)
        *info_out = (qdq_reason_info){guards[i - n_match].name, guards[i - n_match].text, "guard"};
    else
        *info_out = (qdq_reason_info){qdqi_refusal_word(i - n_match - N_GUARDS),
                                      qdqi_refusal_sentence(i - n_match - N_GUARDS), "lowering"};
    return QDQ_OK;
}
