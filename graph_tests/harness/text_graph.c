#include "harness/text_graph.h"

#include "base/dtype.h"
#include "ir/desc.h"
#include "ir/op_builder.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *kind, *attrs;
} defaults[] = {
    {"Quantize", "scales=[0.25]"},
    {"Dequantize", "scales=[0.5]"},
    {"Convolution", "strides=[1,1] pads_begin=[0,0] pads_end=[0,0] dilations=[1,1] data_format=NCX weights_format=OIX"},
    {"ConvInteger", "strides=[1,1] pads_begin=[0,0] pads_end=[0,0] dilations=[1,1] data_format=NCX weights_format=OIX"},
    {"ConvTranspose",
     "strides=[1,1] pads_begin=[0,0] pads_end=[0,0] dilations=[1,1] data_format=NCX weights_format=IOX"},
    {"AvgPool", "strides=[1,1] pads_begin=[0,0] pads_end=[0,0] kernel=[1,1] exclude_pad=false data_format=NCX"},
    {"MaxPool", "strides=[1,1] pads_begin=[0,0] pads_end=[0,0] kernel=[1,1] data_format=NCX"},
    {"Clamp", "min=0.0 max=6.0"},
    {"Elu", "alpha=1.0"},
    {"LeakyReLU", "alpha=0.1"},
    {"HardSigmoid", "alpha=0.2 beta=0.5"},
    {"Pow", "beta=2.0"},
    {"Concat", "axis=1"},
    {"BatchNormInference", "epsilon=0.001 data_format=NCX"},
    {"LayerNorm", "keep_stats=false"},
    {"GroupNorm", "groups=1 keep_stats=false data_format=NCX"},
    {"ReduceMean", "axes=[1] keep_dims=true"},
    {"ReduceMax", "axes=[1] keep_dims=true"},
    {"Interpolate", "mode=nearest scales=[2.0,2.0] data_format=NCX"},
    {"StaticReshape", "special_zero=false"},
    {"BiasAdd", "data_format=NCX"},
};

typedef struct named {
    const char *name;
    qdq_tensor_desc desc;
} named;

typedef struct reader {
    const char *at;
    int line;
    qdq_graph *graph;
    qdqi_arena arena;
    named **values; /* by hash of the name; a power of two of slots */
    uint32_t n_values, n_slots;
    uint64_t n_ops;
    uint64_t *outputs;
    uint32_t n_outputs, cap_outputs;
    qdq_error *err;
} reader;

static qdq_status wrong(reader *r, const char *what) {
    return qdqi_fail(r->err, QDQ_E_BAD_ARG, "graph text, line %d: %s at \"%.20s\"", r->line, what, r->at);
}

/* ---- words ---- */

static void skip_spaces(reader *r) {
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

static bool take(reader *r, char c) {
    skip_spaces(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static bool at_end_of_line(reader *r) {
    skip_spaces(r);
    return *r->at == '\0' || *r->at == '\n' || *r->at == ';';
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '\'';
}

/* NULL when there is none (or no memory). */
static const char *word(reader *r) {
    skip_spaces(r);
    const char *from = r->at;
    while (in_word(*r->at))
        r->at++;
    const size_t n = (size_t)(r->at - from);
    char *copy = n ? qdqi_arena_alloc(&r->arena, n + 1, 1) : NULL;
    if (copy) memcpy(copy, from, n);
    return copy;
}

/* ---- values ---- */

static uint32_t hash(const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static named **slot_of(named **values, uint32_t n_slots, const char *name) {
    uint32_t i = hash(name) & (n_slots - 1);
    while (values[i] && strcmp(values[i]->name, name) != 0)
        i = (i + 1) & (n_slots - 1);
    return &values[i];
}

static bool grow(reader *r) {
    const uint32_t n_slots = r->n_slots ? r->n_slots * 2 : 64;
    named **values = calloc(n_slots, sizeof(*values));
    if (!values) return false;
    for (uint32_t i = 0; i < r->n_slots; i++)
        if (r->values[i]) *slot_of(values, n_slots, r->values[i]->name) = r->values[i];
    free(r->values);
    r->values = values;
    r->n_slots = n_slots;
    return true;
}

static named *find(const reader *r, const char *name) {
    return r->n_slots ? *slot_of(r->values, r->n_slots, name) : NULL;
}

static named *define(reader *r, const char *name) {
    if (r->n_values * 2 >= r->n_slots && !grow(r)) return NULL;
    named *value = qdqi_arena_alloc(&r->arena, 1, sizeof(*value));
    if (!value) return NULL;
    value->name = name;
    value->desc = (qdq_tensor_desc){.id = ++r->n_values, .ndims = QDQ_NDIMS_UNKNOWN};
    *slot_of(r->values, r->n_slots, name) = value;
    return value;
}

static qdq_status read_dims(reader *r, qdq_tensor_desc *desc) {
    desc->ndims = 0;
    do {
        if (desc->ndims == QDQ_MAX_NDIMS) return wrong(r, "too many dimensions");
        skip_spaces(r);
        if (*r->at == '?') {
            r->at++;
            desc->dims[desc->ndims++] = QDQ_DIM_UNKNOWN;
        } else {
            char *end;
            desc->dims[desc->ndims++] = strtoll(r->at, &end, 10);
            if (end == r->at) return wrong(r, "expected a dimension");
            r->at = end;
        }
    } while (take(r, 'x'));
    if (qdqi_dims_known(desc)) qdqi_set_dense(desc);
    return QDQ_OK;
}

static qdq_status set_content(reader *r, named *value) {
    size_t bytes;
    QDQI_TRY(qdqi_desc_bytes(&value->desc, &bytes, r->err));
    unsigned char *data = qdqi_arena_alloc(&r->arena, bytes ? bytes : 1, 1);
    if (!data) return QDQI_NO_MEMORY(r->err);
    /* ones: legal scales, shapes, axes and indices alike */
    const size_t elem_bytes = qdqi_n_elems(&value->desc) ? bytes / (size_t)qdqi_n_elems(&value->desc) : 0;
    for (size_t i = 0; elem_bytes && i < bytes; i += elem_bytes) {
        const float one = 1.0f;
        if (value->desc.dtype == QDQ_DTYPE_F32)
            memcpy(data + i, &one, sizeof(one));
        else
            data[i] = 1;
    }
    return qdqi_graph_set_constant(r->graph, &value->desc, data, bytes, QDQ_DATA_COPY, r->err);
}

static qdq_status read_declaration(reader *r, named *value) {
    QDQI_TRY(read_dims(r, &value->desc));
    value->desc.property = QDQ_PROPERTY_VARIABLE;
    if (at_end_of_line(r)) return QDQ_OK;
    const char *what = word(r);
    value->desc.property = QDQ_PROPERTY_CONSTANT;
    if (what && strcmp(what, "promised") == 0) return QDQ_OK;
    if (!what || strcmp(what, "const") != 0) return wrong(r, "expected const or promised");
    return set_content(r, value);
}

/* ---- ops ---- */

static qdq_status set_list(qdq_op *op, const char *name, const char *text, qdq_error *err) {
    int64_t s64s[64];
    float f32s[64];
    size_t n = 0;
    const bool floats = strchr(text, '.') != NULL;
    for (const char *p = text + 1; *p && *p != ']' && n < 64; n++) {
        char *end;
        if (floats)
            f32s[n] = strtof(p, &end);
        else
            s64s[n] = strtoll(p, &end, 10);
        if (end == p) return qdqi_fail(err, QDQ_E_BAD_ARG, "graph text: attribute %s is \"%s\"", name, text);
        p = *end == ',' ? end + 1 : end;
    }
    return qdqi_builder_set_attr(op, name, floats ? qdqi_attr_of_f32s(f32s, n) : qdqi_attr_of_s64s(s64s, n), err);
}

/* "name=value" */
static qdq_status set_attr(qdq_op *op, char *text, qdq_error *err) {
    char *value = strchr(text, '=');
    if (!value) return qdqi_fail(err, QDQ_E_BAD_ARG, "graph text: attribute \"%s\" has no value", text);
    *value++ = '\0';
    if (value[0] == '[') return set_list(op, text, value, err);
    char *end;
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        return qdqi_builder_set_attr(op, text, qdqi_attr_of_bool(value[0] == 't'), err);
    if (strchr(value, '.')) {
        const float f32 = strtof(value, &end);
        if (*end == '\0') return qdqi_builder_set_attr(op, text, qdqi_attr_of_f32(f32), err);
    }
    const int64_t s64 = strtoll(value, &end, 10);
    if (*end == '\0') return qdqi_builder_set_attr(op, text, qdqi_attr_of_s64(s64), err);
    return qdqi_builder_set_attr(op, text, qdqi_attr_of_str(value), err);
}

/* Attributes separated by spaces. */
static qdq_status set_attrs(reader *r, qdq_op *op, const char *from, const char *to) {
    while (from < to) {
        while (from < to && *from == ' ')
            from++;
        const char *end = from;
        while (end < to && *end != ' ')
            end++;
        if (end == from) break;
        char *text = qdqi_arena_alloc(&r->arena, (size_t)(end - from) + 1, 1);
        if (!text) return QDQI_NO_MEMORY(r->err);
        memcpy(text, from, (size_t)(end - from));
        QDQI_TRY(set_attr(op, text, r->err));
        from = end;
    }
    return QDQ_OK;
}

static qdq_status read_inputs(reader *r, qdq_op *op) {
    if (!take(r, '(')) return wrong(r, "expected (");
    while (!take(r, ')')) {
        if (take(r, '-')) {
            QDQI_TRY(qdqi_builder_add_port(&op->in, NULL, r->err));
        } else {
            const char *name = word(r);
            named *value = name ? find(r, name) : NULL;
            if (!value) return wrong(r, "unknown value before this");
            QDQI_TRY(qdqi_builder_add_port(&op->in, &value->desc, r->err));
        }
        (void)take(r, ',');
    }
    return QDQ_OK;
}

static qdq_status read_op_parts(reader *r, qdq_op *op, named **outs, uint32_t n_outs) {
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        if (strcmp(defaults[i].kind, op->kind) == 0)
            QDQI_TRY(set_attrs(r, op, defaults[i].attrs, defaults[i].attrs + strlen(defaults[i].attrs)));
    QDQI_TRY(read_inputs(r, op));
    if (take(r, '{')) {
        const char *end = strchr(r->at, '}');
        if (!end) return wrong(r, "expected }");
        QDQI_TRY(set_attrs(r, op, r->at, end));
        r->at = end + 1;
    }
    for (uint32_t i = 0; i < n_outs; i++) {
        qdq_tensor_desc *desc = &outs[i]->desc;
        if (desc->dtype == QDQ_DTYPE_UNDEF && strcmp(op->kind, "Quantize") == 0) desc->dtype = QDQ_DTYPE_S8;
        if (desc->dtype == QDQ_DTYPE_UNDEF && strcmp(op->kind, "DynamicQuantize") == 0) desc->dtype = QDQ_DTYPE_S8;
        if (desc->dtype == QDQ_DTYPE_UNDEF && strcmp(op->kind, "TypeCast") == 0) desc->dtype = QDQ_DTYPE_BF16;
        QDQI_TRY(qdqi_builder_add_port(&op->out, desc, r->err));
    }
    return qdqi_graph_add_op(r->graph, op, r->err);
}

static qdq_status read_op(reader *r, named **outs, uint32_t n_outs) {
    const char *kind = word(r);
    if (!kind) return wrong(r, "expected an op kind");
    qdq_op *op;
    QDQI_TRY(qdqi_builder_create(++r->n_ops, kind, outs[0]->name, &op, r->err));
    const qdq_status status = read_op_parts(r, op, outs, n_outs);
    qdqi_builder_destroy(op);
    return status;
}

static qdq_status read_outputs(reader *r) {
    while (!at_end_of_line(r)) {
        const char *name = word(r);
        const named *value = name ? find(r, name) : NULL;
        if (!value) return wrong(r, "unknown value before this");
        if (r->n_outputs == r->cap_outputs) {
            r->cap_outputs = r->cap_outputs ? r->cap_outputs * 2 : 16;
            uint64_t *outputs = realloc(r->outputs, r->cap_outputs * sizeof(*outputs));
            if (!outputs) return QDQI_NO_MEMORY(r->err);
            r->outputs = outputs;
        }
        r->outputs[r->n_outputs++] = value->desc.id;
    }
    return QDQ_OK;
}

static qdq_status read_line(reader *r) {
    named *outs[32];
    uint32_t n_outs = 0;
    do {
        const char *name = word(r);
        if (!name || n_outs == 32) return wrong(r, "expected a name");
        if (n_outs == 0 && strcmp(name, "out") == 0) return read_outputs(r);
        if (find(r, name)) return wrong(r, "name used twice before this");
        named *value = outs[n_outs++] = define(r, name);
        if (!value) return QDQI_NO_MEMORY(r->err);
        if (!take(r, ':')) continue;
        const char *dtype = word(r);
        value->desc.dtype = dtype ? qdq_dtype_from_name(dtype) : QDQ_DTYPE_UNDEF;
        if (value->desc.dtype == QDQ_DTYPE_UNDEF) return wrong(r, "unknown data type before this");
    } while (take(r, ','));
    return take(r, '=') ? read_op(r, outs, n_outs) : read_declaration(r, outs[0]);
}

static qdq_status read_graph(reader *r) {
    for (r->line = 1; *r->at;) {
        if (!at_end_of_line(r)) QDQI_TRY(read_line(r));
        if (!at_end_of_line(r)) return wrong(r, "expected the end of the line");
        if (*r->at == '\n') r->line++;
        if (*r->at) r->at++;
    }
    if (r->n_outputs) QDQI_TRY(qdqi_graph_set_ports(r->graph, r->outputs, r->n_outputs, true, r->err));
    return qdqi_graph_finalize(r->graph, NULL, r->err);
}

qdq_status qh_graph_from_text(const char *text, qdq_graph **graph_out, qdq_error *err) {
    reader r = {.at = text, .err = err};
    QDQI_TRY(qdqi_graph_create(&r.graph, err));
    const qdq_status status = read_graph(&r);
    qdqi_arena_free(&r.arena);
    free(r.values);
    free(r.outputs);
    if (status == QDQ_OK)
        *graph_out = r.graph;
    else
        qdqi_graph_release(r.graph);
    return status;
}

/* ---- partitions ---- */

static size_t list_bytes(const qdq_graph *graph, const qdqi_part *parts, uint32_t n) {
    size_t bytes = 1;
    for (uint32_t i = 0; i < n; i++) {
        bytes += strlen(parts[i].pattern) + 3;
        for (uint32_t k = 0; k < parts[i].n_ops; k++)
            bytes += strlen(graph->ops[parts[i].ops[k]].name) + 1;
    }
    return bytes;
}

static char *list_text(const qdq_graph *graph, const qdqi_part *parts, uint32_t n, char *at) {
    for (uint32_t i = 0; i < n; i++) {
        const qdqi_part *part = &parts[i];
        at = stpcpy(at, i ? " " : "");
        at = stpcpy(at, part->pattern);
        if (part->n_children) {
            at = list_text(graph, part->children, part->n_children, stpcpy(at, "["));
            at = stpcpy(at, "]");
            continue;
        }
        for (uint32_t k = 0; k < part->n_ops; k++) {
            at = stpcpy(at, k ? " " : "(");
            at = stpcpy(at, graph->ops[part->ops[k]].name);
        }
        at = stpcpy(at, ")");
    }
    return at;
}

char *qh_parts_text(const qdq_graph *graph, const qdqi_parts *parts) {
    size_t bytes = list_bytes(graph, parts->parts, parts->n);
    for (uint32_t i = 0; i < parts->n; i++)
        bytes += list_bytes(graph, parts->parts[i].children, parts->parts[i].n_children);
    char *text = malloc(bytes);
    if (!text) return NULL;
    *text = '\0';
    (void)list_text(graph, parts->parts, parts->n, text);
    return text;
}

typedef struct checker {
    const qdq_graph *graph;
    const qdqi_parts *parts;
    uint32_t *position; /* op -> place in topological order */
    uint32_t *n_parts;  /* op -> partitions that list it */
    uint32_t *made_by;  /* value -> 1 + partition that has it as an output */
    uint32_t *mark;     /* value -> 1 + partition at hand, for duplicates */
    bool *inside;       /* op -> in the partition at hand */
    qdq_error *err;
} checker;

static bool broken(const checker *c, uint32_t part, const char *what, const char *name) {
    (void)qdqi_fail(c->err, QDQ_E_INTERNAL, "partition %u: %s (%s)", part, what, name);
    return false;
}

static bool may_repeat(const checker *c, const qdqi_op *op) {
    if (op->schema->flags & QDQI_F_DEQUANTIZE) return true;
    const bool view = op->kind == QDQI_OP_TYPECAST || op->kind == QDQI_OP_CAST || op->kind == QDQI_OP_STATICTRANSPOSE ||
                      op->kind == QDQI_OP_SPLIT || (op->schema->flags & QDQI_F_SHAPE_ONLY) != 0;
    const uint32_t producer = op->n_in && op->in[0] != QDQI_NONE ? c->graph->values[op->in[0]].producer : QDQI_NONE;
    if (view && (producer == QDQI_NONE || may_repeat(c, &c->graph->ops[producer]))) return true;
    for (uint32_t p = 0; p < op->n_in; p++) {
        if (op->in[p] == QDQI_NONE) continue;
        const qdqi_value *value = &c->graph->values[op->in[p]];
        if (!value->data && value->desc.property != QDQ_PROPERTY_CONSTANT) return false;
    }
    return true;
}

static bool has(const uint32_t *list, uint32_t n, uint32_t item) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == item) return true;
    return false;
}

static bool check_ports(const checker *c, uint32_t index, const qdqi_part *part) {
    const qdqi_value *values = c->graph->values;
    for (uint32_t i = 0; i < part->n_inputs; i++) {
        const uint32_t v = part->inputs[i];
        if (c->mark[v] == index + 1) return broken(c, index, "an input port is listed twice", values[v].name);
        c->mark[v] = index + 1;
        if (values[v].data) return broken(c, index, "a constant is an input port", values[v].name);
        if (values[v].producer != QDQI_NONE && (c->made_by[v] == 0 || c->made_by[v] > index))
            return broken(c, index, "an input is not made by an earlier partition",
                          c->graph->ops[values[v].producer].name);
    }
    for (uint32_t i = 0; i < part->n_consts; i++) {
        const uint32_t v = part->consts[i];
        if (c->mark[v] == index + 1) return broken(c, index, "a constant is listed twice", values[v].name);
        c->mark[v] = index + 1;
        if (!values[v].data) return broken(c, index, "a constant has no data", values[v].name);
    }
    return true;
}

/* The children of a partition hold all its ops, in an order in which each finds what it reads. */
static bool check_children(const checker *c, uint32_t index, const qdqi_part *part) {
    const qdq_graph *graph = c->graph;
    for (uint32_t i = 0; i < part->n_children; i++) {
        const qdqi_part *child = &part->children[i];
        const uint32_t last = child->ops[child->n_ops - 1];
        if (child->id != index || !child->recipe || child->n_children || !has(child->ops, child->n_ops, child->root))
            return broken(c, index, "a child's id, recipe or root is wrong", child->pattern);
        for (uint32_t k = 0; k < child->n_ops; k++)
            if (!has(part->ops, part->n_ops, child->ops[k]))
                return broken(c, index, "a child has an op that is not its parent's", graph->ops[child->ops[k]].name);
        for (uint32_t k = 0; k < child->n_inputs; k++) {
            const uint32_t v = child->inputs[k];
            bool made = has(part->inputs, part->n_inputs, v);
            for (uint32_t e = 0; e < i && !made; e++)
                made = has(part->children[e].outputs, part->children[e].n_outputs, v);
            if (!made) return broken(c, index, "a child reads what no earlier one made", graph->values[v].name);
        }
        for (uint32_t k = 0; k < child->n_outputs; k++)
            if (!has(graph->ops[last].out, graph->ops[last].n_out, child->outputs[k]))
                return broken(c, index, "a child's output is not of its last op", child->pattern);
    }
    for (uint32_t k = 0; k < part->n_ops && part->n_children; k++) {
        bool found = false;
        for (uint32_t i = 0; i < part->n_children; i++)
            found = found || has(part->children[i].ops, part->children[i].n_ops, part->ops[k]);
        if (!found) return broken(c, index, "an op is in no child", graph->ops[part->ops[k]].name);
    }
    const qdqi_part *tail = part->n_children ? &part->children[part->n_children - 1] : part;
    if (tail->ops[tail->n_ops - 1] != part->ops[part->n_ops - 1])
        return broken(c, index, "the last child does not make the outputs", tail->pattern);
    return true;
}

static bool check_part(const checker *c, uint32_t index) {
    const qdqi_part *part = &c->parts->parts[index];
    const qdq_graph *graph = c->graph;
    if (part->id != index || part->n_ops == 0 || !part->recipe || !has(part->ops, part->n_ops, part->root))
        return broken(c, index, "id, ops, recipe or root are wrong", part->pattern);
    if (!check_ports(c, index, part) || !check_children(c, index, part)) return false;
    const uint32_t last = part->ops[part->n_ops - 1];
    uint32_t n_ports = 0;
    for (uint32_t k = 0; k < part->n_ops; k++) {
        const qdqi_op *op = &graph->ops[part->ops[k]];
        if (op->folded) return broken(c, index, "a folded op takes part", op->name);
        if (k && c->position[part->ops[k - 1]] >= c->position[part->ops[k]])
            return broken(c, index, "ops are not in topological order", op->name);
        c->n_parts[part->ops[k]]++;
        for (uint32_t p = 0; p < op->n_in; p++) {
            const uint32_t v = op->in[p];
            if (v == QDQI_NONE) continue;
            const uint32_t producer = graph->values[v].producer;
            const bool inside = producer != QDQI_NONE && c->inside[producer];
            if (!inside && c->mark[v] != index + 1) return broken(c, index, "a value read is no port", op->name);
            if (inside && c->mark[v] == index + 1) return broken(c, index, "a value made inside is a port", op->name);
        }
        for (uint32_t o = 0; o < op->n_out; o++) {
            const bool is_port = has(part->outputs, part->n_outputs, op->out[o]);
            n_ports += is_port;
            if (is_port && part->ops[k] != last) return broken(c, index, "an output is not of the last op", op->name);
        }
    }
    if (n_ports != part->n_outputs) return broken(c, index, "an output is not made here", part->pattern);
    for (uint32_t i = 0; i < part->n_outputs; i++) {
        if (c->made_by[part->outputs[i]]) return broken(c, index, "an output is made twice", part->pattern);
        c->made_by[part->outputs[i]] = index + 1;
    }
    return true;
}

static bool check_all(const checker *c) {
    for (uint32_t i = 0; i < c->graph->n_ops; i++)
        c->position[c->graph->topo[i]] = i;
    for (uint32_t i = 0; i < c->parts->n; i++) {
        const qdqi_part *part = &c->parts->parts[i];
        for (uint32_t k = 0; k < part->n_ops; k++)
            c->inside[part->ops[k]] = true;
        const bool holds = check_part(c, i);
        for (uint32_t k = 0; k < part->n_ops; k++)
            c->inside[part->ops[k]] = false;
        if (!holds) return false;
    }
    for (uint32_t i = 0; i < c->graph->n_ops; i++) {
        const qdqi_op *op = &c->graph->ops[i];
        if (!op->folded && c->n_parts[i] == 0) return broken(c, c->parts->n, "an op is in no partition", op->name);
        if (c->n_parts[i] > 1 && !may_repeat(c, op)) return broken(c, c->parts->n, "an op is done twice", op->name);
        for (uint32_t o = 0; o < op->n_out; o++)
            if (!op->folded && c->graph->values[op->out[o]].is_output && !c->made_by[op->out[o]])
                return broken(c, c->parts->n, "a graph output is made by no partition", op->name);
    }
    return true;
}

bool qh_parts_hold(const qdq_graph *graph, const qdqi_parts *parts, qdq_error *err) {
    checker c = {.graph = graph, .parts = parts, .err = err};
    const size_t n_ops = graph->n_ops + 1, n_values = graph->n_values + 1;
    c.position = calloc(n_ops, sizeof(*c.position));
    c.n_parts = calloc(n_ops, sizeof(*c.n_parts));
    c.inside = calloc(n_ops, sizeof(*c.inside));
    c.made_by = calloc(n_values, sizeof(*c.made_by));
    c.mark = calloc(n_values, sizeof(*c.mark));
    const bool holds = c.position && c.n_parts && c.inside && c.made_by && c.mark && check_all(&c);
    free(c.position);
    free(c.n_parts);
    free(c.inside);
    free(c.made_by);
    free(c.mark);
    return holds;
}
