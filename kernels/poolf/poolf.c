#include "kernels/poolf/poolf_row.h"

typedef struct row {
    qk_isa isa;
    qdq_dtype src, dst;
    qk_poolf_fn *max, *sum;
} row;

static const row rows[] = {
#define ROW(from, to, name, level)                                                                                     \
    {QK_ISA_##level, QDQ_DTYPE_##from, QDQ_DTYPE_##to, qk_poolf_max_##name##_##level, qk_poolf_sum_##name##_##level},
#define QK_POOLF(level) QK_POOLF_TYPES(ROW, level)
#include "kernels/poolf/poolf.def"
#undef QK_POOLF
};

qk_poolf_fn *qk_poolf_choose(qdq_dtype src, qdq_dtype dst, bool is_max, qk_isa *isa_out) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].src != src || rows[i].dst != dst || !qk_isa_has(rows[i].isa)) continue;
        if (isa_out != NULL) *isa_out = rows[i].isa;
        return is_max ? rows[i].max : rows[i].sum;
    }
    return NULL;
}
