/* The functions of the rows. Private to kernels/poolf. */
#ifndef QK_POOLF_ROW_H
#define QK_POOLF_ROW_H

#include "kernels/poolf/poolf.h"

/* X(source, destination, name, level) */
#define QK_POOLF_TYPES(X, level)                                                                                       \
    X(F32, F32, f32, level)                                                                                            \
    X(BF16, F32, bf16, level)                                                                                          \
    X(BF16, BF16, bf16_bf16, level)                                                                                    \
    X(F16, F32, f16, level)                                                                                            \
    X(F16, F16, f16_f16, level)                                                                                        \
    X(U8, F32, u8, level)                                                                                              \
    X(S8, F32, s8, level)

#define QK_POOLF(level)                     QK_POOLF_TYPES(QK_POOLF_FNS, level)
#define QK_POOLF_FNS(src, dst, name, level) qk_poolf_fn qk_poolf_max_##name##_##level, qk_poolf_sum_##name##_##level;
#include "kernels/poolf/poolf.def"
#undef QK_POOLF

#endif
