#include "kernels/softmax/softmax_row.h"

static bool is_type(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16 || d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

const qk_softmax_fns *qk_softmax_choose(const qk_softmax *s, qk_isa *isa_out) {
    static const struct {
        qk_isa isa;
        const qk_softmax_fns *fns;
    } rows[] = {
#define QK_SOFTMAX(level) {QK_ISA_##level, &qk_softmax_##level},
#include "kernels/softmax/softmax.def"
#undef QK_SOFTMAX
    };
    if (!is_type(s->src) || !is_type(s->dst)) return NULL;
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out != NULL) *isa_out = rows[i].isa;
    return rows[i].fns;
}
