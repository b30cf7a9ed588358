/* qdq-kbench: how fast each kernel is, beside what this machine can do at all, beside oneDNN's primitive for the same work, and
 * beside a loop written for that one case, all in one run.
 *
 * A family of kernels is one file, kbench_<family>.c, and one row of kbench.def. Its function makes cases, and measures each:
 *
 *     void kbench_lut(kbench *b) {
 *         if (!kbench_wants(b, "table 64K")) return;
 *         my_case c = {kbench_buffer(b, N), ...};
 *         kbench_measure(b, &(kbench_case){.name = "table 64K", .read_bytes = N, .write_bytes = N,
 *                                          .prepare = prepare, .run = run, .arg = &c});
 *     }
 *
 * Every case is measured for each number of threads asked for, and with --levels=all for each level of instruction set that has a
 * kernel of its own. Its kernel, its limit, its peer and its floor take turns, in rounds, until each had its time; a time is
 * the median, a ratio the median of those of each round.
 *
 * The limit of a case about bytes is a loop of loads and stores alone, that reads and writes as much as the case must, in
 * buffers of the same size, with plain or with streaming stores, whichever is faster. That of a case about products is a
 * loop of the level's multiply instruction on registers alone. */
#ifndef KBENCH_H
#define KBENCH_H

#include "bench_peer.h"
#include "kernels/isa/isa.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kbench kbench;

/* Part `part` of n_parts of one run; the parts run at the same time, each on a thread of its own. */
typedef void kbench_run_fn(void *arg, int part, int n_parts);

typedef enum kbench_products {
    KBENCH_NONE,   /* the case is about bytes */
    KBENCH_INT8,   /* 8-bit integers into 32 bits */
    KBENCH_FLOAT32 /* f32 */
} kbench_products;

typedef struct kbench_case {
    const char
        *kernel; /* whose level `prepare` returns: names of .def files of kernels/, with commas; NULL: the family */
    const char *name;               /* what is done, to what types and shape: "quantize f32 s8 tensor 64K" */
    size_t read_bytes, write_bytes; /* that a run must move, each byte once */
    kbench_products products;
    double macs;      /* multiply-adds of a run, for products */
    size_t max_parts; /* more threads than this are not used: what the library would decide; 0: any number */
    /* Choose the kernel under the present cap (qk_isa_cap) for n_threads; returns the level it is of. */
    qk_isa (*prepare)(void *arg, int n_threads);
    kbench_run_fn *run;
    kbench_run_fn *floor;           /* the same work as one loop written for it, or NULL */
    bench_peer *(*peer)(void *arg); /* oneDNN's primitive, for the present number of OpenMP threads, or NULL */
    void *arg;                      /* of all four */
} kbench_case;

/* Does the command line ask for a case of this name? Ask before filling buffers. */
bool kbench_wants(const kbench *b, const char *name);
void kbench_measure(kbench *b, const kbench_case *c);

/* Bytes at a cache line, with the same bytes in every run; they live until the family's function returns. */
void *kbench_buffer(kbench *b, size_t bytes);
/* The same for n floats in -1.28 ... 1.27. */
float *kbench_floats(kbench *b, size_t n);
/* n elements: these floats as F32, BF16 or F16, else any bytes. */
void *kbench_typed(kbench *b, qdq_dtype dtype, size_t n);
/* How many threads the library would use at most for so much work: max_parts. */
size_t kbench_worth(size_t work, size_t grain);
/* Part `part` of n elements, cut at multiples of `grain`: its first element; how many through n_out, maybe none. */
size_t kbench_part(size_t n, size_t grain, int part, int n_parts, size_t *n_out);

#define KBENCH(family) void kbench_##family(kbench *b);
#include "kbench.def"
#undef KBENCH

#ifdef __cplusplus
}
#endif
#endif
