#include "kernels/poolf/poolf_row.h"
#include "kernels/simd/scalar.h"

static void run(qdq_dtype src, bool is_max, const qk_poolf_line *l, const char *rows, float *dst) {
    for (size_t i = 0; i < l->n_out; i++)
        for (size_t c = 0; c < l->n_channels; c++) {
            const bool is_empty = l->n_d * l->n_h == 0 || l->count[i] == 0;
            float a = is_max ? -INFINITY : is_empty ? 0.0f : -0.0f;
            for (int64_t t = 0; t < l->count[i]; t++) {
                float column = is_max ? -INFINITY : -0.0f;
                for (size_t r = 0; r < l->n_d * l->n_h; r++) {
                    const char *p = rows + (ptrdiff_t)(r / l->n_h) * l->d_bytes + (ptrdiff_t)(r % l->n_h) * l->h_bytes +
                                    (ptrdiff_t)(l->first[i] + t * l->dilation) * l->place_bytes;
                    const float x = qks_load(src, p, c);
                    column = !is_max ? column + x : x > column ? x : column;
                }
                a = !is_max ? a + column : column > a ? column : a;
            }
            const float d = l->divisors ? l->divisors[i] : 0.0f;
            dst[i * l->dst_step + c] = d != 0.0f && !(is_empty && !is_max) ? a / d : a;
        }
}

#define FUNCTIONS(id, type)                                                                                            \
    void qk_poolf_max_##type##_ref(const qk_poolf_line *line, const void *rows, float *dst) {                          \
        run(QDQ_DTYPE_##id, true, line, rows, dst);                                                                    \
    }                                                                                                                  \
    void qk_poolf_sum_##type##_ref(const qk_poolf_line *line, const void *rows, float *dst) {                          \
        run(QDQ_DTYPE_##id, false, line, rows, dst);                                                                   \
    }
QK_POOLF_TYPES(FUNCTIONS)
