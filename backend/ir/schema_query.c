/* Questions about the op table that only pages and tools ask. */
#include "ir/op_parse.h"

enum { MAX_PORTS = 16, MAX_ATTRS = 32 };

static const qdqi_note notes[QDQI_OP_END_OF_BUILTIN] = {
#define QDQI_NOTE(id, in, out, text) [QDQI_OP_##id] = {.inputs = (in), .outputs = (out), .formula = (text)},
#include "ir/notes.def"
#undef QDQI_NOTE
};

qdqi_note qdqi_schema_note(const qdqi_schema *schema) {
    qdqi_note note = {"", "", ""};
    if (schema->kind < QDQI_OP_END_OF_BUILTIN && notes[schema->kind].inputs != NULL) note = notes[schema->kind];
    if (schema->formula != NULL) note = (qdqi_note){"src", "dst", schema->formula};
    return note;
}

static uint32_t n_ports(uint8_t max, uint32_t port) {
    const uint32_t n = max == QDQI_VARIADIC ? port + 1 : max;
    return n < MAX_PORTS ? n : MAX_PORTS;
}

/* The rule itself is asked, with a graph's ignorance of everything else. */
bool qdqi_schema_takes(const qdqi_schema *schema, bool output, uint32_t port, qdq_dtype dtype) {
    qdq_tensor_desc descs[2 * MAX_PORTS];
    const qdq_tensor_desc *in[MAX_PORTS];
    qdq_tensor_desc *out[MAX_PORTS];
    const void *data[MAX_PORTS] = {NULL};
    qdqi_attr attrs[MAX_ATTRS];
    if (port >= MAX_PORTS || schema->n_attrs > MAX_ATTRS || dtype == QDQ_DTYPE_UNDEF) return false;
    for (uint32_t i = 0; i < 2 * MAX_PORTS; i++)
        descs[i] = (qdq_tensor_desc){.id = i, .dtype = QDQ_DTYPE_UNDEF, .ndims = QDQ_NDIMS_UNKNOWN};
    for (uint32_t i = 0; i < MAX_PORTS; i++) {
        in[i] = &descs[i];
        out[i] = &descs[MAX_PORTS + i];
    }
    for (uint32_t i = 0; i < schema->n_attrs; i++)
        attrs[i] = qdqi_attr_default(&schema->attrs[i]);
    descs[port + (output ? MAX_PORTS : 0)].dtype = dtype;
    const qdqi_op op = {.kind = schema->kind, .schema = schema, .name = "", .attrs = attrs};
    const qdqi_infer_ctx ctx = {.op = &op,
                                .n_in = n_ports(schema->max_in, output ? 0 : port),
                                .n_out = n_ports(schema->max_out, output ? port : 0),
                                .in = in,
                                .in_data = data,
                                .out = out};
    return schema->dtypes(&ctx) == QDQ_OK;
}
