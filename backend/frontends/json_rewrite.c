/* Rewrites of a case, in benchdnn's words.
 *
 * Order: op kinds, data types, input shapes, minibatch (which wins over shapes for dim 0), attributes. When one of them
 * may change a shape, every produced tensor becomes unknown and a probe graph infers it anew; the old physical order of
 * its dims is kept when the rank is the same. Then what depends on shapes is adapted:
 *   - scales and zps of a per_channel Quantize or Dequantize are repeated (or cut) to the length of the axis;
 *   - group_shape of a per_group DynamicDequantize is src / scales, dim by dim;
 *   - StaticReshape with a shape that says everything infers its first dim instead.
 * An attribute given by op_attrs is left alone, but for the repetition to the axis. */
#include "json_case.h"
#include "json_index.h"
#include "json_layout.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct rewriter {
    qdqi_json_case *c;
    qdqi_json_index index;
    qdq_error *err;
} rewriter;

/* ---- text ------------------------------------------------------------------------------------------------------- */

typedef struct span {
    const char *s;
    size_t n;
} span;

/* Cut the part before `sep` off `rest`. False when nothing is left. */
static bool next_part(span *rest, char sep, span *part) {
    if (rest->s == NULL) return false;
    const char *at = memchr(rest->s, sep, rest->n);
    const size_t n = at == NULL ? rest->n : (size_t)(at - rest->s);
    *part = (span){rest->s, n};
    *rest = at == NULL ? (span){NULL, 0} : (span){at + 1, rest->n - n - 1};
    return true;
}

static span of_text(const char *text) {
    return text == NULL || *text == '\0' ? (span){NULL, 0} : (span){text, strlen(text)};
}

#define SPAN_ARG(x) (int)((x).n > 100 ? 100 : (x).n), (x).s

static qdq_status bad(const rewriter *r, const char *what, span text, const char *want) {
    return qdqi_fail(r->err, QDQ_E_BAD_ARG, "%s: `%.*s`: expected %s", what, SPAN_ARG(text), want);
}

/* A number that is the whole span. */
static bool to_s64(span text, int64_t *out) {
    char copy[32];
    if (text.n == 0 || text.n >= sizeof copy || isspace((unsigned char)text.s[0])) return false;
    memcpy(copy, text.s, text.n);
    copy[text.n] = '\0';
    char *end;
    errno = 0;
    *out = strtoll(copy, &end, 10);
    return *end == '\0' && errno == 0;
}

/* "ID:" off the front of an entry. */
static qdq_status take_id(const rewriter *r, const char *what, span *entry, uint64_t *id_out) {
    const span whole = *entry;
    span head;
    int64_t id;
    if (!next_part(entry, ':', &head) || entry->s == NULL || !to_s64(head, &id) || id < 0)
        return bad(r, what, whole, "ID:…");
    *id_out = (uint64_t)id;
    return QDQ_OK;
}

static const char *keep(const rewriter *r, span text) {
    char *s = qdqi_arena_alloc(&r->c->arena, text.n + 1, 1);
    if (s != NULL) memcpy(s, text.s, text.n);
    return s;
}

static qdq_status find_op(const rewriter *r, const char *what, uint64_t id, qdqi_json_op **op_out) {
    for (size_t i = 0; i < r->c->n_ops; i++) {
        if (r->c->ops[i].id != id) continue;
        *op_out = &r->c->ops[i];
        return QDQ_OK;
    }
    return qdqi_fail(r->err, QDQ_E_BAD_ARG, "%s: the graph has no op %" PRIu64, what, id);
}

/* Every mention of a tensor. */
#define FOR_EACH_MENTION(r, tensor_id, m)                                                                              \
    for (qdqi_json_mention *m = qdqi_json_index_find(&(r)->index, tensor_id);                                          \
         m != NULL && m < (r)->index.mentions + (r)->index.n && m->id == (tensor_id); m++)

static bool is_graph_input(const rewriter *r, uint64_t id) {
    const qdqi_json_mention *m = qdqi_json_index_find(&r->index, id);
    return m != NULL && !m->is_output;
}

/* ---- layouts ---------------------------------------------------------------------------------------------------- */

/* "acdb" -> {0, 2, 3, 1}; an x stands for all dims after the last one named ("axb" of rank 4 is "acdb"). */
static bool order_of_tag(span tag, int32_t ndims, int32_t *order) {
    int32_t named = 0, n = 0;
    bool seen[QDQ_MAX_NDIMS] = {false};
    for (size_t i = 0; i < tag.n; i++)
        named += tag.s[i] != 'x';
    if (named == (int32_t)tag.n && named != ndims) return false;
    if (named > ndims) return false;
    for (size_t i = 0; i < tag.n; i++) {
        int32_t from = tag.s[i] - 'a', to = from + 1;
        if (tag.s[i] == 'x') {
            from = named;
            to = ndims;
        } else if (from < 0 || from >= named) {
            return false;
        }
        for (int32_t d = from; d < to; d++) {
            if (seen[d]) return false;
            seen[d] = true;
            order[n++] = d;
        }
    }
    return n == ndims;
}

/* ---- in_shapes, mb ---------------------------------------------------------------------------------------------- */

static qdq_status parse_dims(const rewriter *r, span text, int32_t *ndims, int64_t *dims) {
    *ndims = 0;
    if (text.n == 1 && text.s[0] == '-') return QDQ_OK;
    span rest = text, part;
    while (next_part(&rest, 'x', &part)) {
        if (*ndims == QDQ_MAX_NDIMS || !to_s64(part, &dims[*ndims]) || dims[*ndims] < 0)
            return bad(r, "in-shapes", text, "a shape (2x3x4, - for rank 0) of at most 12 dims");
        ++*ndims;
    }
    return QDQ_OK;
}

static qdq_status reshape_input(const rewriter *r, uint64_t id, span shape, span tag) {
    if (!is_graph_input(r, id))
        return qdqi_fail(r->err, QDQ_E_BAD_ARG, "in-shapes: the graph has no input tensor %" PRIu64, id);
    FOR_EACH_MENTION(r, id, m) {
        qdq_tensor_desc *desc = m->desc;
        int32_t order[QDQ_MAX_NDIMS], ndims = desc->ndims;
        int64_t dims[QDQ_MAX_NDIMS] = {0};
        if (shape.s != NULL) {
            QDQI_TRY(parse_dims(r, shape, &ndims, dims));
        } else if (ndims >= 0) {
            memcpy(dims, desc->dims, sizeof dims);
        }
        if (ndims < 0) return bad(r, "in-shapes", tag, "a shape too: the tensor has none");
        if (tag.s == NULL) {
            qdqi_json_physical_order(desc, ndims, order);
        } else if (!order_of_tag(tag, ndims, order)) {
            return bad(r, "in-shapes", tag, "a tag that names every dim once (abcd, acdb, axb …)");
        }
        desc->ndims = ndims;
        memcpy(desc->dims, dims, sizeof dims);
        QDQI_TRY(qdqi_json_lay_out(desc, order, r->err));
    }
    return QDQ_OK;
}

static qdq_status rewrite_shapes(const rewriter *r, const char *text, bool skip_strangers) {
    span rest = of_text(text), entry;
    while (next_part(&rest, '+', &entry)) {
        uint64_t id;
        QDQI_TRY(take_id(r, "in-shapes", &entry, &id));
        span shape = {NULL, 0}, tag = {NULL, 0};
        if (entry.n > 0 && isalpha((unsigned char)entry.s[0])) {
            tag = entry;
        } else {
            const span whole = entry;
            next_part(&entry, '*', &shape);
            tag = entry;
            if (tag.s != NULL && tag.n == 0) return bad(r, "in-shapes", whole, "a tag after the *");
        }
        if (skip_strangers && !is_graph_input(r, id)) continue;
        QDQI_TRY(reshape_input(r, id, shape, tag));
    }
    return QDQ_OK;
}

static bool kind_is_one_of(const qdqi_json_op *op, const char *const *kinds) {
    for (; *kinds != NULL; kinds++)
        if (strcmp(op->kind, *kinds) == 0) return true;
    return false;
}

/* Does dim 0 of a graph input count the batch? Weights, bias, statistics, scales and zero points have none: the use is
 * followed through ops of one tensor to the first op that tells. `looks` are left: as many as there are mentions, which a graph whose
 * tensors have one producer each does not need. */
static bool has_batch(const rewriter *r, uint64_t id, int depth, size_t *looks) {
    static const char *const with_params[] = {
        "Convolution",       "ConvTranspose",      "BiasAdd",     "PReLU",     "LayerNorm",
        "GroupNorm",         "BatchNormInference", "Interpolate", "ReduceSum", "ReduceMean",
        "DynamicDequantize", "DynamicQuantize",    NULL};
    FOR_EACH_MENTION(r, id, m) {
        if (m->desc->property == QDQ_PROPERTY_CONSTANT || m->desc->ndims < 1) return false;
        if (m->is_output) continue;
        if (*looks == 0) return true;
        --*looks;
        const qdqi_json_op *op = &r->c->ops[m->op];
        const ptrdiff_t port = m->desc - op->in;
        if (port > 0 && kind_is_one_of(op, with_params)) return false;
        if (strcmp(op->kind, "MatMul") == 0) {
            if (port == 2 || (port == 1 && m->desc->ndims < 3)) return false;
        } else if (op->n_in > 1 && !kind_is_one_of(op, with_params)) {
            /* an operand that is broadcast along the batch keeps its 1, or its lower rank */
            for (size_t i = 0; i < op->n_in; i++)
                if (m->desc->ndims < op->in[i].ndims || (m->desc->dims[0] == 1 && op->in[i].dims[0] != 1)) return false;
        } else if (op->n_in == 1 && op->n_out == 1 && depth < 64 && !has_batch(r, op->out[0].id, depth + 1, looks)) {
            return false;
        }
    }
    return true;
}

static qdq_status rewrite_mb(const rewriter *r, int64_t mb) {
    if (mb < 0) return qdqi_fail(r->err, QDQ_E_BAD_ARG, "mb: %" PRId64 ", expected at least 0", mb);
    bool *batched = qdqi_calloc(r->index.n + 1, sizeof *batched);
    if (batched == NULL) return QDQI_NO_MEMORY(r->err);
    /* decide first: the decision compares shapes, which the second loop changes */
    for (size_t i = 0; i < r->index.n; i++) {
        size_t looks = r->index.n;
        batched[i] = is_graph_input(r, r->index.mentions[i].id) && has_batch(r, r->index.mentions[i].id, 0, &looks);
    }
    qdq_status st = QDQ_OK;
    for (size_t i = 0; i < r->index.n && st == QDQ_OK; i++) {
        if (!batched[i]) continue;
        qdq_tensor_desc *desc = r->index.mentions[i].desc;
        int32_t order[QDQ_MAX_NDIMS];
        qdqi_json_physical_order(desc, desc->ndims, order);
        desc->dims[0] = mb;
        st = qdqi_json_lay_out(desc, order, r->err);
    }
    qdqi_free(batched);
    return st;
}

/* ---- dt, op_kind ------------------------------------------------------------------------------------------------ */

static bool is_plain_float(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_BF16 || dtype == QDQ_DTYPE_F16;
}

static qdq_status parse_dtype(const rewriter *r, span text, qdq_dtype *out) {
    const char *name = keep(r, text);
    if (name == NULL) return QDQI_NO_MEMORY(r->err);
    *out = qdq_dtype_from_name(name);
    return *out != QDQ_DTYPE_UNDEF ? QDQ_OK : bad(r, "dt", text, "a data type");
}

/* "DT" changes every f32, bf16 and f16 tensor; "ID:DT" one tensor. */
static qdq_status rewrite_dtypes(const rewriter *r, const char *text) {
    span rest = of_text(text), entry;
    while (next_part(&rest, '+', &entry)) {
        qdq_dtype dtype;
        if (memchr(entry.s, ':', entry.n) == NULL) {
            QDQI_TRY(parse_dtype(r, entry, &dtype));
            if (!is_plain_float(dtype)) return bad(r, "dt", entry, "f32, bf16 or f16, or ID:DT for one tensor");
            for (size_t i = 0; i < r->index.n; i++)
                if (is_plain_float(r->index.mentions[i].desc->dtype)) r->index.mentions[i].desc->dtype = dtype;
            continue;
        }
        uint64_t id;
        QDQI_TRY(take_id(r, "dt", &entry, &id));
        QDQI_TRY(parse_dtype(r, entry, &dtype));
        if (qdqi_json_index_find(&r->index, id) == NULL)
            return qdqi_fail(r->err, QDQ_E_BAD_ARG, "dt: the graph has no tensor %" PRIu64, id);
        FOR_EACH_MENTION(r, id, m) m->desc->dtype = dtype;
    }
    return QDQ_OK;
}

static qdq_status rewrite_kinds(const rewriter *r, const char *text) {
    span rest = of_text(text), entry;
    while (next_part(&rest, '+', &entry)) {
        uint64_t id;
        qdqi_json_op *op = NULL;
        QDQI_TRY(take_id(r, "op-kind", &entry, &id));
        QDQI_TRY(find_op(r, "op-kind", id, &op));
        if (entry.n == 0) return bad(r, "op-kind", entry, "a kind");
        op->kind = keep(r, entry);
        if (op->kind == NULL) return QDQI_NO_MEMORY(r->err);
    }
    return QDQ_OK;
}

/* ---- op_attrs --------------------------------------------------------------------------------------------------- */

/* Types of the attributes of oneDNN Graph, for those that the file leaves at their default: the words of the command
 * line do not tell 1 the bool from 1 the integer. */
static const struct {
    const char *name;
    char type;
} attr_types[] = {
    {"alpha", 'f'},
    {"beta", 'f'},
    {"epsilon", 'f'},
    {"max", 'f'},
    {"min", 'f'},
    {"scales", 'F'},
    {"axis", 'i'},
    {"begin_norm_axis", 'i'},
    {"groups", 'i'},
    {"axes", 'I'},
    {"dilations", 'I'},
    {"group_shape", 'I'},
    {"kernel", 'I'},
    {"order", 'I'},
    {"output_padding", 'I'},
    {"pads_begin", 'I'},
    {"pads_end", 'I'},
    {"shape", 'I'},
    {"sizes", 'I'},
    {"strides", 'I'},
    {"zps", 'I'},
    {"exclude_pad", 'b'},
    {"keep_dims", 'b'},
    {"keep_stats", 'b'},
    {"per_channel_broadcast", 'b'},
    {"special_zero", 'b'},
    {"transpose_a", 'b'},
    {"transpose_b", 'b'},
    {"use_affine", 'b'},
    {"auto_broadcast", 's'},
    {"auto_pad", 's'},
    {"coordinate_transformation_mode", 's'},
    {"data_format", 's'},
    {"mode", 's'},
    {"qtype", 's'},
    {"rounding_type", 's'},
    {"weights_format", 's'},
};

static char type_of_attr(const char *name) {
    for (size_t i = 0; i < sizeof attr_types / sizeof attr_types[0]; i++)
        if (strcmp(attr_types[i].name, name) == 0) return attr_types[i].type;
    return 0;
}

static qdq_status parse_list(const rewriter *r, qdqi_json_attr *a, span text) {
    size_t n = 0, room = 1;
    for (size_t i = 0; i < text.n; i++)
        room += text.s[i] == 'x';
    int64_t *s64s = qdqi_arena_alloc(&r->c->arena, room, sizeof *s64s);
    float *f32s = qdqi_arena_alloc(&r->c->arena, room, sizeof *f32s);
    if (s64s == NULL || f32s == NULL) return QDQI_NO_MEMORY(r->err);
    span rest = text.n == 0 ? (span){NULL, 0} : text, part;
    for (; next_part(&rest, 'x', &part); n++)
        if (a->type == 'I' ? !to_s64(part, &s64s[n]) : !qdqi_text_f32(part.s, part.n, &f32s[n]))
            return bad(r, a->name, text, "numbers with x between them");
    a->n = n;
    if (a->type == 'I')
        a->v.s64s = s64s;
    else
        a->v.f32s = f32s;
    return QDQ_OK;
}

static qdq_status parse_value(const rewriter *r, qdqi_json_attr *a, span text) {
    int64_t number;
    switch (a->type) {
    case 'I':
    case 'F': return parse_list(r, a, text);
    case 'i': return to_s64(text, &a->v.s64) ? QDQ_OK : bad(r, a->name, text, "an integer");
    case 'f': return qdqi_text_f32(text.s, text.n, &a->v.f32) ? QDQ_OK : bad(r, a->name, text, "a number");
    case 'b':
        if (!to_s64(text, &number)) {
            const bool yes = text.n == 4 && memcmp(text.s, "true", 4) == 0;
            number = yes || (text.n == 5 && memcmp(text.s, "false", 5) == 0) ? yes : 2;
        }
        if (number != 0 && number != 1) return bad(r, a->name, text, "0, 1, true or false");
        a->v.boolean = number == 1;
        return QDQ_OK;
    default: a->v.str = keep(r, text); return a->v.str != NULL ? QDQ_OK : QDQI_NO_MEMORY(r->err);
    }
}

static qdq_status rewrite_attr(const rewriter *r, qdqi_json_op *op, span pair) {
    const span whole = pair;
    span name_text;
    if (!next_part(&pair, ':', &name_text) || pair.s == NULL || name_text.n == 0)
        return bad(r, "op-attrs", whole, "NAME:VALUE");
    const char *name = keep(r, name_text);
    if (name == NULL) return QDQI_NO_MEMORY(r->err);
    qdqi_json_attr *a = qdqi_json_find_attr(op, name);
    if (a == NULL) {
        const char type = type_of_attr(name);
        if (type == 0) return bad(r, "op-attrs", name_text, "an attribute of the op");
        a = qdqi_json_add_attr(r->c, op, name);
        if (a == NULL) return QDQI_NO_MEMORY(r->err);
        a->type = type;
    }
    a->overridden = true;
    return parse_value(r, a, pair);
}

static qdq_status rewrite_attrs(const rewriter *r, const char *text) {
    span rest = of_text(text), entry;
    while (next_part(&rest, '+', &entry)) {
        uint64_t id;
        qdqi_json_op *op = NULL;
        QDQI_TRY(take_id(r, "op-attrs", &entry, &id));
        QDQI_TRY(find_op(r, "op-attrs", id, &op));
        span pair;
        while (next_part(&entry, '*', &pair))
            QDQI_TRY(rewrite_attr(r, op, pair));
    }
    return QDQ_OK;
}

/* ---- what follows from new shapes ------------------------------------------------------------------------------- */

static bool attr_is(const qdqi_json_op *op, const char *name, const char *value) {
    const qdqi_json_attr *a = qdqi_json_find_attr(op, name);
    return a != NULL && a->type == 's' && strcmp(a->v.str, value) == 0;
}

static bool is_static_quantize(const qdqi_json_op *op) {
    return (strcmp(op->kind, "Quantize") == 0 || strcmp(op->kind, "Dequantize") == 0) && op->n_in > 0;
}

/* shape {a, b, c} -> {-1, b, c}, which means the same as long as the number of elements stays. */
static void free_first_dim(qdqi_json_op *op) {
    qdqi_json_attr *shape = strcmp(op->kind, "StaticReshape") == 0 ? qdqi_json_find_attr(op, "shape") : NULL;
    if (shape == NULL || shape->type != 'I' || shape->n == 0 || shape->overridden) return;
    for (size_t i = 0; i < shape->n; i++)
        if (shape->v.s64s[i] <= 0) return;
    shape->v.s64s[0] = -1;
}

/* Groups of a DynamicDequantize whose src and scales have known shapes. */
static void adapt_group_shape(const rewriter *r, qdqi_json_op *op) {
    if (strcmp(op->kind, "DynamicDequantize") != 0 || !attr_is(op, "qtype", "per_group") || op->n_in < 2) return;
    qdqi_json_attr *group = qdqi_json_find_attr(op, "group_shape");
    const qdq_tensor_desc *src = &op->in[0], *scales = &op->in[1];
    if (group == NULL || group->type != 'I' || group->overridden || src->ndims < 1 || src->ndims != scales->ndims)
        return;
    int64_t *sizes = qdqi_arena_alloc(&r->c->arena, (size_t)src->ndims, sizeof *sizes);
    if (sizes == NULL) return;
    for (int32_t i = 0; i < src->ndims; i++) {
        /* what does not divide is left for the schema to refuse, in its own words */
        if (src->dims[i] <= 0 || scales->dims[i] <= 0 || src->dims[i] % scales->dims[i] != 0) return;
        sizes[i] = src->dims[i] / scales->dims[i];
    }
    group->v.s64s = sizes;
    group->n = (size_t)src->ndims;
}

static qdq_status resize_list(const rewriter *r, qdqi_json_attr *a, size_t n) {
    if (a == NULL || a->n == 0 || a->n == n || (a->type != 'I' && a->type != 'F')) return QDQ_OK;
    const size_t size = a->type == 'I' ? sizeof(int64_t) : sizeof(float);
    void *grown = qdqi_arena_alloc(&r->c->arena, n + 1, size);
    if (grown == NULL) return QDQI_NO_MEMORY(r->err);
    const char *from = a->type == 'I' ? (const char *)a->v.s64s : (const char *)a->v.f32s;
    for (size_t i = 0; i < n; i++)
        memcpy((char *)grown + i * size, from + i % a->n * size, size);
    a->n = n;
    if (a->type == 'I')
        a->v.s64s = grown;
    else
        a->v.f32s = grown;
    return QDQ_OK;
}

static qdq_status adapt_channels(const rewriter *r, qdqi_json_op *op) {
    if (!is_static_quantize(op) || !attr_is(op, "qtype", "per_channel")) return QDQ_OK;
    const qdqi_json_attr *axis_attr = qdqi_json_find_attr(op, "axis");
    const qdq_tensor_desc *src = &op->in[0];
    int64_t axis = axis_attr != NULL && axis_attr->type == 'i' ? axis_attr->v.s64 : 1;
    if (axis < 0) axis += src->ndims;
    if (axis < 0 || axis >= src->ndims || src->dims[axis] < 1) return QDQ_OK; /* the schema refuses it */
    QDQI_TRY(resize_list(r, qdqi_json_find_attr(op, "scales"), (size_t)src->dims[axis]));
    return resize_list(r, qdqi_json_find_attr(op, "zps"), (size_t)src->dims[axis]);
}

/* The case with every per_channel op made per_tensor, which changes no shape: the lengths of its vectors are known only
 * after inference. Shares all else with `c`. */
static qdq_status make_probe(const rewriter *r, qdqi_json_case *probe) {
    *probe = *r->c;
    probe->ops = qdqi_arena_alloc(&r->c->arena, r->c->n_ops + 1, sizeof *probe->ops);
    if (probe->ops == NULL) return QDQI_NO_MEMORY(r->err);
    for (size_t i = 0; i < r->c->n_ops; i++) {
        const qdqi_json_op *from = &r->c->ops[i];
        qdqi_json_op *op = &probe->ops[i];
        *op = *from;
        if (!is_static_quantize(from) || !attr_is(from, "qtype", "per_channel")) continue;
        op->attrs = qdqi_arena_alloc(&r->c->arena, from->n_attrs, sizeof *op->attrs);
        if (op->attrs == NULL) return QDQI_NO_MEMORY(r->err);
        memcpy(op->attrs, from->attrs, from->n_attrs * sizeof *op->attrs);
        qdqi_json_find_attr(op, "qtype")->v.str = "per_tensor";
        qdqi_json_attr *lists[] = {qdqi_json_find_attr(op, "scales"), qdqi_json_find_attr(op, "zps")};
        for (size_t k = 0; k < 2; k++)
            if (lists[k] != NULL && lists[k]->n > 1) lists[k]->n = 1;
    }
    return QDQ_OK;
}

/* Dims of every produced tensor from the probe; the layout keeps its order of dims. */
static qdq_status take_shapes(const rewriter *r, const qdq_graph *probe, const qdq_tensor_desc *old) {
    for (size_t i = 0; i < r->index.n; i++) {
        const qdqi_json_mention *m = &r->index.mentions[i];
        if (is_graph_input(r, m->id)) continue;
        qdq_tensor_desc found;
        QDQI_TRY(qdq_graph_tensor_desc(probe, m->id, &found, r->err));
        qdq_tensor_desc *desc = m->desc;
        desc->ndims = found.ndims;
        memcpy(desc->dims, found.dims, sizeof desc->dims);
        bool known = found.ndims >= 0;
        for (int32_t d = 0; d < found.ndims; d++)
            known &= found.dims[d] >= 0;
        if (!known || old[i].layout != QDQ_LAYOUT_STRIDED) continue;
        int32_t order[QDQ_MAX_NDIMS];
        qdqi_json_physical_order(&old[i], found.ndims, order);
        QDQI_TRY(qdqi_json_lay_out(desc, order, r->err));
    }
    return QDQ_OK;
}

static qdq_status infer_shapes(const rewriter *r) {
    qdq_tensor_desc *old = qdqi_arena_alloc(&r->c->arena, r->index.n + 1, sizeof *old);
    if (old == NULL) return QDQI_NO_MEMORY(r->err);
    for (size_t i = 0; i < r->index.n; i++) {
        const qdqi_json_mention *m = &r->index.mentions[i];
        old[i] = *m->desc;
        if (is_graph_input(r, m->id)) continue;
        QDQI_TRY(qdq_tensor_desc_init(m->id, old[i].dtype, QDQ_NDIMS_UNKNOWN, NULL, QDQ_LAYOUT_ANY, old[i].property,
                                      m->desc, r->err));
    }
    qdqi_json_case probe;
    QDQI_TRY(make_probe(r, &probe));
    qdq_graph *graph = NULL;
    qdq_status st = qdqi_json_case_graph(&probe, &graph, r->err);
    if (st == QDQ_OK) {
        st = qdq_graph_finalize(graph, r->err);
        if (st != QDQ_OK) qdqi_fail_in(r->err, st, "%s: with the rewrites", r->c->file);
    }
    if (st == QDQ_OK) st = take_shapes(r, graph, old);
    qdq_graph_destroy(&graph);
    return st;
}

static qdq_status apply(const rewriter *r, const qdqi_json_rewrites *w) {
    QDQI_TRY(rewrite_kinds(r, w->op_kind));
    QDQI_TRY(rewrite_dtypes(r, w->dt));
    QDQI_TRY(rewrite_shapes(r, w->in_shapes, w->skip_strangers));
    if (w->mb != 0) QDQI_TRY(rewrite_mb(r, w->mb));
    QDQI_TRY(rewrite_attrs(r, w->op_attrs));
    const bool new_shapes = of_text(w->in_shapes).n > 0 || w->mb != 0;
    if (!new_shapes && of_text(w->op_attrs).n == 0 && of_text(w->op_kind).n == 0) return QDQ_OK;
    for (size_t i = 0; new_shapes && i < r->c->n_ops; i++) {
        free_first_dim(&r->c->ops[i]);
        adapt_group_shape(r, &r->c->ops[i]);
    }
    QDQI_TRY(infer_shapes(r));
    for (size_t i = 0; i < r->c->n_ops; i++)
        QDQI_TRY(adapt_channels(r, &r->c->ops[i]));
    return QDQ_OK;
}

qdq_status qdqi_json_case_rewrite(qdqi_json_case *c, const qdqi_json_rewrites *rewrites, qdq_error *err) {
    const qdqi_json_rewrites *w = rewrites;
    if (of_text(w->in_shapes).n == 0 && of_text(w->op_attrs).n == 0 && of_text(w->dt).n == 0 &&
        of_text(w->op_kind).n == 0 && w->mb == 0)
        return QDQ_OK;
    rewriter r = {.c = c, .err = err};
    QDQI_TRY(qdqi_json_index_make(c, &r.index, err));
    const qdq_status st = apply(&r, w);
    qdqi_json_index_free(&r.index);
    return st;
}
