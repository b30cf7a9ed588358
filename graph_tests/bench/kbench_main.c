/* qdq-kbench; see kbench.h and doc/benchmarks.md. */
#include "kbench_limit.h"
#include "kbench_report.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREAD_COUNTS = 8 };

typedef struct block {
    struct block *next;
} block;

struct kbench {
    const char *family, *wanted_family, *match, *json_path, *svg_path;
    bool all_levels, head_is_printed;
    int threads[MAX_THREAD_COUNTS], n_threads;
    double min_seconds;
    uint64_t seed;    /* of the next buffer */
    block *blocks;    /* the buffers of the present family */
    char *streams[2]; /* of the limit: read, written */
    size_t stream_bytes[2];
    kbench_result *results;
    size_t n_results, max_results;
};

static void fail(const char *what) {
    fprintf(stderr, "qdq-kbench: %s\n", what);
    exit(1);
}

/* ---- what families ask for ---- */

bool kbench_wants(const kbench *b, const char *name) {
    return strstr(name, b->match) != NULL;
}

/* Buffers begin at different offsets in their pages: at the same one, loads would wait for stores 4096 bytes away. */
static char *allocate(kbench *b, size_t bytes) {
    static size_t colour;
    const size_t offset = 64 + 64 * (colour = (colour + 13) % 48), whole = (bytes + offset + 2 * 4096) / 4096 * 4096;
    block *p = aligned_alloc(4096, whole);
    if (!p) fail("out of memory");
    p->next = b->blocks;
    b->blocks = p;
    return (char *)p + offset;
}

void *kbench_buffer(kbench *b, size_t bytes) {
    uint8_t *p = (uint8_t *)allocate(b, bytes);
    uint64_t state = b->seed += 42;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        p[i] = (uint8_t)(state >> 56);
    }
    return p;
}

float *kbench_floats(kbench *b, size_t n) {
    float *p = (float *)(void *)allocate(b, n * sizeof *p);
    uint64_t state = b->seed += 42;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        p[i] = 0.01f * (float)((int)(state >> 56) - 128);
    }
    return p;
}

size_t kbench_worth(size_t work, size_t grain) {
    return work / grain ? work / grain : 1;
}

size_t kbench_part(size_t n, size_t grain, int part, int n_parts, size_t *n_out) {
    const size_t grains = (n + grain - 1) / grain, each = (grains + (size_t)n_parts - 1) / (size_t)n_parts * grain;
    const size_t first = (size_t)part * each < n ? (size_t)part * each : n;
    *n_out = n - first < each ? n - first : each;
    return first;
}

/* ---- time ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One of the things that take turns. */
enum { MAX_SAMPLES = 400 };

typedef struct subject {
    kbench_run_fn *run; /* parts on threads of their own; NULL: the peer, which makes its own */
    void *arg;
    int parts;
    size_t repeats;
    double scale; /* of its time: what it does may not be exactly as much as the case */
    double samples[MAX_SAMPLES], spent;
    int n;
} subject;

static void run_once(const subject *s) {
    if (!s->run)
        bench_peer_run(s->arg);
    else if (s->parts == 1)
        s->run(s->arg, 0, 1);
    else
#pragma omp parallel num_threads(s->parts)
        s->run(s->arg, omp_get_thread_num(), s->parts);
}

/* The others have emptied the caches: a short case runs once before it counts. */
static void sample(subject *s) {
    if (s->repeats > 1) run_once(s);
    const double start = now();
    for (size_t i = 0; i < s->repeats; i++)
        run_once(s);
    const double spent = now() - start;
    s->samples[s->n++] = spent / (double)s->repeats * s->scale;
    s->spent += spent;
}

static void calibrate(subject *s) {
    const double enough = 100e-6;
    s->repeats = 1;
    run_once(s);
    double start = now();
    run_once(s);
    const double once = now() - start;
    if (once < enough) s->repeats = (size_t)(enough / (once < 1e-8 ? 1e-8 : once)) + 1;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(subject *s) {
    qsort(s->samples, (size_t)s->n, sizeof *s->samples, ascending);
    return s->n ? s->samples[s->n / 2] : 0.0;
}

static void take_turns(const kbench *b, subject *const *subjects, int n) {
    for (int k = 0; k < n; k++)
        calibrate(subjects[k]);
    for (bool again = true; again;) {
        again = false;
        for (int k = 0; k < n; k++) {
            subject *s = subjects[k];
            if (s->n >= MAX_SAMPLES || (s->n >= 5 && s->spent >= b->min_seconds) || s->spent > 0.2) continue;
            sample(s);
            again = true;
        }
    }
}

/* ---- the limit ---- */

typedef struct stream_job {
    kbench_stream_fn *fn;
    const kbench_mix *mix;
    const char *src;
    char *dst;
    size_t steps;
} stream_job;

static void run_stream(void *arg, int part, int n_parts) {
    const stream_job *j = arg;
    size_t n, first = kbench_part(j->steps, 4, part, n_parts, &n);
    j->fn(j->src + first * j->mix->reads * 64, j->dst + first * j->mix->writes * 64, n);
}

typedef struct multiply_job {
    kbench_multiply_fn *fn;
    size_t n;
} multiply_job;

static void run_multiply(void *arg, int part, int n_parts) {
    const multiply_job *j = arg;
    (void)part;
    (void)j->fn(j->n / (size_t)n_parts);
}

static char *stream_buffer(kbench *b, int which, size_t bytes) {
    if (bytes > b->stream_bytes[which]) {
        free(b->streams[which]);
        b->streams[which] = aligned_alloc(4096, (bytes / 4096 + 3) * 4096);
        if (!b->streams[which]) fail("out of memory");
        memset(b->streams[which], 1, bytes + 4096);
        b->stream_bytes[which] = bytes;
    }
    return b->streams[which] + (which ? 1088 : 0);
}

static stream_job stream_of(kbench *b, size_t read_bytes, size_t write_bytes, bool streaming) {
    const kbench_mix *mix = kbench_mix_of(read_bytes, write_bytes);
    const size_t line = 64 * (mix->reads + mix->writes), steps = ((read_bytes + write_bytes) / line + 4) / 4 * 4;
    return (stream_job){streaming ? mix->streaming : mix->plain, mix, stream_buffer(b, 0, steps * mix->reads * 64),
                        stream_buffer(b, 1, steps * mix->writes * 64), steps};
}

static double stream_scale(const stream_job *j, size_t bytes) {
    return (double)bytes / (double)(j->steps * 64 * (j->mix->reads + j->mix->writes));
}

/* ---- a case ---- */

static void keep(kbench *b, const kbench_result *r) {
    if (b->n_results == b->max_results) {
        b->max_results = b->max_results ? 2 * b->max_results : 64;
        b->results = realloc(b->results, b->max_results * sizeof *b->results);
        if (!b->results) fail("out of memory");
    }
    b->results[b->n_results++] = *r;
    if (!b->head_is_printed) kbench_print_head(stdout, b->family);
    b->head_is_printed = true;
    kbench_print_row(stdout, r);
}

/* Under the present cap and number of OpenMP threads. */
static void measure_one(kbench *b, const kbench_case *c, qk_isa isa, int threads) {
    int parts = c->max_parts && c->max_parts < (size_t)threads ? (int)c->max_parts : threads;
    kbench_result r = {.family = b->family,
                       .isa = isa,
                       .threads = threads,
                       .bytes = c->read_bytes + c->write_bytes,
                       .macs = c->products == KBENCH_NONE ? 0.0 : c->macs};
    snprintf(r.name, sizeof r.name, "%s", c->name);
    static subject own, floor, peer, limits[2]; /* large */
    subject *turns[5];
    int n = 0;
    turns[n++] = &own;
    own = (subject){.run = c->run, .arg = c->arg, .parts = parts, .scale = 1.0};
    if (c->floor) {
        floor = (subject){.run = c->floor, .arg = c->arg, .parts = parts, .scale = 1.0};
        turns[n++] = &floor;
    }
    bench_peer *made = c->peer ? c->peer(c->arg) : NULL;
    if (made) {
        peer = (subject){.arg = made, .scale = 1.0};
        turns[n++] = &peer;
        snprintf(r.peer_name, sizeof r.peer_name, "%s", bench_peer_name(made));
    }
    stream_job streams[2];
    multiply_job multiply = {0};
    const int n_limits = c->products != KBENCH_NONE ? 1 : c->write_bytes ? 2 : 1;
    for (int k = 0; k < n_limits; k++) {
        if (c->products != KBENCH_NONE) {
            multiply.fn = kbench_multiply_of(c->products, isa);
            multiply.n = 12 * 4096 * (size_t)parts;
            const double done = (double)multiply.n * (double)multiply.fn(0);
            limits[k] = (subject){.run = run_multiply, .arg = &multiply, .parts = parts, .scale = c->macs / done};
        } else {
            streams[k] = stream_of(b, c->read_bytes, c->write_bytes, k == 1);
            limits[k] = (subject){
                .run = run_stream, .arg = &streams[k], .parts = parts, .scale = stream_scale(&streams[k], r.bytes)};
        }
        turns[n++] = &limits[k];
    }
    take_turns(b, turns, n);
    r.own = median(&own);
    r.floor = c->floor ? median(&floor) : 0.0;
    r.peer = made ? median(&peer) : 0.0;
    r.limit = median(&limits[0]);
    if (n_limits == 2) {
        const double streaming = median(&limits[1]);
        r.limit_streams = streaming < r.limit;
        if (r.limit_streams) r.limit = streaming;
    }
    bench_peer_destroy(&made);
    keep(b, &r);
}

void kbench_measure(kbench *b, const kbench_case *c) {
    if (!kbench_wants(b, c->name)) return;
    const qk_isa cap = qk_isa_cap();
    qk_isa last = QK_ISA_COUNT;
    for (int level = (int)cap; level >= 0; level--) {
        if (!qk_isa_host_has((qk_isa)level)) continue;
        qk_isa_set_cap((qk_isa)level);
        const qk_isa isa = c->prepare(c->arg, b->threads[0]);
        if (isa == last) continue; /* the level has no kernel of its own */
        last = isa;
        for (int t = 0; t < b->n_threads; t++) {
            omp_set_num_threads(b->threads[t]);
            (void)c->prepare(c->arg, b->threads[t]);
            measure_one(b, c, isa, b->threads[t]);
        }
        if (!b->all_levels) break;
    }
    qk_isa_set_cap(cap);
}

/* ---- the limits themselves ---- */

static void no_work(void *arg, int part, int n_parts) {
    (void)arg, (void)part, (void)n_parts;
}

static void measure_limits(kbench *b) {
    b->family = "limits";
    const size_t sizes[] = {qk_isa_l2_bytes() / 2, (size_t)128 << 20};
    static const struct { size_t reads, writes; } mixes[] = {{1, 0}, {1, 1}, {4, 1}, {1, 4}};
    printf("\n| limit | threads | L2, plain | L2, streaming | memory, plain | memory, streaming "
           "|\n|---|--:|--:|--:|--:|--:|\n");
    for (size_t m = 0; m < sizeof mixes / sizeof mixes[0]; m++)
        for (int t = 0; t < b->n_threads; t++) {
            printf("| read %zu, write %zu: GB/s | %d |", mixes[m].reads, mixes[m].writes, b->threads[t]);
            for (int k = 0; k < 4; k++) {
                const size_t bytes = sizes[k / 2] * (size_t)(k < 2 ? b->threads[t] : 1);
                const size_t share = bytes / (mixes[m].reads + mixes[m].writes);
                stream_job j = stream_of(b, share * mixes[m].reads, share * mixes[m].writes, k % 2 == 1);
                static subject s;
                subject *turn = &s;
                s = (subject){.run = run_stream, .arg = &j, .parts = b->threads[t], .scale = stream_scale(&j, bytes)};
                take_turns(b, &turn, 1);
                printf(" %.1f |", (double)bytes / median(&s) * 1e-9);
            }
            printf("\n");
        }
    printf("\n| limit | level | threads | GMAC/s |\n|---|---|--:|--:|\n");
    for (int p = KBENCH_INT8; p <= KBENCH_FLOAT32; p++) {
        kbench_multiply_fn *last = NULL;
        for (int level = (int)qk_isa_cap(); level >= 0; level--) {
            kbench_multiply_fn *fn = kbench_multiply_of((kbench_products)p, (qk_isa)level);
            if (!qk_isa_host_has((qk_isa)level) || fn == last) continue;
            last = fn;
            for (int t = 0; t < b->n_threads; t++) {
                multiply_job j = {fn, 12 * 4096 * (size_t)b->threads[t]};
                static subject s;
                subject *turn = &s;
                s = (subject){.run = run_multiply, .arg = &j, .parts = b->threads[t], .scale = 1.0};
                take_turns(b, &turn, 1);
                printf("| %s | %s | %d | %.1f |\n", p == KBENCH_INT8 ? "8-bit products" : "f32 products",
                       qk_isa_name((qk_isa)level), b->threads[t], (double)j.n * (double)fn(0) / median(&s) * 1e-9);
            }
        }
    }
    /* What asking the threads costs: half of the work of a case that is worth them. */
    static subject s;
    subject *turn = &s;
    for (int t = 0; t < b->n_threads; t++) {
        s = (subject){.run = no_work, .parts = b->threads[t], .scale = 1.0};
        take_turns(b, &turn, 1);
        if (b->threads[t] > 1)
            printf("\nA region of %d threads that does nothing: %.2f us.\n", b->threads[t], median(&s) * 1e6);
    }
}

/* ---- the program ---- */

static const struct {
    const char *name;
    void (*run)(kbench *);
} families[] = {
#define KBENCH(family) {#family, kbench_##family},
#include "kbench.def"
#undef KBENCH
};

static const char usage[] =
    "usage: qdq-kbench [OPTION...]\n"
    "  --family=NAME,... these families only: limits"
#define KBENCH(family) " " #family
#include "kbench.def"
#undef KBENCH
    "\n"
    "  --match=WORD      cases whose name contains WORD\n"
    "  --threads=N[,N]   numbers of threads (1,2)\n"
    "  --min-ms=MS       time for each figure, five runs at least (10)\n"
    "  --levels=all      every level of instruction set that has a kernel; otherwise the best under QDQ_MAX_ISA\n"
    "  --json=FILE       the figures, too\n"
    "  --svg=FILE        a chart of them, too\n";

static const char *value_of(const char *arg, const char *option) {
    const size_t n = strlen(option);
    return strncmp(arg, option, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

static bool parse(kbench *b, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *v;
        if ((v = value_of(argv[i], "--family"))) {
            b->wanted_family = v;
        } else if ((v = value_of(argv[i], "--match"))) {
            b->match = v;
        } else if ((v = value_of(argv[i], "--threads"))) {
            for (b->n_threads = 0; *v && b->n_threads < MAX_THREAD_COUNTS; b->n_threads++) {
                char *end;
                const long n = strtol(v, &end, 10);
                if (n < 1 || n > 1024 || end == v || (*end && *end != ',')) return false;
                b->threads[b->n_threads] = (int)n;
                v = *end ? end + 1 : end;
            }
            if (*v || b->n_threads == 0) return false;
        } else if ((v = value_of(argv[i], "--min-ms"))) {
            b->min_seconds = strtod(v, NULL) * 1e-3;
        } else if ((v = value_of(argv[i], "--levels"))) {
            if (strcmp(v, "all") != 0 && strcmp(v, "best") != 0) return false;
            b->all_levels = strcmp(v, "all") == 0;
        } else if ((v = value_of(argv[i], "--json"))) {
            b->json_path = v;
        } else if ((v = value_of(argv[i], "--svg"))) {
            b->svg_path = v;
        } else {
            return false;
        }
    }
    return true;
}

static void machine_name(char *out, size_t n) {
    char line[256];
    snprintf(out, n, "unknown CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f) return;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(out, n, "%s", strchr(line, ':') + 2);
            break;
        }
    fclose(f);
}

static void write_file(const kbench *b, const char *path, const char *machine,
                       void (*print)(FILE *, const char *, const kbench_result *, size_t)) {
    if (!path) return;
    FILE *f = fopen(path, "w");
    if (!f) fail("cannot write the file");
    print(f, machine, b->results, b->n_results);
    if (fclose(f) != 0) fail("cannot write the file");
}

static bool is_wanted(const kbench *b, const char *family) {
    const size_t n = strlen(family);
    for (const char *p = b->wanted_family; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, family, n) == 0 && (p[n] == '\0' || p[n] == ',')) return true;
    }
    return !b->wanted_family;
}

int main(int argc, char **argv) {
    static kbench b = {.match = "", .threads = {1, 2}, .n_threads = 2, .min_seconds = 0.01};
    if (!parse(&b, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    char machine[200], cpu[128];
    machine_name(cpu, sizeof cpu);
    snprintf(machine, sizeof machine, "%s, %d cores, level %s", cpu, omp_get_num_procs(), qk_isa_name(qk_isa_cap()));
    printf("%s; L1 %zu KiB, L2 %zu KiB; medians\n", machine, qk_isa_l1d_bytes() >> 10, qk_isa_l2_bytes() >> 10);
    bool any = false;
    if (is_wanted(&b, "limits") && !*b.match) {
        measure_limits(&b);
        any = true;
    }
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (!is_wanted(&b, families[i].name)) continue;
        any = true;
        b.family = families[i].name;
        b.head_is_printed = false;
        families[i].run(&b);
        while (b.blocks) {
            block *p = b.blocks;
            b.blocks = p->next;
            free(p);
        }
    }
    write_file(&b, b.json_path, machine, kbench_print_json);
    write_file(&b, b.svg_path, machine, kbench_print_svg);
    for (int k = 0; k < 2; k++)
        free(b.streams[k]);
    free(b.results);
    if (!any) fputs(usage, stderr);
    return any ? 0 : 2;
}
