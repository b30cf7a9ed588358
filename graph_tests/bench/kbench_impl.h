/* What the files of the program qdq-kbench share; families need kbench.h alone. */
#ifndef KBENCH_IMPL_H
#define KBENCH_IMPL_H

#include "kbench_report.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KBENCH_MAX_THREAD_COUNTS = 8 };

typedef struct kbench_block {
    struct kbench_block *next;
} kbench_block;

struct kbench {
    const char *family, *wanted_family, *match, *json_path, *svg_path;
    bool all_levels, only_list;
    kbench_form form;
    bool head_is_printed;
    int threads[KBENCH_MAX_THREAD_COUNTS], n_threads;
    double min_seconds;
    uint64_t seed;        /* of the next buffer */
    kbench_block *blocks; /* the buffers of the present family */
    char *streams[2];     /* of the limit: read, written */
    size_t stream_bytes[2];
    kbench_result *results;
    size_t n_results, max_results;
};

/* Ends the program. */
void kbench_fail(const char *what);
/* The limits themselves, as two tables. */
void kbench_measure_limits(kbench *b);

#ifdef __cplusplus
}
#endif
#endif
