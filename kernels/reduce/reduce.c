#include "kernels/reduce/reduce_row.h"

#include <math.h>

static bool is_type(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16 || d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

const qk_reduce_fns *qk_reduce_choose(const qk_reduce *reduce, qk_isa *isa_out) {
    static const struct {
        qk_isa isa;
        const qk_reduce_fns *fns;
    } rows[] = {
#define QK_REDUCE(level) {QK_ISA_##level, &qk_reduce_##level},
#include "kernels/reduce/reduce.def"
#undef QK_REDUCE
    };
    if (!is_type(reduce->src) || (uint32_t)reduce->op > QK_REDUCE_PROD) return NULL;
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out != NULL) *isa_out = rows[i].isa;
    return rows[i].fns;
}

double qk_reduce_none(qk_reduce_op op) {
    switch (op) {
    case QK_REDUCE_SUM:
    case QK_REDUCE_ABS:
    case QK_REDUCE_SQUARES: return 0.0;
    case QK_REDUCE_MAX: return -INFINITY;
    case QK_REDUCE_MIN: return INFINITY;
    case QK_REDUCE_PROD: return 1.0;
    }
    return 0.0;
}

double qk_reduce_join(qk_reduce_op op, double a, double b) {
    switch (op) {
    case QK_REDUCE_SUM:
    case QK_REDUCE_ABS:
    case QK_REDUCE_SQUARES: return a + b;
    case QK_REDUCE_MAX: return b > a || isnan(b) ? b : a;
    case QK_REDUCE_MIN: return b < a || isnan(b) ? b : a;
    case QK_REDUCE_PROD: return a * b;
    }
    return a;
}
