#include "kernels/binary/binary_row.h"

#include <math.h>

static const struct {
    qk_isa isa;
    qk_binary_fn *fn;
} rows[] = {
#define QK_BINARY(level) {QK_ISA_##level, qk_binary_##level},
#include "kernels/binary/binary.def"
#undef QK_BINARY
};

static bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

static bool is_source(const qk_binary_end *e) {
    bool type = is_x8(e->dtype) || e->dtype == QDQ_DTYPE_F32 || e->dtype == QDQ_DTYPE_BF16 || e->dtype == QDQ_DTYPE_S32;
    return type && (e->step == 0 || e->step == 1);
}

qk_binary_fn *qk_binary_choose(const qk_binary *chain, qk_isa *isa_out) {
    if (!is_source(&chain->src) || chain->n_steps > QK_BINARY_MAX_STEPS || chain->dst.step != 1 ||
        !(is_x8(chain->dst.dtype) || chain->dst.dtype == QDQ_DTYPE_F32))
        return NULL;
    for (uint32_t k = 0; k < chain->n_steps; k++)
        if (!is_source(&chain->steps[k].operand) || (uint32_t)chain->steps[k].op > QK_BINARY_MIN) return NULL;
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out) *isa_out = rows[i].isa;
    return rows[i].fn;
}

/* Bounds are in f64, a little above what rounding in f32 may add to each step. */
static double bound_of(const qk_binary_end *end, float scalar) {
    if (!end->step) return isfinite(scalar) ? fabs((double)scalar) : INFINITY;
    if (end->dtype == QDQ_DTYPE_S32) return 0x1p31;
    if (!is_x8(end->dtype) || !isfinite(end->scale)) return INFINITY;
    return (255.0 + fabs((double)end->zp)) * fabs((double)end->scale) * (1.0 + 0x1p-20);
}

double qk_binary_bound(const qk_binary *chain, const float *scalars) {
    const double overflow = 0x1p126;
    double v = bound_of(&chain->src, scalars[QK_BINARY_MAX_STEPS]);
    for (uint32_t k = 0; k < chain->n_steps && v < overflow; k++) {
        double w = bound_of(&chain->steps[k].operand, scalars[k]);
        switch (chain->steps[k].op) {
        case QK_BINARY_ADD:
        case QK_BINARY_SUB:
        case QK_BINARY_SUB_REV: v = (v + w) * (1.0 + 0x1p-20); break;
        case QK_BINARY_MUL: v = v * w * (1.0 + 0x1p-20) + 0x1p-126; break;
        case QK_BINARY_MAX:
        case QK_BINARY_MIN: v = v > w ? v : w; break;
        case QK_BINARY_DIV:
        case QK_BINARY_DIV_REV: v = INFINITY; break;
        }
    }
    return v < overflow ? v : INFINITY;
}
