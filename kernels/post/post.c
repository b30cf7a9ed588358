#include "kernels/post/post_row.h"

static const struct {
    qk_isa isa;
    qk_post_fn *fn;
} rows[] = {
#define QK_POST(level) {QK_ISA_##level, qk_post_##level},
#include "kernels/post/post.def"
#undef QK_POST
};

static bool known(qdq_dtype d) {
    return qk_post_is_integer(d) || d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16;
}

static bool is_sound(const qk_post *p) {
    const bool integers = qk_post_is_integer(p->acc);
    if (!known(p->acc) || !known(p->dst) || p->n_steps > QK_POST_MAX_STEPS) return false;
    if (p->bias != QDQ_DTYPE_UNDEF && !known(p->bias)) return false;
    if (!integers && (p->has_add_common || p->has_col_add || p->has_row_sum || p->bias_first)) return false;
    if (p->bias_first && (p->bias != QDQ_DTYPE_S32 || p->bias_per_row)) return false;
    if (p->dst_has_zp && !qk_post_is_integer(p->dst)) return false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const qk_post_step *s = &p->steps[i];
        if ((uint32_t)s->op > QK_POST_SUM) return false;
        if (qk_post_has_operand(s->op) && !known(s->dtype)) return false;
        if (s->op == QK_POST_SUM && qk_post_bytes(s->dtype) != qk_post_bytes(p->dst)) return false;
    }
    return true;
}

qk_post_fn *qk_post_choose(const qk_post *post, qk_isa *isa_out) {
    if (!is_sound(post)) return NULL;
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out) *isa_out = rows[i].isa;
    return rows[i].fn;
}
