/* One operation on every element of floats, as the native primitives call it. */
#include "bench_peer_pointwise.h"
#include "kbench.h"
#include "kernels/simd/scalar.h"

#include <stdio.h>

enum { GRAIN = 16 * 1024, BLOCK = 16 * 1024 }; /* elements: those of native/ */

typedef struct pointwise_case {
    qk_pointwise args;
    qk_pointwise_op op;
    qk_pointwise_fn *fn;
    qdq_dtype dtype;
    char *src, *w, *dst;
    size_t bytes, rows, cols;
    bool w_per_row; /* else per column, or per element when w_row is not 0 */
} pointwise_case;

static qk_isa prepare(void *arg, int n_threads) {
    pointwise_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->fn = qk_pointwise_choose(c->op, c->dtype, &isa);
    return isa;
}

static void run(void *arg, int part, int n_parts) {
    const pointwise_case *c = arg;
    if (c->fn == NULL) return;
    if (c->rows == 1) {
        size_t n, first = kbench_part(c->cols, 64, part, n_parts, &n);
        for (size_t i = first, some; i < first + n; i += some) {
            some = first + n - i < BLOCK ? first + n - i : BLOCK;
            c->fn(&c->args, c->src + i * c->bytes, c->w ? c->w + i * c->bytes : NULL, c->dst + i * c->bytes, 1, some);
        }
        return;
    }
    size_t n, first = kbench_part(c->rows, 1, part, n_parts, &n);
    const size_t most = BLOCK / c->cols ? BLOCK / c->cols : 1;
    for (size_t r = first, some; r < first + n; r += some) {
        some = first + n - r < most ? first + n - r : most;
        c->fn(&c->args, c->src + r * c->cols * c->bytes, c->w + (ptrdiff_t)r * c->args.w_row,
              c->dst + r * c->cols * c->bytes, some, c->cols);
    }
}

static bench_tensor tensor(const pointwise_case *c, void *data, int64_t rows, int64_t cols) {
    return (bench_tensor){.data = data, .dtype = c->dtype, .ndims = 2, .dims = {rows, cols}, .strides = {cols, 1}};
}

static bench_peer *peer(void *arg) {
    const pointwise_case *c = arg;
    const int64_t rows = (int64_t)c->rows, cols = (int64_t)c->cols;
    const bench_tensor s = tensor(c, c->src, rows, cols), d = tensor(c, c->dst, rows, cols);
    const bench_tensor w = tensor(c, c->w, c->args.w_row || rows == 1 ? rows : 1, c->args.common ? 1 : cols);
    return bench_peer_pointwise(c->op, c->args.alpha, c->args.beta, &s, c->w ? &w : NULL, &d);
}

/* -1.28 ... 1.27 in each type. */
static char *values(kbench *b, qdq_dtype dtype, size_t n) {
    float *f = kbench_floats(b, n);
    if (dtype == QDQ_DTYPE_F32) return (char *)f;
    uint16_t *to = kbench_buffer(b, 2 * n);
    for (size_t i = 0; i < n; i++)
        to[i] = dtype == QDQ_DTYPE_BF16 ? qks_to_bf16(f[i]) : qks_to_f16(f[i]);
    return (char *)to;
}

typedef enum operand { NO_OPERAND, EACH, PER_COLUMN, PER_ROW } operand;

static void measure(kbench *b, const char *what, const char *size, qk_pointwise_op op, float alpha, float beta,
                    qdq_dtype dtype, size_t rows, size_t cols, operand how) {
    char name[96];
    snprintf(name, sizeof name, "%s %s %s", what, qdq_dtype_name(dtype), size);
    if (!kbench_wants(b, name)) return;
    const size_t bytes = qdq_dtype_bits(dtype) / 8, n = rows * cols;
    const size_t n_w = how == EACH ? n : how == PER_COLUMN ? cols : how == PER_ROW ? rows : 0;
    const ptrdiff_t row = (ptrdiff_t)(cols * bytes);
    pointwise_case c = {.op = op, .dtype = dtype, .bytes = bytes, .rows = rows, .cols = cols};
    c.args = (qk_pointwise){.alpha = alpha,
                            .beta = beta,
                            .stream = n * bytes >= qk_isa_stream_bytes(),
                            .common = how == PER_ROW,
                            .src_row = row,
                            .w_row = how == EACH      ? row
                                     : how == PER_ROW ? (ptrdiff_t)bytes
                                                      : 0,
                            .dst_row = row};
    c.src = values(b, dtype, n);
    c.w = n_w ? values(b, dtype, n_w) : NULL;
    c.dst = kbench_buffer(b, n * bytes);
    const kbench_case k = {.name = name,
                           .read_bytes = (n + n_w) * bytes,
                           .write_bytes = n * bytes,
                           .max_parts = kbench_worth(n, GRAIN),
                           .prepare = prepare,
                           .run = run,
                           .peer = peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_pointwise(kbench *b) {
    static const struct {
        const char *what;
        qk_pointwise_op op;
        float alpha, beta;
    } unary[] = {
        {"relu", QK_POINTWISE_RELU, 0.0f, 0.0f},
        {"clip", QK_POINTWISE_CLIP, 0.0f, 6.0f},
        {"hardswish", QK_POINTWISE_HARDSWISH, 1.0f / 6.0f, 0.5f},
        {"exp", QK_POINTWISE_EXP, 0.0f, 0.0f},
        {"elu", QK_POINTWISE_ELU, 1.0f, 0.0f},
        {"logistic", QK_POINTWISE_LOGISTIC, 0.0f, 0.0f},
        {"swish", QK_POINTWISE_SWISH, 1.0f, 0.0f},
        {"tanh", QK_POINTWISE_TANH, 0.0f, 0.0f},
        {"gelu erf", QK_POINTWISE_GELU_ERF, 0.0f, 0.0f},
        {"gelu tanh", QK_POINTWISE_GELU_TANH, 0.0f, 0.0f},
        {"mish", QK_POINTWISE_MISH, 0.0f, 0.0f},
        {"log", QK_POINTWISE_LOG, 0.0f, 0.0f},
        {"soft relu", QK_POINTWISE_SOFT_RELU, 1.0f, 0.0f},
    };
    const qdq_dtype f32 = QDQ_DTYPE_F32, bf16 = QDQ_DTYPE_BF16, f16 = QDQ_DTYPE_F16;
    for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++) {
        measure(b, unary[i].what, "48K", unary[i].op, unary[i].alpha, unary[i].beta, f32, 1, 49152, NO_OPERAND);
        if (i % 4 == 0) /* relu, elu, gelu erf, soft relu */
            measure(b, unary[i].what, "16M", unary[i].op, unary[i].alpha, unary[i].beta, f32, 1, 16 << 20, NO_OPERAND);
    }
    for (size_t i = 0; i < 9; i += 4) {
        measure(b, unary[i].what, "48K", unary[i].op, unary[i].alpha, unary[i].beta, bf16, 1, 49152, NO_OPERAND);
        measure(b, unary[i].what, "48K", unary[i].op, unary[i].alpha, unary[i].beta, f16, 1, 49152, NO_OPERAND);
    }
    measure(b, "add", "32K", QK_POINTWISE_ADD, 0, 0, f32, 1, 32768, EACH);
    measure(b, "mul", "32K", QK_POINTWISE_MUL, 0, 0, f32, 1, 32768, EACH);
    measure(b, "div", "32K", QK_POINTWISE_DIV, 0, 0, f32, 1, 32768, EACH);
    measure(b, "add", "32K", QK_POINTWISE_ADD, 0, 0, bf16, 1, 32768, EACH);
    measure(b, "add", "32K", QK_POINTWISE_ADD, 0, 0, f16, 1, 32768, EACH);
    measure(b, "add", "128x384, w of columns", QK_POINTWISE_ADD, 0, 0, f32, 128, 384, PER_COLUMN);
    measure(b, "add", "784x64, w of columns", QK_POINTWISE_ADD, 0, 0, f32, 784, 64, PER_COLUMN);
    measure(b, "mul", "64x784, w of rows", QK_POINTWISE_MUL, 0, 0, f32, 64, 784, PER_ROW);
    measure(b, "add", "16M", QK_POINTWISE_ADD, 0, 0, f32, 1, 16 << 20, EACH);
    measure(b, "add", "16M", QK_POINTWISE_ADD, 0, 0, bf16, 1, 16 << 20, EACH);
    measure(b, "mul", "16384x1024, w of columns", QK_POINTWISE_MUL, 0, 0, f32, 16384, 1024, PER_COLUMN);
}
