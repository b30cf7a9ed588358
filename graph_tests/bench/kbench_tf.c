/* TensorFlow's QuantizeV2 and Dequantize in the forms that are no affine quantization. */
#include "kbench_floor.h"
#include "kbench_floor_cols.h"
#include "kernels/tf/tf.h"

#include <stdio.h>

typedef struct tf_case {
    qk_tf tf;
    const struct qk_tf_row *row;
    float *real;
    void *stored;
    size_t n;
} tf_case;

static qk_isa prepare(void *arg, int n_threads) {
    tf_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->row = qk_tf_choose(c->tf.stored, &isa);
    return isa;
}

static char *stored_at(const tf_case *c, size_t i) {
    return (char *)c->stored + i * qdq_dtype_bits(c->tf.stored) / 8;
}

static void run_quantize(void *arg, int part, int n_parts) {
    const tf_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    if (n) qk_tf_quantize(c->row, &c->tf, c->real + first, stored_at(c, first), n);
}
static void run_dequantize(void *arg, int part, int n_parts) {
    const tf_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    if (n) qk_tf_dequantize(c->row, &c->tf, stored_at(c, first), c->real + first, n);
}

/* What is left when ranges saturate by themselves and ties go to even. */
static void floor_quantize(void *arg, int part, int n_parts) {
    const tf_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    kbench_floors_of_host()->quantize_s8(c->real + first, (int8_t *)c->stored + first, n, c->tf.factor, c->tf.base);
}
static void floor_dequantize(void *arg, int part, int n_parts) {
    const tf_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    kbench_col_floors_here()->dequantize_u8((const uint8_t *)c->stored + first, c->real + first, n, c->tf.factor,
                                            c->tf.base);
}

/* oneDNN knows scales and zero points: SCALED alone. */
static bench_peer *peer(void *arg) {
    const tf_case *c = arg;
    bench_tensor s = {.data = c->real, .dtype = QDQ_DTYPE_F32, .ndims = 1, .dims = {(int64_t)c->n}, .strides = {1}};
    bench_tensor d = s;
    d.data = c->stored;
    d.dtype = c->tf.stored;
    d.scale = 1.0f / c->tf.factor;
    return bench_peer_reorder(&s, &d);
}

static void measure(kbench *b, const char *what, const char *size, size_t n, qdq_dtype stored, qk_tf_form form,
                    bool even, bool quantize) {
    char name[96];
    snprintf(name, sizeof name, "%s %s %s", what, qdq_dtype_name(stored), size);
    if (!kbench_wants(b, name)) return;
    const size_t stored_bytes = qdq_dtype_bits(stored) / 8 * n;
    tf_case c = {.real = kbench_floats(b, n), .stored = kbench_buffer(b, stored_bytes), .n = n};
    const bool is_signed = stored == QDQ_DTYPE_S8 || stored == QDQ_DTYPE_S16 || stored == QDQ_DTYPE_S32;
    c.tf = (qk_tf){.stored = stored,
                   .form = form,
                   .even = even,
                   .low = -1.28f,
                   .high = 1.27f,
                   .factor = quantize ? 97.3f : 0.0103f,
                   .base = quantize ? -3.0f : -1.28f,
                   .half = is_signed ? 128.0f : 0.0f,
                   .top = is_signed ? 127.0f : 255.0f};
    const bool bytes = stored == QDQ_DTYPE_S8 || stored == QDQ_DTYPE_U8;
    const kbench_case k = {.name = name,
                           .read_bytes = quantize ? 4 * n : stored_bytes,
                           .write_bytes = quantize ? stored_bytes : 4 * n,
                           .max_parts = kbench_worth(n, QK_TF_GRAIN),
                           .prepare = prepare,
                           .run = quantize ? run_quantize : run_dequantize,
                           .floor =
                               bytes && kbench_floors_of_host() ? (quantize ? floor_quantize : floor_dequantize) : NULL,
                           .peer = quantize && even ? peer : NULL,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_tf(kbench *b) {
    static const struct {
        const char *name;
        size_t n;
    } sizes[] = {{"64K", 65536}, {"26M", (size_t)32 * 256 * 56 * 56}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const char *size = sizes[s].name;
        const size_t n = sizes[s].n;
        measure(b, "min combined f32", size, n, QDQ_DTYPE_U8, QK_TF_OFFSET, false, true);
        measure(b, "min combined f32", size, n, QDQ_DTYPE_S8, QK_TF_OFFSET, false, true);
        measure(b, "min first f32", size, n, QDQ_DTYPE_U8, QK_TF_STEPS, false, true);
        measure(b, "min first f32", size, n, QDQ_DTYPE_S8, QK_TF_STEPS, false, true);
        measure(b, "scaled f32", size, n, QDQ_DTYPE_S8, QK_TF_SCALED, true, true);
        measure(b, "scaled away f32", size, n, QDQ_DTYPE_S8, QK_TF_SCALED, false, true);
        measure(b, "dequantize", size, n, QDQ_DTYPE_U8, QK_TF_OFFSET, false, false);
        measure(b, "dequantize", size, n, QDQ_DTYPE_S8, QK_TF_OFFSET, false, false);
        if (s != 0) continue;
        measure(b, "min combined f32", size, n, QDQ_DTYPE_S16, QK_TF_OFFSET, false, true);
        measure(b, "min first f32", size, n, QDQ_DTYPE_S32, QK_TF_STEPS, false, true);
        measure(b, "dequantize", size, n, QDQ_DTYPE_S32, QK_TF_OFFSET, false, false);
    }
}
