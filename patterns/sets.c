#include "patterns/sets.h"

static bool has_flag(const qdqi_op *op, uint32_t flag) {
    return (op->schema->flags & flag) != 0;
}

static bool set_dq(const qdqi_op *op) {
    return has_flag(op, QDQI_F_DEQUANTIZE);
}

static bool set_q(const qdqi_op *op) {
    return has_flag(op, QDQI_F_QUANTIZE); /* QuantizeV2 gives out its range as well */
}

static bool set_matmul(const qdqi_op *op) {
    return op->kind == QDQI_OP_MATMUL || op->kind == QDQI_OP_GEMM;
}

static bool set_conv(const qdqi_op *op) {
    return op->kind == QDQI_OP_CONVOLUTION || op->kind == QDQI_OP_CONVTRANSPOSE;
}

static bool set_pool(const qdqi_op *op) {
    return op->kind == QDQI_OP_AVGPOOL || op->kind == QDQI_OP_MAXPOOL || op->kind == QDQI_OP_GLOBALAVERAGEPOOL ||
           op->kind == QDQI_OP_GLOBALMAXPOOL;
}

static bool set_norm(const qdqi_op *op) {
    return op->kind == QDQI_OP_SOFTMAX || op->kind == QDQI_OP_LOGSOFTMAX || op->kind == QDQI_OP_LAYERNORM ||
           op->kind == QDQI_OP_GROUPNORM || op->kind == QDQI_OP_RMSNORM || op->kind == QDQI_OP_BATCHNORMINFERENCE ||
           op->kind == QDQI_OP_INSTANCENORMALIZATION || has_flag(op, QDQI_F_REDUCE);
}

static bool set_move(const qdqi_op *op) {
    if (op->kind == QDQI_OP_INTERPOLATE || op->kind == QDQI_OP_RESIZE) return true;
    return has_flag(op, QDQI_F_MOVE) && op->kind != QDQI_OP_CONCAT;
}

static bool set_relayout(const qdqi_op *op) {
    return has_flag(op, QDQI_F_SHAPE_ONLY) || op->kind == QDQI_OP_STATICTRANSPOSE;
}

static bool set_cast(const qdqi_op *op) {
    return op->kind == QDQI_OP_TYPECAST || op->kind == QDQI_OP_CAST;
}

static bool set_view(const qdqi_op *op) {
    return set_relayout(op) || set_cast(op);
}

static bool set_pointwise(const qdqi_op *op) {
    return has_flag(op, QDQI_F_UNARY | QDQI_F_BINARY) || op->kind == QDQI_OP_BIASADD || op->kind == QDQI_OP_PRELU;
}

static bool set_chain(const qdqi_op *op) {
    return set_pointwise(op) || set_cast(op);
}

static bool set_post(const qdqi_op *op) {
    return set_chain(op) || op->kind == QDQI_OP_BATCHNORMINFERENCE;
}

static bool set_resize(const qdqi_op *op) {
    return op->kind == QDQI_OP_INTERPOLATE || op->kind == QDQI_OP_RESIZE;
}

static bool set_select(const qdqi_op *op) {
    return op->kind == QDQI_OP_SELECT || op->kind == QDQI_OP_WHERE;
}

static bool set_late(const qdqi_op *op) {
    return set_view(op) || op->kind == QDQI_OP_MAXPOOL;
}

static bool set_pair(const qdqi_op *op) {
    return set_dq(op) || set_q(op);
}

static bool set_square(const qdqi_op *op) {
    return op->kind == QDQI_OP_SQUARE || op->kind == QDQI_OP_POW || op->kind == QDQI_OP_MULTIPLY;
}

static bool set_root(const qdqi_op *op) {
    return op->kind == QDQI_OP_SQRT || op->kind == QDQI_OP_POW;
}

static bool set_inverse(const qdqi_op *op) {
    return op->kind == QDQI_OP_RECIPROCAL || op->kind == QDQI_OP_DIVIDE;
}

static bool set_scaling(const qdqi_op *op) {
    return op->kind == QDQI_OP_MULTIPLY || op->kind == QDQI_OP_DIVIDE;
}

static bool set_bound(const qdqi_op *op) {
    return set_cast(op) || op->kind == QDQI_OP_CLAMP;
}

static bool set_affine(const qdqi_op *op) {
    return op->kind == QDQI_OP_MULTIPLY || op->kind == QDQI_OP_ADD;
}

static bool set_score(const qdqi_op *op) {
    return set_chain(op) || set_view(op) || op->kind == QDQI_OP_SELECT || op->kind == QDQI_OP_GENINDEX ||
           op->kind == QDQI_OP_GREATEREQUAL;
}

#define QDQI_SET_ROW(set, text) const qdqi_set qdqi_set_##set = {#set, set_##set};
QDQI_SET_MAP(QDQI_SET_ROW)
#undef QDQI_SET_ROW
