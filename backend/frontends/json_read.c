/* Text to case: the dump format, read with jansson. Every field is a row of a table or one short function. */
#include "json_case.h"
#include "json_layout.h"
#include "json_where.h"

#include "base/strides.h"
#include "base/alloc.h"
#include "base/checked.h"

#include <jansson.h>

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A dump holds no tensor data: a larger file is a mistake (or a device that never ends). */
#define MAX_TEXT_BYTES ((size_t)1 << 30)

/* Where the reader is: the value, and the way to it. */
typedef struct at {
    json_t *value;
    const qdqi_json_step *step;
} at;

typedef struct reader {
    qdqi_json_case *c;
    qdq_error *err;
} reader;

static qdq_status place(const qdqi_json_case *c, const qdqi_json_step *step, qdq_status status, qdq_error *err) {
    if (err == NULL) return status;
    const qdqi_json_where where = qdqi_json_find(c->text, c->n_text, step);
    return qdqi_fail_in(err, status, "%s:%zu:%zu", c->file, where.line, where.col);
}

/* Fail at a value: `what` was expected. */
static qdq_status expected(reader *r, const qdqi_json_step *step, const char *field, const char *what) {
    qdqi_fail(r->err, QDQ_E_JSON, "`%s`: expected %s", field, what);
    return place(r->c, step, QDQ_E_JSON, r->err);
}

qdq_status qdqi_json_fail_at_op(const qdqi_json_case *c, size_t i, qdq_status status, qdq_error *err) {
    size_t n = 0;
    void *it = json_object_iter(c->root);
    while (it != NULL && strcmp(json_object_iter_key(it), "graph") != 0) {
        it = json_object_iter_next(c->root, it);
        n++;
    }
    const qdqi_json_step graph = {NULL, n}, op = {&graph, i};
    return place(c, &op, status, err);
}

/* ---- scalars and lists ------------------------------------------------------------------------------------------ */

static qdq_status read_text(reader *r, at a, const char *field, const char **out) {
    if (!json_is_string(a.value)) return expected(r, a.step, field, "a string");
    *out = qdqi_arena_strdup(&r->c->arena, json_string_value(a.value));
    return *out != NULL ? QDQ_OK : QDQI_NO_MEMORY(r->err);
}

static qdq_status read_s64(reader *r, at a, const char *field, int64_t *out) {
    if (!json_is_integer(a.value)) return expected(r, a.step, field, "an integer");
    *out = json_integer_value(a.value);
    return QDQ_OK;
}

static qdq_status read_id(reader *r, at a, const char *field, uint64_t *out) {
    if (!json_is_integer(a.value) || json_integer_value(a.value) < 0)
        return expected(r, a.step, field, "an id (an integer from 0)");
    *out = (uint64_t)json_integer_value(a.value);
    return QDQ_OK;
}

static qdq_status read_f32(reader *r, at a, const char *field, float *out) {
    if (!json_is_number(a.value)) return expected(r, a.step, field, "a number");
    const double value = json_number_value(a.value);
    /* the smallest double that rounds to infinity is half a step above FLT_MAX */
    if (!(fabs(value) < (double)FLT_MAX * (1.0 + 0x1p-25))) return expected(r, a.step, field, "a number that fits f32");
    *out = (float)value;
    return QDQ_OK;
}

static qdq_status read_bool(reader *r, at a, const char *field, bool *out) {
    const bool number =
        json_is_integer(a.value) && json_integer_value(a.value) >= 0 && json_integer_value(a.value) <= 1;
    if (!number && !json_is_boolean(a.value)) return expected(r, a.step, field, "0, 1, true or false");
    *out = number ? json_integer_value(a.value) == 1 : json_is_true(a.value);
    return QDQ_OK;
}

static qdq_status read_s64s(reader *r, at a, const char *field, int64_t **out, size_t *n_out) {
    if (!json_is_array(a.value)) return expected(r, a.step, field, "a list of integers");
    const size_t n = json_array_size(a.value);
    int64_t *list = qdqi_arena_alloc(&r->c->arena, n + 1, sizeof *list);
    if (list == NULL) return QDQI_NO_MEMORY(r->err);
    for (size_t i = 0; i < n; i++) {
        const qdqi_json_step step = {a.step, i};
        QDQI_TRY(read_s64(r, (at){json_array_get(a.value, i), &step}, field, &list[i]));
    }
    *out = list;
    *n_out = n;
    return QDQ_OK;
}

static qdq_status read_f32s(reader *r, at a, const char *field, float **out, size_t *n_out) {
    if (!json_is_array(a.value)) return expected(r, a.step, field, "a list of numbers");
    const size_t n = json_array_size(a.value);
    float *list = qdqi_arena_alloc(&r->c->arena, n + 1, sizeof *list);
    if (list == NULL) return QDQI_NO_MEMORY(r->err);
    for (size_t i = 0; i < n; i++) {
        const qdqi_json_step step = {a.step, i};
        QDQI_TRY(read_f32(r, (at){json_array_get(a.value, i), &step}, field, &list[i]));
    }
    *out = list;
    *n_out = n;
    return QDQ_OK;
}

typedef struct word {
    const char *name;
    int value;
} word;

static const word layout_words[] = {{"undef", QDQ_LAYOUT_UNDEF},
                                    {"any", QDQ_LAYOUT_ANY},
                                    {"strided", QDQ_LAYOUT_STRIDED},
                                    {"opaque", QDQ_LAYOUT_OPAQUE},
                                    {NULL, 0}};
static const word property_words[] = {
    {"undef", QDQ_PROPERTY_UNDEF}, {"variable", QDQ_PROPERTY_VARIABLE}, {"constant", QDQ_PROPERTY_CONSTANT}, {NULL, 0}};
static const word attr_type_words[] = {{"bool", 'b'},  {"s64", 'i'},    {"s64[]", 'I'}, {"f32", 'f'},
                                       {"f32[]", 'F'}, {"string", 's'}, {NULL, 0}};
/* Both are checked and have no effect: one graph means the same on every engine, and libqdq computes strictly. */
static const word engine_words[] = {{"cpu", 0}, {"gpu", 1}, {NULL, 0}};
static const word fpmath_words[] = {{"strict", 0}, {"bf16", 1}, {"f16", 2}, {"tf32", 3}, {"any", 4}, {NULL, 0}};

static qdq_status read_word(reader *r, at a, const char *field, const word *words, int *out) {
    const char *text = json_string_value(a.value);
    for (const word *w = words; text != NULL && w->name != NULL; w++) {
        if (strcmp(text, w->name) != 0) continue;
        *out = w->value;
        return QDQ_OK;
    }
    char all[128] = "one of";
    for (const word *w = words; w->name != NULL; w++) {
        const size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, " %s", w->name);
    }
    return expected(r, a.step, field, all);
}

static qdq_status read_dtype(reader *r, at a, qdq_dtype *out) {
    const char *text = json_string_value(a.value);
    if (text == NULL) return expected(r, a.step, "dtype", "a string");
    *out = qdq_dtype_from_name(text);
    if (*out == QDQ_DTYPE_UNDEF && strcmp(text, "undef") != 0)
        return expected(r, a.step, "dtype", "a data type (f32 bf16 f16 s32 s8 u8 …)");
    return QDQ_OK;
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

/* Visit the members of an object in text order, with the step that leads to each. */
#define FOR_EACH_MEMBER(object, parent_step, it, here)                                                                 \
    qdqi_json_step here = {parent_step, 0};                                                                            \
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it), here.index++)

static qdq_status read_attr(reader *r, at a, qdqi_json_op *op, const char *name) {
    if (!json_is_object(a.value)) return expected(r, a.step, name, "an attribute {\"type\", \"value\"}");
    qdqi_json_attr *attr = qdqi_json_add_attr(r->c, op, name);
    if (attr == NULL) return QDQI_NO_MEMORY(r->err);
    at value = {NULL, NULL};
    int type = 0;
    qdqi_json_step value_step = {NULL, 0};
    FOR_EACH_MEMBER(a.value, a.step, it, here) {
        const char *key = json_object_iter_key(it);
        if (strcmp(key, "type") == 0) {
            QDQI_TRY(read_word(r, (at){json_object_iter_value(it), &here}, "type", attr_type_words, &type));
        } else if (strcmp(key, "value") == 0) {
            value_step = here;
            value = (at){json_object_iter_value(it), &value_step};
        }
    }
    if (type == 0) return expected(r, a.step, name, "a \"type\"");
    if (value.value == NULL) return expected(r, a.step, name, "a \"value\"");
    attr->type = (char)type;
    switch (attr->type) {
    case 'b': return read_bool(r, value, name, &attr->v.boolean);
    case 'i': return read_s64(r, value, name, &attr->v.s64);
    case 'I': return read_s64s(r, value, name, &attr->v.s64s, &attr->n);
    case 'f': return read_f32(r, value, name, &attr->v.f32);
    case 'F': return read_f32s(r, value, name, &attr->v.f32s, &attr->n);
    default: return read_text(r, value, name, &attr->v.str);
    }
}

static qdq_status read_attrs(reader *r, at a, qdqi_json_op *op) {
    if (!json_is_object(a.value)) return expected(r, a.step, "attrs", "an object");
    FOR_EACH_MEMBER(a.value, a.step, it, here) {
        QDQI_TRY(read_attr(r, (at){json_object_iter_value(it), &here}, op, json_object_iter_key(it)));
    }
    return QDQ_OK;
}

/* Fields of a tensor as they stand in the file. */
typedef struct raw_tensor {
    int64_t *shape, *stride;
    size_t n_shape, n_stride;
    bool has_id, has_layout;
    int layout, property;
    uint64_t id;
    qdq_dtype dtype;
} raw_tensor;

static bool all_known(const raw_tensor *t) {
    for (size_t i = 0; i < t->n_shape; i++)
        if (t->shape[i] == QDQ_DIM_UNKNOWN) return false;
    return true;
}

static bool all_strides_known(const raw_tensor *t) {
    for (size_t i = 0; i < t->n_stride; i++)
        if (t->stride[i] < 0) return false;
    return true;
}

static qdq_status describe(reader *r, const raw_tensor *t, qdq_tensor_desc *out) {
    const qdq_property property = (qdq_property)t->property;
    /* [INT64_MIN] is written for a tensor whose rank is not known */
    const bool no_rank = t->shape == NULL || (t->n_shape == 1 && t->shape[0] == QDQ_DIM_UNKNOWN);
    if (no_rank)
        return qdq_tensor_desc_init(t->id, t->dtype, QDQ_NDIMS_UNKNOWN, NULL, QDQ_LAYOUT_ANY, property, out, r->err);
    if (t->n_shape > QDQ_MAX_NDIMS)
        return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "tensor %" PRIu64 ": rank %zu, expected at most %d", t->id,
                         t->n_shape, QDQ_MAX_NDIMS);
    const int32_t ndims = (int32_t)t->n_shape;
    /* An opaque layout is private to the library that dumped it, and undef says nothing: both leave the choice to us. */
    if (!all_known(t) || t->layout != QDQ_LAYOUT_STRIDED)
        return qdq_tensor_desc_init(t->id, t->dtype, ndims, t->shape, QDQ_LAYOUT_ANY, property, out, r->err);
    if (t->stride == NULL || !all_strides_known(t))
        return qdq_tensor_desc_init(t->id, t->dtype, ndims, t->shape, QDQ_LAYOUT_STRIDED, property, out, r->err);
    if (t->n_stride != t->n_shape)
        return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "tensor %" PRIu64 ": %zu strides for a shape of rank %zu", t->id,
                         t->n_stride, t->n_shape);
    return qdq_tensor_desc_init_strided(t->id, t->dtype, ndims, t->shape, t->stride, property, out, r->err);
}

static qdq_status read_tensor(reader *r, at a, qdq_tensor_desc *out) {
    if (!json_is_object(a.value)) return expected(r, a.step, "inputs/outputs", "a tensor (an object)");
    raw_tensor t = {.dtype = QDQ_DTYPE_UNDEF, .layout = QDQ_LAYOUT_STRIDED};
    FOR_EACH_MEMBER(a.value, a.step, it, here) {
        const char *key = json_object_iter_key(it);
        const at value = {json_object_iter_value(it), &here};
        if (strcmp(key, "id") == 0) {
            QDQI_TRY(read_id(r, value, key, &t.id));
            t.has_id = true;
        } else if (strcmp(key, "dtype") == 0) {
            QDQI_TRY(read_dtype(r, value, &t.dtype));
        } else if (strcmp(key, "shape") == 0) {
            QDQI_TRY(read_s64s(r, value, key, &t.shape, &t.n_shape));
        } else if (strcmp(key, "stride") == 0) {
            QDQI_TRY(read_s64s(r, value, key, &t.stride, &t.n_stride));
        } else if (strcmp(key, "layout_type") == 0) {
            QDQI_TRY(read_word(r, value, key, layout_words, &t.layout));
        } else if (strcmp(key, "property_type") == 0) {
            QDQI_TRY(read_word(r, value, key, property_words, &t.property));
        }
    }
    if (!t.has_id) return expected(r, a.step, "tensor", "an \"id\"");
    const qdq_status st = describe(r, &t, out);
    return st == QDQ_OK ? st : place(r->c, a.step, st, r->err);
}

static qdq_status read_tensors(reader *r, at a, const char *field, qdq_tensor_desc **out, size_t *n_out) {
    if (!json_is_array(a.value)) return expected(r, a.step, field, "a list of tensors");
    const size_t n = json_array_size(a.value);
    qdq_tensor_desc *list = qdqi_arena_alloc(&r->c->arena, n + 1, sizeof *list);
    if (list == NULL) return QDQI_NO_MEMORY(r->err);
    for (size_t i = 0; i < n; i++) {
        const qdqi_json_step step = {a.step, i};
        QDQI_TRY(read_tensor(r, (at){json_array_get(a.value, i), &step}, &list[i]));
    }
    *out = list;
    *n_out = n;
    return QDQ_OK;
}

/* Cases written by hand give results strides that do not fit their shape. benchdnn keeps the order of dims and computes
 * the strides; so do we where the ones given cannot hold a result. */
static qdq_status mend_strides(reader *r, qdqi_json_op *op) {
    for (size_t i = 0; i < op->n_out; i++) {
        const qdq_tensor_desc *d = &op->out[i];
        if (d->layout != QDQ_LAYOUT_STRIDED || !qdqi_strides_overlap(d->ndims, d->dims, d->strides)) continue;
        int32_t order[QDQ_MAX_NDIMS];
        qdqi_json_physical_order(&op->out[i], op->out[i].ndims, order);
        QDQI_TRY(qdqi_json_lay_out(&op->out[i], order, r->err));
    }
    return QDQ_OK;
}

static qdq_status read_op(reader *r, at a, qdqi_json_op *op) {
    if (!json_is_object(a.value)) return expected(r, a.step, "graph", "an op (an object)");
    bool has_id = false;
    op->name = "";
    FOR_EACH_MEMBER(a.value, a.step, it, here) {
        const char *key = json_object_iter_key(it);
        const at value = {json_object_iter_value(it), &here};
        if (strcmp(key, "id") == 0) {
            QDQI_TRY(read_id(r, value, key, &op->id));
            has_id = true;
        } else if (strcmp(key, "name") == 0) {
            QDQI_TRY(read_text(r, value, key, &op->name));
        } else if (strcmp(key, "kind") == 0) {
            QDQI_TRY(read_text(r, value, key, &op->kind));
        } else if (strcmp(key, "attrs") == 0) {
            QDQI_TRY(read_attrs(r, value, op));
        } else if (strcmp(key, "inputs") == 0) {
            QDQI_TRY(read_tensors(r, value, key, &op->in, &op->n_in));
        } else if (strcmp(key, "outputs") == 0) {
            QDQI_TRY(read_tensors(r, value, key, &op->out, &op->n_out));
            QDQI_TRY(mend_strides(r, op));
        }
    }
    if (!has_id) return expected(r, a.step, "op", "an \"id\"");
    if (op->kind == NULL) return expected(r, a.step, "op", "a \"kind\"");
    return QDQ_OK;
}

static qdq_status read_ops(reader *r, at a) {
    if (!json_is_array(a.value)) return expected(r, a.step, "graph", "a list of ops");
    const size_t n = json_array_size(a.value);
    r->c->ops = qdqi_arena_alloc(&r->c->arena, n + 1, sizeof *r->c->ops);
    if (r->c->ops == NULL) return QDQI_NO_MEMORY(r->err);
    r->c->n_ops = n;
    for (size_t i = 0; i < n; i++) {
        const qdqi_json_step step = {a.step, i};
        QDQI_TRY(read_op(r, (at){json_array_get(a.value, i), &step}, &r->c->ops[i]));
    }
    return QDQ_OK;
}

/* Ports of the graph (input_ports, output_ports) are what the ops say, so the lists in the file are not read. */
static qdq_status read_document(reader *r) {
    json_t *root = r->c->root;
    if (!json_is_object(root)) return expected(r, NULL, "document", "an object");
    bool has_graph = false;
    int ignored = 0;
    FOR_EACH_MEMBER(root, NULL, it, here) {
        const char *key = json_object_iter_key(it);
        const at value = {json_object_iter_value(it), &here};
        if (strcmp(key, "graph") == 0) {
            QDQI_TRY(read_ops(r, value));
            has_graph = true;
        } else if (strcmp(key, "engine_kind") == 0) {
            QDQI_TRY(read_word(r, value, key, engine_words, &ignored));
        } else if (strcmp(key, "fpmath_mode") == 0) {
            QDQI_TRY(read_word(r, value, key, fpmath_words, &ignored));
        }
    }
    return has_graph ? QDQ_OK : expected(r, NULL, "document", "a \"graph\"");
}

/* ---- entry ------------------------------------------------------------------------------------------------------ */

qdqi_json_attr *qdqi_json_find_attr(const qdqi_json_op *op, const char *name) {
    for (size_t i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0) return &op->attrs[i];
    return NULL;
}

qdqi_json_attr *qdqi_json_add_attr(qdqi_json_case *c, qdqi_json_op *op, const char *name) {
    if (op->n_attrs == op->cap_attrs) {
        const size_t cap = op->cap_attrs == 0 ? 8 : 2 * op->cap_attrs;
        qdqi_json_attr *grown = qdqi_arena_alloc(&c->arena, cap, sizeof *grown);
        if (grown == NULL) return NULL;
        if (op->n_attrs > 0) memcpy(grown, op->attrs, op->n_attrs * sizeof *grown);
        op->attrs = grown;
        op->cap_attrs = cap;
    }
    char *copy = qdqi_arena_strdup(&c->arena, name);
    if (copy == NULL) return NULL;
    qdqi_json_attr *attr = &op->attrs[op->n_attrs++];
    *attr = (qdqi_json_attr){.name = copy};
    return attr;
}

static qdq_status read_case(qdqi_json_case *c, qdq_error *err) {
    if (c->n_text > MAX_TEXT_BYTES)
        return qdqi_fail(err, QDQ_E_JSON, "%s: %zu bytes, expected at most %zu", c->file, c->n_text, MAX_TEXT_BYTES);
    json_error_t syntax;
    c->root = json_loadb(c->text, c->n_text, JSON_REJECT_DUPLICATES, &syntax);
    if (c->root == NULL) {
        if (json_error_code(&syntax) == json_error_out_of_memory) return QDQI_NO_MEMORY(err);
        const int line = syntax.line > 0 ? syntax.line : 1, col = syntax.column > 0 ? syntax.column : 1;
        return qdqi_fail(err, QDQ_E_JSON, "%s:%d:%d: %s", c->file, line, col, syntax.text);
    }
    reader r = {c, err};
    return read_document(&r);
}

static qdqi_json_case *new_case(const char *file) {
    qdqi_json_case *c = qdqi_calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    c->file = qdqi_arena_strdup(&c->arena, file);
    if (c->file == NULL) qdqi_json_case_free(&c);
    return c;
}

qdq_status qdqi_json_case_read(const char *file, const char *text, size_t bytes, qdqi_json_case **case_out,
                               qdq_error *err) {
    qdqi_json_case *c = new_case(file);
    if (c == NULL) return QDQI_NO_MEMORY(err);
    c->text = text;
    c->n_text = bytes;
    const qdq_status st = read_case(c, err);
    if (st != QDQ_OK) {
        qdqi_json_case_free(&c);
        return st;
    }
    *case_out = c;
    return QDQ_OK;
}

static qdq_status load_text(const char *path, char **text_out, size_t *n_out, qdq_error *err) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) return qdqi_fail(err, QDQ_E_IO, "%s: cannot open: %s", path, strerror(errno));
    qdq_status st = QDQ_OK;
    char *text = NULL;
    size_t n = 0, capacity = 0;
    for (;;) {
        if (n == capacity) {
            capacity = capacity == 0 ? (size_t)1 << 16 : 2 * capacity;
            char *grown = capacity > 2 * MAX_TEXT_BYTES ? NULL : qdqi_realloc_array(text, capacity, 1);
            if (grown == NULL) {
                st = n > MAX_TEXT_BYTES / 2 ? qdqi_fail(err, QDQ_E_JSON, "%s: larger than a graph can be (%zu bytes)",
                                                        path, MAX_TEXT_BYTES)
                                            : QDQI_NO_MEMORY(err);
                break;
            }
            text = grown;
        }
        errno = 0;
        const size_t got = fread(text + n, 1, capacity - n, f);
        n += got;
        if (got == 0) {
            if (ferror(f)) st = qdqi_fail(err, QDQ_E_IO, "%s: cannot read: %s", path, strerror(errno));
            break;
        }
    }
    fclose(f);
    if (st != QDQ_OK) {
        qdqi_free(text);
        return st;
    }
    *text_out = text;
    *n_out = n;
    return QDQ_OK;
}

qdq_status qdqi_json_case_read_file(const char *path, qdqi_json_case **case_out, qdq_error *err) {
    qdqi_json_case *c = new_case(path);
    if (c == NULL) return QDQI_NO_MEMORY(err);
    qdq_status st = load_text(path, &c->owned_text, &c->n_text, err);
    c->text = c->owned_text;
    if (st == QDQ_OK) st = read_case(c, err);
    if (st != QDQ_OK) {
        qdqi_json_case_free(&c);
        return st;
    }
    *case_out = c;
    return QDQ_OK;
}

void qdqi_json_case_free(qdqi_json_case **c) {
    if (c == NULL || *c == NULL) return;
    json_decref((*c)->root);
    qdqi_free((*c)->owned_text);
    qdqi_arena_free(&(*c)->arena);
    qdqi_free(*c);
    *c = NULL;
}
