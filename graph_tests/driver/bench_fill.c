/* What to put into graph inputs, so that a result says something: data small enough that it does not saturate everywhere,
 * and dyadic (multiples of 1/8) so that sums are exact in any order; operands of Log, Sqrt, Divide positive; scales
 * positive; zero points and indices in range. Each input is traced forward to the ops that decide this. */
#include "bench.h"

#include "base/alloc.h"
#include "base/dtype.h"

#include <math.h>
#include <string.h>

typedef struct role {
    bool positive;    /* feeds a function of positive numbers */
    bool denominator; /* itself divides */
    bool factor;      /* of a long product */
    bool lone;        /* one number that a tensor is multiplied by */
    bool softmax;     /* goes into one: a few units of difference there leave one hot element */
    bool scale, zp, index, mask;
    int range;            /* of TensorFlow's ops: -1 the minimum, 1 the maximum */
    int64_t n_sum;        /* elements of the sums it takes part in; 0: none */
    bool weight;          /* second operand of the longest of them */
    int64_t first_weight; /* elements of the first of them, when it is the second operand there; else 0 */
    bool has_zp;          /* dequantized with a static zero point */
    int64_t zp_value;
    double dq_scale;              /* its scale; 0: not known */
    const qdqi_json_op *quantize; /* that it goes into directly */
    int64_t index_bound;
} role;

typedef struct tracer {
    const qdqi_json_case *c;
    bool *seen; /* per op */
    role *out;
} tracer;

static bool is_one_of(const char *kind, const char *const *kinds) {
    for (; *kinds != NULL; kinds++)
        if (strcmp(kind, *kinds) == 0) return true;
    return false;
}

bool bench_is_transcendental(const char *kind) {
    static const char *const kinds[] = {
        "Elu",         "Exp",       "GELU",        "Log",      "LogSoftmax", "Mish",       "Pow",
        "Sigmoid",     "SoftMax",   "SoftPlus",    "Sqrt",     "Tanh",       "Reciprocal", "BatchNormInference",
        "LayerNorm",   "GroupNorm", "Divide",      "ReduceL2", "Erf",        "ReduceMean", "AvgPool",
        "Interpolate", "HardSwish", "HardSigmoid", NULL};
    return is_one_of(kind, kinds);
}

/* Ports that hold a scale; the next one holds its zero point. */
static bool is_scale(const char *kind, size_t port) {
    static const char *const one[] = {"DynamicQuantize", "DynamicDequantize", "QuantizeLinear", "DequantizeLinear",
                                      NULL};
    static const char *const three[] = {"QLinearMatMul", "QLinearConv", NULL};
    if (is_one_of(kind, one)) return port == 1;
    return is_one_of(kind, three) && (port == 1 || port == 4 || port == 6);
}

static bool wants_positive(const char *kind, size_t port) {
    static const char *const kinds[] = {"Log", "Sqrt", "Pow", "Reciprocal", NULL};
    return (port == 0 && is_one_of(kind, kinds)) || (port == 1 && strcmp(kind, "Divide") == 0) ||
           (port == 4 && strcmp(kind, "BatchNormInference") == 0);
}

/* Ops whose result does not hang on the sign of what goes in. */
static bool hides_sign(const char *kind) {
    static const char *const kinds[] = {"SoftMax", "Sigmoid", "Exp", "Square", "Abs", "LogSoftmax", "SoftPlus", NULL};
    return is_one_of(kind, kinds);
}

static int64_t volume(const qdq_tensor_desc *d) {
    int64_t n = 1;
    for (int32_t i = 0; i < d->ndims; i++)
        n = d->dims[i] > 0 && n < INT64_MAX / d->dims[i] ? n * d->dims[i] : n;
    return n;
}

static bool flag(const qdqi_json_op *op, const char *name) {
    const qdqi_json_attr *a = qdqi_json_find_attr(op, name);
    return a != NULL && a->type == 'b' && a->v.boolean;
}

static int64_t sum_length(const qdqi_json_op *op) {
    if (op->n_in < 2 || op->n_out < 1) return 0;
    const qdq_tensor_desc *src = &op->in[0], *weights = &op->in[1];
    if (strcmp(op->kind, "MatMul") == 0) {
        if (src->ndims < 1) return 1;
        return src->ndims > 1 && flag(op, "transpose_a") ? src->dims[src->ndims - 2] : src->dims[src->ndims - 1];
    }
    if (strcmp(op->kind, "Convolution") == 0 || strcmp(op->kind, "ConvTranspose") == 0) {
        const qdqi_json_attr *format = qdqi_json_find_attr(op, "weights_format");
        const bool channels_first = format != NULL && format->type == 's' && format->v.str[0] != 'X';
        if (weights->ndims < 3) return 1;
        int64_t kernel = volume(weights) / (weights->dims[channels_first ? 0 : weights->ndims - 1] > 0
                                                ? weights->dims[channels_first ? 0 : weights->ndims - 1]
                                                : 1);
        return kernel > 0 ? kernel : 1;
    }
    return 0;
}

static void trace(tracer *t, uint64_t id, bool direct, int depth);

static void trace_op(tracer *t, const qdqi_json_op *op, size_t port, bool direct, int depth) {
    role *r = t->out;
    const int64_t n_sum = port < 2 ? sum_length(op) : 0;
    if (n_sum > 0 && r->n_sum == 0 && port == 1) r->first_weight = n_sum;
    if (n_sum > r->n_sum) {
        r->n_sum = n_sum;
        r->weight = port == 1;
    }
    if (strcmp(op->kind, "Dequantize") == 0 && !r->has_zp && r->n_sum == 0) {
        const qdqi_json_attr *zps = qdqi_json_find_attr(op, "zps");
        r->has_zp = true;
        r->zp_value = zps != NULL && zps->type == 'I' && zps->n > 0 ? zps->v.s64s[0] : 0;
        const qdqi_json_attr *scales = qdqi_json_find_attr(op, "scales");
        r->dq_scale = scales != NULL && scales->type == 'F' && scales->n > 0 ? fabs((double)scales->v.f32s[0]) : 0.0;
    }
    if (direct) {
        r->scale |= is_scale(op->kind, port);
        r->zp |= port > 0 && is_scale(op->kind, port - 1);
        if (port > 0 && (strcmp(op->kind, "QuantizeV2") == 0 || strcmp(op->kind, "TFDequantize") == 0))
            r->range = port == 1 ? -1 : 1;
        r->denominator |= strcmp(op->kind, "Divide") == 0 && port == 1;
        r->factor |= strcmp(op->kind, "ReduceProd") == 0;
        r->lone = strcmp(op->kind, "Multiply") == 0 && volume(&op->in[port]) == 1;
        r->mask |= strcmp(op->kind, "Select") == 0 && port == 0;
        if (strcmp(op->kind, "Quantize") == 0) r->quantize = op;
        if (port == 1 && op->n_in > 1 &&
            (strncmp(op->kind, "Reduce", 6) == 0 || strncmp(op->kind, "Gather", 6) == 0 ||
             strcmp(op->kind, "Interpolate") == 0)) {
            r->index = true;
            r->index_bound = op->in[0].ndims > 0 ? op->in[0].ndims : 1;
        }
    }
    r->softmax |= strcmp(op->kind, "SoftMax") == 0;
    r->positive |= wants_positive(op->kind, port);
    if (r->scale || r->zp || r->range != 0 || r->index || hides_sign(op->kind)) return;
    for (size_t i = 0; i < op->n_out; i++)
        trace(t, op->out[i].id, false, depth + 1);
}

static void trace(tracer *t, uint64_t id, bool direct, int depth) {
    if (depth > 256) return; /* far enough to decide a range */
    for (size_t i = 0; i < t->c->n_ops; i++) {
        const qdqi_json_op *op = &t->c->ops[i];
        for (size_t k = 0; k < op->n_in; k++) {
            if (op->in[k].id != id || (t->seen[i] && !direct)) continue;
            t->seen[i] = true;
            trace_op(t, op, k, direct, depth);
        }
    }
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* A stateless generator (splitmix64): element i of tensor id is the same in every run and order. */
static uint64_t draw(uint64_t id, uint64_t i) {
    uint64_t z = (id + 1) * 0x9E3779B97F4A7C15u + i * 0xD1342543DE82EF95u + 0x2545F4914F6CDD1Du;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int64_t draw_in(uint64_t bits, int64_t lo, int64_t hi) {
    return lo + (int64_t)((bits >> 11) % (uint64_t)(hi - lo + 1));
}

static double draw_share(uint64_t bits) {
    return (double)(bits & 0xFFFF) / 65536.0;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

/* Share of weights that are not zero, so that about 35 products of a sum are not, whatever its length. */
static double weight_share(const role *r, const bench_drive *drive) {
    const double share = 35.0 / (double)(r->n_sum > 0 ? r->n_sum : 1) * drive->density;
    return share > 1.0 ? 1.0 : share;
}

static int64_t integer_value(const role *r, const bench_drive *drive, qdq_dtype dtype, uint64_t bits) {
    const int64_t lo = qdqi_dtype_min(dtype), hi = qdqi_dtype_max(dtype);
    if (r->index) return draw_in(bits, 0, r->index_bound - 1);
    if (r->zp) return draw_in(bits, lo < 0 ? -2 : 0, 2);
    if (dtype == QDQ_DTYPE_S32 || dtype == QDQ_DTYPE_S64) return draw_in(bits, -8, 8);
    if (r->n_sum == 0 && r->softmax && r->dq_scale > 0.0 && r->dq_scale < 2.0) { /* real values from -2 to 2 */
        const int64_t reach = (int64_t)(2.0 / r->dq_scale);
        return draw_in(bits, clamp(r->zp_value - reach, lo, hi), clamp(r->zp_value + reach, lo, hi));
    }
    if (r->n_sum == 0) return r->positive ? draw_in(bits, clamp(r->zp_value + 1, lo, hi), hi) : draw_in(bits, lo, hi);
    const int64_t zp = clamp(r->zp_value, lo, hi);
    int64_t from = -drive->amplitude, to = drive->amplitude;
    if (r->weight) {
        if (draw_share(bits >> 40) >= weight_share(r, drive)) return zp;
        from = -2;
        to = 2;
    }
    if (r->softmax) from = from < -2 ? -2 : from, to = to > 2 ? 2 : to;
    if (r->positive || drive->no_negative) from = 0;
    if (zp + from < lo) { /* an unsigned type with zero point 0 has only one side */
        from = lo - zp;
        to = r->weight ? to : 2 * to;
    }
    return clamp(zp + draw_in(bits, from, to), lo, hi);
}

/* A value that reaches the whole range of the Quantize it goes into, both saturations, and its ties. */
static double quantize_value(const qdqi_json_op *op, uint64_t bits) {
    const qdqi_json_attr *scales = qdqi_json_find_attr(op, "scales"), *zps = qdqi_json_find_attr(op, "zps");
    const double scale = scales != NULL && scales->type == 'F' && scales->n > 0 ? (double)scales->v.f32s[0] : 1.0;
    const int64_t zp = zps != NULL && zps->type == 'I' && zps->n > 0 ? zps->v.s64s[0] : 0;
    const qdq_dtype dtype = op->n_out > 0 ? op->out[0].dtype : QDQ_DTYPE_S8;
    const bool is_int = qdqi_dtype_is_int(dtype);
    const int64_t lo = is_int ? qdqi_dtype_min(dtype) : -128, hi = is_int ? qdqi_dtype_max(dtype) : 127;
    return scale * ((double)draw_in(bits, 8 * (lo - 4), 8 * (hi + 4)) / 8.0 - (double)zp);
}

static double float_value(const role *r, const bench_drive *drive, qdq_dtype dtype, uint64_t bits) {
    static const double powers[] = {0.5, 1.0, 2.0, 4.0};
    /* products of products of f16 leave its range, or lose their last digits beside a sum of thousands */
    if (dtype == QDQ_DTYPE_F16 && r->first_weight > 0 && draw_share(bits >> 40) * (double)r->first_weight >= 35.0)
        return 0.0;
    if (r->scale) return (bits & 1 ? 0.15625 : 0.125) * powers[bits >> 8 & 1];
    if (r->range != 0) return r->range * powers[bits >> 8 & 3];
    if (r->denominator) return powers[bits >> 8 & 3];
    if (r->factor) return powers[bits >> 8 & 1] * (bits >> 16 & 1 ? 2.0 : 1.0) * (bits >> 24 & 1 ? -1.0 : 1.0);
    if (r->quantize != NULL && r->n_sum == 0) return quantize_value(r->quantize, bits);
    if (r->positive) return (double)draw_in(bits, 1, 32) / 8.0;
    if (r->softmax && r->lone) return 0.125 * powers[bits >> 8 & 1];
    if (r->softmax && r->n_sum > 0) return (double)draw_in(bits, -4, 4) / 8.0;
    return (double)draw_in(bits, drive->no_negative ? 0 : -16, 16) / 8.0;
}

/* Values are drawn once into a table and picked from it by a cheap hash of the position: big tensors fill at the speed of
 * memory, and the table is large enough that no result sees its period. */
enum { TABLE = 4096, MAX_ELEM_BYTES = 8 };

static void draw_table(const role *r, const bench_drive *drive, const qdq_tensor_desc *desc, unsigned char *table,
                       size_t size) {
    for (int64_t i = 0; i < TABLE; i++) {
        const uint64_t bits = draw(desc->id, (uint64_t)i);
        void *to = table + (size_t)i * size;
        if (desc->dtype == QDQ_DTYPE_BOOLEAN)
            qdqi_store_i64(to, desc->dtype, 0, (int64_t)(bits >> 20 & 1));
        else if (qdqi_dtype_is_float(desc->dtype))
            qdqi_store_f64(to, desc->dtype, 0, float_value(r, drive, desc->dtype, bits));
        else
            qdqi_store_i64(to, desc->dtype, 0, integer_value(r, drive, desc->dtype, bits));
    }
}

static size_t pick(uint64_t i) {
    return (size_t)((i * 0x9E3779B97F4A7C15u + (i >> 12) * 0xD1342543DE82EF95u) >> 40) % TABLE;
}

void bench_fill(const qdqi_json_case *c, const bench_drive *drive, bench_tensor *tensor) {
    const qdq_tensor_desc *desc = &tensor->t.desc;
    role r = {0};
    tracer t = {c, qdqi_calloc(c->n_ops + 1, sizeof(bool)), &r};
    if (t.seen != NULL) trace(&t, desc->id, true, 0);
    qdqi_free(t.seen);
    for (int32_t d = 0; d < desc->ndims; d++)
        if (desc->dims[d] == 0) return;

    const size_t bits = qdq_dtype_bits(desc->dtype), size = bits < 8 ? 1 : bits / 8;
    unsigned char table[TABLE * MAX_ELEM_BYTES] = {0};
    draw_table(&r, drive, desc, table, size);
    const int32_t last = desc->ndims - 1;
    const int64_t n_row = last < 0 ? 1 : desc->dims[last], row_stride = last < 0 ? 1 : desc->strides[last];
    int64_t index[QDQ_MAX_NDIMS] = {0};
    const int64_t n = volume(desc);
    unsigned char *data = tensor->t.data;
    for (int64_t i = 0; i < n;) {
        int64_t offset = 0;
        for (int32_t d = 0; d < last; d++)
            offset += index[d] * desc->strides[d];
        for (int64_t k = 0; k < n_row; k++, i++, offset += row_stride) {
            const unsigned char *from = table + pick((uint64_t)i) * size;
            if (bits < 8)
                qdqi_store_i64(data, desc->dtype, offset, qdqi_load_i64(from, desc->dtype, 0));
            else
                memcpy(data + (size_t)offset * size, from, size);
        }
        for (int32_t d = last - 1; d >= 0 && ++index[d] == desc->dims[d]; d--)
            index[d] = 0;
    }
}
