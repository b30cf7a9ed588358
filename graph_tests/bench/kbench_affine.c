/* Bytes through one line per element: a batch normalisation between two quantizations. */
#include "kbench_floor_cols.h"
#include "kernels/affine/affine.h"
#include "kernels/binary/binary.h"

#include <stdio.h>

typedef struct affine_case {
    qk_affine affine;
    qk_affine_fn *fn;
    float *factor, *shift;
    char *src, *dst;
    size_t rows, cols; /* channels along the rows, or one factor for a row */
    bool per_row;
} affine_case;

static qk_isa prepare(void *arg, int n_threads) {
    affine_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->fn = qk_affine_choose(&isa);
    return isa;
}

static void run(void *arg, int part, int n_parts) {
    const affine_case *c = arg;
    size_t n, first = kbench_part(c->rows, 1, part, n_parts, &n);
    for (size_t r = first; r < first + n; r++) {
        const size_t at = c->per_row ? r % 64 : 0;
        c->fn(&c->affine, c->factor + at, c->shift + at, c->per_row ? 0 : 1, c->src + r * c->cols, c->dst + r * c->cols,
              c->cols);
    }
}

static void floor_cols(void *arg, int part, int n_parts) {
    const affine_case *c = arg;
    size_t n, first = kbench_part(c->rows, 1, part, n_parts, &n);
    for (size_t r = first; r < first + n; r++)
        kbench_col_floors_here()->affine_s8((const int8_t *)c->src + r * c->cols, (int8_t *)c->dst + r * c->cols,
                                            c->cols, c->factor, c->shift);
}

static void floor_rows(void *arg, int part, int n_parts) {
    const affine_case *c = arg;
    size_t n, first = kbench_part(c->rows, 1, part, n_parts, &n);
    for (size_t r = first; r < first + n; r++)
        kbench_col_floors_here()->affine_one_s8((const int8_t *)c->src + r * c->cols, (int8_t *)c->dst + r * c->cols,
                                                c->cols, c->factor[r % 64], c->shift[r % 64]);
}

static void measure(kbench *b, const char *what, size_t rows, size_t cols, bool per_row) {
    char name[96];
    snprintf(name, sizeof name, "%s s8 s8 %zux%zu", what, rows, cols);
    if (!kbench_wants(b, name)) return;
    const size_t n = rows * cols;
    affine_case c = {
        .src = kbench_buffer(b, n), .dst = kbench_buffer(b, n), .rows = rows, .cols = cols, .per_row = per_row};
    c.affine = (qk_affine){.src = QDQ_DTYPE_S8, .dst = QDQ_DTYPE_S8, .low = 0, .high = 127};
    c.factor = kbench_floats(b, cols > 64 ? cols : 64);
    c.shift = kbench_floats(b, cols > 64 ? cols : 64);
    const kbench_case k = {.name = name,
                           .read_bytes = n,
                           .write_bytes = n,
                           .max_parts = kbench_worth(n, QK_BINARY_GRAIN),
                           .prepare = prepare,
                           .run = run,
                           .floor = kbench_col_floors_here() ? (per_row ? floor_rows : floor_cols) : NULL,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_affine(kbench *b) {
    measure(b, "channels last", 784, 128, false);
    measure(b, "channels first", 128, 784, true);
    measure(b, "channels last", 8 * 56 * 56, 64, false);
    measure(b, "channels first", 8 * 64, 56 * 56, true);
    measure(b, "channels last", 32 * 56 * 56, 256, false);
}
