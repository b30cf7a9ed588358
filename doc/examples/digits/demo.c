/* Handwritten digits, read by one network in four ways: float, int8 fused, int8 node by node, int8 by the reference.
 *
 * usage: digits_demo FOLDER [REPEATS]        FOLDER holds digits_f32.onnx, digits_int8.onnx, test_images.npy, test_labels.npy
 *
 * Exit code 1 when a file is missing or malformed, when a way reads less than 95 % of the images right, or when fused and
 * node-by-node name different digits for more than 1 % of them. */
#include <inttypes.h>
#include <math.h>
#include <qdq/qdq.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SIDE = 8,
    PIXELS = SIDE * SIDE,
    CLASSES = 10,
    SHOWN_PER_ROW = 4,
    SHOWN = 8,
    MAX_WRONG_SHOWN = 2,
    DEFAULT_REPEATS = 200
};
enum { MOST_FILE_BYTES = 1 << 30, LEAST_ROUNDS = 3, MOST_RACE_MS = 6000 };
static const double LEAST_ACCURACY = 0.95, LEAST_AGREEMENT = 0.99;

/* ---- failing ---------------------------------------------------------------------------------------------------- */

static bool complain(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "digits_demo: ");
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    return false;
}

static bool check(qdq_status status, const qdq_error *err, const char *what) {
    return status == QDQ_OK || complain("%s: %s: %s", what, qdq_status_name(status), err->text);
}

/* ---- npy files: magic, version, a Python dict as text, data ------------------------------------------------------- */

/* The whole file; NULL after a complaint. */
static unsigned char *read_file(const char *path, size_t *bytes_out) {
    FILE *file = fopen(path, "rb");
    unsigned char *data = NULL;
    long size = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    if (size > 0 && size < MOST_FILE_BYTES && fseek(file, 0, SEEK_SET) == 0) data = malloc((size_t)size + 1);
    if (data != NULL && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    if (file != NULL) fclose(file);
    if (data == NULL) {
        complain("cannot read %s", path);
        return NULL;
    }
    *bytes_out = (size_t)size;
    return data;
}

/* The dims of "'shape': (360, 1, 8, 8)"; the rank, or -1. */
static int read_shape(const char *header, int64_t *dims, int max_dims) {
    const char *p = strstr(header, "'shape':");
    if (p == NULL || (p = strchr(p, '(')) == NULL) return -1;
    for (int n = 0;; n++) {
        p += 1 + strspn(p + 1, " ");
        if (*p == ')') return n;
        char *end;
        const long long value = strtoll(p, &end, 10);
        if (end == p || value < 0 || value > 1000000 || n == max_dims) return -1;
        dims[n] = value;
        p = end;
        if (*p == ')') return n + 1;
        if (*p != ',') return -1;
    }
}

/* Elements of a C-ordered array of `type` ("<f4") and `item` bytes, whose dims after the first are `rest`. Free with free(). */
static void *read_npy(const char *path, const char *type, size_t item, int64_t *n_out, const int64_t *rest,
                      int n_rest) {
    size_t bytes, header_at = 10, header_bytes;
    unsigned char *data = read_file(path, &bytes);
    char header[512] = {0}, descr[32];
    int64_t dims[8];
    if (data == NULL) return NULL;
    if (bytes < 12 || memcmp(data, "\x93NUMPY", 6) != 0) {
        complain("%s is no npy file", path);
        goto fail;
    }
    header_bytes = data[8] | (size_t)data[9] << 8;
    if (data[6] > 1) { /* from version 2 on, four bytes */
        header_bytes |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
        header_at = 12;
    }
    if (header_bytes >= sizeof header || header_bytes > bytes - header_at) {
        complain("%s: its header says that it has %zu bytes", path, header_bytes);
        goto fail;
    }
    memcpy(header, data + header_at, header_bytes);
    snprintf(descr, sizeof descr, "'descr': '%s'", type);
    if (strstr(header, descr) == NULL || strstr(header, "'fortran_order': False") == NULL) {
        complain("%s: expected %s in C order, found %s", path, type, header);
        goto fail;
    }
    size_t elems = 1;
    bool fits = read_shape(header, dims, 8) == n_rest + 1;
    for (int i = 0; fits && i <= n_rest; i++) {
        fits = i == 0 || dims[i] == rest[i - 1];
        elems *= fits ? (size_t)dims[i] : 0;
    }
    if (!fits || dims[0] == 0) {
        complain("%s: unexpected shape: %s", path, header);
        goto fail;
    }
    if ((bytes - header_at - header_bytes) / item != elems) {
        complain("%s: %zu bytes of data, expected %zu", path, bytes - header_at - header_bytes, elems * item);
        goto fail;
    }
    memmove(data, data + header_at + header_bytes, elems * item);
    *n_out = dims[0];
    return data;
fail:
    free(data);
    return NULL;
}

/* ---- ways of running the network ---------------------------------------------------------------------------------- */

typedef struct way {
    const char *label, *file;
    qdq_policy policy;
    bool reference;
    qdq_session *session;
    float *logits;
    int *digits;
    int64_t n_right;
    double ms; /* least CPU time of a run over all images */
} way;

enum { FLOAT_FUSED, INT8_FUSED, INT8_NODES, INT8_REFERENCE, N_WAYS };

/* CLOCK_MONOTONIC, or CLOCK_PROCESS_CPUTIME_ID: work done, whatever else the machine does meanwhile. */
static double now_ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool expect_port(const char *what, const qdq_tensor_desc *desc, int32_t ndims, const int64_t *dims) {
    bool same = desc->dtype == QDQ_DTYPE_F32 && desc->ndims == ndims;
    for (int32_t i = 0; same && i < ndims; i++)
        same = desc->dims[i] == dims[i];
    return same || complain("the model's %s is not what the demo feeds (f32, rank %d, batch %" PRId64 ")", what, ndims,
                            dims[0]);
}

static qdq_session *open_session(const char *path, int64_t batch, qdq_engine *engine,
                                 const qdq_session_options *options) {
    const qdq_dim_binding bind = {"N", batch};
    const qdq_onnx_options load = {.struct_bytes = sizeof load, .dims = &bind, .n_dims = 1};
    const int64_t in_dims[] = {batch, 1, SIDE, SIDE}, out_dims[] = {batch, CLASSES};
    qdq_error err = {0};
    qdq_graph *graph = NULL;
    qdq_session *session = NULL;
    qdq_tensor_desc in, out;
    bool ok = check(qdq_onnx_load_file(path, &load, &graph, &err), &err, "cannot load the model") &&
              check(qdq_session_create(graph, engine, options, &session, &err), &err, path);
    if (ok && (qdq_session_n_inputs(session) != 1 || qdq_session_n_outputs(session) != 1))
        ok = complain("%s: expected one input and one output", path);
    ok = ok && check(qdq_session_input_desc(session, 0, &in, NULL, &err), &err, path) &&
         check(qdq_session_output_desc(session, 0, &out, NULL, &err), &err, path) &&
         expect_port("input", &in, 4, in_dims) && expect_port("output", &out, 2, out_dims);
    qdq_graph_destroy(&graph);
    if (!ok) qdq_session_destroy(&session);
    return session;
}

static bool run_once(way *w, const float *images) {
    const void *in = images;
    void *out = w->logits;
    qdq_error err = {0};
    const double start = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    const qdq_status status = qdq_session_run(w->session, &in, 1, &out, 1, &err);
    const double ms = now_ms(CLOCK_PROCESS_CPUTIME_ID) - start;
    if (ms < w->ms) w->ms = ms;
    return check(status, &err, w->label);
}

static void read_answers(way *w, const int64_t *labels, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float *logits = w->logits + i * CLASSES;
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (logits[c] > logits[best]) best = c;
        w->digits[i] = best;
        w->n_right += best == labels[i];
    }
}

static bool open_way(way *w, const char *folder, qdq_engine *engine, const float *images, const int64_t *labels,
                     int64_t n) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, w->file) >= (int)sizeof path)
        return complain("the name of the folder is too long");
    const qdq_session_options options = {
        .struct_bytes = sizeof options, .policy = w->policy, .reference = w->reference};
    w->session = open_session(path, n, engine, &options);
    w->logits = calloc((size_t)n * CLASSES, sizeof *w->logits);
    w->digits = calloc((size_t)n, sizeof *w->digits);
    w->ms = INFINITY;
    if (w->session == NULL) return false;
    if (w->logits == NULL || w->digits == NULL) return complain("out of memory");
    if (!run_once(w, images)) return false;
    read_answers(w, labels, n);
    return true;
}

/* The ways take turns, so that whatever else the machine does hits them alike. The reference has had its one run. Gives the
 * number of rounds: `repeats`, or what fits into the time; 0 after a complaint. */
static int race(way *ways, const float *images, int repeats) {
    const double end = now_ms(CLOCK_MONOTONIC) + MOST_RACE_MS;
    int rounds = 0;
    while (rounds < repeats && (rounds < LEAST_ROUNDS || now_ms(CLOCK_MONOTONIC) < end)) {
        for (int i = 0; i < INT8_REFERENCE; i++)
            if (!run_once(&ways[i], images)) return 0;
        rounds++;
    }
    return rounds;
}

/* ---- showing ------------------------------------------------------------------------------------------------------ */

/* As many different digits as fit, as they come; in the last places, images that int8 reads wrong. */
static void choose_images(const way *fused, const int64_t *labels, int64_t n, int64_t *chosen) {
    bool seen[CLASSES] = {false};
    int n_wrong = 0, count = 0;
    for (int64_t i = 0; i < n && n_wrong < MAX_WRONG_SHOWN; i++)
        if (fused->digits[i] != labels[i]) chosen[SHOWN - ++n_wrong] = i;
    for (int64_t i = 0; i < n && count < SHOWN - n_wrong; i++)
        if (fused->digits[i] == labels[i] && !seen[fused->digits[i]]) {
            seen[fused->digits[i]] = true;
            chosen[count++] = i;
        }
    while (count < SHOWN - n_wrong) /* fewer images than places */
        chosen[count++] = 0;
}

static void print_images(const way *ways, const float *images, const int64_t *labels, const int64_t *chosen) {
    static const char shades[] = " .:-=+*#%@"; /* ink, two characters a pixel */
    for (int row = 0; row < SHOWN; row += SHOWN_PER_ROW) {
        for (int y = 0; y < SIDE; y++) {
            for (int k = row; k < row + SHOWN_PER_ROW; k++) {
                printf("  ");
                for (int x = 0; x < SIDE; x++) {
                    const float ink = images[chosen[k] * PIXELS + y * SIDE + x];
                    const int level = (int)(fminf(fmaxf(ink, 0.0f), 1.0f) * 9.0f + 0.5f);
                    printf("%c%c", shades[level], shades[level]);
                }
                printf("    ");
            }
            printf("\n");
        }
        for (int k = row; k < row + SHOWN_PER_ROW; k++) {
            const int64_t i = chosen[k];
            const int said = ways[INT8_FUSED].digits[i];
            printf("  is %" PRId64 ", read %d%-10s", labels[i], said, said == labels[i] ? "" : " WRONG");
        }
        printf("\n\n");
    }
}

static void print_accuracy(const way *ways, int64_t n) {
    const double slow = ways[INT8_NODES].ms;
    printf("  %-24s %12s %10s %14s %12s\n", "way", "right", "accuracy", "ms per batch", "speed");
    for (int i = 0; i < N_WAYS; i++) {
        const way *w = &ways[i];
        char right[64];
        snprintf(right, sizeof right, "%" PRId64 " of %" PRId64, w->n_right, n);
        printf("  %-24s %12s %8.2f %% %14.3f %11.2fx\n", w->label, right, 100.0 * (double)w->n_right / (double)n, w->ms,
               slow / w->ms);
    }
}

static int64_t n_same_digits(const way *a, const way *b, int64_t n) {
    int64_t same = 0;
    for (int64_t i = 0; i < n; i++)
        same += a->digits[i] == b->digits[i];
    return same;
}

static void print_agreement(const way *a, const way *b, const char *what, int64_t n) {
    int64_t equal = 0;
    double most = 0.0;
    for (int64_t i = 0; i < n * CLASSES; i++) {
        const double d = fabs((double)a->logits[i] - (double)b->logits[i]);
        equal += d == 0.0;
        if (d > most) most = d;
    }
    printf("  fused and %-13s same digit for %" PRId64 " of %" PRId64 " images, same logit for %" PRId64 " of %" PRId64
           ", largest difference %.3g\n",
           what, n_same_digits(a, b, n), n, equal, n * CLASSES, most);
}

/* "DequantizeLinear;DequantizeLinear;Convolution;QuantizeLinear" -> "2 Dq Convolution Q" */
static void shorten_ops(const char *ops, char *out, size_t size) {
    size_t n = 0;
    out[0] = '\0';
    while (*ops != '\0') {
        const size_t length = strcspn(ops, ";");
        int times = 0;
        const char *at = ops;
        do {
            times++;
            at += length + (at[length] == ';');
        } while (strcspn(at, ";") == length && strncmp(at, ops, length) == 0);
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)length, ops);
        if (strcmp(word, "DequantizeLinear") == 0 || strcmp(word, "Dequantize") == 0) snprintf(word, sizeof word, "Dq");
        if (strcmp(word, "QuantizeLinear") == 0 || strcmp(word, "Quantize") == 0) snprintf(word, sizeof word, "Q");
        const int put = times > 1 ? snprintf(out + n, size - n, "%s%d %s", n == 0 ? "" : " ", times, word)
                                  : snprintf(out + n, size - n, "%s%s", n == 0 ? "" : " ", word);
        if (put < 0 || (size_t)put >= size - n) return;
        n += (size_t)put;
        ops = at;
    }
}

/* Least time of each partition that runs, over the runs of a session with profile. NULL after a complaint. */
static double *time_partitions(way *w, const float *images, int repeats) {
    const size_t n_parts = qdq_session_n_parts(w->session);
    double *times = calloc(2 * n_parts + 1, sizeof *times), *total = times + n_parts;
    bool ok = times != NULL || complain("out of memory");
    for (size_t i = 0; ok && i < n_parts; i++)
        times[i] = INFINITY;
    for (int r = 0; ok && r < repeats; r++) {
        ok = run_once(w, images);
        for (size_t i = 0; ok && i < n_parts; i++) {
            qdq_session_part_info part;
            qdq_error err = {0};
            ok = check(qdq_session_part(w->session, i, &part, &err), &err, "profile");
            if (!ok) break;
            times[i] = fmin(times[i], part.total_ms - total[i]);
            total[i] = part.total_ms;
        }
    }
    if (ok) return times;
    free(times);
    return NULL;
}

static bool print_session(way *w, const float *images, int repeats) {
    double *times = time_partitions(w, images, repeats);
    bool ok = times != NULL;
    if (ok) printf("  %-10s %-20s %-22s %7s  %s\n", "main op", "pattern", "ops", "us", "computed by");
    for (size_t i = 0; ok && i < qdq_session_n_parts(w->session); i++) {
        qdq_session_part_info part;
        qdq_error err = {0};
        char ops[256];
        ok = check(qdq_session_part(w->session, i, &part, &err), &err, "partition");
        if (!ok || part.folded) continue;
        shorten_ops(part.ops, ops, sizeof ops);
        printf("  %-10.10s %-20s %-22s %7.1f  %s\n", part.name, part.pattern, ops, times[i] * 1e3, part.impl);
    }
    free(times);
    return ok;
}

static bool print_partitions(const char *folder, const float *images, int64_t n, int repeats, qdq_engine *engine) {
    char path[4096];
    snprintf(path, sizeof path, "%s/digits_int8.onnx", folder);
    const qdq_session_options options = {.struct_bytes = sizeof options, .profile = true};
    way w = {.label = "profiled", .ms = INFINITY};
    w.session = open_session(path, n, engine, &options);
    w.logits = calloc((size_t)n * CLASSES, sizeof *w.logits);
    bool ok = w.session != NULL && (w.logits != NULL || complain("out of memory"));
    ok = ok && print_session(&w, images, repeats);
    qdq_session_destroy(&w.session);
    free(w.logits);
    return ok;
}

static bool judge(const way *ways, int64_t n) {
    bool good = true;
    for (int i = 0; i < N_WAYS; i++)
        if ((double)ways[i].n_right < LEAST_ACCURACY * (double)n)
            good = complain("%s reads only %" PRId64 " of %" PRId64 " images right, expected %.0f %%", ways[i].label,
                            ways[i].n_right, n, 100.0 * LEAST_ACCURACY);
    const int64_t same = n_same_digits(&ways[INT8_FUSED], &ways[INT8_NODES], n);
    if ((double)same < LEAST_AGREEMENT * (double)n)
        good = complain("fused and node by node agree on %" PRId64 " of %" PRId64 " images only", same, n);
    return good;
}

static bool demo(const char *folder, int repeats, way *ways, qdq_engine *engine, const float *images,
                 const int64_t *labels, int64_t n) {
    int64_t chosen[SHOWN];
    for (int i = 0; i < N_WAYS; i++)
        if (!open_way(&ways[i], folder, engine, images, labels, n)) return false;
    const int rounds = race(ways, images, repeats);
    if (rounds == 0) return false;
    printf("libqdq %s: handwritten digits, a small convolutional network in ONNX, %" PRId64
           " images it has never seen\n\n",
           qdq_version(), n);
    choose_images(&ways[INT8_FUSED], labels, n, chosen);
    print_images(ways, images, labels, chosen);
    printf("What was fused (int8 model, batch %" PRId64 ", least of %d runs)\n", n, rounds);
    if (!print_partitions(folder, images, n, rounds, engine)) return false;
    printf("\nAnswers and speed (one batch of %" PRId64
           ", CPU time of one thread, least of %d runs in turns; speed: against node by node)\n",
           n, rounds);
    print_accuracy(ways, n);
    print_agreement(&ways[INT8_FUSED], &ways[INT8_NODES], "node by node:", n);
    print_agreement(&ways[INT8_FUSED], &ways[INT8_REFERENCE], "reference:", n);
    return judge(ways, n);
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: digits_demo FOLDER [REPEATS]\n");
        return EXIT_FAILURE;
    }
    const int repeats = argc == 3 ? atoi(argv[2]) : DEFAULT_REPEATS;
    if (repeats < 1) {
        complain("REPEATS is %s, expected 1 or more", argv[2]);
        return EXIT_FAILURE;
    }
    const int64_t image_dims[] = {1, SIDE, SIDE};
    char path[4096];
    int64_t n = 0, n_labels = 0;
    snprintf(path, sizeof path, "%s/test_images.npy", argv[1]);
    float *images = read_npy(path, "<f4", sizeof *images, &n, image_dims, 3);
    snprintf(path, sizeof path, "%s/test_labels.npy", argv[1]);
    int64_t *labels = images == NULL ? NULL : read_npy(path, "<i8", sizeof *labels, &n_labels, NULL, 0);
    bool ok = images != NULL && labels != NULL;
    if (ok && n != n_labels) ok = complain("%" PRId64 " images, but %" PRId64 " labels", n, n_labels);

    way ways[N_WAYS] = {
        [FLOAT_FUSED] = {.label = "float, fused", .file = "digits_f32.onnx"},
        [INT8_FUSED] = {.label = "int8, fused", .file = "digits_int8.onnx"},
        [INT8_NODES] = {.label = "int8, node by node", .file = "digits_int8.onnx", .policy = QDQ_POLICY_SINGLE},
        [INT8_REFERENCE] = {.label = "int8, reference (1 run)", .file = "digits_int8.onnx", .reference = true},
    };
    qdq_engine *engine = NULL;
    qdq_error err = {0};
    /* one thread: the network is so small that a second one is mostly waited for */
    const qdq_engine_options options = {.struct_bytes = sizeof options, .n_threads = 1};
    ok = ok && check(qdq_engine_create(&options, &engine, &err), &err, "engine");
    ok = ok && demo(argv[1], repeats, ways, engine, images, labels, n);
    for (int i = 0; i < N_WAYS; i++) {
        qdq_session_destroy(&ways[i].session);
        free(ways[i].logits);
        free(ways[i].digits);
    }
    qdq_engine_destroy(&engine);
    free(images);
    free(labels);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
