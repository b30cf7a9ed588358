/* Data type rules: which data types an op's ports may have, and what the outputs get when not given. */
#include "ir/rule.h"

#include "base/dtype.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A set of data types: bit of each. Those that oneDNN lacks start at 64; here they follow the others. */
#define BIT(dtype) (UINT32_C(1) << ((dtype) < 64 ? (unsigned)(dtype) : 16u + ((unsigned)(dtype)-64u)))
enum {
    F32 = BIT(QDQ_DTYPE_F32),
    F16 = BIT(QDQ_DTYPE_F16),
    BF16 = BIT(QDQ_DTYPE_BF16),
    BOOLEAN = BIT(QDQ_DTYPE_BOOLEAN),
    U8 = BIT(QDQ_DTYPE_U8),
    S8 = BIT(QDQ_DTYPE_S8),
    S32 = BIT(QDQ_DTYPE_S32),
    S64 = BIT(QDQ_DTYPE_S64),
    FP = F32 | F16 | BF16,
    F8 = BIT(QDQ_DTYPE_F8_E5M2) | BIT(QDQ_DTYPE_F8_E4M3),
    X8 = U8 | S8,
    QINT = X8 | BIT(QDQ_DTYPE_U4) | BIT(QDQ_DTYPE_S4) | BIT(QDQ_DTYPE_S16) | BIT(QDQ_DTYPE_U16) | S32,
    TF_QINT = X8 | BIT(QDQ_DTYPE_S16) | BIT(QDQ_DTYPE_U16) | S32,
    INDEX = S32 | S64,
    NUMBER = FP | BIT(QDQ_DTYPE_F64) | INDEX | X8 | BIT(QDQ_DTYPE_S16) | BIT(QDQ_DTYPE_U16),
    ANY = NUMBER | QINT | F8 | BOOLEAN
};

static bool is_in(uint32_t set, qdq_dtype dtype) {
    return dtype != QDQ_DTYPE_UNDEF && (set & BIT(dtype)) != 0;
}

typedef struct set_text {
    char s[128];
} set_text;

static set_text text_of(uint32_t set) {
    set_text out = {""};
    size_t n = 0;
#define QDQ_DTYPE_ADD(name, value, text, bits)                                                                         \
    if ((value) != 0 && is_in(set, QDQ_DTYPE_##name) && n < sizeof out.s) {                                            \
        const int w = snprintf(out.s + n, sizeof out.s - n, "%s%s", n == 0 ? "" : "|", text);                          \
        n += w > 0 ? (size_t)w : 0;                                                                                    \
    }
    QDQ_DTYPE_MAP(QDQ_DTYPE_ADD)
#undef QDQ_DTYPE_ADD
    return out;
}

static qdq_status fail(const qdqi_infer_ctx *ctx, bool output, uint32_t port, qdq_dtype found, uint32_t expected) {
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_DTYPE, "%s %" PRIu32 ": found data type %s, expected %s",
                          output ? "output" : "input", port, qdq_dtype_name(found), text_of(expected).s);
}

/* What one port allows. Ports with the same `var` (1, 2, …) have the same data type; `also` are further ones that an
 * output may have all the same. `otherwise` is what an output gets when nothing else says. */
typedef struct port_rule {
    uint8_t var;
    uint32_t set;
    uint32_t also;
    qdq_dtype otherwise;
} port_rule;

enum { N_VARS = 4 };

/* The last rule of a list holds for all further ports. An unknown data type of an input is no error here: finalize knows. */
static qdq_status check(const qdqi_infer_ctx *ctx, const port_rule *in, uint32_t n_in, const port_rule *out,
                        uint32_t n_out) {
    qdq_dtype vars[N_VARS] = {QDQ_DTYPE_UNDEF};
    for (uint32_t i = 0; i < ctx->n_in; i++) {
        const port_rule *rule = &in[i < n_in ? i : n_in - 1];
        if (ctx->in[i] == NULL || ctx->in[i]->dtype == QDQ_DTYPE_UNDEF) continue;
        const qdq_dtype dtype = ctx->in[i]->dtype;
        if (!is_in(rule->set, dtype)) return fail(ctx, false, i, dtype, rule->set);
        if (rule->var == 0) continue;
        if (vars[rule->var] == QDQ_DTYPE_UNDEF) vars[rule->var] = dtype;
        if (vars[rule->var] != dtype) return fail(ctx, false, i, dtype, BIT(vars[rule->var]));
    }
    for (uint32_t i = 0; i < ctx->n_out; i++) {
        const port_rule *rule = &out[i < n_out ? i : n_out - 1];
        const qdq_dtype var = vars[rule->var];
        uint32_t set = rule->var != 0 && var != QDQ_DTYPE_UNDEF ? BIT(var) | rule->also : rule->set;
        if (ctx->out[i]->dtype == QDQ_DTYPE_UNDEF)
            ctx->out[i]->dtype = rule->otherwise != QDQ_DTYPE_UNDEF ? rule->otherwise : var;
        else if (!is_in(set, ctx->out[i]->dtype))
            return fail(ctx, true, i, ctx->out[i]->dtype, set);
    }
    return QDQ_OK;
}

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))
#define IN(...)                                                                                                        \
    { __VA_ARGS__ }
#define OUT(...)                                                                                                       \
    { __VA_ARGS__ }
/* T(n, SET): the type variable n. IS(SET): a type of its own. ONLY(DTYPE): an output of one type. */
#define T(n, types)                                                                                                    \
    { .var = (n), .set = (types) }
#define IS(types)                                                                                                      \
    { .set = (types) }
#define ONLY(type)                                                                                                     \
    { .set = BIT(QDQ_DTYPE_##type), .otherwise = QDQ_DTYPE_##type }
#define RULE(name, inputs, outputs)                                                                                    \
    qdq_status qdqi_dtypes_##name(const qdqi_infer_ctx *ctx) {                                                         \
        static const port_rule in[] = inputs, out[] = outputs;                                                         \
        return check(ctx, in, COUNT(in), out, COUNT(out));                                                             \
    }

/* clang-format off */
RULE(unary,           IN(T(1, FP)),                        OUT(T(1, FP)))
RULE(matmul,          IN(T(1, FP)),                        OUT({.var = 1, .set = FP, .also = F32}))
RULE(conv,            IN(T(1, FP)),                        OUT({.var = 1, .set = FP, .also = F32}))
RULE(same_fp,         IN(T(1, FP)),                        OUT(T(1, FP)))
RULE(same_number,     IN(T(1, NUMBER)),                    OUT(T(1, NUMBER)))
RULE(all_same_fp,     IN(T(1, FP)),                        OUT(T(1, FP)))
RULE(all_same_number, IN(T(1, NUMBER)),                    OUT(T(1, NUMBER)))
RULE(all_same,        IN(T(1, ANY)),                       OUT(T(1, ANY)))
RULE(compare,         IN(T(1, NUMBER)),                    OUT(ONLY(BOOLEAN)))
RULE(compare_any,     IN(T(1, NUMBER | BOOLEAN)),          OUT(ONLY(BOOLEAN)))
RULE(logic,           IN(T(1, BOOLEAN)),                   OUT(ONLY(BOOLEAN)))
RULE(select,          IN(IS(BOOLEAN), T(1, FP | INDEX)),   OUT(T(1, FP | INDEX)))
RULE(where,           IN(IS(BOOLEAN), T(1, ANY)),          OUT(T(1, ANY)))
RULE(reduce_fp,       IN(T(1, FP), IS(INDEX)),             OUT(T(1, FP)))
RULE(reduce,          IN(T(1, NUMBER), IS(INDEX)),         OUT(T(1, NUMBER)))
RULE(interpolate,     IN(T(1, FP), IS(INDEX)),             OUT(T(1, FP)))
RULE(genindex,        IN(T(1, ANY)),                       OUT(ONLY(S32)))
RULE(quantize,        IN(IS(FP)),                          OUT(IS(QINT | F8)))
RULE(dequantize,      IN(IS(QINT | F8)),                   OUT({.set = FP, .otherwise = QDQ_DTYPE_F32}))
RULE(dynamicquantize, IN(IS(FP), IS(FP), IS(QINT)),        OUT(IS(QINT | F8)))
RULE(dynamicdequantize, IN(IS(QINT | F8), T(1, FP), IS(QINT)), OUT(T(1, FP)))
RULE(dynamicquantizelinear, IN(IS(F32)),                   OUT(ONLY(U8), ONLY(F32), ONLY(U8)))
RULE(matmulinteger,   IN(T(1, X8), T(2, X8), T(1, X8), T(2, X8)), OUT(ONLY(S32)))
RULE(qlinearmatmul,   IN(T(1, X8), IS(FP), T(1, X8), T(2, X8), IS(FP), T(2, X8), IS(FP), T(3, X8)), OUT(T(3, X8)))
RULE(qlinearconv,     IN(T(1, X8), IS(F32), T(1, X8), T(2, X8), IS(F32), T(2, X8), IS(F32), T(3, X8), IS(S32)),
                      OUT(T(3, X8)))
RULE(arg,             IN(IS(NUMBER)),                      OUT(ONLY(S64)))
RULE(cumsum,          IN(T(1, FP | INDEX), IS(INDEX)),     OUT(T(1, FP | INDEX)))
RULE(topk,            IN(T(1, NUMBER), IS(INDEX)),         OUT(T(1, NUMBER), ONLY(S64)))
RULE(resize,          IN(T(1, NUMBER), IS(FP), IS(F32), IS(INDEX)), OUT(T(1, NUMBER)))
RULE(data_s64,        IN(T(1, ANY), IS(INDEX)),            OUT(T(1, ANY)))
RULE(data_index,      IN(T(1, ANY), IS(INDEX)),            OUT(T(1, ANY)))
RULE(slice,           IN(T(1, ANY), IS(INDEX)),            OUT(T(1, ANY)))
RULE(pad,             IN(T(1, ANY), IS(INDEX), T(1, ANY), IS(INDEX)), OUT(T(1, ANY)))
RULE(shape,           IN(IS(ANY)),                         OUT(ONLY(S64)))
RULE(constantofshape, IN(IS(INDEX)),                       OUT({.set = ANY, .otherwise = QDQ_DTYPE_F32}))
/* clang-format on */

qdq_status qdqi_dtypes_any(const qdqi_infer_ctx *ctx) {
    (void)ctx;
    return QDQ_OK;
}

static qdq_dtype in_dtype(const qdqi_infer_ctx *ctx, uint32_t i) {
    return i < ctx->n_in && ctx->in[i] != NULL ? ctx->in[i]->dtype : QDQ_DTYPE_UNDEF;
}

/* Arithmetic: floats may be mixed; integers may not. A result of mixed floats is f32 unless the output says else. */
qdq_status qdqi_dtypes_binary(const qdqi_infer_ctx *ctx) {
    static const port_rule ints[] = {T(1, INDEX)}, floats[] = {IS(FP)};
    const qdq_dtype a = in_dtype(ctx, 0), b = in_dtype(ctx, 1);
    if (!is_in(FP | INDEX, a) && a != QDQ_DTYPE_UNDEF) return fail(ctx, false, 0, a, FP | INDEX);
    if (is_in(INDEX, a) || is_in(INDEX, b)) return check(ctx, ints, 1, ints, 1);
    QDQI_TRY(check(ctx, floats, 1, floats, 1));
    if (ctx->out[0]->dtype == QDQ_DTYPE_UNDEF && a != QDQ_DTYPE_UNDEF && b != QDQ_DTYPE_UNDEF)
        ctx->out[0]->dtype = a == b ? a : QDQ_DTYPE_F32;
    return QDQ_OK;
}

/* Input and output may differ when one of them is f32. */
qdq_status qdqi_dtypes_convert_fp(const qdqi_infer_ctx *ctx) {
    static const port_rule in[] = {T(1, FP)}, out[] = {{.var = 1, .set = FP, .also = FP}};
    QDQI_TRY(check(ctx, in, 1, out, 1));
    const qdq_dtype a = in_dtype(ctx, 0), b = ctx->out[0]->dtype;
    if (a == QDQ_DTYPE_UNDEF || a == b || a == QDQ_DTYPE_F32 || b == QDQ_DTYPE_F32) return QDQ_OK;
    return fail(ctx, true, 0, b, F32 | BIT(a));
}

/* Parameters and statistics: f32, or the data type of src. */
qdq_status qdqi_dtypes_norm(const qdqi_infer_ctx *ctx) {
    const qdq_dtype src = in_dtype(ctx, 0);
    const uint32_t aux = src == QDQ_DTYPE_UNDEF ? (uint32_t)FP : F32 | (BIT(src) & FP);
    const port_rule in[] = {T(1, FP), T(2, aux)};
    const port_rule out[] = {T(1, FP), {.var = 2, .set = aux}};
    QDQI_TRY(check(ctx, in, COUNT(in), out, COUNT(out)));
    for (uint32_t i = 1; i < ctx->n_out; i++) /* without gamma and beta nothing says: f32 */
        if (ctx->out[i]->dtype == QDQ_DTYPE_UNDEF) ctx->out[i]->dtype = QDQ_DTYPE_F32;
    return QDQ_OK;
}

qdq_status qdqi_dtypes_typecast(const qdqi_infer_ctx *ctx) {
    static const port_rule in[] = {IS(FP)}, out[] = {IS(FP)};
    QDQI_TRY(check(ctx, in, 1, out, 1));
    const qdq_dtype a = in_dtype(ctx, 0), b = ctx->out[0]->dtype;
    if (a == QDQ_DTYPE_UNDEF || b == QDQ_DTYPE_UNDEF) return QDQ_OK;
    if (a == b || (a != QDQ_DTYPE_F32 && b != QDQ_DTYPE_F32))
        return fail(ctx, true, 0, b, a == QDQ_DTYPE_F32 ? (uint32_t)(F16 | BF16) : (uint32_t)F32);
    return QDQ_OK;
}

/* An output whose data type an attribute names. */
static qdq_status out_from_attr(const qdqi_infer_ctx *ctx, qdqi_attr_name name, uint32_t set) {
    const qdqi_attr *attr = qdqi_op_attr_or_null(ctx->op, name);
    if (attr == NULL) return QDQ_OK;
    const qdq_dtype dtype = qdq_dtype_from_name(attr->v.str);
    if (!is_in(set, dtype))
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, name, "found \"%.32s\", expected %s", attr->v.str, text_of(set).s);
    if (ctx->out[0]->dtype == QDQ_DTYPE_UNDEF) ctx->out[0]->dtype = dtype;
    if (ctx->out[0]->dtype == dtype) return QDQ_OK;
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_DTYPE, "output 0: found data type %s, expected %s (attribute \"%s\")",
                          qdq_dtype_name(ctx->out[0]->dtype), qdq_dtype_name(dtype), qdqi_attr_text(name));
}

qdq_status qdqi_dtypes_cast(const qdqi_infer_ctx *ctx) {
    static const port_rule in[] = {IS(ANY)}, out[] = {IS(ANY)};
    QDQI_TRY(out_from_attr(ctx, QDQI_A_TO, ANY));
    return check(ctx, in, 1, out, 1);
}

/* The zero point names the output's type, or output_dtype does (they must agree), or it is u8. */
qdq_status qdqi_dtypes_quantizelinear(const qdqi_infer_ctx *ctx) {
    static const port_rule in[] = {IS(FP | S32), IS(FP), T(1, QINT | F8)}, out[] = {T(1, QINT | F8)};
    QDQI_TRY(out_from_attr(ctx, QDQI_A_OUTPUT_DTYPE, QINT | F8));
    if (ctx->n_in < 3 && ctx->out[0]->dtype == QDQ_DTYPE_UNDEF) ctx->out[0]->dtype = QDQ_DTYPE_U8;
    return check(ctx, in, COUNT(in), out, 1);
}

qdq_status qdqi_dtypes_dequantizelinear(const qdqi_infer_ctx *ctx) {
    static const port_rule in[] = {T(1, QINT | F8), T(2, FP), T(1, QINT | F8)};
    static const port_rule out[] = {T(2, FP)}, out_named[] = {IS(FP)};
    QDQI_TRY(out_from_attr(ctx, QDQI_A_OUTPUT_DTYPE, FP));
    const bool named = qdqi_op_attr_or_null(ctx->op, QDQI_A_OUTPUT_DTYPE) != NULL;
    return check(ctx, in, COUNT(in), named ? out_named : out, 1);
}

qdq_status qdqi_dtypes_quantizev2(const qdqi_infer_ctx *ctx) {
    static const port_rule in[] = {IS(F32)}, out[] = {IS(TF_QINT), ONLY(F32), ONLY(F32)};
    QDQI_TRY(out_from_attr(ctx, QDQI_A_T, TF_QINT));
    return check(ctx, in, 1, out, COUNT(out));
}

qdq_status qdqi_dtypes_tfdequantize(const qdqi_infer_ctx *ctx) {
    static const port_rule in[] = {IS(TF_QINT), IS(F32)}, out[] = {IS(F32 | BF16)};
    QDQI_TRY(out_from_attr(ctx, QDQI_A_DTYPE, F32 | BF16));
    return check(ctx, in, COUNT(in), out, 1);
}
