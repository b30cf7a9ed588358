#include "ref/ref_gemm.h"

#include "base/checked.h"

#include <string.h>

/* Two lanes are what every x86-64 and aarch64 has; the compiler widens where it may. */
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

static void tile_4x4(int64_t k, const double *a, const double *b, double (*acc)[QDQI_REF_NR]) {
    pair s0 = {0.0, 0.0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    for (int64_t i = 0; i < k; i++, a += QDQI_REF_MR, b += QDQI_REF_NR) {
        const pair b0 = *(const pair *)b, b1 = *(const pair *)(b + 2);
        s0 += a[0] * b0;
        s1 += a[0] * b1;
        s2 += a[1] * b0;
        s3 += a[1] * b1;
        s4 += a[2] * b0;
        s5 += a[2] * b1;
        s6 += a[3] * b0;
        s7 += a[3] * b1;
    }
    const pair sums[8] = {s0, s1, s2, s3, s4, s5, s6, s7};
    memcpy(acc, sums, sizeof sums);
}

void qdqi_ref_gemm_tile(int64_t k, const double *a, const double *b, double acc[QDQI_REF_MR][QDQI_REF_NR]) {
    tile_4x4(k, a, b, acc);
    tile_4x4(k, a + 4, b, acc + 4);
}

int64_t qdqi_ref_product_doubles(int64_t k) {
    int64_t n;
    return qdqi_mul_i64(k, QDQI_REF_MR + QDQI_REF_NB, &n) ? n : -1; /* -1: qdqi_ref_temp refuses it */
}

static void load_rows(const qdqi_ref_mat *m, int64_t row, int64_t n_rows, int64_t k, double *to) {
    for (int64_t r = 0; r < QDQI_REF_MR; r++) {
        if (r >= n_rows) {
            for (int64_t i = 0; i < k; i++)
                to[i * QDQI_REF_MR + r] = 0.0;
        } else if (m->f != NULL) {
            const float *from = m->f + (row + r) * m->row_stride;
            for (int64_t i = 0; i < k; i++)
                to[i * QDQI_REF_MR + r] = (double)from[i * m->col_stride];
        } else {
            const int32_t *from = m->q + (row + r) * m->row_stride;
            const int64_t zp = m->zp == NULL ? 0 : m->zp[(row + r) * m->zp_stride];
            for (int64_t i = 0; i < k; i++)
                to[i * QDQI_REF_MR + r] = (double)(from[i * m->col_stride] - zp);
        }
    }
}

static void load_panel(const qdqi_ref_mat *m, int64_t col, int64_t n_cols, int64_t k, double *to) {
    for (int64_t i = 0; i < k; i++, to += QDQI_REF_NR) {
        for (int64_t j = 0; j < QDQI_REF_NR; j++) {
            const int64_t at = i * m->row_stride + (col + j) * m->col_stride;
            if (j >= n_cols) {
                to[j] = 0.0;
            } else if (m->f != NULL) {
                to[j] = (double)m->f[at];
            } else {
                to[j] = (double)(m->q[at] - (m->zp == NULL ? 0 : m->zp[(col + j) * m->zp_stride]));
            }
        }
    }
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

void qdqi_ref_product(int64_t m, int64_t n, int64_t k, const qdqi_ref_mat *a, const qdqi_ref_mat *b, double *scratch,
                      qdqi_ref_emit emit, void *job) {
    double *rows = scratch, *panels = scratch + k * QDQI_REF_MR;
    double acc[QDQI_REF_MR][QDQI_REF_NR];
    for (int64_t col = 0; col < n; col += QDQI_REF_NB) {
        const int64_t n_cols = smaller(n - col, QDQI_REF_NB);
        for (int64_t j = 0; j < n_cols; j += QDQI_REF_NR)
            load_panel(b, col + j, n_cols - j, k, panels + j * k);
        for (int64_t row = 0; row < m; row += QDQI_REF_MR) {
            const int64_t n_rows = smaller(m - row, QDQI_REF_MR);
            load_rows(a, row, n_rows, k, rows);
            for (int64_t j = 0; j < n_cols; j += QDQI_REF_NR) {
                qdqi_ref_gemm_tile(k, rows, panels + j * k, acc);
                for (int64_t r = 0; r < n_rows; r++)
                    emit(job, row + r, col + j, smaller(n_cols - j, QDQI_REF_NR), acc[r]);
            }
        }
    }
}
