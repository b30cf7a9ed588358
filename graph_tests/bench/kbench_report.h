/* What qdq-kbench found out, and its forms. */
#ifndef KBENCH_REPORT_H
#define KBENCH_REPORT_H

#include "kbench.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds are of one run; 0: not measured. The others are multiples of `own`: the median, over the rounds, of the ratio of two
 * samples taken one after the other. */
typedef struct kbench_result {
    const char *family;
    char name[96], peer_name[48];
    qk_isa isa;
    int threads;
    size_t bytes;
    double macs; /* 0: the case is about bytes */
    double own, limit, peer, floor;
    double one_thread;  /* the same case on one of the threads */
    bool limit_streams; /* the faster stores were streaming ones */
} kbench_result;

typedef enum kbench_form {
    KBENCH_ROWS,     /* each figure as it comes */
    KBENCH_MARKDOWN, /* what falls short, a summary, a table per family */
    KBENCH_WORST     /* a summary, and one table of all families, the worst first */
} kbench_form;

/* Heads of the columns, and a row. The title stands before. */
void kbench_print_head(FILE *out, const char *title);
void kbench_print_row(FILE *out, const kbench_result *r);
/* MARKDOWN and WORST. Of each case the best level only. */
void kbench_print_tables(FILE *out, kbench_form form, const kbench_result *results, size_t n);
void kbench_print_json(FILE *out, const char *machine, const kbench_result *results, size_t n);
/* A bar per case, whose length is its share of the limit; a mark where oneDNN's is. Of each case the best level only. */
void kbench_print_svg(FILE *out, const char *machine, const kbench_result *results, size_t n);

/* ---- what they are made of ---- */

/* Bytes or multiply-adds per nanosecond, and the unit. */
double kbench_rate(const kbench_result *r);
const char *kbench_rate_unit(const kbench_result *r);
/* The same family and name, on any number of threads. */
bool kbench_is_same_case(const kbench_result *a, const kbench_result *b);
/* The first measured of its case and number of threads: levels are measured best first. */
bool kbench_is_best_level(const kbench_result *results, size_t i);
/* Without what a string of JSON or SVG would need to escape. */
void kbench_print_plain(FILE *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
