/* The module's descriptor: what it registers. Op schemas and patterns are static tables; providers close every candidate list. */
#include "base/error.h"
#include "ir/schema.h"
#include "patterns/pattern.h"

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

size_t qdq_backend_n_ops(void) {
    return qdqi_schema_count();
}

qdq_status qdq_backend_op(size_t i, qdq_op_info *info_out, qdq_error *err) {
    QDQI_NOT_NULL(err, info_out);
    const qdqi_schema *schema = qdqi_schema_at(i);
    if (schema == NULL)
        return qdqi_fail(err, QDQ_E_NOT_FOUND, "%zu op kinds are registered, asked for number %zu", qdqi_schema_count(),
                         i);
    *info_out = (qdq_op_info){.kind = schema->name,
                              .origin = origin_name(schema->origin),
                              .min_inputs = schema->min_in,
                              .max_inputs = schema->max_in == QDQI_VARIADIC ? -1 : schema->max_in,
                              .min_outputs = schema->min_out,
                              .max_outputs = schema->max_out == QDQI_VARIADIC ? -1 : schema->max_out};
    return QDQ_OK;
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
