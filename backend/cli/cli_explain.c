/* qdq explain: what became of each op of a graph, and why. */
#include "cli/cli_explain.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* ---- counting ---- */

static bool is_glue(const char *kind) {
    return strstr(kind, "Quantize") != NULL || strstr(kind, "Dequantize") != NULL;
}

static int by_weight(const void *a, const void *b) {
    const qdqi_kind_count *x = a, *y = b;
    const int glue = (int)is_glue(x->kind) - (int)is_glue(y->kind);
    if (glue != 0) return glue;
    if (x->n_all != y->n_all) return x->n_all < y->n_all ? 1 : -1;
    return strcmp(x->kind, y->kind);
}

qdq_status qdqi_count_kinds(const qdq_explanation *explanation, qdqi_kind_count **counts_out, size_t *n_out,
                            qdq_error *err) {
    const size_t n_ops = qdq_explanation_n_ops(explanation);
    qdqi_kind_count *counts = qdqi_calloc(n_ops + 1, sizeof *counts);
    size_t n = 0;
    if (counts == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < n_ops; i++) {
        const qdq_explain_op *op = qdq_explanation_op(explanation, i);
        size_t k = 0;
        while (k < n && strcmp(counts[k].kind, op->kind) != 0)
            k++;
        if (k == n) counts[n++].kind = op->kind;
        counts[k].n[op->how]++;
        counts[k].n_all++;
    }
    qsort(counts, n, sizeof *counts, by_weight);
    *counts_out = counts;
    *n_out = n;
    return QDQ_OK;
}

const char *qdqi_how_word(qdq_explain_how how) {
    switch (how) {
#define QDQ_EXPLAIN_HOW_ROW(name, value, word, text)                                                                   \
    case QDQ_EXPLAIN_##name: return word;
        QDQ_EXPLAIN_HOW_MAP(QDQ_EXPLAIN_HOW_ROW)
#undef QDQ_EXPLAIN_HOW_ROW
    }
    return "";
}

/* ---- the vocabulary ---- */

static int print_words(bool markdown) {
    const char *group = "";
    qdq_error err = {0};
    for (size_t i = 0; i < qdq_backend_n_reasons(); i++) {
        qdq_reason_info info;
        if (qdq_backend_reason(i, &info, &err) != QDQ_OK) return qdqi_cli_failed(&err);
        if (markdown && strcmp(group, info.group) != 0)
            printf("%s| %s | |\n|---|---|\n", group[0] == '\0' ? "" : "\n", info.group);
        group = info.group;
        printf(markdown ? "| `%s` | %s |\n" : "%-40s %s\n", info.word, info.sentence);
    }
    return QDQI_EXIT_OK;
}

/* ---- the command ---- */

typedef struct explain_args {
    qdqi_model_args model;
    bool json, words, markdown;
} explain_args;

static int take_flag(explain_args *args, const char *option, const char *value) {
    if (strcmp(option, "--format") == 0) {
        if (value != NULL && strcmp(value, "text") == 0) return QDQI_EXIT_OK;
        args->json = value != NULL && strcmp(value, "json") == 0;
        return args->json ? QDQI_EXIT_OK
                          : qdqi_cli_usage_error(&qdqi_command_explain, "--format is text or json, not %.40s",
                                                 value == NULL ? "nothing" : value);
    }
    if (strcmp(option, "--words") == 0)
        args->words = true;
    else if (strcmp(option, "--markdown") == 0)
        args->markdown = true;
    else
        return qdqi_cli_usage_error(&qdqi_command_explain, "unknown option %.60s", option);
    return QDQI_EXIT_OK;
}

static int parse(int argc, char **argv, explain_args *args) {
    qdqi_args from = {.argc = argc, .at = 1, .argv = argv};
    const char *option = NULL, *value = NULL;
    while (qdqi_args_next(&from, &option, &value)) {
        bool taken = false;
        int code = qdqi_model_option(&qdqi_command_explain, &args->model, &from, option, value, &taken);
        if (code == QDQI_EXIT_OK && !taken) {
            if (strcmp(option, "--format") == 0) value = qdqi_args_value(&from, value);
            code = take_flag(args, option, value);
        }
        if (code != QDQI_EXIT_OK) return code;
    }
    if (args->words != (args->model.path == NULL))
        return qdqi_cli_usage_error(&qdqi_command_explain,
                                    args->words ? "--words takes no file" : "no model or case is given");
    return QDQI_EXIT_OK;
}

static int run(int argc, char **argv) {
    explain_args args = {.json = false};
    qdq_explanation *explanation = NULL;
    qdq_error err = {0};
    int code = parse(argc, argv, &args);
    if (code == QDQI_EXIT_OK && args.words) {
        code = print_words(args.markdown);
    } else if (code == QDQI_EXIT_OK) {
        qdq_status st = qdqi_model_explain(&args.model, &explanation, &err);
        if (st == QDQ_OK) st = (args.json ? qdqi_explain_json : qdqi_explain_text)(args.model.path, explanation, &err);
        if (st != QDQ_OK) code = qdqi_cli_failed(&err);
    }
    qdq_explanation_destroy(&explanation);
    qdqi_model_args_free(&args.model);
    return code;
}

const qdqi_command qdqi_command_explain = {
    .name = "explain",
    .summary = "what was fused in a model or case, how it is computed, and why not",
    .usage =
        "usage: qdq explain MODEL.onnx|CASE.json [OPTION…]\n"
        "       qdq explain --words [--markdown]\n\n"
        "Partition and compile a graph, and tell: what became of the ops of each kind; every partition with its ops,\n"
        "pattern, recipe, steps, tensors, and the candidates that refused; every op in no fused chain with the "
        "nearest\n"
        "pattern and what failed. --words lists the vocabulary of the reasons; doc/explain.md describes all of "
        "it.\n\n"
        "  --format text|json     json for programs\n" QDQI_MODEL_OPTIONS,
    .run = run,
};
