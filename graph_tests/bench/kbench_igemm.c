/* Quantized layers, u8 or s8 times s8 with scales per column, bias, relu and a destination of bytes; and products of floats. Weights
 * of layers are about normal in each column, the largest 127; those of a case called uniform are any bytes. */
#include "bench_peer_gemm.h"
#include "kbench.h"
#include "kernels/igemm/igemm.h"
#include "kernels/post/post.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct layer {
    qk_igemm gemm;
    qk_post post;
    qk_post_fn *post_fn;
    qk_post_args args;
    qdq_dtype src_type, weights_type;
    size_t m, k, n;
    void *src, *weights, *dst, *packed;
    float *scales, *bias;
    int32_t *col_add;
} layer;

static qk_isa prepare(void *arg, int n_threads) {
    layer *l = arg;
    (void)n_threads;
    l->gemm = (qk_igemm){.src = l->src_type, .weights = l->weights_type, .kc = l->k, .n = l->n, .is_lasting = true};
    if (!qk_igemm_init(&l->gemm)) return QK_ISA_ref;
    const qk_igemm_source source = {l->weights, l->weights_type, (ptrdiff_t)l->n, 1};
    qk_igemm_pack(&l->gemm, &source, l->packed, 0, l->gemm.n_panels);
    l->post_fn = qk_post_choose(&l->post, NULL);
    if (l->gemm.row_sums == NULL) return l->gemm.isa;
    const int32_t *sums = qk_igemm_col_sums(&l->gemm, l->packed);
    for (size_t c = 0; c < l->n; c++)
        l->col_add[c] = -l->gemm.src_shift * sums[c];
    return l->gemm.isa;
}

static qk_igemm_end end_of(const layer *l, size_t row) {
    const bool is_float = l->gemm.row_sums == NULL;
    return (qk_igemm_end){.dst = l->post.dst,
                          .add = l->post.has_col_add ? l->col_add : NULL,
                          .scale = l->scales,
                          .bias = l->bias,
                          .scale_common = 1.0f,
                          .low = is_float ? -INFINITY : 0.0f,
                          .high = INFINITY,
                          .data = (char *)l->dst + row * l->n * (is_float ? 4 : 1),
                          .stride = (ptrdiff_t)l->n};
}

/* Rows of a panel, as the library makes them. */
static void run_rows(const layer *l, size_t row, size_t m, size_t panel) {
    const size_t row_bytes = l->k * (l->gemm.row_sums == NULL ? 4 : 1), col = panel * QK_IGEMM_COLS;
    qk_igemm_rows rows = {(const char *)l->src + row * row_bytes, (ptrdiff_t)row_bytes, m};
    if (l->gemm.run_to_end != NULL) {
        const qk_igemm_end end = end_of(l, row);
        if (l->gemm.run_to_end(&l->gemm, l->packed, &rows, panel, &end)) return;
    }
    _Alignas(64) int32_t acc[QK_IGEMM_ROWS * QK_IGEMM_COLS];
    for (size_t done = 0; done < m; done += rows.m) {
        rows.data = (const char *)l->src + (row + done) * row_bytes;
        rows.m = m - done < QK_IGEMM_ROWS ? m - done : QK_IGEMM_ROWS;
        l->gemm.run(&l->gemm, l->packed, &rows, panel, acc);
        l->post_fn(&l->post, &l->args, acc, QK_IGEMM_COLS, row + done, rows.m, col,
                   l->n - col < QK_IGEMM_COLS ? l->n - col : QK_IGEMM_COLS);
    }
}

/* As the library splits it: panels, and parts of the rows where these are few. */
static void run(void *arg, int part, int n_parts) {
    const layer *l = arg;
    const size_t panels = l->gemm.n_panels, row_parts = panels < 4 * (size_t)n_parts && n_parts > 1 ? 4 : 1;
    size_t n, first = kbench_part(panels * row_parts, 1, part, n_parts, &n);
    for (size_t u = first; u < first + n; u++) {
        const size_t begin = l->m * (u / panels) / row_parts, end = l->m * (u / panels + 1) / row_parts;
        run_rows(l, begin, end - begin, u % panels);
    }
}

static bench_peer *peer(void *arg) {
    const layer *l = arg;
    const int64_t m = (int64_t)l->m, k = (int64_t)l->k, n = (int64_t)l->n;
    const bench_tensor s = {.data = l->src, .dtype = l->src_type, .ndims = 2, .dims = {m, k}, .strides = {k, 1}};
    const bench_tensor w = {
        .data = l->weights, .dtype = l->weights_type, .ndims = 2, .dims = {k, n}, .strides = {n, 1}};
    const bench_tensor d = {.data = l->dst, .dtype = l->post.dst, .ndims = 2, .dims = {m, n}, .strides = {n, 1}};
    return bench_peer_layer(&s, &w, &d, l->scales, l->bias);
}

/* Sums of twelve numbers of equal chance, scaled to the largest of the column. */
static void make_normal(int8_t *weights, size_t k, size_t n) {
    uint32_t state = 1;
    for (size_t c = 0; c < n; c++)
        for (int pass = 0, largest = 1; pass < 2; pass++) {
            uint32_t s = state;
            for (size_t i = 0; i < k; i++) {
                int sum = -12 * 512;
                for (int j = 0; j < 12; j++) {
                    s = s * 1664525u + 1013904223u;
                    sum += (int)(s >> 22);
                }
                if (pass == 0 && abs(sum) > largest) largest = abs(sum);
                if (pass == 1) weights[i * n + c] = (int8_t)(sum * 127 / largest);
            }
            if (pass == 1) state = s;
        }
}

static void measure(kbench *b, qdq_dtype src, qdq_dtype weights, size_t m, size_t k, size_t n, bool is_uniform) {
    const bool is_float = src == QDQ_DTYPE_F32;
    char name[96];
    snprintf(name, sizeof name, "%s%s%s %zux%zux%zu%s", qdq_dtype_name(src), qdq_dtype_name(weights),
             is_float ? "f32" : "u8", m, k, n, is_uniform ? " uniform" : "");
    if (!kbench_wants(b, name)) return;
    layer l = {.src_type = src, .weights_type = weights, .m = m, .k = k, .n = n};
    const size_t elem = is_float ? 4 : 1, k_pad = (k + 3) / 4 * 4, n_pad = (n + 63) / 64 * 64;
    l.src = is_float ? (void *)kbench_floats(b, m * k) : kbench_buffer(b, m * k);
    l.weights = is_float ? (void *)kbench_floats(b, k * n) : kbench_buffer(b, k * n);
    if (!is_float && !is_uniform) make_normal(l.weights, k, n);
    l.packed = kbench_buffer(b, k_pad * n_pad * (is_float ? 4 : 2) + 8 * n_pad + (k + 256) * (n_pad / 64));
    l.dst = kbench_buffer(b, m * n * elem);
    l.col_add = kbench_buffer(b, n_pad * 4);
    l.post = (qk_post){.acc = is_float ? QDQ_DTYPE_F32 : QDQ_DTYPE_S32, .dst = is_float ? QDQ_DTYPE_F32 : QDQ_DTYPE_U8};
    l.args = (qk_post_args){.scale_common = 1.0f, .dst = l.dst, .dst_stride = (ptrdiff_t)n};
    if (!is_float) {
        l.scales = kbench_floats(b, n);
        l.bias = kbench_floats(b, n);
        for (size_t c = 0; c < n; c++)
            l.scales[c] *= 0.01f; /* as layers have them */
        l.post.has_col_add = src == QDQ_DTYPE_S8;
        l.post.scale = QK_POST_SCALE_COL;
        l.post.bias = QDQ_DTYPE_F32;
        l.post.n_steps = 1;
        l.post.steps[0].op = QK_POST_RELU;
        l.args.col_add = l.col_add;
        l.args.scale = l.scales;
        l.args.bias = l.bias;
    }
    const kbench_case kase = {.kernel = is_float ? "igemm f32" : "igemm x8",
                              .name = name,
                              .read_bytes = k * n * elem,
                              .products = m < 4      ? KBENCH_NONE
                                          : is_float ? KBENCH_FLOAT32
                                                     : KBENCH_INT8,
                              .macs = (double)m * (double)k * (double)n,
                              .max_parts = kbench_worth(m * k * n, is_float ? 100000 : 300000),
                              .prepare = prepare,
                              .run = run,
                              .peer = peer,
                              .arg = &l};
    kbench_measure(b, &kase);
}

void kbench_igemm(kbench *b) {
    static const size_t shapes[][3] = {
        {128, 768, 768}, {128, 768, 3072}, {128, 3072, 768}, {512, 1024, 1024}, {16, 1024, 1024}, /* BERT */
        {3136, 64, 64},  {3136, 64, 256},  {3136, 256, 64},  {784, 128, 512},   {784, 512, 128},  /* ResNet-50 1x1 */
        {784, 256, 512}, {196, 256, 1024}, {196, 1024, 256}, {196, 512, 1024},  {49, 512, 2048},
        {49, 2048, 512}, {1, 2048, 1000},  {1, 1024, 1024},  {4, 1024, 1024},   {1, 16, 16},
        {16, 16, 16},    {16, 64, 64},     {16, 479, 1024},  {384, 64, 384},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const size_t *s = shapes[i];
        measure(b, QDQ_DTYPE_U8, QDQ_DTYPE_S8, s[0], s[1], s[2], false);
        measure(b, QDQ_DTYPE_S8, QDQ_DTYPE_S8, s[0], s[1], s[2], false);
    }
    measure(b, QDQ_DTYPE_U8, QDQ_DTYPE_S8, 128, 768, 768, true);
    measure(b, QDQ_DTYPE_U8, QDQ_DTYPE_S8, 512, 1024, 1024, true);
    measure(b, QDQ_DTYPE_S8, QDQ_DTYPE_S8, 784, 256, 512, true);
    measure(b, QDQ_DTYPE_F32, QDQ_DTYPE_F32, 128, 768, 768, false);
    measure(b, QDQ_DTYPE_F32, QDQ_DTYPE_F32, 384, 64, 384, false);
    measure(b, QDQ_DTYPE_F32, QDQ_DTYPE_F32, 512, 1024, 1024, false);
    measure(b, QDQ_DTYPE_F32, QDQ_DTYPE_F32, 1, 1024, 1024, false);
}
