/* qdq explain, for people. */
#include "cli/cli_explain.h"

#include "base/alloc.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* Names come from files: a line stays one line. */
static void print_clean(const char *text) {
    for (; *text != '\0'; text++)
        putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

static void print_op(const qdq_explain_op *op) {
    printf("op %" PRIu64 " \"", op->id);
    print_clean(op->name);
    printf("\" (%s)", op->kind);
}

static void print_label(const char *label) {
    printf("    %-9s ", label);
}

/* "Dequantize x3, Convolution, ReLU": equal neighbours once */
static void print_ops(const qdq_explanation *e, const qdq_explain_part *part) {
    print_label("ops");
    for (size_t i = 0; i < part->n_ops;) {
        const char *kind = qdq_explanation_op(e, part->ops[i])->kind;
        size_t n = 1;
        while (i + n < part->n_ops && strcmp(qdq_explanation_op(e, part->ops[i + n])->kind, kind) == 0)
            n++;
        printf("%s%s", i == 0 ? "" : ", ", kind);
        if (n > 1) printf(" x%zu", n);
        i += n;
    }
    putchar('\n');
}

static void print_tensors(const char *label, const qdq_explain_tensor *const *tensors, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const qdq_tensor_desc *desc = &tensors[i]->desc;
        print_label(i == 0 ? label : "");
        printf("%-8s %-16s %-8s #%" PRIu64 " ", qdq_dtype_name(desc->dtype), qdqi_shape_str(desc->ndims, desc->dims).s,
               qdqi_layout_str(desc).s, desc->id);
        print_clean(tensors[i]->name);
        putchar('\n');
    }
}

static void print_reasons(const qdq_explain_reason *reasons, size_t n, qdq_explain_source source, const char *label) {
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        if (reasons[i].source != source) continue;
        print_label(first ? label : "");
        print_clean(reasons[i].text);
        putchar('\n');
        first = false;
    }
}

static void print_part(const qdq_explanation *e, size_t i) {
    const qdq_explain_part *part = qdq_explanation_part(e, i);
    const qdq_explain_op *root = qdq_explanation_op(e, part->root);
    printf("\n%3zu %s, %s", i, part->pattern, qdqi_how_word(part->how));
    if (part->n_ops > 1) printf(" by recipe %s", part->recipe);
    fputs(": ", stdout);
    print_op(root);
    putchar('\n');
    if (part->n_ops > 1) print_ops(e, part);
    print_tensors("in", part->inputs, part->n_inputs);
    print_tensors("constant", part->constants, part->n_constants);
    print_tensors("out", part->outputs, part->n_outputs);
    for (size_t k = 0; k < part->n_steps; k++) {
        print_label(k == 0 ? "steps" : "");
        printf("%-9s %s\n", part->steps[k].provider, part->steps[k].note);
    }
    print_reasons(part->reasons, part->n_reasons, QDQ_EXPLAIN_REFUSAL, "refused");
    print_reasons(part->reasons, part->n_reasons, QDQ_EXPLAIN_END, "ends");
}

static void print_counts(const char *label, const qdqi_kind_count *counts, size_t n, qdq_explain_how how) {
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        const size_t n_run = counts[i].n_all - counts[i].n[QDQ_EXPLAIN_FOLDED];
        if (counts[i].n[how] == 0 && !(how == QDQ_EXPLAIN_FUSED && n_run > 0)) continue;
        printf("%s%s %zu", first ? label : ", ", counts[i].kind, counts[i].n[how]);
        if (how == QDQ_EXPLAIN_FUSED) printf(" of %zu", n_run);
        first = false;
    }
    if (!first) putchar('\n');
}

/* The ops of one kind that are alone, by the word of their first reason. */
static void print_words(const qdq_explanation *e, const char *kind) {
    enum { MAX_WORDS = 8 };
    const char *words[MAX_WORDS];
    size_t n[MAX_WORDS] = {0}, n_words = 0;
    for (size_t i = 0; i < qdq_explanation_n_ops(e); i++) {
        const qdq_explain_op *op = qdq_explanation_op(e, i);
        if (op->how != QDQ_EXPLAIN_ALONE || op->n_reasons == 0 || strcmp(op->kind, kind) != 0) continue;
        size_t w = 0;
        while (w < n_words && strcmp(words[w], op->reasons[0].word) != 0)
            w++;
        if (w == MAX_WORDS) w = MAX_WORDS - 1; /* rarer words are counted with the last */
        if (w == n_words) words[n_words++] = op->reasons[0].word;
        n[w]++;
    }
    for (size_t w = 0; w < n_words; w++)
        printf("%s%s %zu", w == 0 ? ": " : ", ", words[w], n[w]);
}

static void print_alone(const qdq_explanation *e, const qdqi_kind_count *counts, size_t n) {
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        if (counts[i].n[QDQ_EXPLAIN_ALONE] == 0) continue;
        printf("%s%s %zu", first ? "alone   " : "        ", counts[i].kind, counts[i].n[QDQ_EXPLAIN_ALONE]);
        print_words(e, counts[i].kind);
        putchar('\n');
        first = false;
    }
}

static void print_summary(const char *path, const qdq_explanation *e, const qdqi_kind_count *counts, size_t n) {
    size_t parts[4] = {0};
    for (size_t i = 0; i < qdq_explanation_n_parts(e); i++)
        parts[qdq_explanation_part(e, i)->how]++;
    printf("%s: %zu ops, %zu partitions: %zu fused, %zu alone, %zu view, %zu folded\n", path, qdq_explanation_n_ops(e),
           qdq_explanation_n_parts(e), parts[QDQ_EXPLAIN_FUSED], parts[QDQ_EXPLAIN_ALONE], parts[QDQ_EXPLAIN_VIEW],
           parts[QDQ_EXPLAIN_FOLDED]);
    print_counts("fused   ", counts, n, QDQ_EXPLAIN_FUSED);
    print_alone(e, counts, n);
    print_counts("view    ", counts, n, QDQ_EXPLAIN_VIEW);
    print_counts("folded  ", counts, n, QDQ_EXPLAIN_FOLDED);
    if (qdq_explanation_compile_error(e) != NULL)
        printf("not compiled, so there are no steps and refusals: %s\n", qdq_explanation_compile_error(e));
}

static void print_apart(const qdq_explanation *e) {
    bool first = true;
    for (size_t i = 0; i < qdq_explanation_n_ops(e); i++) {
        const qdq_explain_op *op = qdq_explanation_op(e, i);
        if (op->n_reasons == 0) continue;
        if (first) printf("\nops in no fused chain\n");
        first = false;
        fputs("\n  ", stdout);
        print_op(op);
        printf(", %s, partition %zu\n", qdqi_how_word(op->how), op->part);
        print_reasons(op->reasons, op->n_reasons, QDQ_EXPLAIN_NEAREST, "nearest");
        print_reasons(op->reasons, op->n_reasons, QDQ_EXPLAIN_END, "ended");
        print_reasons(op->reasons, op->n_reasons, QDQ_EXPLAIN_REFUSAL, "refused");
    }
}

qdq_status qdqi_explain_text(const char *path, const qdq_explanation *explanation, qdq_error *err) {
    qdqi_kind_count *counts = NULL;
    size_t n = 0;
    QDQI_TRY(qdqi_count_kinds(explanation, &counts, &n, err));
    print_summary(path, explanation, counts, n);
    qdqi_free(counts);
    print_apart(explanation);
    if (qdq_explanation_n_parts(explanation) != 0) printf("\npartitions, in the order in which they run\n");
    for (size_t i = 0; i < qdq_explanation_n_parts(explanation); i++)
        print_part(explanation, i);
    return QDQ_OK;
}
