/* An ONNX model to a finalized graph: names, inputs, constants, then node by node through the table. */
#include "onnx_reader.h"

#include "base/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MIN_OPSET = 10, MAX_OPSET = 28 };

static const char *text_of(const char *s) {
    return s == NULL ? "" : s;
}

/* ---- values by name ---- */

static uint64_t hash_of(const char *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s != '\0'; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3u;
    return h ^ (h >> 32);
}

static size_t slot_of(const qdqi_onnx_reader *r, const char *name) {
    size_t slot = (size_t)hash_of(name) & (r->n_slots - 1);
    while (r->slots[slot] != 0 && strcmp(r->values[r->slots[slot] - 1].name, name) != 0)
        slot = (slot + 1) & (r->n_slots - 1);
    return slot;
}

static bool grow(qdqi_onnx_reader *r) {
    const size_t cap = r->cap_values == 0 ? 256 : 2 * r->cap_values;
    if (cap > UINT32_MAX / 4) return false;
    qdqi_onnx_value *values = qdqi_realloc_array(r->values, cap, sizeof *values);
    if (values == NULL) return false;
    r->values = values;
    uint32_t *slots = qdqi_calloc(2 * cap, sizeof *slots);
    if (slots == NULL) return false;
    qdqi_free(r->slots);
    r->slots = slots;
    r->n_slots = 2 * cap;
    r->cap_values = cap;
    for (size_t i = 0; i < r->n_values; i++)
        r->slots[slot_of(r, values[i].name)] = (uint32_t)(i + 1);
    return true;
}

/* Without following aliases. */
static qdqi_onnx_value *own_value(const qdqi_onnx_reader *r, const char *name) {
    if (r->n_slots == 0) return NULL;
    const uint32_t found = r->slots[slot_of(r, name)];
    return found == 0 ? NULL : &r->values[found - 1];
}

static qdqi_onnx_value *own_value_made(qdqi_onnx_reader *r, const char *name) {
    qdqi_onnx_value *value = own_value(r, name);
    if (value != NULL) return value;
    if (r->n_values == r->cap_values && !grow(r)) return NULL;
    value = &r->values[r->n_values];
    *value = (qdqi_onnx_value){.name = name, .alias = QDQI_ONNX_NO_ALIAS};
    value->desc.id = r->n_values + 1;
    value->desc.ndims = QDQ_NDIMS_UNKNOWN;
    r->n_values++;
    r->slots[slot_of(r, name)] = (uint32_t)r->n_values;
    return value;
}

/* The value that a name stands for. What was passed on the way is brought to it, so that long chains are followed once. */
static qdqi_onnx_value *resolved(const qdqi_onnx_reader *r, qdqi_onnx_value *value) {
    qdqi_onnx_value *end = value;
    while (end != NULL && end->alias != QDQI_ONNX_NO_ALIAS)
        end = &r->values[end->alias];
    while (value != end) {
        qdqi_onnx_value *next = &r->values[value->alias];
        value->alias = (uint32_t)(end - r->values);
        value = next;
    }
    return end;
}

qdqi_onnx_value *qdqi_onnx_find(const qdqi_onnx_reader *r, const char *name) {
    return resolved(r, own_value(r, name));
}

qdqi_onnx_value *qdqi_onnx_value_of(qdqi_onnx_reader *r, const char *name) {
    return resolved(r, own_value_made(r, name));
}

qdq_status qdqi_onnx_content(qdqi_onnx_reader *r, qdqi_onnx_value *value) {
    if (value->proto == NULL) return QDQ_OK;
    QDQI_TRY(qdqi_onnx_tensor_data(r, value->proto, value->name, &value->desc, &value->data, &value->owned, r->err));
    value->proto = value->owned == NULL ? value->proto : NULL;
    return qdq_tensor_desc_size_bytes(&value->desc, &value->bytes, r->err);
}

/* ---- what the model declares ---- */

static qdq_status add_constant(qdqi_onnx_reader *r, const char *name, Onnx__TensorProto *t) {
    qdqi_onnx_value *value = own_value_made(r, name);
    if (value == NULL) return QDQI_NO_MEMORY(r->err);
    if (value->is_constant)
        return qdqi_fail(r->err, QDQ_E_ONNX, "there are two initializers called \"" QDQI_ONNX_NAME "\"", name);
    const uint64_t id = value->desc.id;
    QDQI_TRY(qdqi_onnx_tensor_desc(t, name, &value->desc, r->err));
    value->desc.id = id;
    value->is_constant = true;
    value->proto = t;
    return QDQ_OK;
}

static qdq_status read_initializers(qdqi_onnx_reader *r) {
    for (size_t i = 0; i < r->graph->n_initializer; i++) {
        Onnx__TensorProto *t = r->graph->initializer[i];
        if (text_of(t->name)[0] == '\0') return qdqi_fail(r->err, QDQ_E_ONNX, "initializer %zu has no name", i);
        QDQI_TRY(add_constant(r, t->name, t));
    }
    for (unsigned i = 0; i < r->graph->base.n_unknown_fields; i++)
        if (r->graph->base.unknown_fields[i].tag == 15)
            return qdqi_fail(r->err, QDQ_E_ONNX, "sparse initializers are not supported");
    return QDQ_OK;
}

/* ---- shapes of inputs ---- */

static const qdq_dim_binding *binding_of(const qdqi_onnx_reader *r, const char *name) {
    for (size_t i = 0; i < r->n_dims; i++)
        if (strcmp(r->dims[i].name, name) == 0) return &r->dims[i];
    return NULL;
}

static qdq_status bind_dim(qdqi_onnx_reader *r, const char *name, int64_t value, const char *where) {
    if (value < 0)
        return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "%s: dimension \"" QDQI_ONNX_NAME "\" cannot be %lld", where, name,
                         (long long)value);
    const qdq_dim_binding *was = binding_of(r, name);
    if (was != NULL && was->value != value)
        return qdqi_fail(r->err, QDQ_E_BAD_SHAPE,
                         "%s: dimension \"" QDQI_ONNX_NAME "\" is %lld here and %lld elsewhere", where, name,
                         (long long)value, (long long)was->value);
    if (was == NULL) r->dims[r->n_dims++] = (qdq_dim_binding){.name = name, .value = value};
    return QDQ_OK;
}

static const Onnx__TensorShapeProto *declared_shape(const Onnx__ValueInfoProto *input) {
    return input->type == NULL || input->type->tensor_type == NULL ? NULL : input->type->tensor_type->shape;
}

/* Shape that the caller gave for an input: an override (`is_data` false), or that of the data at hand. */
static const qdq_input_shape *given_shape(const qdqi_onnx_reader *r, const char *name, size_t position, bool *is_data) {
    const qdq_onnx_options *o = r->options;
    *is_data = false;
    for (size_t i = 0; i < o->n_shapes; i++)
        if (o->shapes[i].name != NULL && strcmp(o->shapes[i].name, name) == 0) return &o->shapes[i];
    *is_data = true;
    for (size_t i = 0; i < o->n_data_shapes; i++)
        if (o->data_shapes[i].name == NULL ? i == position : strcmp(o->data_shapes[i].name, name) == 0)
            return &o->data_shapes[i];
    return NULL;
}

static bool is_real_input(const qdqi_onnx_reader *r, const Onnx__ValueInfoProto *input) {
    const qdqi_onnx_value *value = own_value(r, input->name);
    return value == NULL || !value->is_constant;
}

/* Check a given shape against the declared one, and let it bind the declared names. */
static qdq_status take_given_shape(qdqi_onnx_reader *r, const Onnx__ValueInfoProto *input, const qdq_input_shape *given,
                                   bool is_data) {
    char where[160];
    snprintf(where, sizeof where, "input \"" QDQI_ONNX_NAME "\"", input->name);
    if (given->ndims < 0 || given->ndims > QDQ_MAX_NDIMS)
        return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "%s: the given shape has %ld dimensions", where, (long)given->ndims);
    for (int32_t d = 0; d < given->ndims; d++)
        if (given->dims[d] < 0)
            return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "%s: dimension %ld of the given shape is %lld", where, (long)d,
                             (long long)given->dims[d]);
    const Onnx__TensorShapeProto *shape = declared_shape(input);
    if (shape == NULL) return QDQ_OK;
    if (shape->n_dim != (size_t)given->ndims)
        return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "%s: found %ld dimensions, the model expects %zu", where,
                         (long)given->ndims, shape->n_dim);
    for (int32_t d = 0; d < given->ndims; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[d];
        if (is_data && dim->has_dim_value && dim->dim_value != given->dims[d])
            return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "%s: dimension %ld is %lld, the model expects %lld", where,
                             (long)d, (long long)given->dims[d], (long long)dim->dim_value);
        if (text_of(dim->dim_param)[0] != '\0') QDQI_TRY(bind_dim(r, dim->dim_param, given->dims[d], where));
    }
    return QDQ_OK;
}

static qdq_status declared_dim(const qdqi_onnx_reader *r, const Onnx__TensorShapeProto__Dimension *dim,
                               int64_t *dim_out) {
    const qdq_dim_binding *bound = text_of(dim->dim_param)[0] == '\0' ? NULL : binding_of(r, dim->dim_param);
    if (dim->has_dim_value)
        *dim_out = dim->dim_value;
    else if (bound != NULL)
        *dim_out = bound->value;
    else
        *dim_out = r->options->default_dim == 0 ? 1 : r->options->default_dim;
    return QDQ_OK;
}

static qdq_status read_input(qdqi_onnx_reader *r, const Onnx__ValueInfoProto *input, size_t position) {
    if (input->type == NULL || input->type->tensor_type == NULL)
        return qdqi_fail(r->err, QDQ_E_ONNX, "input \"" QDQI_ONNX_NAME "\" is not a tensor", input->name);
    const int64_t type = input->type->tensor_type->has_elem_type ? input->type->tensor_type->elem_type : 0;
    const qdq_dtype dtype = qdqi_onnx_dtype(type);
    if (dtype == QDQ_DTYPE_UNDEF)
        return qdqi_fail(r->err, QDQ_E_ONNX, "input \"" QDQI_ONNX_NAME "\": data type %s (%lld) is not supported",
                         input->name, qdqi_onnx_dtype_text(type), (long long)type);
    int64_t dims[QDQ_MAX_NDIMS] = {0};
    int32_t ndims = 0;
    bool is_data = false;
    const qdq_input_shape *given = given_shape(r, input->name, position, &is_data);
    const Onnx__TensorShapeProto *shape = declared_shape(input);
    if (given != NULL) {
        ndims = given->ndims;
        if (ndims > 0) memcpy(dims, given->dims, (size_t)ndims * sizeof dims[0]);
    } else if (shape == NULL) {
        return qdqi_fail(r->err, QDQ_E_ONNX, "input \"" QDQI_ONNX_NAME "\" has no shape in the model: give one",
                         input->name);
    } else {
        if (shape->n_dim > QDQ_MAX_NDIMS)
            return qdqi_fail(r->err, QDQ_E_ONNX,
                             "input \"" QDQI_ONNX_NAME "\" has %zu dimensions, at most %d are supported", input->name,
                             shape->n_dim, QDQ_MAX_NDIMS);
        ndims = (int32_t)shape->n_dim;
        for (int32_t d = 0; d < ndims; d++) {
            QDQI_TRY(declared_dim(r, shape->dim[d], &dims[d]));
            if (dims[d] < 0)
                return qdqi_fail(r->err, QDQ_E_ONNX, "input \"" QDQI_ONNX_NAME "\": dimension %ld is %lld", input->name,
                                 (long)d, (long long)dims[d]);
        }
    }
    qdqi_onnx_value *value = own_value_made(r, input->name);
    if (value == NULL) return QDQI_NO_MEMORY(r->err);
    if (value->is_input)
        return qdqi_fail(r->err, QDQ_E_ONNX, "there are two inputs called \"" QDQI_ONNX_NAME "\"", input->name);
    const uint64_t id = value->desc.id;
    const qdq_status st =
        qdq_tensor_desc_init(id, dtype, ndims, dims, QDQ_LAYOUT_STRIDED, QDQ_PROPERTY_VARIABLE, &value->desc, r->err);
    if (st != QDQ_OK) return qdqi_fail_in(r->err, st, "input \"" QDQI_ONNX_NAME "\"", input->name);
    value->is_input = true;
    return QDQ_OK;
}

/* Every name that the caller gave must be one of the model's. */
static qdq_status check_given_names(qdqi_onnx_reader *r, const qdq_input_shape *shapes, size_t n, size_t n_inputs) {
    for (size_t i = 0; i < n; i++) {
        const char *name = shapes[i].name;
        if (name == NULL) {
            if (i < n_inputs) continue;
            return qdqi_fail(r->err, QDQ_E_NOT_FOUND, "%zu inputs are given, the model has %zu", n, n_inputs);
        }
        const qdqi_onnx_value *value = own_value(r, name);
        if (value == NULL || !value->is_input)
            return qdqi_fail(r->err, QDQ_E_NOT_FOUND, "the model has no input called \"" QDQI_ONNX_NAME "\"", name);
    }
    return QDQ_OK;
}

static qdq_status read_inputs(qdqi_onnx_reader *r) {
    const qdq_onnx_options *o = r->options;
    size_t most = o->n_dims;
    for (size_t i = 0; i < r->graph->n_input; i++) {
        const Onnx__TensorShapeProto *shape = declared_shape(r->graph->input[i]);
        most += shape == NULL ? 0 : shape->n_dim;
        if (text_of(r->graph->input[i]->name)[0] == '\0')
            return qdqi_fail(r->err, QDQ_E_ONNX, "graph input %zu has no name", i);
    }
    r->dims = qdqi_arena_alloc(&r->arena, most + 1, sizeof *r->dims);
    if (r->dims == NULL) return QDQI_NO_MEMORY(r->err);
    for (size_t i = 0; i < o->n_dims; i++) {
        if (o->dims[i].name == NULL) return qdqi_fail(r->err, QDQ_E_NULL_ARG, "dimension binding %zu has no name", i);
        QDQI_TRY(bind_dim(r, o->dims[i].name, o->dims[i].value, "options"));
    }
    /* all given shapes bind names before any input is resolved: one name may stand in several inputs */
    size_t position = 0;
    for (size_t i = 0; i < r->graph->n_input; i++) {
        if (!is_real_input(r, r->graph->input[i])) continue;
        bool is_data = false;
        const qdq_input_shape *given = given_shape(r, r->graph->input[i]->name, position++, &is_data);
        if (given != NULL) QDQI_TRY(take_given_shape(r, r->graph->input[i], given, is_data));
    }
    const size_t n_inputs = position;
    position = 0;
    for (size_t i = 0; i < r->graph->n_input; i++)
        if (is_real_input(r, r->graph->input[i])) QDQI_TRY(read_input(r, r->graph->input[i], position++));
    QDQI_TRY(check_given_names(r, o->shapes, o->n_shapes, n_inputs));
    return check_given_names(r, o->data_shapes, o->n_data_shapes, n_inputs);
}

/* ---- nodes ---- */

static bool is_default_domain(const char *domain) {
    return domain == NULL || domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

static int64_t opset_of(const qdqi_onnx_reader *r, const char *domain) {
    for (size_t i = 0; i < r->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = r->model->opset_import[i];
        const bool is_same =
            is_default_domain(domain) ? is_default_domain(o->domain) : strcmp(text_of(o->domain), domain) == 0;
        if (is_same) return o->has_version ? o->version : 0;
    }
    return 0;
}

static bool is_op(const Onnx__NodeProto *node, const char *op_type) {
    return is_default_domain(node->domain) && strcmp(text_of(node->op_type), op_type) == 0;
}

/* A name for messages; nodes often have none. */
static qdq_status node_name(qdqi_onnx_reader *r, size_t i, const char **name_out) {
    const Onnx__NodeProto *node = r->graph->node[i];
    *name_out = text_of(node->name);
    if ((*name_out)[0] != '\0') return QDQ_OK;
    char text[128];
    snprintf(text, sizeof text, "#%zu %.80s", i, text_of(node->op_type));
    *name_out = qdqi_arena_strdup(&r->arena, text);
    return *name_out == NULL ? QDQI_NO_MEMORY(r->err) : QDQ_OK;
}

static qdq_status make_node(qdqi_onnx_reader *r, size_t i, const char *name, qdqi_onnx_node *out) {
    const Onnx__NodeProto *proto = r->graph->node[i];
    const char *domain = is_default_domain(proto->domain) ? "" : proto->domain;
    *out = (qdqi_onnx_node){.r = r, .proto = proto, .name = name, .opset = opset_of(r, domain), .err = r->err};
    out->row = qdqi_onnx_row_of(domain, proto->op_type, out->opset);
    if (out->row == NULL)
        return qdqi_fail(r->err, QDQ_E_ONNX,
                         "node \"" QDQI_ONNX_NAME
                         "\": op type %.60s of domain \"%.60s\" at opset %lld is not supported",
                         name, proto->op_type, domain[0] == '\0' ? "ai.onnx" : domain, (long long)out->opset);
    for (size_t k = 0; k < proto->n_attribute; k++)
        if (text_of(proto->attribute[k]->ref_attr_name)[0] != '\0')
            return qdqi_onnx_bad(out, "attribute %.60s refers to a function's attribute",
                                 text_of(proto->attribute[k]->name));
    const qdqi_onnx_row *row = out->row;
    if (proto->n_input < (size_t)row->min_in || (row->max_in >= 0 && proto->n_input > (size_t)row->max_in))
        return qdqi_onnx_bad(out, "has %zu inputs, expected %d…%d", proto->n_input, row->min_in, row->max_in);
    for (size_t k = 0; k < (size_t)row->min_in; k++)
        if (!qdqi_onnx_has_in(out, k)) return qdqi_onnx_bad(out, "input %zu is missing", k);
    if (proto->n_output < 1 || (row->max_out >= 0 && proto->n_output > (size_t)row->max_out))
        return qdqi_onnx_bad(out, "has %zu outputs, expected 1…%d", proto->n_output, row->max_out);
    return QDQ_OK;
}

/* Attributes that change nothing here: training, hints, details of modes that are refused elsewhere. */
static bool is_idle_attr(const char *name) {
    static const char *const idle[] = {
        "storage_order", "stash_type",      "momentum",      "ratio",           "seed",
        "is_test",       "consumed_inputs", "cubic_coeff_a", "exclude_outside", "extrapolation_value"};
    for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++)
        if (strcmp(name, idle[i]) == 0) return true;
    return false;
}

static qdq_status convert_node(qdqi_onnx_node *n) {
    if (n->proto->n_attribute > 64)
        return qdqi_onnx_bad(n, "has %zu attributes, at most 64 are supported", n->proto->n_attribute);
    QDQI_TRY(n->row->convert(n));
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const char *name = text_of(n->proto->attribute[i]->name);
        if ((n->read >> i & 1) == 0 && !is_idle_attr(name))
            return qdqi_onnx_bad(n, "attribute %.60s is not supported", name);
    }
    return QDQ_OK;
}

/* Who makes which tensor; constants of Constant nodes; names that are only other names. */
static qdq_status read_node_names(qdqi_onnx_reader *r, const char **names) {
    for (size_t i = 0; i < r->graph->n_node; i++) {
        const Onnx__NodeProto *node = r->graph->node[i];
        if (text_of(node->op_type)[0] == '\0') return qdqi_fail(r->err, QDQ_E_ONNX, "node %zu has no op type", i);
        QDQI_TRY(node_name(r, i, &names[i]));
        for (size_t k = 0; k < node->n_output; k++) {
            if (node->output[k][0] == '\0') continue;
            qdqi_onnx_value *value = own_value_made(r, node->output[k]);
            if (value == NULL) return QDQI_NO_MEMORY(r->err);
            if (value->producer != NULL || value->is_input || value->is_constant)
                return qdqi_fail(r->err, QDQ_E_ONNX,
                                 "tensor \"" QDQI_ONNX_NAME "\", an output of node \"" QDQI_ONNX_NAME
                                 "\", is also %s \"" QDQI_ONNX_NAME "\"",
                                 value->name, names[i],
                                 value->is_input      ? "the graph input"
                                 : value->is_constant ? "the initializer"
                                                      : "an output of node",
                                 value->producer == NULL ? value->name : value->producer);
            value->producer = names[i];
        }
    }
    for (size_t i = 0; i < r->graph->n_node; i++)
        for (size_t k = 0; k < r->graph->node[i]->n_input; k++) {
            const char *name = r->graph->node[i]->input[k];
            const qdqi_onnx_value *value = name[0] == '\0' ? NULL : own_value(r, name);
            if (name[0] != '\0' &&
                (value == NULL || (value->producer == NULL && !value->is_input && !value->is_constant)))
                return qdqi_fail(r->err, QDQ_E_ONNX,
                                 "node \"" QDQI_ONNX_NAME "\" reads tensor \"" QDQI_ONNX_NAME
                                 "\", which no node makes and no initializer holds",
                                 names[i], name);
        }
    return QDQ_OK;
}

/* Identity, and Dropout outside of training, only give a tensor a second name. */
static bool is_renaming(const qdqi_onnx_reader *r, const Onnx__NodeProto *node) {
    if (node->n_input < 1 || node->n_output < 1 || node->input[0][0] == '\0' || node->output[0][0] == '\0')
        return false;
    if (own_value(r, node->output[0])->is_output) return false;
    if (is_op(node, "Identity")) return node->n_input == 1 && node->n_output == 1;
    const bool has_mask = node->n_output > 1 && node->output[1][0] != '\0';
    return is_op(node, "Dropout") && !has_mask && node->n_input <= 2;
}

static qdq_status read_aliases(qdqi_onnx_reader *r, bool *is_done) {
    for (size_t i = 0; i < r->graph->n_output; i++) {
        qdqi_onnx_value *value = own_value(r, text_of(r->graph->output[i]->name));
        if (value != NULL) value->is_output = true;
    }
    for (size_t i = 0; i < r->graph->n_node; i++) {
        const Onnx__NodeProto *node = r->graph->node[i];
        if (!is_renaming(r, node)) continue;
        qdqi_onnx_value *from = resolved(r, own_value(r, node->input[0])), *to = own_value(r, node->output[0]);
        if (from == to)
            return qdqi_fail(r->err, QDQ_E_CYCLE, "the graph has a cycle through tensor \"" QDQI_ONNX_NAME "\"",
                             to->name);
        to->alias = (uint32_t)(from - r->values);
        is_done[i] = true;
    }
    return QDQ_OK;
}

/* ---- the graph's ends ---- */

/* An op of our own making at the graph's ends; it has a node only for messages. `to` is a Cast's. */
static qdq_status end_op(qdqi_onnx_reader *r, const char *kind, const char *name, const char *in, const char *out,
                         const char *to) {
    Onnx__NodeProto proto = ONNX__NODE_PROTO__INIT;
    char op_type[] = "end of the graph";
    proto.op_type = op_type;
    qdqi_onnx_node node = {.r = r, .proto = &proto, .name = name, .opset = r->opset, .err = r->err};
    qdqi_onnx_emit e = qdqi_onnx_begin(&node, kind);
    if (to != NULL) qdqi_onnx_put_str(&e, "to", to);
    qdqi_onnx_put_in(&e, in);
    if (out != NULL) qdqi_onnx_put_out(&e, out);
    return qdqi_onnx_end(&e);
}

/* "<name>/<tag>", not yet a tensor's name. */
static const char *end_name(qdqi_onnx_reader *r, const char *name, const char *tag) {
    const size_t room = strlen(name) + strlen(tag) + 32;
    char *text = qdqi_arena_alloc(&r->arena, room, 1);
    for (unsigned k = 0; text != NULL; k++) {
        snprintf(text, room, k == 0 ? "%s/%s" : "%s/%s_%u", name, tag, k);
        if (own_value(r, text) == NULL) break;
    }
    return text;
}

/* A double input is cast at once: what reads it reads the f32 tensor. */
static qdq_status cast_double_inputs(qdqi_onnx_reader *r) {
    for (size_t i = 0; i < r->graph->n_input; i++) {
        const char *name = r->graph->input[i]->name;
        const qdqi_onnx_value *value = own_value(r, name);
        if (value == NULL || !value->is_input || value->desc.dtype != QDQ_DTYPE_F64) continue;
        const int32_t ndims = value->desc.ndims;
        const char *cast = end_name(r, name, "f32");
        qdqi_onnx_value *made = cast == NULL ? NULL : own_value_made(r, cast);
        if (made == NULL) return QDQI_NO_MEMORY(r->err);
        made->desc.dtype = QDQ_DTYPE_F32;
        made->desc.ndims = ndims;
        memcpy(made->desc.dims, own_value(r, name)->desc.dims, sizeof made->desc.dims);
        QDQI_TRY(end_op(r, "Cast", name, name, cast, "f32"));
        own_value(r, name)->alias = (uint32_t)(own_value(r, cast) - r->values);
    }
    return QDQ_OK;
}

static qdq_status convert_nodes(qdqi_onnx_reader *r) {
    const size_t n = r->graph->n_node;
    const char **names = qdqi_arena_alloc(&r->arena, n + 1, sizeof *names);
    bool *is_done = qdqi_arena_alloc(&r->arena, n + 1, sizeof *is_done);
    if (names == NULL || is_done == NULL) return QDQI_NO_MEMORY(r->err);
    QDQI_TRY(read_node_names(r, names));
    QDQI_TRY(cast_double_inputs(r));
    /* constants first: nodes may stand in any order, and many converters look into constants */
    for (size_t i = 0; i < n; i++) {
        if (!is_op(r->graph->node[i], "Constant")) continue;
        qdqi_onnx_node node;
        QDQI_TRY(make_node(r, i, names[i], &node));
        QDQI_TRY(convert_node(&node));
        is_done[i] = true;
    }
    QDQI_TRY(read_aliases(r, is_done));
    for (size_t i = 0; i < n; i++) {
        if (is_done[i]) continue;
        qdqi_onnx_node node;
        QDQI_TRY(make_node(r, i, names[i], &node));
        QDQI_TRY(convert_node(&node));
    }
    return QDQ_OK;
}

static qdq_status set_inputs(qdqi_onnx_reader *r) {
    uint64_t *ids = qdqi_arena_alloc(&r->arena, r->graph->n_input + 1, sizeof *ids);
    if (ids == NULL) return QDQI_NO_MEMORY(r->err);
    size_t n = 0;
    for (size_t i = 0; i < r->graph->n_input; i++) {
        const char *name = r->graph->input[i]->name;
        const qdqi_onnx_value *value = own_value(r, name);
        if (value == NULL || !value->is_input) continue;
        ids[n++] = value->desc.id;
        if (!value->is_used) QDQI_TRY(end_op(r, "End", name, name, NULL, NULL));
    }
    return qdq_graph_set_inputs(r->out, ids, n, r->err);
}

static qdq_status set_outputs(qdqi_onnx_reader *r) {
    if (r->graph->n_output == 0) return qdqi_fail(r->err, QDQ_E_ONNX, "the graph has no outputs");
    uint64_t *ids = qdqi_arena_alloc(&r->arena, r->graph->n_output, sizeof *ids);
    if (ids == NULL) return QDQI_NO_MEMORY(r->err);
    for (size_t i = 0; i < r->graph->n_output; i++) {
        const Onnx__ValueInfoProto *output = r->graph->output[i];
        const char *name = text_of(output->name);
        const qdqi_onnx_value *value = name[0] == '\0' ? NULL : own_value(r, name);
        if (value == NULL || (!value->is_input && !value->is_constant && !value->is_made))
            return qdqi_fail(r->err, QDQ_E_ONNX, "graph output %zu (\"" QDQI_ONNX_NAME "\") is made by no node", i,
                             name);
        ids[i] = value->desc.id;
        const Onnx__TypeProto__Tensor *type = output->type == NULL ? NULL : output->type->tensor_type;
        const bool is_double = type != NULL && type->has_elem_type && qdqi_onnx_dtype(type->elem_type) == QDQ_DTYPE_F64;
        if (value->is_made && !is_double) continue;
        /* an input or a constant that is an output as well, or a double one: a copy of it under the same name */
        const char *copy = end_name(r, name, "output");
        if (copy == NULL) return QDQI_NO_MEMORY(r->err);
        QDQI_TRY(end_op(r, is_double ? "Cast" : "Identity", name, name, copy, is_double ? "f64" : NULL));
        qdqi_onnx_value *made = own_value(r, copy);
        ids[i] = made->desc.id;
        made->shown = own_value(r, name)->name;
    }
    return qdq_graph_set_outputs(r->out, ids, r->graph->n_output, r->err);
}

/* Give the graph the constants that its ops use, each released here as soon as the graph has its copy. */
static qdq_status attach_constants(qdqi_onnx_reader *r) {
    for (size_t i = 0; i < r->n_values; i++) {
        qdqi_onnx_value *value = &r->values[i];
        const char *shown = value->shown == NULL ? value->name : value->shown;
        if (value->is_used) QDQI_TRY(qdq_graph_set_tensor_name(r->out, value->desc.id, shown, r->err));
        if (!value->is_constant || !value->is_used) continue;
        QDQI_TRY(qdqi_onnx_content(r, value));
        const qdq_status st =
            qdq_graph_set_constant(r->out, &value->desc, value->data, value->bytes, QDQ_DATA_COPY, r->err);
        if (st != QDQ_OK) return qdqi_fail_in(r->err, st, "tensor \"" QDQI_ONNX_NAME "\"", value->name);
        qdqi_free(value->owned);
        value->owned = NULL;
        if (value->proto != NULL) {
            qdqi_free(value->proto->raw_data.data);
            value->proto->raw_data = (ProtobufCBinaryData){0};
        }
    }
    return QDQ_OK;
}

static qdq_status build(qdqi_onnx_reader *r) {
    if (r->model->graph == NULL) return qdqi_fail(r->err, QDQ_E_ONNX, "the file holds no ONNX graph");
    r->graph = r->model->graph;
    r->opset = opset_of(r, "");
    if (r->opset != 0 && (r->opset < MIN_OPSET || r->opset > MAX_OPSET))
        return qdqi_fail(r->err, QDQ_E_ONNX, "opset %lld is not supported, expected %d…%d", (long long)r->opset,
                         MIN_OPSET, MAX_OPSET);
    QDQI_TRY(qdq_graph_create(&r->out, r->err));
    QDQI_TRY(read_initializers(r));
    QDQI_TRY(read_inputs(r));
    QDQI_TRY(convert_nodes(r));
    QDQI_TRY(set_inputs(r));
    QDQI_TRY(set_outputs(r));
    QDQI_TRY(attach_constants(r));
    return qdq_graph_finalize(r->out, r->err);
}

/* ---- entry points ---- */

static void *pb_alloc(void *unused, size_t bytes) {
    (void)unused;
    return qdqi_malloc(bytes);
}

static void pb_free(void *unused, void *ptr) {
    (void)unused;
    qdqi_free(ptr);
}

/* Names come from the file: a message stays one line whatever they hold. */
static void keep_one_line(qdq_error *err) {
    if (err == NULL) return;
    for (char *c = err->text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

/* Takes over `*owned` (may be NULL): freed once the message is unpacked, so that it is not held twice for long. */
static qdq_status load(const void *data, size_t bytes, void *owned, const char *folder, const qdq_onnx_options *options,
                       qdq_graph **graph_out, qdq_error *err) {
    qdq_error own = {0};
    qdqi_onnx_reader r = {.folder = folder,
                          .allocator = {.alloc = pb_alloc, .free = pb_free},
                          .err = err == NULL ? &own : err,
                          .next_op_id = 1};
    r.options = options;
    Onnx__ModelProto *model = onnx__model_proto__unpack(&r.allocator, bytes, data);
    qdqi_free(owned);
    qdq_status st;
    if (model == NULL) {
        st = qdqi_fail(r.err, QDQ_E_ONNX, "not an ONNX model, or a truncated one (%zu bytes)", bytes);
    } else {
        r.model = model;
        st = build(&r);
    }
    for (size_t i = 0; i < r.n_values; i++)
        qdqi_free(r.values[i].owned);
    qdqi_free(r.values);
    qdqi_free(r.slots);
    qdqi_arena_free(&r.arena);
    if (model != NULL) onnx__model_proto__free_unpacked(model, &r.allocator);
    if (st == QDQ_OK)
        *graph_out = r.out;
    else
        qdq_graph_destroy(&r.out);
    keep_one_line(r.err);
    return st;
}

qdq_status qdq_onnx_load_bytes(const void *data, size_t bytes, const qdq_onnx_options *options, qdq_graph **graph_out,
                               qdq_error *err) {
    QDQI_NOT_NULL(err, data);
    QDQI_NOT_NULL(err, graph_out);
    qdq_onnx_options own;
    QDQI_TRY(qdqi_options_read(options, "qdq_onnx_options", &own, sizeof own, err));
    return load(data, bytes, NULL, NULL, &own, graph_out, err);
}

qdq_status qdq_onnx_load_file(const char *path, const qdq_onnx_options *options, qdq_graph **graph_out,
                              qdq_error *err) {
    QDQI_NOT_NULL(err, path);
    QDQI_NOT_NULL(err, graph_out);
    qdq_onnx_options own;
    QDQI_TRY(qdqi_options_read(options, "qdq_onnx_options", &own, sizeof own, err));
    void *data = NULL;
    size_t bytes = 0;
    QDQI_TRY(qdqi_onnx_read_file(path, 0, -1, &data, &bytes, err));
    const char *slash = strrchr(path, '/');
    const size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char *folder = qdqi_malloc(n + 1);
    if (folder == NULL) {
        qdqi_free(data);
        return QDQI_NO_MEMORY(err);
    }
    memcpy(folder, path, n);
    folder[n] = '\0';
    const qdq_status st = load(data, bytes, data, folder, &own, graph_out, err);
    qdqi_free(folder);
    return st == QDQ_OK ? st : qdqi_fail_in(err, st, "%s", path);
}
