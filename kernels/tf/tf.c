#include "kernels/tf/tf_row.h"

static const qk_tf_row *const rows[] = {
#define QK_TF(level) &qk_tf_row_##level,
#include "kernels/tf/tf.def"
#undef QK_TF
};

const struct qk_tf_row *qk_tf_choose(qdq_dtype stored, qk_isa *isa_out) {
    switch ((int)stored) {
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_S8:
    case QDQ_DTYPE_U16:
    case QDQ_DTYPE_S16:
    case QDQ_DTYPE_S32: break;
    default: return NULL;
    }
    size_t i = 0;
    while (!qk_isa_has(rows[i]->isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out) *isa_out = rows[i]->isa;
    return rows[i];
}

void qk_tf_quantize(const struct qk_tf_row *row, const qk_tf *tf, const float *src, void *dst, size_t n) {
    row->quantize(tf, src, dst, n);
}

void qk_tf_dequantize(const struct qk_tf_row *row, const qk_tf *tf, const void *src, float *dst, size_t n) {
    row->dequantize(tf, src, dst, n);
}
