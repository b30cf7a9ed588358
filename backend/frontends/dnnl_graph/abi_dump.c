/* ONEDNN_GRAPH_DUMP: graphs as JSON text in upstream's format, floats with all their digits. */
#include "abi.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool graphs, subgraphs;

static void read_environment(void) {
    const char *text = getenv("ONEDNN_GRAPH_DUMP");
    if (text == NULL) text = getenv("DNNL_GRAPH_DUMP");
    while (text != NULL && *text != '\0') {
        const size_t n = strcspn(text, ",");
        graphs |= n == 5 && memcmp(text, "graph", n) == 0;
        subgraphs |= n == 8 && memcmp(text, "subgraph", n) == 0;
        text += n + (text[n] == ',');
    }
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static void add_string(abi_text *out, const char *s) {
    abi_text_add(out, "\"");
    for (; *s != '\0'; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            abi_text_add(out, "\\%c", c);
        else if (c < 0x20)
            abi_text_add(out, "\\u%04x", c);
        else
            abi_text_bytes(out, s, 1);
    }
    abi_text_add(out, "\"");
}

/* JSON has no infinity; the largest number stands for it. */
static void add_f32(abi_text *out, float value) {
    if (isnan(value)) value = 0;
    if (isinf(value)) value = value > 0 ? FLT_MAX : -FLT_MAX;
    char digits[32];
    const int n = snprintf(digits, sizeof digits, "%.9g", (double)value);
    for (int i = 0; i < n && i < (int)sizeof digits;
         i++) { /* the host's locale may have another point, of several bytes */
        const bool plain = strchr("0123456789+-e", digits[i]) != NULL;
        if (plain || i == 0 || strchr("0123456789", digits[i - 1]) != NULL)
            abi_text_bytes(out, plain ? &digits[i] : ".", 1);
    }
}

static void add_s64s(abi_text *out, const int64_t *values, size_t n) {
    abi_text_add(out, "[");
    for (size_t i = 0; i < n; i++)
        abi_text_add(out, "%s%lld", i == 0 ? "" : ", ", (long long)values[i]);
    abi_text_add(out, "]");
}

static void add_ids(abi_text *out, const size_t *ids, size_t n) {
    abi_text_add(out, "[");
    for (size_t i = 0; i < n; i++)
        abi_text_add(out, "%s%zu", i == 0 ? "" : ", ", ids[i]);
    abi_text_add(out, "]");
}

static const char *attr_type(char type) {
    switch (type) {
    case 'f': return "f32";
    case 'F': return "f32[]";
    case 'i': return "s64";
    case 'I': return "s64[]";
    case 'b': return "bool";
    default: return "string";
    }
}

static void add_attr(abi_text *out, const abi_attr *a) {
    const char type = abi_attr_type(a->attr);
    abi_text_add(out, "        \"%s\": {\"type\": \"%s\", \"value\": ", abi_attr_name(a->attr), attr_type(type));
    switch (type) {
    case 'f': add_f32(out, a->v.f32); break;
    case 'i': abi_text_add(out, "%lld", (long long)a->v.s64); break;
    case 'b': abi_text_add(out, "%d", a->v.flag); break;
    case 's': add_string(out, a->v.text); break;
    case 'I': add_s64s(out, a->v.s64s, a->n); break;
    default:
        abi_text_add(out, "[");
        for (size_t i = 0; i < a->n; i++) {
            if (i > 0) abi_text_add(out, ", ");
            add_f32(out, a->v.f32s[i]);
        }
        abi_text_add(out, "]");
    }
    abi_text_add(out, "}");
}

static const char *const layouts[] = {"undef", "any", "strided", "opaque"};
static const char *const properties[] = {"undef", "variable", "constant"};

static void add_lt(abi_text *out, const abi_lt *lt) {
    static const int64_t unknown[] = {DNNL_GRAPH_UNKNOWN_DIM};
    const bool ranked = lt->ndims >= 0 && lt->ndims <= DNNL_MAX_NDIMS;
    const size_t n = ranked ? (size_t)lt->ndims : 0;
    abi_text_add(out, "        {\"id\": %zu, \"dtype\": \"%s\", \"shape\": ", lt->id,
                 qdq_dtype_name((qdq_dtype)lt->data_type));
    if (ranked)
        add_s64s(out, lt->dims, n);
    else
        add_s64s(out, unknown, 1);
    abi_text_add(out, ", \"stride\": ");
    if (lt->layout_type == dnnl_graph_layout_type_strided && ranked)
        add_s64s(out, lt->layout.strides, n);
    else
        add_s64s(out, unknown, 1);
    abi_text_add(out, ", \"layout_type\": \"%s\", \"property_type\": \"%s\"}", layouts[lt->layout_type],
                 properties[lt->property]);
}

static void add_lts(abi_text *out, const char *what, const abi_lt *lts, size_t n, const abi_code *code) {
    abi_text_add(out, "      \"%s\": [", what);
    for (size_t i = 0; i < n; i++) {
        const abi_lt *lt = &lts[i];
        /* a partition is dumped as it was compiled */
        for (size_t k = 0; code != NULL && k < code->n_in + code->n_out; k++) {
            const abi_port *port = k < code->n_in ? &code->in[k] : &code->out[k - code->n_in];
            if (port->lt.id == lt->id) lt = &port->lt;
        }
        abi_text_add(out, "%s\n", i == 0 ? "" : ",");
        add_lt(out, lt);
    }
    abi_text_add(out, "%s]", n == 0 ? "" : "\n      ");
}

static void add_op(abi_text *out, const abi_op *op, const abi_code *code) {
    abi_text_add(out, "    {\n      \"id\": %zu,\n      \"name\": ", op->id);
    add_string(out, op->name);
    abi_text_add(out, ",\n      \"kind\": \"%s\",\n      \"attrs\": {", abi_kind_name(op->kind));
    for (size_t i = 0; i < op->n_attrs; i++) {
        abi_text_add(out, "%s\n", i == 0 ? "" : ",");
        add_attr(out, &op->attrs[i]);
    }
    abi_text_add(out, "%s},\n", op->n_attrs == 0 ? "" : "\n      ");
    add_lts(out, "inputs", op->in, op->n_in, code);
    abi_text_add(out, ",\n");
    add_lts(out, "outputs", op->out, op->n_out, code);
    abi_text_add(out, "\n    }");
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static void add_head(abi_text *out, const abi_core *core, const size_t *in, size_t n_in, const size_t *end,
                     size_t n_end) {
    const dnnl_version_t *v = dnnl_version();
    abi_text_add(out, "{\n  \"version\": \"%d.%d.%d\",\n  \"engine_kind\": \"%s\",\n", v->major, v->minor, v->patch,
                 core->kind == dnnl_gpu ? "gpu" : "cpu");
    abi_text_add(out, "  \"fpmath_mode\": \"%s\",\n  \"fpmath_mode_apply_to_int\": \"%s\",\n",
                 abi_mode_name(core->mode), core->apply_to_int ? "true" : "false");
    abi_text_add(out, "  \"input_ports\": ");
    add_ids(out, in, n_in);
    abi_text_add(out, ",\n  \"output_ports\": ");
    add_ids(out, end, n_end);
    abi_text_add(out, ",\n  \"graph\": [");
}

static void add_ops(abi_text *out, abi_op *const *ops, size_t n, const abi_code *code) {
    for (size_t i = 0; i < n; i++) {
        abi_text_add(out, "%s\n", i == 0 ? "" : ",");
        add_op(out, ops[i], code);
    }
    abi_text_add(out, "\n  ]\n}\n");
}

static void write_file(const char *path, abi_text *text) {
    FILE *f = text->failed ? NULL : fopen(path, "w");
    if (f != NULL) {
        fwrite(text->s, 1, text->n, f);
        fclose(f);
    }
    abi_text_free(text);
}

void abi_dump_graph(const abi_core *core) {
    pthread_once(&once, read_environment);
    if (!graphs) return;
    size_t n_in = 0, n_out = 0, *in = abi_calloc(core->n_values, sizeof *in),
           *out = abi_calloc(core->n_values, sizeof *out);
    abi_text text = {.failed = in == NULL || out == NULL};
    for (size_t i = 0; !text.failed && i < core->n_values; i++) {
        const abi_value *v = &core->values[i];
        if (v->producer == ABI_NONE)
            in[n_in++] = v->lt->id;
        else if (v->ended || !v->used)
            out[n_out++] = v->lt->id;
    }
    if (!text.failed) {
        add_head(&text, core, in, n_in, out, n_out);
        add_ops(&text, core->ops, core->n_ops, NULL);
    }
    char path[64];
    snprintf(path, sizeof path, "graph-%zu.json", core->id);
    write_file(path, &text);
    free(in);
    free(out);
}

void abi_dump_code(const abi_code *code) {
    pthread_once(&once, read_environment);
    if (!subgraphs) return;
    uint64_t hash = 0;
    const size_t n = code->n_in + code->n_out;
    size_t *ids = abi_calloc(n, sizeof *ids);
    abi_text text = {.failed = ids == NULL};
    for (size_t i = 0; !text.failed && i < n; i++) {
        const abi_port *port = i < code->n_in ? &code->in[i] : &code->out[i - code->n_in];
        ids[i] = port->lt.id;
        hash = hash * 31 + port->signature;
    }
    if (!text.failed) {
        add_head(&text, code->partition->list->core, ids, code->n_in, ids + code->n_in, code->n_out);
        add_ops(&text, code->partition->ops, code->partition->n_ops, code);
    }
    char path[80];
    snprintf(path, sizeof path, "graph-%zu-%llu.json", code->partition->id, (unsigned long long)hash);
    write_file(path, &text);
    free(ids);
}
