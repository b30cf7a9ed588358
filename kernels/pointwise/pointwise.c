#include "kernels/pointwise/pointwise_row.h"

qk_pointwise_fn *qk_pointwise_choose(qk_pointwise_op op, qdq_dtype dtype, qk_isa *isa_out) {
    static const struct {
        qk_isa isa;
        qk_pointwise_fn *(*of)(qk_pointwise_op op, qdq_dtype dtype);
    } rows[] = {
#define QK_POINTWISE(level) {QK_ISA_##level, qk_pointwise_of_##level},
#include "kernels/pointwise/pointwise.def"
#undef QK_POINTWISE
        {QK_ISA_ref, NULL},
    };
    for (size_t i = 0; rows[i].of != NULL; i++) {
        qk_pointwise_fn *fn = qk_isa_has(rows[i].isa) ? rows[i].of(op, dtype) : NULL;
        if (fn == NULL) continue;
        if (isa_out != NULL) *isa_out = rows[i].isa;
        return fn;
    }
    return NULL;
}
