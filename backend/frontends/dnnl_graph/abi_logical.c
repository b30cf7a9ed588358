/* Logical tensors: plain descriptions, filled, compared and measured. */
#include "abi.h"

#include <string.h>

enum { MAX_NDIMS = DNNL_MAX_NDIMS };
_Static_assert((int)MAX_NDIMS == (int)QDQ_MAX_NDIMS, "both libraries have one greatest rank");
_Static_assert(DNNL_GRAPH_UNKNOWN_DIM == QDQ_DIM_UNKNOWN && DNNL_GRAPH_UNKNOWN_NDIMS == QDQ_NDIMS_UNKNOWN,
               "both libraries have one word for what is not known");

static bool legal(dnnl_graph_layout_type_t layout, dnnl_graph_tensor_property_t property) {
    return layout >= dnnl_graph_layout_type_undef && layout <= dnnl_graph_layout_type_opaque &&
           property >= dnnl_graph_tensor_property_undef && property <= dnnl_graph_tensor_property_constant;
}

bool abi_lt_legal(const abi_lt *lt) {
    return legal(lt->layout_type, lt->property) && lt->ndims <= MAX_NDIMS;
}

static void fill(abi_lt *lt, size_t id, dnnl_data_type_t dtype, int32_t ndims, dnnl_graph_layout_type_t layout,
                 dnnl_graph_tensor_property_t property) {
    memset(lt, 0, sizeof *lt);
    lt->id = id;
    lt->data_type = dtype;
    lt->ndims = ndims < 0 ? DNNL_GRAPH_UNKNOWN_NDIMS : ndims;
    lt->property = property;
    lt->layout_type = layout;
    for (int i = 0; i < MAX_NDIMS; i++)
        lt->layout.strides[i] = DNNL_GRAPH_UNKNOWN_DIM;
}

static void set_dense(abi_lt *lt) {
    int64_t stride = 1;
    for (int i = lt->ndims - 1; i >= 0; i--) {
        lt->layout.strides[i] = stride;
        if (lt->dims[i] > 1 && __builtin_mul_overflow(stride, lt->dims[i], &stride)) stride = INT64_MAX;
    }
    if (lt->ndims == 0) lt->layout.strides[0] = 0;
}

dnnl_status_t dnnl_graph_logical_tensor_init(dnnl_graph_logical_tensor_t *logical_tensor, size_t tid,
                                             dnnl_data_type_t dtype, int32_t ndims, dnnl_graph_layout_type_t ltype,
                                             dnnl_graph_tensor_property_t ptype) {
    if (logical_tensor == NULL || ndims > MAX_NDIMS || !legal(ltype, ptype)) return dnnl_invalid_arguments;
    fill(logical_tensor, tid, dtype, ndims, ltype, ptype);
    for (int i = 0; i < MAX_NDIMS; i++)
        logical_tensor->dims[i] = DNNL_GRAPH_UNKNOWN_DIM;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_logical_tensor_init_with_dims(dnnl_graph_logical_tensor_t *logical_tensor, size_t tid,
                                                       dnnl_data_type_t dtype, int32_t ndims, const dnnl_dims_t dims,
                                                       dnnl_graph_layout_type_t ltype,
                                                       dnnl_graph_tensor_property_t ptype) {
    if (logical_tensor == NULL || ndims < 0 || ndims > MAX_NDIMS || !legal(ltype, ptype)) return dnnl_invalid_arguments;
    if (ndims > 0 && dims == NULL) return dnnl_invalid_arguments;
    fill(logical_tensor, tid, dtype, ndims, ltype, ptype);
    for (int i = 0; i < ndims; i++)
        logical_tensor->dims[i] = dims[i];
    if (ltype == dnnl_graph_layout_type_strided && abi_lt_dims_known(logical_tensor)) set_dense(logical_tensor);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_logical_tensor_init_with_strides(dnnl_graph_logical_tensor_t *logical_tensor, size_t tid,
                                                          dnnl_data_type_t dtype, int32_t ndims, const dnnl_dims_t dims,
                                                          const dnnl_dims_t strides,
                                                          dnnl_graph_tensor_property_t ptype) {
    if (logical_tensor == NULL || ndims < 0 || ndims > MAX_NDIMS) return dnnl_invalid_arguments;
    if (!legal(dnnl_graph_layout_type_strided, ptype)) return dnnl_invalid_arguments;
    if (ndims > 0 && (dims == NULL || strides == NULL)) return dnnl_invalid_arguments;
    fill(logical_tensor, tid, dtype, ndims, dnnl_graph_layout_type_strided, ptype);
    for (int i = 0; i < ndims; i++) {
        logical_tensor->dims[i] = dims[i];
        logical_tensor->layout.strides[i] = strides[i];
    }
    if (ndims == 0) logical_tensor->layout.strides[0] = 0;
    return dnnl_success;
}

bool abi_lt_dims_known(const abi_lt *lt) {
    if (lt->ndims < 0 || lt->ndims > MAX_NDIMS) return false;
    for (int i = 0; i < lt->ndims; i++)
        if (lt->dims[i] == DNNL_GRAPH_UNKNOWN_DIM) return false;
    return true;
}

bool abi_lt_strides_known(const abi_lt *lt) {
    if (lt->layout_type != dnnl_graph_layout_type_strided || !abi_lt_dims_known(lt)) return false;
    for (int i = 0; i < lt->ndims; i++)
        if (lt->layout.strides[i] == DNNL_GRAPH_UNKNOWN_DIM) return false;
    return true;
}

static bool same_list(const int64_t *a, const int64_t *b, int n) {
    return n <= 0 || n > MAX_NDIMS || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

bool abi_lt_same(const abi_lt *a, const abi_lt *b) {
    if (a->id != b->id || a->data_type != b->data_type || a->ndims != b->ndims || a->property != b->property ||
        a->layout_type != b->layout_type || !same_list(a->dims, b->dims, a->ndims))
        return false;
    if (a->layout_type == dnnl_graph_layout_type_strided)
        return same_list(a->layout.strides, b->layout.strides, a->ndims);
    return a->layout_type != dnnl_graph_layout_type_opaque || a->layout.layout_id == b->layout.layout_id;
}

dnnl_status_t dnnl_graph_logical_tensor_is_equal(const dnnl_graph_logical_tensor_t *lt1,
                                                 const dnnl_graph_logical_tensor_t *lt2, uint8_t *is_equal) {
    if (lt1 == NULL || lt2 == NULL || is_equal == NULL) return dnnl_invalid_arguments;
    *is_equal = abi_lt_same(lt1, lt2);
    return dnnl_success;
}

static size_t bits_of(dnnl_data_type_t dtype) {
    return dtype == dnnl_e8m0 ? 8 : qdq_dtype_bits((qdq_dtype)dtype);
}

size_t abi_lt_bytes(const abi_lt *lt) {
    if (!abi_lt_dims_known(lt)) return SIZE_MAX;
    int64_t last = 0;
    for (int i = 0; i < lt->ndims; i++) {
        int64_t far;
        if (lt->dims[i] == 0) return 0;
        if (lt->dims[i] < 0 || lt->layout.strides[i] < 0) return SIZE_MAX;
        if (__builtin_mul_overflow(lt->dims[i] - 1, lt->layout.strides[i], &far) ||
            __builtin_add_overflow(last, far, &last))
            return SIZE_MAX;
    }
    size_t bits;
    if (__builtin_mul_overflow((size_t)last + 1, bits_of(lt->data_type), &bits) || bits > SIZE_MAX - 7) return SIZE_MAX;
    return (bits + 7) / 8;
}

/* The end of the largest dim: callers allocate rows whole, up to the last one's end. */
static size_t whole_bytes(const abi_lt *lt) {
    const size_t bytes = abi_lt_bytes(lt);
    int64_t n = 0;
    for (int i = 0; i < lt->ndims && bytes != 0 && bytes != SIZE_MAX; i++) {
        int64_t whole;
        if (__builtin_mul_overflow(lt->dims[i], lt->layout.strides[i], &whole)) return SIZE_MAX;
        if (whole > n) n = whole;
    }
    size_t bits;
    if (__builtin_mul_overflow((size_t)n, bits_of(lt->data_type), &bits) || bits > SIZE_MAX - 7) return SIZE_MAX;
    return (bits + 7) / 8 > bytes ? (bits + 7) / 8 : bytes;
}

dnnl_status_t dnnl_graph_logical_tensor_get_mem_size(const dnnl_graph_logical_tensor_t *logical_tensor, size_t *size) {
    if (logical_tensor == NULL || size == NULL) return dnnl_invalid_arguments;
    switch (logical_tensor->layout_type) {
    case dnnl_graph_layout_type_any: *size = SIZE_MAX; return dnnl_success;
    case dnnl_graph_layout_type_strided:
        if (!abi_lt_dims_known(logical_tensor))
            *size = logical_tensor->ndims < 0 ? SIZE_MAX : 0; /* as libdnnl says it */
        else if (!abi_lt_strides_known(logical_tensor))
            *size = 0;
        else
            *size = whole_bytes(logical_tensor);
        return dnnl_success;
    case dnnl_graph_layout_type_undef: *size = 0; return dnnl_success;
    default: return dnnl_invalid_arguments; /* on the CPU no layout is opaque: the id is of no layout of ours */
    }
}

static uint64_t mix(uint64_t h, uint64_t value) {
    h = (h ^ value) * UINT64_C(0x9FB21C651E98DF25);
    return h ^ (h >> 29);
}

uint64_t abi_lt_signature(const abi_lt *lt) {
    const bool strides = lt->layout_type == dnnl_graph_layout_type_strided;
    uint64_t h = mix((uint64_t)lt->data_type, (uint64_t)(unsigned)lt->ndims);
    h = mix(h, (uint64_t)lt->layout_type);
    for (int i = 0; i < lt->ndims && i < MAX_NDIMS; i++) {
        h = mix(h, (uint64_t)lt->dims[i]);
        if (strides) h = mix(h, (uint64_t)lt->layout.strides[i]);
    }
    return h;
}

static bool is_dense(const abi_lt *lt, int64_t *n_out) {
    int64_t n = 1;
    bool dense = true;
    for (int i = lt->ndims - 1; i >= 0; i--) {
        dense = dense && (lt->dims[i] == 1 || lt->layout.strides[i] == n);
        if (lt->dims[i] < 0 || __builtin_mul_overflow(n, lt->dims[i], &n)) return false;
    }
    *n_out = n;
    return dense || n == 0;
}

bool abi_lt_fits(const abi_lt *lt, const abi_lt *want) {
    if (lt->data_type != want->data_type) return false;
    if (!abi_lt_strides_known(lt)) return true; /* it says nothing: what was compiled for holds */
    bool same = lt->ndims == want->ndims;
    for (int i = 0; same && i < lt->ndims; i++)
        same = lt->dims[i] == want->dims[i] && (lt->dims[i] <= 1 || lt->layout.strides[i] == want->layout.strides[i]);
    int64_t n, n_want;
    return same || (is_dense(lt, &n) && is_dense(want, &n_want) && n == n_want);
}

qdq_status abi_lt_edge(const abi_lt *lt, bool shapes, qdq_tensor_desc *out) {
    const bool known = shapes && lt->ndims >= 0;
    return qdq_tensor_desc_init(lt->id, (qdq_dtype)lt->data_type, known ? lt->ndims : QDQ_NDIMS_UNKNOWN,
                                known ? lt->dims : NULL, QDQ_LAYOUT_ANY, (qdq_property)lt->property, out, NULL);
}

static bool known_dtype(dnnl_data_type_t dtype) {
    return qdq_dtype_bits((qdq_dtype)dtype) != 0;
}

dnnl_status_t abi_lt_port(const abi_lt *lt, bool output, qdq_tensor_desc *out) {
    if (!known_dtype(lt->data_type) || lt->ndims > MAX_NDIMS) return dnnl_invalid_arguments;
    if (lt->layout_type != dnnl_graph_layout_type_any && lt->layout_type != dnnl_graph_layout_type_strided)
        return dnnl_invalid_arguments;
    /* A rank of 0 whose dims nobody gave is a scalar of the C++ header, or what some callers say of a result of which they know
     * nothing. */
    const bool nothing = output && lt->ndims == 0 && lt->dims[0] == DNNL_GRAPH_UNKNOWN_DIM;
    const bool known = abi_lt_dims_known(lt) && !nothing, strides = known && abi_lt_strides_known(lt);
    if (!output && (!known || (lt->layout_type == dnnl_graph_layout_type_strided && !strides)))
        return dnnl_invalid_arguments;
    const qdq_layout layout =
        lt->layout_type == dnnl_graph_layout_type_any ? QDQ_LAYOUT_ANY : QDQ_LAYOUT_STRIDED; /* dense, when unknown */
    const qdq_dtype dtype = (qdq_dtype)lt->data_type;
    const qdq_property property = (qdq_property)lt->property;
    if (!known)
        return abi_status(qdq_tensor_desc_init(lt->id, dtype, QDQ_NDIMS_UNKNOWN, NULL, layout, property, out, NULL));
    if (strides)
        return abi_status(
            qdq_tensor_desc_init_strided(lt->id, dtype, lt->ndims, lt->dims, lt->layout.strides, property, out, NULL));
    return abi_status(qdq_tensor_desc_init(lt->id, dtype, lt->ndims, lt->dims, layout, property, out, NULL));
}

void abi_lt_resolve(abi_lt *lt, const qdq_tensor_desc *desc) {
    lt->ndims = desc->ndims;
    lt->layout_type = dnnl_graph_layout_type_strided;
    lt->dims[0] = lt->layout.strides[0] = 0; /* of a scalar */
    for (int i = 0; i < desc->ndims; i++) {
        lt->dims[i] = desc->dims[i];
        lt->layout.strides[i] = desc->strides[i];
    }
}
