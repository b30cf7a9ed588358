#include "kernels/select/select_row.h"

#define SELECT(name, type)                                                                                             \
    static void name(const uint8_t *cond, int cond_step, const void *x_, int x_step, const void *y_, int y_step,       \
                     void *dst_, size_t n) {                                                                           \
        const type *x = x_, *y = y_;                                                                                   \
        type *dst = dst_;                                                                                              \
        for (size_t i = 0; i < n; i++)                                                                                 \
            dst[i] = cond[cond_step ? i : 0] != 0 ? x[x_step ? i : 0] : y[y_step ? i : 0];                             \
    }
SELECT(select_1, uint8_t)
SELECT(select_2, uint16_t)
SELECT(select_4, uint32_t)
SELECT(select_8, uint64_t)

#define COMPARE(name, op)                                                                                              \
    static void name(const float *x, int x_step, const float *y, int y_step, uint8_t *dst, size_t n) {                 \
        for (size_t i = 0; i < n; i++)                                                                                 \
            dst[i] = x[x_step ? i : 0] op y[y_step ? i : 0];                                                           \
    }
COMPARE(ge, >=)
COMPARE(gt, >)
COMPARE(le, <=)
COMPARE(lt, <)
COMPARE(eq, ==)

static void prelu(const float *x, const float *slope, int slope_step, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = x[i] < 0.0f ? x[i] * slope[slope_step ? i : 0] : x[i];
}

const qk_select_row qk_select_ref = {{select_1, select_2, select_4, select_8}, {ge, gt, le, lt, eq}, prelu};
