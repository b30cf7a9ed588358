/* The functions of the rows, and what they share. Private to kernels/igemm. */
#ifndef QK_IGEMM_ROW_H
#define QK_IGEMM_ROW_H

#include "kernels/igemm/igemm.h"

#include <string.h>

#define QK_IGEMM(level, types, nr, kr, bytes) qk_igemm_fn qk_igemm_##types##_##level;
#include "kernels/igemm/igemm.def"
#undef QK_IGEMM

qk_igemm_sums_fn qk_igemm_sums_ref;
#if defined(__x86_64__)
qk_igemm_sums_fn qk_igemm_sums_avx2;

/* Packing of 16 columns of bytes from `data` on, whose columns (n_stride 1) or k (k_stride 1) are consecutive; adds their sums. Returns
 * how many k were done. */
size_t qk_igemm_pack16_avx2(const qk_igemm *g, const uint8_t *data, ptrdiff_t k_stride, ptrdiff_t n_stride,
                            uint8_t *out, int32_t *col_sums);
/* Of eight columns of f32 whose k are consecutive. */
size_t qk_igemm_pack8_f32_avx2(const qk_igemm *g, const float *data, ptrdiff_t n_stride, float *out);
#endif

static inline size_t qk_igemm_cols_of(const qk_igemm *g, size_t panel) {
    const size_t left = g->n - panel * QK_IGEMM_COLS;
    return left < QK_IGEMM_COLS ? left : QK_IGEMM_COLS;
}

static inline const uint8_t *qk_igemm_panel(const qk_igemm *g, const void *packed, size_t panel) {
    return (const uint8_t *)packed + panel * g->panel_bytes;
}

/* kc as packed. */
static inline size_t qk_igemm_kc(const qk_igemm *g) {
    return (g->kc + g->kr - 1) / g->kr * g->kr;
}

/* n < 4 bytes and zeros. */
static inline int32_t qk_igemm_load_tail(const uint8_t *p, size_t n) {
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint32_t)p[i] << 8 * i;
    return (int32_t)v;
}

#endif
