/* The functions of the rows, and what they share. Private to kernels/binary. */
#ifndef QK_BINARY_ROW_H
#define QK_BINARY_ROW_H

#include "kernels/binary/binary.h"

#define QK_BINARY(level) qk_binary_fn qk_binary_##level;
#include "kernels/binary/binary.def"
#undef QK_BINARY

static inline size_t qk_binary_bytes(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_S32 ? 4 : dtype == QDQ_DTYPE_BF16 ? 2 : 1;
}

/* Element i of a source. */
float qk_binary_load(const qk_binary_end *end, const void *data, size_t i);

#endif
