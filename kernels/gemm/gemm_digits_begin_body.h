/* What the code before gemm_digits_body.h is about. Over the names of simd/vec512.h or vec256.h. */
#ifndef QK_GEMM_DIGITS_BEGIN_BODY_H
#define QK_GEMM_DIGITS_BEGIN_BODY_H

#include "kernels/gemm/gemm_row.h"

#include <string.h>

enum { DIGITS = 4, VECTORS = QK_GEMM_COLS / QV_LANES, AHEAD_BYTES = 2048, STEP = 4 * QK_GEMM_COLS };

/* Where the digits of a run begin, and its sums: [digit][vector]. */
typedef struct digits {
    const int8_t *d[DIGITS];
} digits;
typedef struct sums {
    qv_i s[DIGITS][VECTORS];
} sums;
typedef void digits_fn(const uint8_t *p, size_t n, const digits *in, sums *out);

QK_INLINE int32_t load4(const int8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif
