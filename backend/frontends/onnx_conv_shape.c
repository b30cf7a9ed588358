/* Constants, casts, data movement. */
#include "onnx_ops.h"

#include <stdio.h>
#include <string.h>

/* ---- constants ---- */

/* Make output 0 a constant with this content. */
static qdq_status set_content(qdqi_onnx_node *n, qdq_dtype dtype, int32_t ndims, int64_t count, const void *data) {
    qdqi_onnx_value *value = qdqi_onnx_value_of(n->r, qdqi_onnx_out(n, 0));
    QDQI_ONNX_NEED(n, value);
    const uint64_t id = value->desc.id;
    QDQI_TRY(qdq_tensor_desc_init(id, dtype, ndims, &count, QDQ_LAYOUT_STRIDED, QDQ_PROPERTY_CONSTANT, &value->desc,
                                  n->err));
    QDQI_TRY(qdq_tensor_desc_size_bytes(&value->desc, &value->bytes, n->err));
    value->owned = qdqi_malloc(value->bytes);
    QDQI_ONNX_NEED(n, value->owned);
    if (value->bytes > 0) memcpy(value->owned, data, value->bytes);
    value->data = value->owned;
    value->is_constant = true;
    return QDQ_OK;
}

qdq_status qdqi_onnx_constant(qdqi_onnx_node *n) {
    if (!qdqi_onnx_has_out(n, 0)) return qdqi_onnx_bad(n, "output 0 is missing");
    if (n->proto->n_attribute != 1) return qdqi_onnx_bad(n, "has %zu attributes, expected one", n->proto->n_attribute);
    const Onnx__AttributeProto *a = n->proto->attribute[0];
    const char *name = a->name == NULL ? "" : a->name;
    (void)qdqi_onnx_attr(n, name);
    if (strcmp(name, "value") == 0 && a->t != NULL) {
        qdqi_onnx_value *value = qdqi_onnx_value_of(n->r, qdqi_onnx_out(n, 0));
        QDQI_ONNX_NEED(n, value);
        const uint64_t id = value->desc.id;
        const qdq_status st = qdqi_onnx_tensor_desc(a->t, value->name, &value->desc, n->err);
        if (st != QDQ_OK) return st;
        value->desc.id = id;
        value->is_constant = true;
        value->proto = a->t;
        return QDQ_OK;
    }
    if (strcmp(name, "value_int") == 0) return set_content(n, QDQ_DTYPE_S64, 0, 0, &a->i);
    if (strcmp(name, "value_float") == 0) return set_content(n, QDQ_DTYPE_F32, 0, 0, &a->f);
    if (strcmp(name, "value_ints") == 0) return set_content(n, QDQ_DTYPE_S64, 1, (int64_t)a->n_ints, a->ints);
    if (strcmp(name, "value_floats") == 0) return set_content(n, QDQ_DTYPE_F32, 1, (int64_t)a->n_floats, a->floats);
    return qdqi_onnx_bad(n, "attribute %.60s is not supported", name);
}

qdq_status qdqi_onnx_constant_of_shape(qdqi_onnx_node *n) {
    const Onnx__AttributeProto *a = qdqi_onnx_attr(n, "value");
    qdq_dtype dtype = QDQ_DTYPE_F32;
    float value_float = 0.0f;
    int64_t value_int = 0;
    if (a != NULL) {
        if (a->t == NULL) return qdqi_onnx_bad(n, "attribute value is no tensor");
        qdq_tensor_desc desc;
        int64_t count = 0;
        const void *data = NULL;
        void *owned = NULL;
        QDQI_TRY(qdqi_onnx_tensor_desc(a->t, n->name, &desc, n->err));
        QDQI_TRY(qdq_tensor_desc_n_elems(&desc, &count, n->err));
        if (count != 1) return qdqi_onnx_bad(n, "attribute value has %lld elements, expected one", (long long)count);
        QDQI_TRY(qdqi_onnx_tensor_data(n->r, a->t, n->name, &desc, &data, &owned, n->err));
        dtype = desc.dtype;
        value_float = qdqi_load_f32(data, dtype, 0);
        value_int = qdqi_load_i64(data, dtype, 0);
        qdqi_free(owned);
    }
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), QDQ_NDIMS_UNKNOWN, dtype);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    qdqi_onnx_put_f32(&e, "value_float", value_float);
    qdqi_onnx_put_s64(&e, "value_int", value_int);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* Those that could not become a second name (outputs of the graph); see is_renaming in onnx_load.c. */
qdq_status qdqi_onnx_identity(qdqi_onnx_node *n) {
    if (qdqi_onnx_has_out(n, 1)) return qdqi_onnx_bad(n, "the second output (mask) is not supported");
    if (qdqi_onnx_has_in(n, 2)) {
        const int64_t *training = NULL;
        int64_t count = 0;
        QDQI_TRY(qdqi_onnx_in_ints(n, 2, &training, &count));
        if (count != 1 || training[0] != 0) return qdqi_onnx_bad(n, "training_mode is not supported");
    }
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* ---- casts ---- */

qdq_status qdqi_onnx_cast(qdqi_onnx_node *n) {
    int64_t to = 0, saturate = 1;
    QDQI_TRY(qdqi_onnx_attr_i(n, "to", 0, &to));
    QDQI_TRY(qdqi_onnx_attr_i(n, "saturate", 1, &saturate));
    qdq_dtype dtype = qdqi_onnx_dtype(to);
    if (dtype == QDQ_DTYPE_F64) dtype = QDQ_DTYPE_F32; /* as constants do: see onnx_tensor.c */
    if (dtype == QDQ_DTYPE_UNDEF)
        return qdqi_onnx_bad(n, "a cast to %s (%lld) is not supported", qdqi_onnx_dtype_text(to), (long long)to);
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), dtype);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    qdqi_onnx_put_str(&e, "to", qdq_dtype_name(dtype));
    qdqi_onnx_put_bool(&e, "saturate", saturate != 0);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* ---- data movement ---- */

qdq_status qdqi_onnx_reshape(qdqi_onnx_node *n) {
    const qdqi_onnx_value *shape = qdqi_onnx_find(n->r, qdqi_onnx_in(n, 1));
    if (shape != NULL && shape->is_constant && shape->desc.ndims == 1 && shape->desc.dims[0] <= QDQ_MAX_NDIMS)
        qdqi_onnx_know(n, qdqi_onnx_out(n, 0), (int32_t)shape->desc.dims[0], qdqi_onnx_in_dtype(n, 0));
    return qdqi_onnx_simple(n);
}

qdq_status qdqi_onnx_flatten(qdqi_onnx_node *n) {
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), 2, qdqi_onnx_in_dtype(n, 0));
    return qdqi_onnx_simple(n);
}

qdq_status qdqi_onnx_transpose(qdqi_onnx_node *n) {
    const int64_t *perm = NULL;
    int64_t n_perm = 0;
    QDQI_TRY(qdqi_onnx_attr_ints(n, "perm", &perm, &n_perm));
    const int32_t rank = n_perm > 0 && n_perm <= QDQ_MAX_NDIMS ? (int32_t)n_perm : qdqi_onnx_in_rank(n, 0);
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), rank, qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    qdqi_onnx_put_s64s(&e, "order", perm, n_perm < 0 ? 0 : (size_t)n_perm); /* empty: reversed, in both */
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

qdq_status qdqi_onnx_pad_attrs(qdqi_onnx_node *n) {
    const int64_t *pads = NULL;
    int64_t n_pads = 0;
    float value = 0.0f;
    QDQI_TRY(qdqi_onnx_attr_ints(n, "pads", &pads, &n_pads));
    QDQI_TRY(qdqi_onnx_attr_f(n, "value", 0.0f, &value));
    if (n_pads < 0) return qdqi_onnx_bad(n, "attribute pads is missing");
    const char *pads_name = qdqi_onnx_const_s64s(n, "pads", pads, (size_t)n_pads);
    QDQI_ONNX_NEED(n, pads_name);
    const char *value_name = qdqi_onnx_const_f32(n, "value", value);
    QDQI_ONNX_NEED(n, value_name);
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), QDQ_DTYPE_UNDEF);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)qdqi_onnx_put_row_attrs(&e);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    qdqi_onnx_put_in(&e, pads_name);
    qdqi_onnx_put_in(&e, value_name);
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}
