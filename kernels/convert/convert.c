#include "kernels/convert/convert_row.h"

qk_convert_fn *qk_convert_choose(qdq_dtype from, qdq_dtype to, qk_isa *isa_out) {
    static const struct {
        qk_isa isa;
        qk_convert_fn *(*of)(qdq_dtype from, qdq_dtype to);
    } rows[] = {
#define QK_CONVERT(level) {QK_ISA_##level, qk_convert_of_##level},
#include "kernels/convert/convert.def"
#undef QK_CONVERT
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        qk_convert_fn *fn = qk_isa_has(rows[i].isa) ? rows[i].of(from, to) : NULL;
        if (fn == NULL) continue;
        if (isa_out != NULL) *isa_out = rows[i].isa;
        return fn;
    }
    return NULL;
}
