/* qdq draw: the graph as DOT, partitions as clusters; Graphviz makes a picture of it.
 *
 * An op that several partitions recompute (a Dequantize) is drawn in each of them, as it runs. Constants are lines of their reader, not
 * nodes: a quantized model has several per op. */
#include "cli/cli_explain.h"

#include "base/alloc.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* ---- DOT -------------------------------------------------------------------------------------------------------- */

static void put_quoted(FILE *to, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else
            fputc((unsigned char)*text < 0x20 ? ' ' : *text, to);
    }
}

/* A name of at most some 30 characters: its end tells more than its start. */
static void put_name(FILE *to, const char *name) {
    enum { MAX = 30 };
    const size_t n = strlen(name);
    size_t from = n > MAX ? n - MAX : 0;
    while (from > 0 && ((unsigned char)name[from] & 0xc0) == 0x80)
        from++; /* not inside of a character */
    if (from > 0) fputs("…", to);
    put_quoted(to, name + from);
}

static void put_tensor(FILE *to, const qdq_explain_tensor *t) {
    fprintf(to, "%s %s", qdq_dtype_name(t->desc.dtype), qdqi_shape_str(t->desc.ndims, t->desc.dims).s);
}

/* Fill and frame by pattern: equal patterns look alike. */
static const char *color_of(const qdq_explain_part *part) {
    static const char *const colors[] = {"#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#fce5cd", "#d0e0e3"};
    if (part->how != QDQ_EXPLAIN_FUSED) return "#eeeeee";
    unsigned hash = 5381;
    for (const char *c = part->recipe; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char)*c;
    return colors[hash % (sizeof colors / sizeof colors[0])];
}

static void put_node(FILE *to, size_t part, size_t index, const qdq_explain_op *op) {
    fprintf(to, "    p%zu_o%zu [label=\"%s\\n", part, index, op->kind);
    put_name(to, op->name);
    for (size_t i = 0; i < op->n_inputs; i++) {
        const qdq_explain_tensor *t = op->inputs[i];
        if (t == NULL || !t->is_constant || t->desc.ndims == 0) continue;
        fputs("\\n", to);
        put_tensor(to, t);
    }
    fputs("\"];\n", to);
}

static void put_cluster(FILE *to, const qdq_explanation *e, size_t i) {
    const qdq_explain_part *part = qdq_explanation_part(e, i);
    fprintf(to, "  subgraph cluster_%zu {\n    label=\"%zu: %s (%s)\";\n", i, i, part->pattern,
            qdqi_how_word(part->how));
    fprintf(to, "    style=\"rounded,filled\"; fillcolor=\"%s\"; color=\"#666666\";\n", color_of(part));
    for (size_t k = 0; k < part->n_ops; k++)
        put_node(to, i, part->ops[k], qdq_explanation_op(e, part->ops[k]));
    fputs("  }\n", to);
}

typedef struct source {
    const qdq_explain_tensor *tensor;
    size_t part, op;
} source;

static int by_tensor(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t)((const source *)a)->tensor, y = (uintptr_t)((const source *)b)->tensor;
    return x < y ? -1 : x > y;
}

static const source *find(const source *sources, size_t n, const qdq_explain_tensor *tensor) {
    const source key = {.tensor = tensor};
    return n == 0 ? NULL : bsearch(&key, sources, n, sizeof key, by_tensor);
}

/* Where each tensor comes out of a partition. */
static source *find_sources(const qdq_explanation *e, size_t *n_out) {
    size_t n = 0;
    for (size_t i = 0; i < qdq_explanation_n_parts(e); i++)
        n += qdq_explanation_part(e, i)->n_outputs;
    source *sources = qdqi_calloc(n + 1, sizeof *sources);
    if (sources == NULL) return NULL;
    n = 0;
    for (size_t i = 0; i < qdq_explanation_n_parts(e); i++) {
        const qdq_explain_part *part = qdq_explanation_part(e, i);
        for (size_t k = 0; k < part->n_outputs; k++)
            sources[n++] = (source){part->outputs[k], i, part->ops[part->n_ops - 1]};
    }
    qsort(sources, n, sizeof *sources, by_tensor);
    *n_out = n;
    return sources;
}

/* The op of the same partition that makes the tensor. */
static size_t maker_in(const qdq_explanation *e, const qdq_explain_part *part, const qdq_explain_tensor *tensor) {
    for (size_t k = 0; k < part->n_ops; k++) {
        const qdq_explain_op *op = qdq_explanation_op(e, part->ops[k]);
        for (size_t o = 0; o < op->n_outputs; o++)
            if (op->outputs[o] == tensor) return part->ops[k];
    }
    return QDQ_EXPLAIN_NONE;
}

static void put_edge(FILE *to, const qdq_explanation *e, const source *sources, size_t n, size_t part, size_t op,
                     const qdq_explain_tensor *tensor) {
    const size_t maker = maker_in(e, qdq_explanation_part(e, part), tensor);
    const source *from = find(sources, n, tensor);
    if (maker != QDQ_EXPLAIN_NONE)
        fprintf(to, "  p%zu_o%zu", part, maker);
    else if (from != NULL)
        fprintf(to, "  p%zu_o%zu", from->part, from->op);
    else
        fprintf(to, "  input%" PRIu64, tensor->desc.id);
    fprintf(to, " -> p%zu_o%zu [label=\" ", part, op);
    put_tensor(to, tensor);
    fputs("\"];\n", to);
}

static void put_port(FILE *to, const char *what, const qdq_explain_tensor *t) {
    fprintf(to, "  %s%" PRIu64 " [shape=ellipse, style=filled, fillcolor=white, label=\"%s ", what, t->desc.id, what);
    if (t->name[0] == '\0')
        fprintf(to, "#%" PRIu64, t->desc.id);
    else
        put_name(to, t->name);
    fputs("\\n", to);
    put_tensor(to, t);
    fputs("\"];\n", to);
}

static void put_edges(FILE *to, const qdq_explanation *e, const source *sources, size_t n) {
    for (size_t i = 0; i < qdq_explanation_n_parts(e); i++) {
        const qdq_explain_part *part = qdq_explanation_part(e, i);
        for (size_t k = 0; k < part->n_inputs; k++)
            if (!part->inputs[k]->is_constant && find(sources, n, part->inputs[k]) == NULL)
                put_port(to, "input", part->inputs[k]); /* saying it twice does no harm */
        for (size_t k = 0; k < part->n_ops; k++) {
            const qdq_explain_op *op = qdq_explanation_op(e, part->ops[k]);
            for (size_t p = 0; p < op->n_inputs; p++)
                if (op->inputs[p] != NULL && !op->inputs[p]->is_constant)
                    put_edge(to, e, sources, n, i, part->ops[k], op->inputs[p]);
        }
    }
}

static void put_outputs(FILE *to, const source *sources, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const qdq_explain_tensor *t = sources[i].tensor;
        if (!t->is_output) continue;
        put_port(to, "output", t);
        fprintf(to, "  p%zu_o%zu -> output%" PRIu64 ";\n", sources[i].part, sources[i].op, t->desc.id);
    }
}

static qdq_status put_dot(FILE *to, const qdq_explanation *e, qdq_error *err) {
    size_t n = 0;
    source *sources = find_sources(e, &n);
    if (sources == NULL) return QDQI_NO_MEMORY(err);
    fputs("digraph qdq {\n  rankdir=TB; ranksep=0.35; nodesep=0.25; fontname=\"Helvetica\"; fontsize=11;\n"
          "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\", fontsize=10, "
          "margin=\"0.12,0.05\"];\n"
          "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#444444\", fontcolor=\"#444444\", arrowsize=0.7];\n",
          to);
    for (size_t i = 0; i < qdq_explanation_n_parts(e); i++)
        put_cluster(to, e, i);
    put_edges(to, e, sources, n);
    put_outputs(to, sources, n);
    fputs("}\n", to);
    qdqi_free(sources);
    return QDQ_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static qdq_status cannot_write(const char *path, int code, qdq_error *err) {
    return qdqi_fail(err, QDQ_E_IO, "%s: cannot be written: %s", path, strerror(code));
}

static qdq_status write_dot(const char *path, const qdq_explanation *e, qdq_error *err) {
    FILE *f = fopen(path, "w");
    if (f == NULL) return cannot_write(path, errno, err);
    const qdq_status st = put_dot(f, e, err);
    const bool failed = ferror(f) != 0;
    if ((fclose(f) != 0 || failed) && st == QDQ_OK) return cannot_write(path, errno, err);
    return st;
}

/* `dot -T<format>` from the text in `from` to the picture in `to`; `path` is for messages. */
static qdq_status run_dot(FILE *from, FILE *to, const char *format, const char *path, qdq_error *err) {
    char option[16], dot[] = "dot";
    snprintf(option, sizeof option, "-T%s", format);
    char *argv[] = {dot, option, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0) return qdqi_fail(err, QDQ_E_IO, "dot (Graphviz) cannot be started: %s", strerror(code));
    code = posix_spawn_file_actions_adddup2(&actions, fileno(from), 0);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, fileno(to), 1);
    if (code == 0) code = posix_spawnp(&pid, "dot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    while (code == 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) code = errno;
    if (code == ENOENT || (code == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127))
        return qdqi_fail(err, QDQ_E_NOT_FOUND,
                         "%s: the program \"dot\" is not found: install Graphviz, or write a .dot file", path);
    if (code != 0) return qdqi_fail(err, QDQ_E_IO, "dot (Graphviz) cannot be run: %s", strerror(code));
    if (!WIFEXITED(status)) return qdqi_fail(err, QDQ_E_IO, "%s: dot (Graphviz) was killed", path);
    if (WEXITSTATUS(status) != 0)
        return qdqi_fail(err, QDQ_E_IO, "%s: dot (Graphviz) failed with exit code %d", path, WEXITSTATUS(status));
    return QDQ_OK;
}

static qdq_status render(const char *path, const char *format, const qdq_explanation *e, qdq_error *err) {
    FILE *to = fopen(path, "wb");
    if (to == NULL) return cannot_write(path, errno, err);
    FILE *text = tmpfile();
    qdq_status st = text == NULL ? qdqi_fail(err, QDQ_E_IO, "no temporary file: %s", strerror(errno)) : QDQ_OK;
    if (st == QDQ_OK) st = put_dot(text, e, err);
    if (st == QDQ_OK && (fflush(text) != 0 || fseek(text, 0, SEEK_SET) != 0))
        st = qdqi_fail(err, QDQ_E_IO, "temporary file: %s", strerror(errno));
    if (st == QDQ_OK) st = run_dot(text, to, format, path, err);
    if (text != NULL) fclose(text);
    fclose(to);
    if (st != QDQ_OK) remove(path);
    return st;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

typedef struct draw_args {
    qdqi_model_args model;
    const char *output;
    const char *format; /* "dot", or one of Graphviz's */
} draw_args;

static int parse(int argc, char **argv, draw_args *args) {
    static const char *const formats[] = {"dot", "svg", "png", "pdf"};
    qdqi_args from = {.argc = argc, .at = 1, .argv = argv};
    const char *option = NULL, *value = NULL;
    while (qdqi_args_next(&from, &option, &value)) {
        bool taken = false;
        const int code = qdqi_model_option(&qdqi_command_draw, &args->model, &from, option, value, &taken);
        if (code != QDQI_EXIT_OK) return code;
        if (taken) continue;
        if (strcmp(option, "-o") != 0 && strcmp(option, "--output") != 0)
            return qdqi_cli_usage_error(&qdqi_command_draw, "unknown option %.60s", option);
        args->output = qdqi_args_value(&from, value);
        if (args->output == NULL) return qdqi_cli_usage_error(&qdqi_command_draw, "%s needs a value", option);
    }
    if (args->model.path == NULL) return qdqi_cli_usage_error(&qdqi_command_draw, "no model or case is given");
    if (args->output == NULL) return qdqi_cli_usage_error(&qdqi_command_draw, "no output is given (-o FILE.svg)");
    const char *dot = strrchr(args->output, '.');
    for (size_t i = 0; dot != NULL && i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(dot + 1, formats[i]) == 0) args->format = formats[i];
    if (args->format == NULL)
        return qdqi_cli_usage_error(&qdqi_command_draw, "%.80s does not end in .dot, .svg, .png or .pdf", args->output);
    return QDQI_EXIT_OK;
}

static int run(int argc, char **argv) {
    draw_args args = {.format = NULL};
    qdq_explanation *explanation = NULL;
    qdq_error err = {0};
    int code = parse(argc, argv, &args);
    if (code == QDQI_EXIT_OK) {
        qdq_status st = qdqi_model_explain(&args.model, &explanation, &err);
        if (st == QDQ_OK)
            st = strcmp(args.format, "dot") == 0 ? write_dot(args.output, explanation, &err)
                                                 : render(args.output, args.format, explanation, &err);
        if (st != QDQ_OK) code = qdqi_cli_failed(&err);
    }
    qdq_explanation_destroy(&explanation);
    qdqi_model_args_free(&args.model);
    return code;
}

const qdqi_command qdqi_command_draw = {
    .name = "draw",
    .summary = "a picture of the graph: partitions as coloured clusters",
    .usage =
        "usage: qdq draw MODEL.onnx|CASE.json -o FILE [OPTION…]\n\n"
        "Draw a graph with its partitions as coloured clusters: fused ones by recipe, the others grey. FILE ends in\n"
        ".dot, or in .svg, .png or .pdf, which Graphviz' program dot makes. An op that several partitions recompute\n"
        "is drawn in each; constants are lines of the ops that read them.\n\n"
        "  -o FILE                the picture\n" QDQI_MODEL_OPTIONS,
    .run = run,
};
