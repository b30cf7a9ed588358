#include "kernels/affine/affine_row.h"

#include <math.h>

static int32_t clamp(int32_t v, int32_t low, int32_t high) {
    return v < low ? low : v > high ? high : v;
}

void qk_affine_ref(const qk_affine *affine, const float *factor, const float *shift, size_t step, const void *src,
                   void *dst, size_t n) {
    const bool to_signed = affine->dst == QDQ_DTYPE_S8;
    for (size_t i = 0; i < n; i++) {
        const int x = affine->src == QDQ_DTYPE_S8 ? ((const int8_t *)src)[i] : ((const uint8_t *)src)[i];
        const float v = fmaf((float)x, factor[i * step], shift[i * step]);
        int32_t q = v <= -0x1p16f ? INT16_MIN
                    : v < 0x1p16f ? clamp((int32_t)lrintf(v), INT16_MIN, INT16_MAX)
                                  : INT16_MAX;
        q += affine->zp;
        q = clamp(clamp(q, INT16_MIN, INT16_MAX), to_signed ? -128 : 0, to_signed ? 127 : 255);
        ((uint8_t *)dst)[i] = (uint8_t)clamp(q, affine->low, affine->high);
    }
}
