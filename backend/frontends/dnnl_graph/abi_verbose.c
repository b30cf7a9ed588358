/* Lines as libdnnl prints them, on stdout, when ONEDNN_VERBOSE asks for them. */
#include "abi.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int flags;
static bool timestamps;

typedef struct word {
    const char *text;
    int flags;
} word;

static const word words[] = {{"0", 0},
                             {"none", 0},
                             {"1", ABI_VERBOSE_ERROR | ABI_VERBOSE_EXEC},
                             {"2", ABI_VERBOSE_ERROR | ABI_VERBOSE_EXEC | ABI_VERBOSE_CREATE},
                             {"all", ABI_VERBOSE_ERROR | ABI_VERBOSE_EXEC | ABI_VERBOSE_CREATE},
                             {"-1", ABI_VERBOSE_ERROR | ABI_VERBOSE_EXEC | ABI_VERBOSE_CREATE},
                             {"error", ABI_VERBOSE_ERROR},
                             {"check", ABI_VERBOSE_ERROR},
                             {"profile", ABI_VERBOSE_EXEC | ABI_VERBOSE_CREATE},
                             {"profile_exec", ABI_VERBOSE_EXEC},
                             {"profile_create", ABI_VERBOSE_CREATE}};

static const char *variable(const char *name) {
    char full[64];
    snprintf(full, sizeof full, "ONEDNN_%s", name);
    const char *text = getenv(full);
    if (text != NULL) return text;
    snprintf(full, sizeof full, "DNNL_%s", name);
    return getenv(full);
}

static bool is(const char *piece, size_t n, const char *text) {
    return strlen(text) == n && memcmp(piece, text, n) == 0;
}

/* "filter=graph|matmul": whether graph lines are among what it lets through. */
static bool lets_through(const char *filter, size_t n) {
    const char *end = filter + n;
    while (filter < end) {
        const char *bar = memchr(filter, '|', (size_t)(end - filter));
        const size_t piece = (size_t)((bar != NULL ? bar : end) - filter);
        if (piece > 0 && piece <= 5 && memcmp("graph", filter, piece) == 0) return true;
        filter += piece + 1;
    }
    return false;
}

static void read_environment(void) {
    static const char filter[] = "filter=";
    const char *text = variable("VERBOSE"), *stamp = variable("VERBOSE_TIMESTAMP");
    bool graph = true;
    timestamps = stamp != NULL && strcmp(stamp, "0") != 0 && *stamp != '\0';
    while (text != NULL && *text != '\0') {
        const size_t n = strcspn(text, ",");
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (is(text, n, words[i].text)) flags |= words[i].flags;
        if (n > sizeof filter - 1 && memcmp(text, filter, sizeof filter - 1) == 0)
            graph = lets_through(text + sizeof filter - 1, n - (sizeof filter - 1));
        text += n + (text[n] == ',');
    }
    if (!graph) flags = 0;
}

int abi_verbose(void) {
    pthread_once(&once, read_environment);
    return flags;
}

double abi_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- the parts of a line ---------------------------------------------------------------------------------------- */

/* What a partition mainly computes, as libdnnl names it. */
typedef struct family {
    dnnl_graph_op_kind_t kind;
    const char *name;
} family;

static const family families[] = {{dnnl_graph_op_matmul, "matmul_post_ops"},
                                  {dnnl_graph_op_convolution, "convolution_post_ops"},
                                  {dnnl_graph_op_conv_transpose, "convtranspose_post_ops"},
                                  {dnnl_graph_op_avg_pool, "pooling_post_ops"},
                                  {dnnl_graph_op_max_pool, "pooling_post_ops"},
                                  {dnnl_graph_op_batch_norm_inference, "batch_norm_post_ops"},
                                  {dnnl_graph_op_interpolate, "interpolate_post_ops"},
                                  {dnnl_graph_op_reduce_l1, "reduction_post_ops"},
                                  {dnnl_graph_op_reduce_l2, "reduction_post_ops"},
                                  {dnnl_graph_op_reduce_max, "reduction_post_ops"},
                                  {dnnl_graph_op_reduce_mean, "reduction_post_ops"},
                                  {dnnl_graph_op_reduce_min, "reduction_post_ops"},
                                  {dnnl_graph_op_reduce_prod, "reduction_post_ops"},
                                  {dnnl_graph_op_reduce_sum, "reduction_post_ops"}};

static bool is_quantizer(const abi_op *op) {
    return op->kind == dnnl_graph_op_quantize || op->kind == dnnl_graph_op_dequantize ||
           op->kind == dnnl_graph_op_dynamic_quantize || op->kind == dnnl_graph_op_dynamic_dequantize;
}

static void add_kind(abi_text *line, const struct dnnl_graph_partition *p) {
    const char *name = NULL;
    bool quantized = false;
    size_t n_products = 0, n_others = 0;
    for (size_t i = 0; i < p->n_ops; i++) {
        const abi_op *op = p->ops[i];
        quantized |= is_quantizer(op);
        n_others += !is_quantizer(op);
        n_products += op->kind == dnnl_graph_op_matmul;
        for (size_t k = 0; name == NULL && k < sizeof families / sizeof families[0]; k++)
            if (op->kind == families[k].kind) name = families[k].name;
    }
    if (n_products > 1) name = "sdp";
    if (name == NULL)
        abi_text_add(line, "%s", quantized && n_others > 0 ? "misc_quantized_post_ops" : "misc_post_ops");
    else
        abi_text_add(line, "%s%s", quantized ? "quantized_" : "", name);
}

static void add_formats(abi_text *line, const struct dnnl_graph_partition *p) {
    bool any = false;
    for (size_t i = 0; i < p->n_ops; i++) {
        const abi_attr *data = abi_op_attr(p->ops[i], dnnl_graph_op_attr_data_format);
        const abi_attr *weights = abi_op_attr(p->ops[i], dnnl_graph_op_attr_weights_format);
        if (any) abi_text_add(line, ";");
        any |= data != NULL || weights != NULL;
        if (data != NULL) abi_text_add(line, "data:%s;", data->v.text);
        if (weights != NULL) abi_text_add(line, "%sfilter:%s;", data != NULL ? " " : "", weights->v.text);
    }
}

static const char *property_name(dnnl_graph_tensor_property_t property) {
    return property == dnnl_graph_tensor_property_constant   ? "constant"
           : property == dnnl_graph_tensor_property_variable ? "variable"
                                                             : "undef";
}

static void add_numbers(abi_text *line, const int64_t *numbers, int n, char between) {
    for (int i = 0; i < n; i++)
        abi_text_add(line, "%.*s%lld", i != 0, &between, (long long)numbers[i]);
}

static void add_lt(abi_text *line, const char *what, size_t i, const abi_lt *lt) {
    abi_text_add(line, "%s%zu_%s:%zu:strided:%s:", what, i, qdq_dtype_name((qdq_dtype)lt->data_type), lt->id,
                 property_name(lt->property));
    add_numbers(line, lt->dims, lt->ndims, 'x');
    abi_text_add(line, ":");
    add_numbers(line, lt->layout.strides, lt->ndims, 's');
}

/* How it is computed, with nothing in it that would end a field. */
static void add_summary(abi_text *line, const abi_code *code) {
    const size_t start = line->n;
    if (code->compiled != NULL) abi_text_add(line, "%s", qdq_compiled_summary(code->compiled));
    for (size_t i = 0; i < qdq_session_n_parts(code->session); i++) {
        qdq_session_part_info info;
        if (qdq_session_part(code->session, i, &info, NULL) == QDQ_OK)
            abi_text_add(line, "%s%s", i == 0 ? "" : " + ", info.impl);
    }
    for (size_t i = start; !line->failed && i < line->n; i++)
        if (line->s[i] == ',' || line->s[i] == '\n') line->s[i] = ';';
}

char *abi_verbose_line(const abi_code *code) {
    const struct dnnl_graph_partition *p = code->partition;
    const abi_core *core = p->list->core;
    abi_text line = {0};
    add_kind(&line, p);
    abi_text_add(&line, ",");
    for (size_t i = 0; i < p->n_ops; i++)
        abi_text_add(&line, "%s%s", i == 0 ? "" : ";", p->ops[i]->name);
    abi_text_add(&line, ",");
    add_formats(&line, p);
    abi_text_add(&line, ",");
    for (size_t i = 0; i < code->n_in; i++) {
        add_lt(&line, "in", i, &code->in[i].lt);
        abi_text_add(&line, " ");
    }
    for (size_t i = 0; i < code->n_out; i++) {
        add_lt(&line, "out", i, &code->out[i].lt);
        if (i + 1 < code->n_out) abi_text_add(&line, " ");
    }
    abi_text_add(&line, ",fpm:%s%s,", abi_mode_name(core->mode), core->apply_to_int ? ":true" : "");
    add_summary(&line, code);
    if (!line.failed) return line.s;
    abi_text_free(&line);
    return NULL;
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

/* "onednn_verbose,v1," and when it is, if that is wanted. */
static void head(char *text, size_t bytes) {
    if (!timestamps) {
        snprintf(text, bytes, "onednn_verbose,v1");
        return;
    }
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(text, bytes, "onednn_verbose,v1,%.4f", 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec);
}

void abi_verbose_print(const char *what, const_dnnl_graph_compiled_partition_t cp, double ms) {
    char start[64];
    head(start, sizeof start);
    printf("%s,graph,%s,cpu,%zu,%s,qdq_backend,%g\n", start, what, cp->partition->id, cp->code->line, ms);
    fflush(stdout);
}

dnnl_status_t abi_fail(dnnl_status_t status, const char *call, const qdq_error *err) {
    if ((abi_verbose() & ABI_VERBOSE_ERROR) == 0) return status;
    char start[64];
    head(start, sizeof start);
    printf("%s,graph,error,%s,status %d,%s\n", start, call, (int)status, err == NULL ? "" : err->text);
    fflush(stdout);
    return status;
}
