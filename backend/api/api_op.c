/* The public op object: argument checks in front of ir/op_builder.h. */
#include "ir/op_builder.h"

#include <inttypes.h>

qdq_status qdq_op_create(uint64_t id, const char *kind, const char *name, qdq_op **op_out, qdq_error *err) {
    QDQI_NOT_NULL(err, kind);
    QDQI_NOT_NULL(err, name);
    QDQI_NOT_NULL(err, op_out);
    return qdqi_builder_create(id, kind, name, op_out, err);
}

void qdq_op_destroy(qdq_op **op) {
    if (op == NULL) return;
    qdqi_builder_destroy(*op);
    *op = NULL;
}

qdq_status qdq_op_add_input(qdq_op *op, const qdq_tensor_desc *desc, qdq_error *err) {
    QDQI_NOT_NULL(err, op);
    return qdqi_builder_add_port(&op->in, desc, err);
}

qdq_status qdq_op_add_output(qdq_op *op, const qdq_tensor_desc *desc, qdq_error *err) {
    QDQI_NOT_NULL(err, op);
    QDQI_NOT_NULL(err, desc);
    return qdqi_builder_add_port(&op->out, desc, err);
}

static qdq_status set(qdq_op *op, const char *name, qdqi_attr value, qdq_error *err) {
    QDQI_NOT_NULL(err, op);
    QDQI_NOT_NULL(err, name);
    return qdqi_builder_set_attr(op, name, value, err);
}

/* A list must be there unless it is empty, and countable. */
static qdq_status check_list(const qdq_op *op, const char *name, const void *values, size_t n, qdq_error *err) {
    QDQI_NOT_NULL(err, op);
    QDQI_NOT_NULL(err, name);
    if (n > 0) QDQI_NOT_NULL(err, values);
    if (n > UINT32_MAX / sizeof(int64_t))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "op %" PRIu64 " \"%.64s\": attribute \"%.64s\": %zu values are too many",
                         op->id, op->name, name, n);
    return QDQ_OK;
}

qdq_status qdq_op_set_attr_f32(qdq_op *op, const char *name, float value, qdq_error *err) {
    return set(op, name, qdqi_attr_of_f32(value), err);
}

qdq_status qdq_op_set_attr_f32s(qdq_op *op, const char *name, const float *values, size_t n, qdq_error *err) {
    QDQI_TRY(check_list(op, name, values, n, err));
    return set(op, name, qdqi_attr_of_f32s(values, n), err);
}

qdq_status qdq_op_set_attr_s64(qdq_op *op, const char *name, int64_t value, qdq_error *err) {
    return set(op, name, qdqi_attr_of_s64(value), err);
}

qdq_status qdq_op_set_attr_s64s(qdq_op *op, const char *name, const int64_t *values, size_t n, qdq_error *err) {
    QDQI_TRY(check_list(op, name, values, n, err));
    return set(op, name, qdqi_attr_of_s64s(values, n), err);
}

qdq_status qdq_op_set_attr_bool(qdq_op *op, const char *name, bool value, qdq_error *err) {
    return set(op, name, qdqi_attr_of_bool(value), err);
}

qdq_status qdq_op_set_attr_str(qdq_op *op, const char *name, const char *value, qdq_error *err) {
    QDQI_NOT_NULL(err, value);
    return set(op, name, qdqi_attr_of_str(value), err);
}
