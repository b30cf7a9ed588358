#include "kernels/poolf/poolf_row.h"
#include "kernels/simd/scalar.h"

static void run(qdq_dtype src, bool is_max, const void *const *rows, size_t n_rows, size_t n, float *acc, bool is_added,
                float divisor) {
    for (size_t c = 0; c < n; c++) {
        float a = is_added ? acc[c] : is_max ? -INFINITY : qks_load(src, rows[0], c);
        for (size_t r = is_max || is_added ? 0 : 1; r < n_rows; r++) {
            const float x = qks_load(src, rows[r], c);
            a = !is_max ? a + x : x > a ? x : a;
        }
        acc[c] = divisor != 0.0f ? a / divisor : a;
    }
}

#define FUNCTIONS(id, type)                                                                                            \
    void qk_poolf_max_##type##_ref(const void *const *rows, size_t n_rows, size_t n, float *acc, bool is_added,        \
                                   float divisor) {                                                                    \
        run(QDQ_DTYPE_##id, true, rows, n_rows, n, acc, is_added, divisor);                                            \
    }                                                                                                                  \
    void qk_poolf_sum_##type##_ref(const void *const *rows, size_t n_rows, size_t n, float *acc, bool is_added,        \
                                   float divisor) {                                                                    \
        run(QDQ_DTYPE_##id, false, rows, n_rows, n, acc, is_added, divisor);                                           \
    }
QK_POOLF_TYPES(FUNCTIONS)
