/* The functions of the rows, and what they share. Private to kernels/gemm. */
#ifndef QK_GEMM_ROW_H
#define QK_GEMM_ROW_H

#include "kernels/gemm/gemm.h"

#define QK_GEMM(level, rows8, rows4) qk_gemm_fn qk_gemm_##level;
#include "kernels/gemm/gemm.def"
#undef QK_GEMM
#if defined(__x86_64__)
qk_gemm_fn qk_gemm_floats_avx2; /* which makes a float of each weight; rows of 4-bit weights that cannot be digits */
#endif

static inline bool qk_gemm_is_4bit(const qk_gemm *g) {
    return g->weights == QDQ_DTYPE_S4 || g->weights == QDQ_DTYPE_U4;
}

/* A run of k inside one group of one panel. */
typedef struct qk_gemm_run {
    const float *scales;   /* 64 */
    const int8_t *zps;     /* 64, or NULL */
    const uint8_t *values; /* of the run's first k */
    size_t k, n_k;
} qk_gemm_run;

/* The run that starts at k, a multiple of 8 from the start of its group unless the weights have 8 bits. */
static inline qk_gemm_run qk_gemm_run_at(const qk_gemm *g, const uint8_t *panel, size_t k) {
    const size_t in_group = k % g->k_group;
    const uint8_t *group = panel + k / g->k_group * g->group_bytes;
    qk_gemm_run run = {(const float *)(const void *)group, NULL, group + QK_GEMM_COLS * sizeof(float), k, 0};
    if (g->has_zp) {
        run.zps = (const int8_t *)run.values;
        run.values += QK_GEMM_COLS;
    }
    run.values += qk_gemm_is_4bit(g) ? in_group / 8 * (QK_GEMM_COLS * 4) : in_group * QK_GEMM_COLS;
    const size_t left = g->k_group - in_group < g->k - k ? g->k_group - in_group : g->k - k;
    run.n_k = left < QK_GEMM_RUN ? left : QK_GEMM_RUN;
    return run;
}

#endif
