/* For the rules of the op table only: reading ports and attributes, setting output dims, failing with a useful text.
 *
 * A rule sees one op through a qdqi_infer_ctx. A shape rule that lacks what it needs (unknown dims, content of an input that
 * is no constant) returns QDQ_OK and leaves the output as it is. */
#ifndef QDQI_RULE_H
#define QDQI_RULE_H

#include "ir/desc.h"
#include "ir/graph.h"

#include "base/checked.h"
#include "base/text.h"

#include <inttypes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `op 7 "conv1" (Convolution): ` + text. */
qdq_status qdqi_op_fail(const qdqi_op *op, qdq_error *err, qdq_status status, const char *fmt, ...) QDQI_PRINTF(4, 5);
/* `op 7 "conv1" (Convolution): attribute "strides": ` + text. */
qdq_status qdqi_attr_fail(const qdqi_op *op, qdq_error *err, qdq_status status, qdqi_attr_name name, const char *fmt,
                          ...) QDQI_PRINTF(5, 6);

#define QDQI_RULE_FAIL(ctx, status, ...)       qdqi_op_fail((ctx)->op, (ctx)->err, (status), __VA_ARGS__)
#define QDQI_ATTR_FAIL(ctx, status, name, ...) qdqi_attr_fail((ctx)->op, (ctx)->err, (status), (name), __VA_ARGS__)

/* Present and all dims known. */
bool qdqi_in_known(const qdqi_infer_ctx *ctx, uint32_t i);
/* "src 1x3x8x8"-like text of input i. */
qdqi_shape_text qdqi_in_shape(const qdqi_infer_ctx *ctx, uint32_t i);
/* Input i is present, has known dims, and holds elements. */
bool qdqi_in_nonempty(const qdqi_infer_ctx *ctx, uint32_t i);
/* Content of a constant input with known dims is there. */
bool qdqi_in_has_data(const qdqi_infer_ctx *ctx, uint32_t i);
int64_t qdqi_in_i64(const qdqi_infer_ctx *ctx, uint32_t i, int64_t elem);

/* Settle the dims of output `port`: fill what is unknown, refuse (BAD_SHAPE, naming both) what differs. */
qdq_status qdqi_set_out(const qdqi_infer_ctx *ctx, uint32_t port, int32_t ndims, const int64_t *dims);
/* The same with the dims of input i. */
qdq_status qdqi_set_out_like(const qdqi_infer_ctx *ctx, uint32_t port, uint32_t i);

/* Axis attribute against a rank. */
qdq_status qdqi_axis_attr(const qdqi_infer_ctx *ctx, qdqi_attr_name name, int32_t ndims, int32_t *axis_out);
/* A list of distinct axes, from values; normalised. At most 12. `what` names the place in messages. */
typedef struct qdqi_axes {
    int32_t n;
    int32_t axis[QDQ_MAX_NDIMS];
    bool has[QDQ_MAX_NDIMS];
} qdqi_axes;
qdq_status qdqi_axes_of(const qdqi_infer_ctx *ctx, const char *what, const int64_t *values, int64_t n, int32_t ndims,
                        qdqi_axes *out);
/* Values of the small 1-D (or scalar) constant integer input i; refuses more than `max`. */
qdq_status qdqi_in_list(const qdqi_infer_ctx *ctx, uint32_t i, int64_t max, int64_t *values_out, int64_t *n_out);
/* Axes from input i when it is there, else from the attribute. *known false: from an input that is no constant. */
qdq_status qdqi_axes_in_or_attr(const qdqi_infer_ctx *ctx, uint32_t i, qdqi_attr_name name, int32_t ndims,
                                qdqi_axes *out, bool *known);

/* Channel dim of a tensor of known rank >= 2 by data_format: 1 or the last. */
int32_t qdqi_channel_dim(const qdqi_op *op, int32_t ndims);
/* Input i (when present) is 1-D of `n`. `why` says where n comes from. */
qdq_status qdqi_expect_vector(const qdqi_infer_ctx *ctx, uint32_t i, int64_t n, const char *why);

/* The rules of the table: one function per name that ops.def mentions, defined in dtype_rules.c, shape_*.c, check_*.c. */
qdq_status qdqi_dtypes_unary(const qdqi_infer_ctx *ctx);
qdq_status qdqi_shape_unary(const qdqi_infer_ctx *ctx);
qdq_status qdqi_check_unary(const qdqi_infer_ctx *ctx);
qdq_status qdqi_shape_custom(const qdqi_infer_ctx *ctx);
#define QDQI_OP(id, name, origin, min_in, max_in, min_out, max_out, dtype_rule, shape_rule, check, ...)                \
    qdq_status qdqi_dtypes_##dtype_rule(const qdqi_infer_ctx *ctx);                                                    \
    qdq_status qdqi_shape_##shape_rule(const qdqi_infer_ctx *ctx);                                                     \
    qdq_status qdqi_check_##check(const qdqi_infer_ctx *ctx);
#include "ir/ops.def"
#undef QDQI_OP

/* Data types, check and shape of one op on `ctx`, in this order. */
qdq_status qdqi_run_rules(const qdqi_infer_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
