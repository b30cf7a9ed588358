/* What the caller's op object holds before a graph copies and checks it. Nothing here knows schemas. */
#ifndef QDQI_OP_BUILDER_H
#define QDQI_OP_BUILDER_H

#include "ir/schema.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_builder_port {
    bool is_present; /* false: an optional input left out */
    qdq_tensor_desc desc;
} qdqi_builder_port;

typedef struct qdqi_builder_ports {
    qdqi_builder_port *ports;
    uint32_t n, capacity;
} qdqi_builder_ports;

typedef struct qdqi_builder_attr {
    char *name;
    void *owned; /* list or string that `value` points into */
    qdqi_attr value;
} qdqi_builder_attr;

struct qdq_op {
    uint64_t id;
    char *kind, *name;
    qdqi_builder_ports in, out;
    qdqi_builder_attr *attrs;
    uint32_t n_attrs, cap_attrs;
};

/* The value to set: scalars in place, lists and strings borrowed for the call. */
qdqi_attr qdqi_attr_of_f32(float value);
qdqi_attr qdqi_attr_of_f32s(const float *values, size_t n);
qdqi_attr qdqi_attr_of_s64(int64_t value);
qdqi_attr qdqi_attr_of_s64s(const int64_t *values, size_t n);
qdqi_attr qdqi_attr_of_bool(bool value);
qdqi_attr qdqi_attr_of_str(const char *value);

qdq_status qdqi_builder_create(uint64_t id, const char *kind, const char *name, qdq_op **op_out, qdq_error *err);
void qdqi_builder_destroy(qdq_op *op); /* NULL is legal */
/* `desc` NULL: left out. */
qdq_status qdqi_builder_add_port(qdqi_builder_ports *ports, const qdq_tensor_desc *desc, qdq_error *err);
/* Copies; replaces a value of the same name. */
qdq_status qdqi_builder_set_attr(qdq_op *op, const char *name, qdqi_attr value, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
