#include "kernels/norm/norm_row.h"

static bool is_type(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16 || d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

const qk_norm_fns *qk_norm_choose(const qk_norm *norm, qk_isa *isa_out) {
    static const struct {
        qk_isa isa;
        const qk_norm_fns *fns;
    } rows[] = {
#define QK_NORM(level) {QK_ISA_##level, &qk_norm_##level},
#include "kernels/norm/norm.def"
#undef QK_NORM
    };
    if (!is_type(norm->src) || !is_type(norm->dst)) return NULL;
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out != NULL) *isa_out = rows[i].isa;
    return rows[i].fns;
}
