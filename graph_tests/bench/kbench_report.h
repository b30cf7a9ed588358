/* What qdq-kbench found out, and its three forms. */
#ifndef KBENCH_REPORT_H
#define KBENCH_REPORT_H

#include "kbench.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds are of one run; 0: not measured. */
typedef struct kbench_result {
    const char *family;
    char name[96], peer_name[48];
    qk_isa isa;
    int threads;
    size_t bytes;
    double macs; /* 0: the case is about bytes */
    double own, limit, peer, floor;
    bool limit_streams; /* the faster stores were streaming ones */
} kbench_result;

/* Heads of the columns, and a row. The title stands before. */
void kbench_print_head(FILE *out, const char *title);
void kbench_print_row(FILE *out, const kbench_result *r);
void kbench_print_json(FILE *out, const char *machine, const kbench_result *results, size_t n);
/* A bar per case, whose length is its share of the limit; a mark where oneDNN's is. Of each case the best level only. */
void kbench_print_svg(FILE *out, const char *machine, const kbench_result *results, size_t n);

#ifdef __cplusplus
}
#endif
#endif
