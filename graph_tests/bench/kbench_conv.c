/* Convolutions of the shapes that ResNet-50, ResNeXt-50, MobileNetV2 and EfficientNet are made of, and some of other kinds: sums, scales per channel, bias, ReLU, bytes. */
#include "bench_peer_conv.h"
#include "kbench.h"
#include "kernels/conv/conv.h"
#include "kernels/post/post.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PARTS = 8 };

typedef struct conv_case {
    qk_conv conv;
    qk_post post;
    qk_post_fn *finish;
    qk_post_args args;
    qk_conv_weights weights;
    bench_tensor tensors[4]; /* src, weights, bias, dst */
    void *packed, *terms[MAX_PARTS], *scratch[MAX_PARTS];
} conv_case;

static void *aligned(size_t bytes) {
    void *p = aligned_alloc(64, bytes / 64 * 64 + 64);
    if (!p) exit(1);
    return p;
}

/* The level decides how large things are: they are made here, and live until the next level. */
static qk_isa prepare(void *arg, int n_threads) {
    conv_case *c = arg;
    free(c->packed);
    for (int i = 0; i < MAX_PARTS; i++)
        free(c->scratch[i]), free(c->terms[i]), c->scratch[i] = c->terms[i] = NULL;
    if (!qk_conv_init(&c->conv)) exit(1);
    c->finish = qk_post_choose(&c->post, NULL);
    c->packed = aligned(c->conv.packed_bytes);
    for (int i = 0; i < n_threads && i < MAX_PARTS; i++)
        c->scratch[i] = aligned(c->conv.scratch_bytes), c->terms[i] = aligned(c->conv.terms_bytes);
    qk_conv_pack(&c->conv, &c->weights, c->packed);
    return qk_conv_isa(&c->conv);
}

static void finish(void *arg, void *sums, size_t stride, int64_t first, size_t n_pixels, int64_t channel,
                   size_t n_channels) {
    const conv_case *c = arg;
    c->finish(&c->post, &c->args, sums, stride, (size_t)first, n_pixels, (size_t)channel, n_channels);
}

static void run(void *arg, int part, int n_parts) {
    conv_case *c = arg;
    size_t n, first = kbench_part(c->conv.n_tasks, 1, part, n_parts, &n);
    qk_conv_run r = {
        .src = c->tensors[0].data, .packed = c->packed, .terms = c->terms[part], .finish = finish, .arg = arg};
    if (!c->conv.is_float) r.use_weights_zp = qk_conv_terms(&c->conv, c->packed, 0, NULL, 0, NULL, c->terms[part]);
    qk_plain plain;
    if (qk_post_plain(&c->post, &c->args, &plain) && qk_conv_plain(&c->conv, &plain, c->terms[part])) r.plain = &plain;
    if (n) qk_conv_run_tasks(&c->conv, &r, first, n, c->scratch[part]);
}

static bench_peer *peer(void *arg) {
    const conv_case *c = arg;
    const qk_conv *v = &c->conv;
    const bench_window window = {v->transposed,
                                 {v->stride[1], v->stride[2]},
                                 {v->dilation[1], v->dilation[2]},
                                 {v->pad_begin[1], v->pad_begin[2]}};
    return bench_peer_conv(&c->tensors[0], &c->tensors[1], &c->tensors[2], &c->tensors[3], &window);
}

static bench_tensor channels_last(void *data, qdq_dtype dtype, int64_t n, int64_t ch, int64_t h, int64_t w) {
    return (bench_tensor){
        .data = data, .dtype = dtype, .ndims = 4, .dims = {n, ch, h, w}, .strides = {h * w * ch, 1, w * ch, ch}};
}

/* Weights as networks have them: many small ones, few large ones, a standard deviation of a fifth of the range. */
static void *bell(kbench *b, size_t n) {
    enum { SUM = 12 };
    int8_t *w = kbench_buffer(b, n);
    uint32_t state = 12345;
    for (size_t i = 0; i < n; i++) {
        int32_t sum = 0;
        for (int k = 0; k < SUM; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (int32_t)(state >> 24) - 127;
        }
        sum /= 10;
        w[i] = (int8_t)(sum > 127 ? 127 : sum < -127 ? -127 : sum);
    }
    return w;
}

typedef struct shape {
    const char *net;
    int64_t groups, ic, oc, size, kernel, stride; /* channels of all groups */
    enum { OF_PLANES, DILATED, TRANSPOSED, OF_LINES } kind;
} shape;

/* What the case is: extents, and a name. */
static void describe(const shape *s, qdq_dtype src, qk_conv *c, char *name, size_t n_name) {
    static const char *const kinds[] = {"", "dilated ", "transposed ", "line "};
    const bool is_line = s->kind == OF_LINES, is_transposed = s->kind == TRANSPOSED;
    const int64_t dilation = s->kind == DILATED ? 2 : 1;
    const int64_t pad = is_transposed ? (s->kernel - s->stride) / 2 : dilation * (s->kernel - 1) / 2;
    const int64_t out = is_transposed ? s->size * s->stride : (s->size - 1) / s->stride + 1;
    const char *groups = s->groups == 1 ? "" : s->groups == s->ic ? "depthwise " : "groups ";
    const int h = is_line ? 1 : (int)s->size, kernel_h = is_line ? 1 : (int)s->kernel;
    *c = (qk_conv){.src = src,
                   .weights = src == QDQ_DTYPE_F32 ? QDQ_DTYPE_F32 : QDQ_DTYPE_S8,
                   .transposed = is_transposed,
                   .n = 1,
                   .groups = s->groups,
                   .ic = s->ic / s->groups,
                   .oc = s->oc / s->groups,
                   .in = {1, h, s->size},
                   .out = {1, is_line ? 1 : out, out},
                   .kernel = {1, kernel_h, s->kernel},
                   .stride = {1, is_line ? 1 : s->stride, s->stride},
                   .dilation = {1, is_line ? 1 : dilation, dilation},
                   .pad_begin = {0, is_line ? 0 : pad, pad},
                   .src_stride = s->ic};
    snprintf(name, n_name, "%s %s %s%s%dx%d s%d %dx%dx%d to %d", s->net, qdq_dtype_name(src), kinds[s->kind], groups,
             kernel_h, (int)s->kernel, (int)s->stride, h, (int)s->size, (int)s->ic, (int)s->oc);
}

static void measure(kbench *b, const shape *s, qdq_dtype src) {
    char name[96];
    qk_conv conv;
    describe(s, src, &conv, name, sizeof name);
    if (!kbench_wants(b, name)) return;
    const bool is_float = src == QDQ_DTYPE_F32;
    const int64_t ic = conv.ic, oc = conv.oc, taps = conv.kernel[1] * conv.kernel[2];
    const size_t n_src = (size_t)(conv.in[1] * conv.in[2] * s->ic);
    const size_t n_dst = (size_t)(conv.out[1] * conv.out[2] * s->oc);
    const size_t n_weights = (size_t)(s->oc * ic * taps);
    float *scales = kbench_floats(b, (size_t)s->oc), *bias = kbench_floats(b, (size_t)s->oc);
    for (int64_t i = 0; i < s->oc; i++) { /* results that use the range */
        scales[i] = 0.0004f;
        bias[i] += 60.0f;
    }
    void *data = is_float ? (void *)kbench_floats(b, n_src) : kbench_buffer(b, n_src);
    void *weights = is_float ? (void *)kbench_floats(b, n_weights) : bell(b, n_weights);
    conv_case c = {.conv = conv,
                   .post = {.acc = is_float ? QDQ_DTYPE_F32 : QDQ_DTYPE_S32,
                            .dst = is_float ? QDQ_DTYPE_F32 : QDQ_DTYPE_U8,
                            .scale = is_float ? QK_POST_SCALE_NONE : QK_POST_SCALE_COL,
                            .bias = QDQ_DTYPE_F32,
                            .n_steps = 1,
                            .steps = {{.op = QK_POST_RELU}}}};
    c.weights = (qk_conv_weights){weights, oc * ic * taps, ic * taps, taps, {0, conv.kernel[2], 1}};
    c.tensors[0] = channels_last(data, src, 1, s->ic, conv.in[1], conv.in[2]);
    c.tensors[3] =
        channels_last(kbench_buffer(b, n_dst * (is_float ? 4 : 1)), c.post.dst, 1, s->oc, conv.out[1], conv.out[2]);
    c.tensors[2] = (bench_tensor){.data = bias, .dtype = QDQ_DTYPE_F32, .ndims = 1, .dims = {s->oc}, .strides = {1}};
    bench_tensor *w = &c.tensors[1];
    *w = (bench_tensor){.data = weights, .dtype = c.conv.weights};
    if (s->groups > 1) {
        w->dims[w->ndims] = s->groups;
        w->strides[w->ndims++] = oc * ic * taps;
    }
    const int64_t dims[] = {oc, ic, conv.kernel[1], conv.kernel[2]};
    const int64_t strides[] = {ic * taps, taps, conv.kernel[2], 1};
    for (int i = 0; i < 4; i++) {
        w->dims[w->ndims] = dims[i];
        w->strides[w->ndims++] = strides[i];
    }
    if (!is_float) {
        w->scales = scales;
        w->scale_mask = s->groups > 1 ? 3 : 1;
    }
    c.args = (qk_post_args){
        .scale_common = 1.0f, .scale = scales, .bias = bias, .dst = c.tensors[3].data, .dst_stride = (ptrdiff_t)s->oc};
    const bool is_dw = s->groups == s->ic;
    const kbench_case kase = {.kernel = is_float ? (is_dw ? "conv_dw_float" : "conv_tile_float")
                                        : is_dw  ? "conv_dw"
                                                 : "conv_tile",
                              .name = name,
                              .read_bytes = n_src * (is_float ? 4 : 1) + n_weights,
                              .write_bytes = n_dst * (is_float ? 4 : 1),
                              .products = is_float ? KBENCH_FLOAT32 : KBENCH_INT8,
                              /* of a transposed one, each input goes to all taps */
                              .macs = conv.transposed ? (double)(n_src * (size_t)(oc * taps))
                                                      : (double)(n_dst * (size_t)(ic * taps)),
                              .prepare = prepare,
                              .run = run,
                              .peer = peer,
                              .arg = &c};
    kbench_measure(b, &kase);
    free(c.packed);
    for (int i = 0; i < MAX_PARTS; i++)
        free(c.scratch[i]), free(c.terms[i]);
}

void kbench_conv(kbench *b) {
    static const shape shapes[] = {
        {"resnet", 1, 3, 64, 224, 7, 2, OF_PLANES},           {"resnet", 1, 64, 64, 56, 1, 1, OF_PLANES},
        {"resnet", 1, 64, 64, 56, 3, 1, OF_PLANES},           {"resnet", 1, 64, 256, 56, 1, 1, OF_PLANES},
        {"resnet", 1, 256, 64, 56, 1, 1, OF_PLANES},          {"resnet", 1, 256, 128, 56, 1, 1, OF_PLANES},
        {"resnet", 1, 128, 128, 56, 3, 2, OF_PLANES},         {"resnet", 1, 256, 512, 56, 1, 2, OF_PLANES},
        {"resnet", 1, 128, 128, 28, 3, 1, OF_PLANES},         {"resnet", 1, 128, 512, 28, 1, 1, OF_PLANES},
        {"resnet", 1, 512, 128, 28, 1, 1, OF_PLANES},         {"resnet", 1, 256, 256, 14, 3, 1, OF_PLANES},
        {"resnet", 1, 256, 1024, 14, 1, 1, OF_PLANES},        {"resnet", 1, 1024, 256, 14, 1, 1, OF_PLANES},
        {"resnet", 1, 512, 512, 7, 3, 1, OF_PLANES},          {"resnet", 1, 512, 2048, 7, 1, 1, OF_PLANES},
        {"resnet", 1, 2048, 512, 7, 1, 1, OF_PLANES},         {"mobilenet", 1, 3, 32, 224, 3, 2, OF_PLANES},
        {"mobilenet", 32, 32, 32, 112, 3, 1, OF_PLANES},      {"mobilenet", 1, 32, 16, 112, 1, 1, OF_PLANES},
        {"mobilenet", 1, 16, 96, 112, 1, 1, OF_PLANES},       {"mobilenet", 96, 96, 96, 112, 3, 2, OF_PLANES},
        {"mobilenet", 1, 96, 24, 56, 1, 1, OF_PLANES},        {"mobilenet", 1, 24, 144, 56, 1, 1, OF_PLANES},
        {"mobilenet", 144, 144, 144, 56, 3, 1, OF_PLANES},    {"mobilenet", 144, 144, 144, 56, 3, 2, OF_PLANES},
        {"mobilenet", 1, 144, 32, 28, 1, 1, OF_PLANES},       {"mobilenet", 1, 32, 192, 28, 1, 1, OF_PLANES},
        {"mobilenet", 192, 192, 192, 28, 3, 1, OF_PLANES},    {"mobilenet", 1, 192, 64, 14, 1, 1, OF_PLANES},
        {"mobilenet", 1, 64, 384, 14, 1, 1, OF_PLANES},       {"mobilenet", 384, 384, 384, 14, 3, 1, OF_PLANES},
        {"mobilenet", 1, 384, 96, 14, 1, 1, OF_PLANES},       {"mobilenet", 576, 576, 576, 14, 3, 2, OF_PLANES},
        {"mobilenet", 1, 576, 160, 7, 1, 1, OF_PLANES},       {"mobilenet", 1, 160, 960, 7, 1, 1, OF_PLANES},
        {"mobilenet", 960, 960, 960, 7, 3, 1, OF_PLANES},     {"mobilenet", 1, 960, 320, 7, 1, 1, OF_PLANES},
        {"mobilenet", 1, 320, 1280, 7, 1, 1, OF_PLANES},      {"resnext", 32, 128, 128, 56, 3, 1, OF_PLANES},
        {"efficientnet", 240, 240, 240, 28, 5, 1, OF_PLANES},
    };
    static const shape others[] = {
        {"resnext", 32, 256, 256, 56, 3, 2, OF_PLANES},       {"resnext", 32, 256, 256, 28, 3, 1, OF_PLANES},
        {"resnext", 32, 512, 512, 14, 3, 1, OF_PLANES},       {"resnext", 32, 1024, 1024, 7, 3, 1, OF_PLANES},
        {"efficientnet", 144, 144, 144, 56, 5, 2, OF_PLANES}, {"efficientnet", 672, 672, 672, 14, 5, 1, OF_PLANES},
        {"efficientnet", 672, 672, 672, 14, 5, 2, OF_PLANES}, {"other", 1, 256, 256, 28, 3, 1, DILATED},
        {"other", 1, 256, 128, 28, 2, 2, TRANSPOSED},         {"other", 1, 256, 128, 16, 4, 2, TRANSPOSED},
        {"other", 1, 256, 256, 1500, 3, 1, OF_LINES},
    };
    static const qdq_dtype types[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_F32};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        measure(b, &shapes[i], QDQ_DTYPE_U8);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i += 2)
        measure(b, &shapes[i], QDQ_DTYPE_S8);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i += 6)
        measure(b, &shapes[i], QDQ_DTYPE_F32);
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            measure(b, &others[i], types[t]);
}
