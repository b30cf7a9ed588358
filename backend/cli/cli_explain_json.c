/* qdq explain, for programs: doc/explain.md describes the keys. */
#include "cli/cli_explain.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

/* ---- writing ---- */

/* Bytes of the UTF-8 sequence at `s`, or 0 when it is none: names come from files. */
static size_t utf8_bytes(const unsigned char *s) {
    size_t n = s[0] < 0x80 ? 1 : (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    const bool overlong = (n == 2 && s[0] < 0xc2) || (n == 3 && s[0] == 0xe0 && s[1] < 0xa0) ||
                          (n == 4 && (s[0] == 0xf0 ? s[1] < 0x90 : s[0] > 0xf4 || (s[0] == 0xf4 && s[1] > 0x8f)));
    const bool surrogate = n == 3 && s[0] == 0xed && s[1] > 0x9f;
    return overlong || surrogate ? 0 : n;
}

static void put_string(const char *text) {
    putchar('"');
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        const size_t n = utf8_bytes(s);
        if (n == 0)
            fputs("\\ufffd", stdout);
        else if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if (*s < 0x20)
            printf("\\u%04x", *s);
        else
            fwrite(s, 1, n, stdout);
        s += n == 0 ? 1 : n;
    }
    putchar('"');
}

static void put_key(const char *key) {
    put_string(key);
    fputs(": ", stdout);
}

static void put_text(const char *key, const char *value) {
    put_key(key);
    put_string(value);
}

static void put_index(const char *key, size_t i) {
    put_key(key);
    if (i == QDQ_EXPLAIN_NONE)
        fputs("null", stdout);
    else
        printf("%zu", i);
}

static void comma(void) {
    fputs(", ", stdout);
}

static void put_tensor(const qdq_explain_tensor *tensor) {
    if (tensor == NULL) {
        fputs("null", stdout);
        return;
    }
    const qdq_tensor_desc *desc = &tensor->desc;
    printf("{\"id\": %" PRIu64, desc->id);
    comma();
    put_text("name", tensor->name);
    comma();
    put_text("dtype", qdq_dtype_name(desc->dtype));
    comma();
    put_key("shape");
    if (desc->ndims < 0) {
        fputs("null", stdout);
    } else {
        putchar('[');
        for (int32_t d = 0; d < desc->ndims; d++) {
            if (d != 0) comma();
            if (desc->dims[d] == QDQ_DIM_UNKNOWN)
                fputs("null", stdout);
            else
                printf("%" PRId64, desc->dims[d]);
        }
        putchar(']');
    }
    comma();
    put_text("layout", qdqi_layout_str(desc).s);
    const char *role = tensor->is_input ? "input" : tensor->is_output ? "output" : "inner";
    comma();
    put_text("role", tensor->is_constant ? "constant" : role);
    putchar('}');
}

static void put_tensors(const char *key, const qdq_explain_tensor *const *tensors, size_t n) {
    put_key(key);
    putchar('[');
    for (size_t i = 0; i < n; i++) {
        if (i != 0) comma();
        put_tensor(tensors[i]);
    }
    putchar(']');
}

static void put_reason(const qdq_explain_reason *r) {
    static const char *const sources[] = {
        [QDQ_EXPLAIN_NEAREST] = "nearest", [QDQ_EXPLAIN_END] = "end", [QDQ_EXPLAIN_REFUSAL] = "refusal"};
    putchar('{');
    put_text("source", sources[r->source]);
    comma();
    put_text("word", r->word);
    comma();
    put_text("who", r->who);
    if (r->source != QDQ_EXPLAIN_REFUSAL) {
        comma();
        put_index("n_matched", r->n_matched);
        comma();
        put_text("wanted", r->wanted);
    }
    if (r->guard != NULL) {
        comma();
        put_text("guard", r->guard);
    }
    comma();
    put_index("op", r->op);
    if (r->source == QDQ_EXPLAIN_END) {
        comma();
        put_index("part", r->part);
    }
    if (r->tensor != NULL) printf(", \"tensor\": %" PRIu64, r->tensor->desc.id);
    comma();
    put_text("text", r->text);
    putchar('}');
}

static void put_reasons(const qdq_explain_reason *reasons, size_t n) {
    put_key("reasons");
    putchar('[');
    for (size_t i = 0; i < n; i++) {
        if (i != 0) comma();
        put_reason(&reasons[i]);
    }
    putchar(']');
}

/* ---- the document ---- */

static void put_op(const qdq_explain_op *op) {
    printf("    {\"id\": %" PRIu64 ", ", op->id);
    put_text("kind", op->kind);
    comma();
    put_text("name", op->name);
    comma();
    put_text("how", qdqi_how_word(op->how));
    comma();
    put_index("part", op->part);
    comma();
    put_tensors("inputs", op->inputs, op->n_inputs);
    comma();
    put_tensors("outputs", op->outputs, op->n_outputs);
    comma();
    put_reasons(op->reasons, op->n_reasons);
    putchar('}');
}

static void put_part(const qdq_explain_part *part) {
    fputs("    {", stdout);
    put_text("pattern", part->pattern);
    comma();
    put_text("recipe", part->recipe);
    comma();
    put_text("how", qdqi_how_word(part->how));
    comma();
    put_index("root", part->root);
    comma();
    put_key("ops");
    putchar('[');
    for (size_t i = 0; i < part->n_ops; i++)
        printf("%s%zu", i == 0 ? "" : ", ", part->ops[i]);
    putchar(']');
    comma();
    put_tensors("inputs", part->inputs, part->n_inputs);
    comma();
    put_tensors("constants", part->constants, part->n_constants);
    comma();
    put_tensors("outputs", part->outputs, part->n_outputs);
    comma();
    put_key("steps");
    putchar('[');
    for (size_t i = 0; i < part->n_steps; i++) {
        fputs(i == 0 ? "{" : ", {", stdout);
        put_text("provider", part->steps[i].provider);
        comma();
        put_text("note", part->steps[i].note);
        putchar('}');
    }
    putchar(']');
    comma();
    put_reasons(part->reasons, part->n_reasons);
    putchar('}');
}

static void put_kind(const qdqi_kind_count *count) {
    fputs("    {", stdout);
    put_text("kind", count->kind);
    printf(", \"n\": %zu", count->n_all);
    for (int how = QDQ_EXPLAIN_FUSED; how <= QDQ_EXPLAIN_FOLDED; how++) {
        comma();
        put_index(qdqi_how_word((qdq_explain_how)how), count->n[how]);
    }
    putchar('}');
}

qdq_status qdqi_explain_json(const char *path, const qdq_explanation *explanation, qdq_error *err) {
    qdqi_kind_count *counts = NULL;
    size_t n = 0;
    QDQI_TRY(qdqi_count_kinds(explanation, &counts, &n, err));
    fputs("{\n  ", stdout);
    put_text("file", path);
    fputs(",\n  ", stdout);
    put_text("version", qdq_version());
    fputs(",\n  ", stdout);
    put_key("compile_error");
    if (qdq_explanation_compile_error(explanation) == NULL)
        fputs("null", stdout);
    else
        put_string(qdq_explanation_compile_error(explanation));
    fputs(",\n  \"kinds\": [", stdout);
    for (size_t i = 0; i < n; i++) {
        fputs(i == 0 ? "\n" : ",\n", stdout);
        put_kind(&counts[i]);
    }
    qdqi_free(counts);
    fputs("],\n  \"ops\": [", stdout);
    for (size_t i = 0; i < qdq_explanation_n_ops(explanation); i++) {
        fputs(i == 0 ? "\n" : ",\n", stdout);
        put_op(qdq_explanation_op(explanation, i));
    }
    fputs("],\n  \"parts\": [", stdout);
    for (size_t i = 0; i < qdq_explanation_n_parts(explanation); i++) {
        fputs(i == 0 ? "\n" : ",\n", stdout);
        put_part(qdq_explanation_part(explanation, i));
    }
    fputs("]\n}\n", stdout);
    return QDQ_OK;
}
