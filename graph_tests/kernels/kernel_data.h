/* Data for the tests of kernels: seeded values with the awkward ones in front, and buffers with guards around them. */
#ifndef KERNEL_DATA_H
#define KERNEL_DATA_H

#include "kernels/isa/isa.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint32_t kd_next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static inline float kd_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#endif
