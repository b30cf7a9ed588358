/* Op schemas: one row of ir/ops.def says everything about an op; this header gives the rows as data.
 *
 * ops.def row:
 *   QDQI_OP(ID, "Name", ORIGIN, min_in, max_in, min_out, max_out, dtype_rule, shape_rule, check, ref, FLAGS, ATTRS(...))
 *     ID          suffix of the enumerator QDQI_OP_<ID>
 *     ORIGIN      ONEDNN | ONNX | TF: whose semantics and spelling
 *     max_in      QDQI_VARIADIC for any number
 *     dtype_rule  function qdqi_dtypes_<rule>: allowed data types per port, and the output's data type
 *     shape_rule  function qdqi_shape_<rule>: output dims from input dims, attributes and constant inputs
 *     check       function qdqi_check_<check>: what attributes alone cannot say (quantization parameters, …); `none`
 *     ref         function qdqi_ref_<ref> in ref/: the plain meaning
 *     FLAGS       QDQI_F_* bits
 *     ATTRS(...)  attribute rows: REQ_F32(EPSILON) S64(AXIS, 1, min, max) …; ops.def lists the forms
 * Ports below min_in must be present; later ones may be missing, also before a present one.
 * Elementwise unary ops live in ir/unary.def and are expanded into the same table. */
#ifndef QDQI_SCHEMA_H
#define QDQI_SCHEMA_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kinds ---- */

typedef enum qdqi_kind {
    QDQI_OP_NONE = 0,
#define QDQI_UNARY(id, ...) QDQI_OP_##id,
#include "ir/unary.def"
#undef QDQI_UNARY
#define QDQI_OP(id, ...) QDQI_OP_##id,
#include "ir/ops.def"
#undef QDQI_OP
    QDQI_OP_END_OF_BUILTIN, /* host-registered (custom) kinds follow: QDQI_OP_END_OF_BUILTIN + i */
} qdqi_kind;

/* ---- attributes ---- */

typedef enum qdqi_attr_name {
#define QDQI_ATTR(id, text) QDQI_A_##id,
#include "ir/attrs.def"
#undef QDQI_ATTR
    QDQI_N_ATTR_NAMES,
    QDQI_A_NONE = QDQI_N_ATTR_NAMES
} qdqi_attr_name;

typedef enum qdqi_attr_type {
    QDQI_ATTR_F32 = 'f',
    QDQI_ATTR_F32S = 'F',
    QDQI_ATTR_S64 = 'i',
    QDQI_ATTR_S64S = 'I',
    QDQI_ATTR_BOOL = 'b',
    QDQI_ATTR_STR = 's'
} qdqi_attr_type;

/* A value; lists are owned by whoever owns the op. */
typedef struct qdqi_attr {
    qdqi_attr_type type;
    bool is_set;     /* given by the user (a default is filled in otherwise) */
    bool is_present; /* has a value, given or default; an optional attribute without default may have none */
    uint32_t n;      /* elements of a list */
    union {
        float f32;
        int64_t s64;
        bool boolean;
        const float *f32s;
        const int64_t *s64s;
        const char *str;
    } v;
} qdqi_attr;

typedef struct qdqi_attr_schema {
    qdqi_attr_name name;
    qdqi_attr_type type;
    bool required;
    bool has_default;
    float f32;             /* default of F32 */
    int64_t s64;           /* default of S64, BOOL (0/1) */
    const char *str;       /* default of STR; for lists with has_default: the empty list */
    const char *choices;   /* STR: legal values separated by '|', or NULL */
    bool has_min, has_max; /* S64 and every element of S64S */
    int64_t min, max;
} qdqi_attr_schema;

const char *qdqi_attr_text(qdqi_attr_name name);
/* QDQI_N_ATTR_NAMES when no op has such an attribute */
qdqi_attr_name qdqi_attr_from_text(const char *text);

/* ---- schemas ---- */

enum { QDQI_VARIADIC = 255 };

enum {
    QDQI_F_UNARY = 1 << 0,       /* elementwise unary: a chain op; dst shape = src shape */
    QDQI_F_BINARY = 1 << 1,      /* elementwise binary with numpy broadcast: a chain op */
    QDQI_F_COMMUTATIVE = 1 << 2, /* inputs 0 and 1 may be swapped */
    QDQI_F_QUANTIZE = 1 << 3,    /* float -> integer by scale and zero point */
    QDQI_F_DEQUANTIZE = 1 << 4,  /* integer -> float by scale and zero point */
    QDQI_F_SHAPE_ONLY = 1 << 5,  /* output data is input data in the same (dense) order: reshape, squeeze, … */
    QDQI_F_MOVE = 1 << 6,        /* moves elements without changing them: transpose, slice, gather, pad, concat … */
    QDQI_F_FOLD = 1 << 7,        /* folded by finalize when all inputs are constants (index and shape arithmetic) */
    QDQI_F_NO_OUTPUT = 1 << 8,   /* End */
    QDQI_F_OPAQUE = 1 << 9,      /* Wildcard: no meaning; stays unsupported */
    QDQI_F_REDUCE = 1 << 10
};

typedef enum qdqi_origin { QDQI_ORIGIN_ONEDNN, QDQI_ORIGIN_ONNX, QDQI_ORIGIN_TF, QDQI_ORIGIN_CUSTOM } qdqi_origin;

/* What a shape or dtype rule sees. A missing optional input has desc NULL. `in_data[i]` is the content of a constant input
 * (dense row-major) or NULL. Output descriptors come in as the user gave them; the rule fills dims/dtype when unknown
 * and must refuse when they differ from what it finds. */
typedef struct qdqi_infer_ctx {
    const struct qdqi_op *op;
    uint32_t n_in, n_out;
    const qdq_tensor_desc *const *in;
    const void *const *in_data;
    qdq_tensor_desc *const *out;
    qdq_error *err;
} qdqi_infer_ctx;

typedef qdq_status (*qdqi_rule_fn)(const qdqi_infer_ctx *ctx);

typedef struct qdqi_schema {
    qdqi_kind kind;
    const char *name;
    qdqi_origin origin;
    uint8_t min_in, max_in, min_out, max_out;
    uint32_t flags;
    qdqi_rule_fn dtypes; /* also run at add_op */
    qdqi_rule_fn shape;  /* run when all inputs that it needs have known dims; may run again for other shapes */
    qdqi_rule_fn check;  /* at add_op and again at finalize, when more is known; NULL: none */
    const qdqi_attr_schema *attrs;
    uint32_t n_attrs;
    const qdq_custom_op *custom;                      /* of a host-registered kind */
    const char *dtype_rule, *shape_rule, *check_rule; /* their names in the table; NULL of a custom kind */
    const char *formula;                              /* of x, a, b: elementwise unary ops; else NULL */
} qdqi_schema;

/* What a page about the op says beyond its row (ir/notes.def); all "" without a note. */
typedef struct qdqi_note {
    const char *inputs, *outputs; /* names of the ports in order, "[y]" may be left out */
    const char *formula;
} qdqi_note;
qdqi_note qdqi_schema_note(const qdqi_schema *schema);
/* Whether a port may have the data type, nothing known about the other ports. */
bool qdqi_schema_takes(const qdqi_schema *schema, bool output, uint32_t port, qdq_dtype dtype);

/* The schema of a kind; NULL for NONE or an unknown number. Thread-safe. */
const qdqi_schema *qdqi_schema_of(qdqi_kind kind);
/* By name, built-in first, then registered ones; NULL when unknown. Thread-safe. */
const qdqi_schema *qdqi_schema_find(const char *name);
/* Built-in plus registered kinds; i-th of them. */
size_t qdqi_schema_count(void);
const qdqi_schema *qdqi_schema_at(size_t i);
/* Register a host's kind for the life of the process (thread-safe; strings are copied). */
qdq_status qdqi_schema_register(const qdq_custom_op *op, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
