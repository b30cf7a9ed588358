/* The functions of the rows, and what they share. Private to kernels/igemm. */
#ifndef QK_IGEMM_ROW_H
#define QK_IGEMM_ROW_H

#include "kernels/igemm/igemm.h"

#include <string.h>

#define WITH_END(name)  qk_igemm_end_fn name;
#define WITH_PACK(name) qk_igemm_pack_fn name;
#define WITH_DOTS(name) qk_igemm_dots_fn name;
#define NO_END(name)
#define NO_PACK(name)
#define NO_DOTS(name)
#define QK_IGEMM(level, types, nr, kr, bytes, paired, end, pack, dots)                                                 \
    qk_igemm_fn qk_igemm_##types##_##level;                                                                            \
    end(qk_igemm_##types##_end_##level) pack(qk_igemm_pack_##types##_##level) dots(qk_igemm_dots_##types##_##level)
#include "kernels/igemm/igemm.def"
#undef QK_IGEMM
#undef WITH_END
#undef WITH_PACK
#undef NO_END
#undef NO_PACK
#undef WITH_DOTS
#undef NO_DOTS

qk_igemm_sums_fn qk_igemm_sums_ref;
#if defined(__x86_64__)
qk_igemm_sums_fn qk_igemm_sums_avx2;
qk_igemm_line_fn qk_igemm_line_avx2, qk_igemm_line_avx512;

/* Packing of up to 16 columns of bytes from `data` on: all k, their sums, and (is_paired) what qk_igemm_col_pairs are; of 16 columns. */
void qk_igemm_pack16_avx2(const qk_igemm *g, const uint8_t *data, ptrdiff_t k_stride, ptrdiff_t n_stride, size_t n_cols,
                          uint8_t *out, int32_t *col_sums, int32_t *col_pairs);
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

/* -Σ w'[k] w'[k + 1] over even k, of each column of all panels; where is_paired. */
static inline const int32_t *qk_igemm_col_pairs(const qk_igemm *g, const void *packed) {
    return qk_igemm_col_sums(g, packed) + g->n_panels * QK_IGEMM_COLS;
}

/* Weights that last (is_paired) may be certified for vpmaddubsw, which saturates where a pair of products leaves 16 bits: pairs of w' of
 * one column whose positive sum is at most 128, and whose negative sum at least -128, cannot, whatever the source is. The k of a panel
 * are paired so that few fail: within each sixteen, k number order[k] is read at place k. A dword of four k in which a column's
 * pair still fails comes twice, halves of it each time. So a block of 16 columns is a list of dwords, by parts of k. */

enum { QK_IGEMM_PART = 512 }; /* most k of a part */

typedef struct qk_igemm_certified {
    uint16_t *counts; /* [block of the panel][part]: how many dwords; 0, all, where the panel is not certified */
    uint8_t *order;   /* of kc, up to whole 32 */
    size_t n_parts;
} qk_igemm_certified;

/* More dwords in a block would not pay. Behind room for so many are their places in the part, a byte for each. */
static inline size_t qk_igemm_max_dwords(const qk_igemm *g) {
    const size_t n4 = qk_igemm_kc(g) / 4;
    return n4 + n4 / 8;
}

static inline size_t qk_igemm_certified_bytes(const qk_igemm *g) {
    return (g->n_parts * 8 + (g->kc + 31) / 32 * 32 + 63) / 64 * 64;
}

static inline qk_igemm_certified qk_igemm_certified_of(const qk_igemm *g, const void *packed, size_t panel) {
    uint8_t *at = (uint8_t *)(uintptr_t)packed + g->n_panels * (g->panel_bytes + 2 * QK_IGEMM_COLS * sizeof(int32_t)) +
                  panel * qk_igemm_certified_bytes(g);
    return (qk_igemm_certified){(uint16_t *)(void *)at, at + g->n_parts * 8, g->n_parts};
}

static inline const void *qk_igemm_row(const qk_igemm_rows *rows, size_t r) {
    return (const char *)rows->data + (ptrdiff_t)r * rows->row_bytes;
}

/* n < 4 bytes and zeros. */
static inline int32_t qk_igemm_load_tail(const uint8_t *p, size_t n) {
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint32_t)p[i] << 8 * i;
    return (int32_t)v;
}

static inline int32_t qk_igemm_load4(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif
