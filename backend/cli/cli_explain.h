/* The forms of an explanation. */
#ifndef QDQI_CLI_EXPLAIN_H
#define QDQI_CLI_EXPLAIN_H

#include "cli/cli_model.h"

/* What became of the ops of one kind. */
typedef struct qdqi_kind_count {
    const char *kind;
    size_t n[4]; /* by qdq_explain_how */
    size_t n_all;
} qdqi_kind_count;

/* By kind: computing ops first, then Quantize- and Dequantize-like ones, each by number, largest first. Freed with qdqi_free. */
qdq_status qdqi_count_kinds(const qdq_explanation *explanation, qdqi_kind_count **counts_out, size_t *n_out,
                            qdq_error *err);
const char *qdqi_how_word(qdq_explain_how how);

/* On stdout. */
qdq_status qdqi_explain_text(const char *path, const qdq_explanation *explanation, qdq_error *err);
qdq_status qdqi_explain_json(const char *path, const qdq_explanation *explanation, qdq_error *err);

#endif
