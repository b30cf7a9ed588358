#include "kernels/poolf/poolf_row.h"

typedef struct row {
    qk_isa isa;
    qdq_dtype src;
    qk_poolf_fn *max, *sum;
} row;

static const row rows[] = {
#define ROW(id, type, level)                                                                                           \
    {QK_ISA_##level, QDQ_DTYPE_##id, qk_poolf_max_##type##_##level, qk_poolf_sum_##type##_##level},
#define ROW_avx512(id, type) ROW(id, type, avx512)
#define ROW_avx2(id, type)   ROW(id, type, avx2)
#define ROW_ref(id, type)    ROW(id, type, ref)
#define QK_POOLF(level)      QK_POOLF_TYPES(ROW_##level)
#include "kernels/poolf/poolf.def"
#undef QK_POOLF
};

qk_poolf_fn *qk_poolf_choose(qdq_dtype src, bool is_max, qk_isa *isa_out) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].src != src || !qk_isa_has(rows[i].isa)) continue;
        if (isa_out != NULL) *isa_out = rows[i].isa;
        return is_max ? rows[i].max : rows[i].sum;
    }
    return NULL;
}
