#include "kernels/resize/resize_row.h"
#include "kernels/simd/scalar.h"

#include <string.h>

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

static void runs(const qk_resize *resize, const void *const *src, const float *weights, size_t n_src,
                 const qk_resize_axis *axis, size_t step, void *dst, size_t dst_step, size_t n) {
    for (size_t i = 0; i < axis->n; i++)
        for (size_t c = 0; c < n; c++) {
            float v[2] = {0.0f, 0.0f};
            for (size_t k = 0; k < n_src; k++) {
                v[0] += weights[k] * qks_load(resize->src, src[k], (size_t)axis->lo[i] * step + c);
                if (axis->w[i] != 0.0f)
                    v[1] += weights[k] * qks_load(resize->src, src[k], (size_t)axis->hi[i] * step + c);
            }
            if (axis->w[i] != 0.0f) v[0] = v[0] * (1.0f - axis->w[i]) + v[1] * axis->w[i];
            qks_store(resize->dst, dst, i * dst_step + c, v[0] * resize->factor + resize->add);
        }
}

static void take(const void *src, const int32_t *at, size_t n, size_t run_bytes, size_t step_bytes, void *dst) {
    for (size_t i = 0; i < n; i++)
        memcpy((char *)dst + i * run_bytes, (const char *)src + (size_t)at[i] * step_bytes, run_bytes);
}

static void across(const qk_resize *resize, const float *row, const int32_t *lo, const int32_t *hi, const float *w,
                   void *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float v = w[i] == 0.0f ? row[lo[i]] : row[lo[i]] + (row[hi[i]] - row[lo[i]]) * w[i];
        qks_store(resize->dst, dst, i, v * resize->factor + resize->add);
    }
}

const qk_resize_fns qk_resize_ref = {blend, runs, take, across};
