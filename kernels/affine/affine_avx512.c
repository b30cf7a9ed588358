#include "kernels/affine/affine_body.h"

void qk_affine_avx512(const qk_affine *affine, const float *factor, const float *shift, size_t step, const void *src,
                      void *dst, size_t n) {
    run(affine, factor, shift, step, src, dst, n);
}
