/* The `qdq` program: one file per command, one table of commands in cli_main.c. */
#ifndef QDQI_CLI_H
#define QDQI_CLI_H

#include "base/error.h"

#include <stdio.h>

enum { QDQI_EXIT_OK = 0, QDQI_EXIT_FAILED = 1, QDQI_EXIT_USAGE = 2 };

typedef struct qdqi_command {
    const char *name;
    const char *summary;               /* one line of `qdq --help` */
    const char *usage;                 /* text of `qdq NAME --help` */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; gives the exit code */
} qdqi_command;

extern const qdqi_command qdqi_command_run;
extern const qdqi_command qdqi_command_explain;
extern const qdqi_command qdqi_command_draw;
extern const qdqi_command qdqi_command_ops;
extern const qdqi_command qdqi_command_patterns;
extern const qdqi_command qdqi_command_version;

/* "qdq: <text>" on stderr; gives QDQI_EXIT_FAILED. */
int qdqi_cli_failed(const qdq_error *err);
/* "qdq COMMAND: <text>" and where help is; gives QDQI_EXIT_USAGE. */
int qdqi_cli_usage_error(const qdqi_command *command, const char *fmt, ...) QDQI_PRINTF(2, 3);

/* ---- arguments ---- */

typedef struct qdqi_args {
    int argc, at;
    char **argv;
} qdqi_args;

/* The next argument: `*name` is an option with its dashes ("--input") and `*value` what follows its '=' or NULL; or `*name` is NULL
 * and `*value` a plain argument. False at the end. After "--" everything is plain. */
bool qdqi_args_next(qdqi_args *args, const char **name, const char **value);
/* The value of the option just read: after its '=', or the next argument. NULL when there is none. */
const char *qdqi_args_value(qdqi_args *args, const char *value);
/* A whole decimal number in [min, max]. */
bool qdqi_parse_i64(const char *text, int64_t min, int64_t max, int64_t *out);
/* "1x3x224x224" ("-" is rank 0). */
bool qdqi_parse_shape(const char *text, int32_t *ndims_out, int64_t dims_out[QDQ_MAX_NDIMS]);

/* ---- arrays ---- */

typedef struct qdqi_array {
    qdq_dtype dtype;
    int32_t ndims;
    int64_t dims[QDQ_MAX_NDIMS];
    void *data; /* dense row-major */
    size_t bytes;
} qdqi_array;

void qdqi_array_free(qdqi_array *array);
/* Zeroed memory for a descriptor with known dims. */
qdq_status qdqi_array_create(const qdq_tensor_desc *desc, qdqi_array *array_out, qdq_error *err);
/* Reproducible values that any model can take: floats in [-1, 1), 8-bit integers over their range, wider integers 0 or 1 (they are
 * mostly ids and masks). */
void qdqi_array_fill_random(qdqi_array *array, uint64_t seed);
/* "min -1.5  max 3.25  argmax 7" */
typedef struct qdqi_summary {
    char s[160];
} qdqi_summary;
qdqi_summary qdqi_array_summary(const qdqi_array *array);

/* .npy files (format 1, 2 and 3; little-endian; Fortran order is turned into row-major). */
qdq_status qdqi_npy_read(const char *path, qdqi_array *array_out, qdq_error *err);
/* Types that numpy lacks are widened: bf16 and f8 to float32, s4 and u4 to 8 bits. */
qdq_status qdqi_npy_write(const char *path, const qdqi_array *array, qdq_error *err);

#endif
