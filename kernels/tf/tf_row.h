/* What a level of the family provides. Private to kernels/tf. */
#ifndef QK_TF_ROW_H
#define QK_TF_ROW_H

#include "kernels/tf/tf.h"

typedef struct qk_tf_row {
    void (*quantize)(const qk_tf *tf, const float *src, void *dst, size_t n);
    void (*dequantize)(const qk_tf *tf, const void *src, float *dst, size_t n);
    qk_isa isa;
} qk_tf_row;

#define QK_TF(level) extern const qk_tf_row qk_tf_row_##level;
#include "kernels/tf/tf.def"
#undef QK_TF

static inline size_t qk_tf_bytes(qdq_dtype stored) {
    return stored == QDQ_DTYPE_S32 ? 4 : stored == QDQ_DTYPE_U16 || stored == QDQ_DTYPE_S16 ? 2 : 1;
}
static inline bool qk_tf_signed(qdq_dtype stored) {
    return stored == QDQ_DTYPE_S8 || stored == QDQ_DTYPE_S16 || stored == QDQ_DTYPE_S32;
}

#endif
