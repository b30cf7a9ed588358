/* How a case is measured, and the limits. */
#include "kbench_impl.h"
#include "kbench_limit.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One of the things that take turns. */
enum { MAX_SUBJECTS = 6, LEAST_ROUNDS = 5, MAX_ROUNDS = 400 };

typedef struct subject {
    kbench_run_fn *run; /* parts on threads of their own; NULL: the peer, which makes its own */
    void *arg;
    int parts;
    size_t repeats;
    double scale;               /* of its time: what it does may not be exactly as much as the case */
    double samples[MAX_ROUNDS]; /* of each round; 0: it was left out */
    double spent;
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

/* The others have filled the caches, with data of the same case or with their own: it runs once before it counts. */
static void sample(subject *s, int round) {
    run_once(s);
    const double start = now();
    for (size_t i = 0; i < s->repeats; i++)
        run_once(s);
    const double spent = now() - start;
    s->samples[round] = spent / (double)s->repeats * s->scale;
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

/* Rounds in which each has one sample, so that a clock that drifts, and a neighbour who comes, are shared by all. They end when
 * each had its time; who had four times as much before is left out of the rest. */
static int take_turns(const kbench *b, subject *const *subjects, int n) {
    for (int k = 0; k < n; k++)
        calibrate(subjects[k]);
    int round = 0;
    for (bool again = true; again && round < MAX_ROUNDS; round++) {
        again = round + 1 < LEAST_ROUNDS;
        for (int k = 0; k < n; k++) {
            subject *s = subjects[k];
            const bool had_enough = s->spent >= 4.0 * b->min_seconds && (round >= LEAST_ROUNDS || s->spent > 0.2);
            s->samples[round] = 0.0;
            if (!had_enough) sample(s, round);
            again = again || s->spent < b->min_seconds;
        }
    }
    return round;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the samples over those of the same round of `by`; by NULL: of the samples themselves. */
static double median(const subject *s, const subject *by, int rounds) {
    double ratios[MAX_ROUNDS];
    size_t n = 0;
    for (int i = 0; i < rounds; i++)
        if (s->samples[i] > 0.0 && (!by || by->samples[i] > 0.0))
            ratios[n++] = s->samples[i] / (by ? by->samples[i] : 1.0);
    qsort(ratios, n, sizeof *ratios, ascending);
    return n ? ratios[n / 2] : 0.0;
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
        if (!b->streams[which]) kbench_fail("out of memory");
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
        if (!b->results) kbench_fail("out of memory");
    }
    b->results[b->n_results++] = *r;
    if (b->form != KBENCH_ROWS) return;
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
    static subject own, one, floor, peer, limits[2]; /* large */
    subject *turns[MAX_SUBJECTS];
    int n = 0;
    turns[n++] = &own;
    own = (subject){.run = c->run, .arg = c->arg, .parts = parts, .scale = 1.0};
    if (parts > 1) {
        one = (subject){.run = c->run, .arg = c->arg, .parts = 1, .scale = 1.0};
        turns[n++] = &one;
    }
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
    const int rounds = take_turns(b, turns, n);
    r.own = median(&own, NULL, rounds);
    r.one_thread = parts > 1 ? r.own * median(&one, &own, rounds) : r.own;
    r.floor = c->floor ? r.own * median(&floor, &own, rounds) : 0.0;
    r.peer = made ? r.own * median(&peer, &own, rounds) : 0.0;
    r.limit = r.own * median(&limits[0], &own, rounds);
    if (n_limits == 2) {
        const double streaming = r.own * median(&limits[1], &own, rounds);
        r.limit_streams = streaming < r.limit;
        if (r.limit_streams) r.limit = streaming;
    }
    bench_peer_destroy(&made);
    keep(b, &r);
}

static void list(const kbench *b, const kbench_case *c, qk_isa isa) {
    printf("%s\t%s\t%s\t%s\n", c->kernel ? c->kernel : b->family, qk_isa_name(isa), b->family, c->name);
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
        if (b->only_list) list(b, c, isa);
        for (int t = 0; t < b->n_threads && !b->only_list; t++) {
            omp_set_num_threads(b->threads[t]);
            (void)c->prepare(c->arg, b->threads[t]);
            measure_one(b, c, isa, b->threads[t]);
        }
        if (!b->all_levels && !b->only_list) break;
    }
    qk_isa_set_cap(cap);
}

/* ---- the limits themselves ---- */

/* Seconds of one run, with nothing beside it. */
static double time_alone(const kbench *b, subject of) {
    static subject s; /* large */
    subject *turn = &s;
    s = of;
    const int rounds = take_turns(b, &turn, 1);
    return median(&s, NULL, rounds);
}

static void no_work(void *arg, int part, int n_parts) {
    (void)arg, (void)part, (void)n_parts;
}

void kbench_measure_limits(kbench *b) {
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
                const double s = time_alone(
                    b,
                    (subject){.run = run_stream, .arg = &j, .parts = b->threads[t], .scale = stream_scale(&j, bytes)});
                printf(" %.1f |", (double)bytes / s * 1e-9);
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
                const double s =
                    time_alone(b, (subject){.run = run_multiply, .arg = &j, .parts = b->threads[t], .scale = 1.0});
                printf("| %s | %s | %d | %.1f |\n", p == KBENCH_INT8 ? "8-bit products" : "f32 products",
                       qk_isa_name((qk_isa)level), b->threads[t], (double)j.n * (double)fn(0) / s * 1e-9);
            }
        }
    }
    /* What asking the threads costs: half of the work of a case that is worth them. */
    for (int t = 0; t < b->n_threads; t++)
        if (b->threads[t] > 1)
            printf("\nA region of %d threads that does nothing: %.2f us.\n", b->threads[t],
                   1e6 * time_alone(b, (subject){.run = no_work, .parts = b->threads[t], .scale = 1.0}));
}
