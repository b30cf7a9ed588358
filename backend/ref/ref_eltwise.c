/* Elementwise unary ops: the formulas of ir/unary.def in loops. */
#include "ref/ref_fns.h"
#include "ref/ref_rows.h"

#include <math.h>

#define QDQI_UNARY(id, name, origin, attr_a, attr_b, formula, ...)                                                     \
    static void run_##id(const float *src, float *dst, int64_t n, float a, float b) {                                  \
        (void)a, (void)b;                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const float x = src[i];                                                                                    \
            dst[i] = formula;                                                                                          \
        }                                                                                                              \
    }
#include "ir/unary.def"
#undef QDQI_UNARY

qdqi_ref_unary_row *qdqi_ref_unary_row_of(qdqi_kind kind) {
    switch ((int)kind) {
#define QDQI_UNARY(id, ...)                                                                                            \
    case QDQI_OP_##id:                                                                                                 \
        return run_##id;
#include "ir/unary.def"
#undef QDQI_UNARY
    }
    return NULL;
}

qdq_status qdqi_ref_unary(qdqi_ref_ctx *c) {
    qdqi_ref_unary_row *const fn = qdqi_ref_unary_row_of(c->op->kind);
    const float *src = qdqi_ref_in_f32(c, 0);
    float *dst = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    float a, b;
    qdqi_op_unary_ab(c->op, &a, &b);
    fn(src, dst, qdqi_n_elems(c->in[0].desc), a, b);
    return QDQ_OK;
}
