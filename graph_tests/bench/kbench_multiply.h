/* A multiply loop of a level: twelve sums, so that none waits for its last addition. A factor is hidden from the compiler at each
 * step, for it would make the product only once; so are the first sums, for equal ones would be one. */
#ifndef KBENCH_MULTIPLY_H
#define KBENCH_MULTIPLY_H

#include "kbench_limit.h"
#include "kernels/simd/unroll.h"

/* `step(sum, a, b)` gives the next sum; `reg` is the constraint letter of the registers. */
#define KBENCH_MULTIPLY(name, vec, zero, reg, products, step)                                                          \
    size_t name(size_t n) {                                                                                            \
        vec a = zero, b = zero, s[12];                                                                                 \
        QK_FOUR_TIMES(k, s[k] = zero; s[k + 4] = zero; s[k + 8] = zero);                                               \
        QK_FOUR_TIMES(k, __asm__ volatile("" : "+" reg(s[k]), "+" reg(s[k + 4]), "+" reg(s[k + 8])));                  \
        __asm__ volatile("" : "+" reg(a), "+" reg(b));                                                                 \
        for (size_t i = 0; i < n; i += 12) {                                                                           \
            QK_FOUR_TIMES(k, __asm__ volatile("" : "+" reg(a)); s[k] = step(s[k], a, b));                              \
            QK_FOUR_TIMES(k, __asm__ volatile("" : "+" reg(a)); s[k + 4] = step(s[k + 4], a, b));                      \
            QK_FOUR_TIMES(k, __asm__ volatile("" : "+" reg(a)); s[k + 8] = step(s[k + 8], a, b));                      \
        }                                                                                                              \
        QK_FOUR_TIMES(k, __asm__ volatile("" : : reg(s[k]), reg(s[k + 4]), reg(s[k + 8])));                            \
        return products;                                                                                               \
    }

#endif
