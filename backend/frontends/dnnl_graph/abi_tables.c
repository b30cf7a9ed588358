/* The tables of kinds, attributes and statuses, and lookups in them. */
#include "abi.h"

typedef struct kind_row {
    const char *name;
    bool training;
    int min_in, max_in, min_out, max_out; /* of training kinds */
} kind_row;

static const kind_row kinds[] = {
#define ABI_KIND(suffix, text) [dnnl_graph_op_##suffix] = {text, false, 0, 0, 0, 0},
#define ABI_TRAINING(suffix, text, min_in, max_in, min_out, max_out)                                                   \
    [dnnl_graph_op_##suffix] = {text, true, min_in, max_in, min_out, max_out},
#include "abi_kinds.def"
#undef ABI_KIND
#undef ABI_TRAINING
};

_Static_assert(sizeof kinds / sizeof kinds[0] == dnnl_graph_op_last_symbol, "a kind of the header has no row");

static const kind_row *kind_of(dnnl_graph_op_kind_t kind) {
    const unsigned i = (unsigned)kind;
    return i < sizeof kinds / sizeof kinds[0] ? &kinds[i] : NULL;
}

const char *abi_kind_name(dnnl_graph_op_kind_t kind) {
    const kind_row *row = kind_of(kind);
    return row == NULL ? NULL : row->name;
}

const char *abi_kind_qdq(dnnl_graph_op_kind_t kind) {
    const kind_row *row = kind_of(kind);
    return row == NULL ? NULL : row->training ? "Wildcard" : row->name;
}

bool abi_kind_takes(dnnl_graph_op_kind_t kind, size_t n_in, size_t n_out) {
    const kind_row *row = kind_of(kind);
    if (row == NULL) return false;
    return !row->training || (n_in >= (size_t)row->min_in && n_in <= (size_t)row->max_in &&
                              n_out >= (size_t)row->min_out && n_out <= (size_t)row->max_out);
}

typedef struct attr_row {
    const char *name;
    char type;
} attr_row;

static const attr_row attrs[dnnl_graph_op_attr_end] = {
#define ABI_ATTR(suffix, type) [dnnl_graph_op_attr_##suffix] = {#suffix, type},
#include "abi_attrs.def"
#undef ABI_ATTR
};

static const attr_row *attr_of(dnnl_graph_op_attr_t attr) {
    const unsigned i = (unsigned)attr;
    return i < sizeof attrs / sizeof attrs[0] && attrs[i].name != NULL ? &attrs[i] : NULL;
}

const char *abi_attr_name(dnnl_graph_op_attr_t attr) {
    const attr_row *row = attr_of(attr);
    return row == NULL ? NULL : row->name;
}

char abi_attr_type(dnnl_graph_op_attr_t attr) {
    const attr_row *row = attr_of(attr);
    return row == NULL ? 0 : row->type;
}

dnnl_status_t abi_status(qdq_status status) {
    switch (status) {
    case QDQ_OK: return dnnl_success;
    case QDQ_E_NULL_ARG:
    case QDQ_E_BAD_HANDLE:
    case QDQ_E_BAD_STATE:
    case QDQ_E_BAD_ARG:
    case QDQ_E_NOT_FOUND: return dnnl_invalid_arguments;
    case QDQ_E_UNKNOWN_OP:
    case QDQ_E_BAD_ARITY:
    case QDQ_E_BAD_ATTR:
    case QDQ_E_BAD_SCALE:
    case QDQ_E_BAD_ZERO_POINT:
    case QDQ_E_BAD_AXIS: return dnnl_invalid_graph_op;
    case QDQ_E_CYCLE:
    case QDQ_E_DUPLICATE_ID:
    case QDQ_E_BAD_GRAPH: return dnnl_invalid_graph;
    case QDQ_E_BAD_SHAPE:
    case QDQ_E_OVERFLOW: return dnnl_invalid_shape;
    case QDQ_E_BAD_DTYPE: return dnnl_invalid_data_type;
    case QDQ_E_UNSUPPORTED:
    case QDQ_E_NO_ISA:
    case QDQ_E_NO_ONEDNN: return dnnl_unimplemented;
    case QDQ_E_NO_MEMORY: return dnnl_out_of_memory;
    default: return dnnl_runtime_error;
    }
}

const char *abi_mode_name(dnnl_fpmath_mode_t mode) {
    switch (mode) {
    case dnnl_fpmath_mode_bf16: return "bf16";
    case dnnl_fpmath_mode_f16: return "f16";
    case dnnl_fpmath_mode_any: return "any";
    case dnnl_fpmath_mode_tf32: return "tf32";
    default: return "strict";
    }
}
