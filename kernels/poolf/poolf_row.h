/* The functions of the rows. Private to kernels/poolf. */
#ifndef QK_POOLF_ROW_H
#define QK_POOLF_ROW_H

#include "kernels/poolf/poolf.h"

#define QK_POOLF_TYPES(X)             X(F32, f32) X(BF16, bf16) X(F16, f16) X(U8, u8) X(S8, s8)

#define QK_POOLF(level)               QK_POOLF_TYPES(QK_POOLF_FNS_##level)
#define QK_POOLF_FNS(type, level)     qk_poolf_fn qk_poolf_max_##type##_##level, qk_poolf_sum_##type##_##level;
#define QK_POOLF_FNS_avx512(id, type) QK_POOLF_FNS(type, avx512)
#define QK_POOLF_FNS_avx2(id, type)   QK_POOLF_FNS(type, avx2)
#define QK_POOLF_FNS_ref(id, type)    QK_POOLF_FNS(type, ref)
#include "kernels/poolf/poolf.def"
#undef QK_POOLF

#endif
