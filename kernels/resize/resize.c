#include "kernels/resize/resize_row.h"

static bool is_type(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16 || d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

const qk_resize_fns *qk_resize_choose(const qk_resize *resize, qk_isa *isa_out) {
    static const struct {
        qk_isa isa;
        const qk_resize_fns *fns;
    } rows[] = {
#define QK_RESIZE(level) {QK_ISA_##level, &qk_resize_##level},
#include "kernels/resize/resize.def"
#undef QK_RESIZE
    };
    if (!is_type(resize->src) || !is_type(resize->dst)) return NULL;
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out != NULL) *isa_out = rows[i].isa;
    return rows[i].fns;
}
