/* The functions of the rows, and what they share. Private to kernels/post. */
#ifndef QK_POST_ROW_H
#define QK_POST_ROW_H

#include "kernels/post/post.h"

#include <string.h>

#define QK_POST(level) qk_post_fn qk_post_##level;
#include "kernels/post/post.def"
#undef QK_POST

static inline bool qk_post_is_integer(qdq_dtype d) {
    return d == QDQ_DTYPE_S32 || d == QDQ_DTYPE_S8 || d == QDQ_DTYPE_U8;
}

static inline size_t qk_post_bytes(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_S32 ? 4 : d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16 ? 2 : 1;
}

/* Whether the whole program is integer arithmetic. */
static inline bool qk_post_is_exact(const qk_post *p) {
    return qk_post_is_integer(p->acc) && qk_post_is_integer(p->dst) && p->scale == QK_POST_SCALE_NONE &&
           (p->bias == QDQ_DTYPE_UNDEF || p->bias_first) && p->n_steps == 0 && !p->dst_quantized;
}

static inline bool qk_post_has_operand(qk_post_op op) {
    return op >= QK_POST_ADD;
}

/* Element i of a tensor of one of the six types, as f32. */
float qk_post_load(qdq_dtype dtype, const void *data, ptrdiff_t i);
/* a * v^b */
float qk_post_pow(float v, float a, float b);

#endif
