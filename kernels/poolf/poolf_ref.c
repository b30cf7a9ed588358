#include "kernels/poolf/poolf_row.h"
#include "kernels/simd/scalar.h"

/* `takes_plus`: +0 over -0. */
static bool is_more(float x, float than, bool takes_plus) {
    return x > than || (takes_plus && x == than && !signbit(x));
}

static void one(qdq_dtype src, qdq_dtype to, bool is_max, const qk_poolf_line *l, const qk_poolf_run *r, int64_t first,
                const char *rows, void *dst, size_t at) {
    const bool plus = to == QDQ_DTYPE_BF16, is_empty = l->n_d * l->n_h == 0 || r->count == 0;
    for (size_t c = 0; c < l->n_channels; c++) {
        float a = is_max ? -INFINITY : is_empty ? 0.0f : -0.0f;
        for (int64_t t = 0; t < r->count; t++) {
            float column = is_max ? -INFINITY : -0.0f;
            for (size_t k = 0; k < l->n_d * l->n_h; k++) {
                const char *p = rows + (ptrdiff_t)(k / l->n_h) * l->d_bytes + (ptrdiff_t)(k % l->n_h) * l->h_bytes +
                                (ptrdiff_t)(first + t * l->dilation) * l->place_bytes;
                const float x = qks_load(src, p, c);
                column = !is_max ? column + x : is_more(x, column, plus) ? x : column;
            }
            a = !is_max ? a + column : is_more(column, a, plus) ? column : a;
        }
        if (!is_max && !is_empty && l->counted != 0) a /= (float)(l->counted * r->counted);
        qks_store(to, dst, at + c, a);
    }
}

static void run(qdq_dtype src, qdq_dtype to, bool is_max, const qk_poolf_line *l, const char *rows, void *dst) {
    size_t i = 0;
    for (const qk_poolf_run *r = l->runs; i < l->n_out; r++)
        for (size_t k = 0; k < r->n; k++, i++)
            one(src, to, is_max, l, r, r->first + (int64_t)k * r->by, rows, dst, i * l->dst_step);
}

#define FUNCTIONS(from, to, name, level)                                                                               \
    void qk_poolf_max_##name##_##level(const qk_poolf_line *line, const void *rows, void *dst) {                       \
        run(QDQ_DTYPE_##from, QDQ_DTYPE_##to, true, line, rows, dst);                                                  \
    }                                                                                                                  \
    void qk_poolf_sum_##name##_##level(const qk_poolf_line *line, const void *rows, void *dst) {                       \
        run(QDQ_DTYPE_##from, QDQ_DTYPE_##to, false, line, rows, dst);                                                 \
    }
QK_POOLF_TYPES(FUNCTIONS, ref)
