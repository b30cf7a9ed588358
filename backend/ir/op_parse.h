/* A caller's op against its schema: what can be said without the graph. */
#ifndef QDQI_OP_PARSE_H
#define QDQI_OP_PARSE_H

#include "ir/graph.h"
#include "ir/op_builder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill `op` (id, kind, schema, name, attributes, counts; not in/out) from the caller's op. Attribute values live in
 * `arena`; the name is borrowed from `from`. Checks kind, arity, attributes and each descriptor alone.
 * Errors: UNKNOWN_OP, BAD_ARITY, BAD_ATTR, BAD_SHAPE, BAD_DTYPE, BAD_ARG, NO_MEMORY. */
qdq_status qdqi_op_parse(const qdq_op *from, qdqi_arena *arena, qdqi_op *op, qdq_error *err);
/* The value of an attribute that was not given. */
qdqi_attr qdqi_attr_default(const qdqi_attr_schema *row);

#ifdef __cplusplus
}
#endif
#endif
