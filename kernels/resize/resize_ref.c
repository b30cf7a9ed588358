#include "kernels/resize/resize_row.h"
#include "kernels/simd/scalar.h"

static void blend(const qk_resize *resize, bool to_floats, const void *const *src, const float *weights, size_t n_src,
                  void *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float v = 0.0f;
        for (size_t k = 0; k < n_src; k++)
            v += weights[k] * qks_load(resize->src, src[k], i);
        if (to_floats)
            ((float *)dst)[i] = v;
        else
            qks_store(resize->dst, dst, i, v * resize->factor + resize->add);
    }
}

static void across(const qk_resize *resize, const float *row, const int32_t *lo, const int32_t *hi, const float *w,
                   void *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float v = w[i] == 0.0f ? row[lo[i]] : row[lo[i]] + (row[hi[i]] - row[lo[i]]) * w[i];
        qks_store(resize->dst, dst, i, v * resize->factor + resize->add);
    }
}

const qk_resize_fns qk_resize_ref = {blend, across};
