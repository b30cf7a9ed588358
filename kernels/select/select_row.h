/* What a level of the family provides. Private to kernels/select. */
#ifndef QK_SELECT_ROW_H
#define QK_SELECT_ROW_H

#include "kernels/select/select.h"

typedef struct qk_select_row {
    qk_select_fn *select[4]; /* of 1, 2, 4, 8 bytes */
    qk_compare_fn *compare[QK_COMPARE_EQ + 1];
    qk_prelu_fn *prelu;
} qk_select_row;

#define QK_SELECT(level) extern const qk_select_row qk_select_##level;
#include "kernels/select/select.def"
#undef QK_SELECT

#endif
