#include "cli/cli_model.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* ---- arguments ---- */

static const char *name_of(qdqi_model_args *model, const char *value, const char *end) {
    const size_t n = (size_t)(end - value);
    char *name = qdqi_malloc(n + 1);
    if (name == NULL) return NULL;
    memcpy(name, value, n);
    name[n] = '\0';
    model->owned[model->n_owned++] = name;
    return name;
}

static int no_memory(void) {
    qdq_error err = {0};
    (void)QDQI_NO_MEMORY(&err);
    return qdqi_cli_failed(&err);
}

static int take_dim(const qdqi_command *command, qdqi_model_args *model, const char *value) {
    if (model->n_dims == QDQI_MODEL_MAX_ITEMS)
        return qdqi_cli_usage_error(command, "more than %d dims", QDQI_MODEL_MAX_ITEMS);
    const char *equals = strrchr(value, '=');
    int64_t v = 0;
    if (equals == NULL || equals == value || !qdqi_parse_i64(equals + 1, 0, INT64_MAX, &v))
        return qdqi_cli_usage_error(command, "--dim %.80s is not NAME=SIZE", value);
    const char *name = name_of(model, value, equals);
    if (name == NULL) return no_memory();
    model->dims[model->n_dims++] = (qdq_dim_binding){.name = name, .value = v};
    return QDQI_EXIT_OK;
}

static int take_shape(const qdqi_command *command, qdqi_model_args *model, const char *value) {
    if (model->n_shapes == QDQI_MODEL_MAX_ITEMS)
        return qdqi_cli_usage_error(command, "more than %d shapes", QDQI_MODEL_MAX_ITEMS);
    const char *colon = strrchr(value, ':');
    int64_t *dims = model->shape_dims[model->n_shapes];
    int32_t ndims = 0;
    if (colon == NULL || colon == value || !qdqi_parse_shape(colon + 1, &ndims, dims))
        return qdqi_cli_usage_error(command, "--shape %.80s is not NAME:1x3x224x224", value);
    const char *name = name_of(model, value, colon);
    if (name == NULL) return no_memory();
    model->shapes[model->n_shapes++] = (qdq_input_shape){.name = name, .ndims = ndims, .dims = dims};
    return QDQI_EXIT_OK;
}

int qdqi_model_option(const qdqi_command *command, qdqi_model_args *model, qdqi_args *from, const char *option,
                      const char *value, bool *taken_out) {
    *taken_out = true;
    if (option == NULL) {
        if (model->path != NULL) return qdqi_cli_usage_error(command, "two files: %.80s", value);
        model->path = value;
        return QDQI_EXIT_OK;
    }
    const bool is_dim = strcmp(option, "--dim") == 0;
    if (is_dim || strcmp(option, "--shape") == 0) {
        value = qdqi_args_value(from, value);
        if (value == NULL) return qdqi_cli_usage_error(command, "%s needs a value", option);
        return is_dim ? take_dim(command, model, value) : take_shape(command, model, value);
    }
    if (value == NULL && strcmp(option, "--single") == 0) {
        model->single = true;
    } else if (value == NULL && strcmp(option, "--reference") == 0) {
        model->reference = true;
    } else {
        *taken_out = false;
    }
    return QDQI_EXIT_OK;
}

void qdqi_model_args_free(qdqi_model_args *model) {
    for (size_t i = 0; i < model->n_owned; i++)
        qdqi_free(model->owned[i]);
    model->n_owned = 0;
}

/* ---- loading ---- */

static qdq_status load_onnx(const qdqi_model_args *model, qdq_graph **graph_out, qdq_error *err) {
    const qdq_onnx_options options = {.struct_bytes = sizeof options,
                                      .dims = model->dims,
                                      .n_dims = model->n_dims,
                                      .shapes = model->shapes,
                                      .n_shapes = model->n_shapes};
    return qdq_onnx_load_file(model->path, &options, graph_out, err);
}

static qdq_status read_case(const qdqi_model_args *model, qdq_graph **graph_out, qdq_error *err) {
    if (model->n_dims != 0)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "%s: a case has no dimension \"%s\": use --shape", model->path,
                         model->dims[0].name);
    qdqi_text shapes = {0};
    for (size_t i = 0; i < model->n_shapes; i++)
        qdqi_text_add(&shapes, "%s%s:%s", i == 0 ? "" : "+", model->shapes[i].name,
                      qdqi_shape_str(model->shapes[i].ndims, model->shapes[i].dims).s);
    if (shapes.failed) return QDQI_NO_MEMORY(err);
    const qdq_json_options options = {.struct_bytes = sizeof options, .in_shapes = shapes.s};
    const qdq_status st = qdq_json_load_file(model->path, &options, graph_out, err);
    qdqi_text_free(&shapes);
    return st;
}

/* Legal as weights, scales, zero points and indices alike. */
static void fill(qdqi_array *array) {
    int64_t n = 1;
    for (int32_t d = 0; d < array->ndims; d++)
        n *= array->dims[d];
    const bool is_float = qdqi_dtype_is_float(array->dtype);
    for (int64_t i = 0; i < n; i++) {
        if (is_float)
            qdqi_store_f32(array->data, array->dtype, i, 0.0625f * (float)(1 + i % 7));
        else
            qdqi_store_i64(array->data, array->dtype, i, qdq_dtype_bits(array->dtype) > 8 ? 0 : i % 7);
    }
}

static qdq_status attach(qdq_graph *graph, const qdq_tensor_desc *desc, qdq_error *err) {
    qdqi_array array = {0};
    QDQI_TRY(qdqi_array_create(desc, &array, err));
    fill(&array);
    const qdq_status st = qdq_graph_set_constant(graph, desc, array.data, array.bytes, QDQ_DATA_COPY, err);
    qdqi_array_free(&array);
    return st;
}

/* `known` is the same case, finalized: it knows which inputs are constants. */
static qdq_status attach_all(const qdq_graph *known, qdq_graph *graph, qdq_error *err) {
    for (size_t i = 0; i < qdq_graph_n_inputs(known); i++) {
        qdq_tensor_desc desc;
        QDQI_TRY(qdq_graph_input_desc(known, i, &desc, NULL, err));
        if (desc.property != QDQ_PROPERTY_CONSTANT || desc.layout != QDQ_LAYOUT_STRIDED) continue;
        QDQI_TRY(attach(graph, &desc, err));
    }
    return qdq_graph_finalize(graph, err);
}

static qdq_status load_case(const qdqi_model_args *model, qdq_graph **graph_out, qdq_error *err) {
    qdq_graph *plain = NULL, *filled = NULL;
    qdq_status st = read_case(model, &plain, err);
    if (st == QDQ_OK) st = qdq_graph_finalize(plain, err);
    if (st == QDQ_OK) st = read_case(model, &filled, err);
    /* where invented content is not legal, the case is shown with constants of unknown content */
    if (st == QDQ_OK && attach_all(plain, filled, NULL) == QDQ_OK) {
        qdq_graph_destroy(&plain);
        plain = filled;
        filled = NULL;
    }
    qdq_graph_destroy(&filled);
    if (st != QDQ_OK) {
        qdq_graph_destroy(&plain);
        return st;
    }
    *graph_out = plain;
    return QDQ_OK;
}

qdq_status qdqi_model_load(const qdqi_model_args *model, qdq_graph **graph_out, qdq_error *err) {
    const size_t n = strlen(model->path);
    const bool is_case = n > 5 && strcmp(model->path + n - 5, ".json") == 0;
    return is_case ? load_case(model, graph_out, err) : load_onnx(model, graph_out, err);
}

qdq_status qdqi_model_explain(const qdqi_model_args *model, qdq_explanation **explanation_out, qdq_error *err) {
    qdq_graph *graph = NULL;
    qdq_engine *engine = NULL;
    const qdq_session_options options = {.struct_bytes = sizeof options,
                                         .policy = model->single ? QDQ_POLICY_SINGLE : QDQ_POLICY_FUSION,
                                         .reference = model->reference};
    qdq_status st = qdqi_model_load(model, &graph, err);
    if (st == QDQ_OK) st = qdq_engine_create(NULL, &engine, err);
    if (st == QDQ_OK) st = qdq_explanation_create(graph, engine, &options, explanation_out, err);
    qdq_engine_destroy(&engine);
    qdq_graph_destroy(&graph);
    return st;
}

static void insert(int32_t *order, int32_t n, int32_t at, int32_t d) {
    for (int32_t k = n; k > at; k--)
        order[k] = order[k - 1];
    order[at] = d;
}

qdqi_layout_text qdqi_layout_str(const qdq_tensor_desc *desc) {
    qdqi_layout_text out = {""};
    bool known = desc->layout == QDQ_LAYOUT_STRIDED && desc->ndims >= 0;
    for (int32_t d = 0; known && d < desc->ndims; d++)
        known = desc->dims[d] != QDQ_DIM_UNKNOWN;
    if (!known) {
        snprintf(out.s, sizeof out.s, "any");
        return out;
    }
    int32_t order[QDQ_MAX_NDIMS];
    int32_t n = 0, n_leading = 0;
    while (n_leading < desc->ndims && desc->dims[n_leading] == 1)
        n_leading++;
    for (int32_t d = 0; d < desc->ndims; d++) {
        if (desc->dims[d] == 1) continue;
        int32_t at = n;
        while (at > 0 && desc->strides[order[at - 1]] < desc->strides[d])
            at--;
        insert(order, n++, at, d);
    }
    /* a dim of size 1 has no place of its own: it stands before the next dim, and leading ones stay in front */
    for (int32_t d = desc->ndims - 1; d >= 0; d--) {
        if (desc->dims[d] != 1) continue;
        int32_t at = d < n_leading ? 0 : n;
        for (int32_t k = 0; d >= n_leading && k < n; k++)
            if (order[k] == d + 1) at = k;
        insert(order, n++, at, d);
    }
    for (int32_t d = 0; d < desc->ndims; d++)
        out.s[d] = (char)('a' + order[d]);
    if (desc->ndims == 0) out.s[0] = '-';
    return out;
}
