/* One case:
 *
 *     JSON -> case -> graph without data ........ ports
 *                  -> fill -> graph with constants -> partitions -> compile -> execute -> compare
 *                                    \-> reference executor: what every partition must read and give /
 *
 * Each partition reads the reference's values, so that an error is charged to the partition that makes it, but in the
 * layout that the partition before it chose. */
#include "bench.h"

#include "base/alloc.h"
#include "base/dtype.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of a result, above which it says too little: the limit of benchdnn for zeros. */
static const double zero_limit = 0.8, saturation_limit = 0.6;
enum { MAX_REFILLS = 5 };

/* A partition with its ports. */
typedef struct part {
    const qdq_partition *p;
    qdq_compiled *compiled;
    qdq_tensor *in, *out; /* data of `in` and `out` is owned */
    size_t n_in, n_out;
    double min_ms, avg_ms;
} part;

typedef struct bench_case {
    const bench_run *run;
    const bench_problem *problem;
    bench_outcome *o;
    qdqi_json_case *json;
    qdq_graph *graph;
    bench_tensors inputs; /* of the graph, filled */
    bench_tensors ref;    /* what partitions give, and what their Quantize reads */
    qdq_partition_list *list;
    part *parts;
    size_t n_parts;
    qdq_error err;
} bench_case;

double bench_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

bench_tensor *bench_find(const bench_tensors *set, uint64_t id) {
    for (size_t i = 0; i < set->n; i++)
        if (set->v[i].t.desc.id == id) return &set->v[i];
    return NULL;
}

static qdq_status make_tensor(const qdq_tensor_desc *desc, qdq_tensor *out, qdq_error *err) {
    qdq_tensor t = {.desc = *desc};
    if (desc->layout != QDQ_LAYOUT_STRIDED && desc->layout != QDQ_LAYOUT_OPAQUE)
        QDQI_TRY(qdq_tensor_desc_init(desc->id, desc->dtype, desc->ndims, desc->dims, QDQ_LAYOUT_STRIDED,
                                      desc->property, &t.desc, err));
    size_t bytes;
    QDQI_TRY(qdq_tensor_desc_size_bytes(&t.desc, &bytes, err));
    t.data = qdqi_malloc_aligned(bytes > 0 ? bytes : 1);
    if (t.data == NULL) return QDQI_NO_MEMORY(err);
    memset(t.data, 0, bytes);
    *out = t;
    return QDQ_OK;
}

qdq_status bench_add(bench_tensors *set, const qdq_tensor_desc *desc, bench_tensor **out, qdq_error *err) {
    if (set->n == set->cap) {
        const size_t cap = set->cap == 0 ? 16 : 2 * set->cap;
        bench_tensor *grown = qdqi_realloc_array(set->v, cap, sizeof *grown);
        if (grown == NULL) return QDQI_NO_MEMORY(err);
        set->v = grown;
        set->cap = cap;
    }
    bench_tensor t = {0};
    QDQI_TRY(make_tensor(desc, &t.t, err));
    set->v[set->n] = t;
    *out = &set->v[set->n++];
    return QDQ_OK;
}

void bench_free(bench_tensors *set) {
    for (size_t i = 0; i < set->n; i++)
        qdqi_free_aligned(set->v[i].t.data);
    qdqi_free(set->v);
    *set = (bench_tensors){0};
}

/* Copy values between two layouts of one shape. */
static void copy_values(const qdq_tensor *from, const qdq_tensor *to) {
    const qdq_tensor_desc *d = &to->desc;
    int64_t index[QDQ_MAX_NDIMS] = {0}, n = 1;
    bool same = true;
    for (int32_t i = 0; i < d->ndims; i++) {
        n *= d->dims[i];
        same &= d->strides[i] == from->desc.strides[i];
    }
    size_t bytes;
    if (same && qdq_tensor_desc_size_bytes(d, &bytes, NULL) == QDQ_OK) {
        memcpy(to->data, from->data, bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t a = 0, b = 0;
        for (int32_t k = 0; k < d->ndims; k++) {
            a += index[k] * from->desc.strides[k];
            b += index[k] * d->strides[k];
        }
        if (qdqi_dtype_is_float(d->dtype))
            qdqi_store_f64(to->data, d->dtype, b, qdqi_load_f64(from->data, d->dtype, a));
        else
            qdqi_store_i64(to->data, d->dtype, b, qdqi_load_i64(from->data, d->dtype, a));
        for (int32_t k = d->ndims - 1; k >= 0 && ++index[k] == d->dims[k]; k--)
            index[k] = 0;
    }
}

/* ---- load and fill ---------------------------------------------------------------------------------------------- */

static qdq_status build(bench_case *b) {
    qdq_graph_destroy(&b->graph);
    QDQI_TRY(qdqi_json_case_graph(b->json, &b->graph, &b->err));
    for (size_t i = 0; i < b->inputs.n; i++) {
        const bench_tensor *t = &b->inputs.v[i];
        size_t bytes;
        if (!t->is_constant) continue;
        QDQI_TRY(qdq_tensor_desc_size_bytes(&t->t.desc, &bytes, &b->err));
        QDQI_TRY(qdq_graph_set_constant(b->graph, &t->t.desc, t->t.data, bytes, QDQ_DATA_BORROW, &b->err));
    }
    return qdq_graph_finalize(b->graph, &b->err);
}

/* The graph without data tells the ports; shapes that the file left open must come from inference. */
static qdq_status find_inputs(bench_case *b) {
    QDQI_TRY(build(b));
    for (size_t i = 0; i < qdq_graph_n_inputs(b->graph); i++) {
        qdq_tensor_desc desc;
        QDQI_TRY(qdq_graph_input_desc(b->graph, i, &desc, NULL, &b->err));
        bench_tensor *t;
        QDQI_TRY(bench_add(&b->inputs, &desc, &t, &b->err));
        t->is_input = true;
        t->is_constant = desc.property == QDQ_PROPERTY_CONSTANT;
    }
    for (size_t i = 0; i < b->json->n_ops; i++) { /* the filler wants shapes in the case too */
        qdqi_json_op *op = &b->json->ops[i];
        for (size_t k = 0; k < op->n_in; k++)
            QDQI_TRY(qdq_graph_tensor_desc(b->graph, op->in[k].id, &op->in[k], &b->err));
    }
    return QDQ_OK;
}

static qdq_status load(bench_case *b) {
    QDQI_TRY(qdqi_json_case_read_file(b->problem->path, &b->json, &b->err));
    return qdqi_json_case_rewrite(b->json, &b->problem->rewrites, &b->err);
}

static qdq_status fill(bench_case *b, const bench_drive *drive) {
    const double start = bench_now_s();
    for (size_t i = 0; i < b->inputs.n; i++)
        bench_fill(b->json, drive, &b->inputs.v[i]);
    b->o->fill_s += bench_now_s() - start;
    return build(b); /* constants are checked and folded by finalize */
}

/* ---- partitions ------------------------------------------------------------------------------------------------- */

/* Partitions of markers only have nothing to compute. */
static bool is_marker(const qdq_partition *p) {
    for (size_t i = 0; i < qdq_partition_n_ops(p); i++) {
        const char *kind = "";
        if (qdq_partition_op(p, i, NULL, &kind, NULL, NULL) != QDQ_OK || strcmp(kind, "End") != 0) return false;
    }
    return true;
}

static void drop_parts(bench_case *b) {
    for (size_t i = 0; i < b->n_parts; i++) {
        part *p = &b->parts[i];
        for (size_t k = 0; p->in != NULL && k < p->n_in; k++)
            qdqi_free_aligned(p->in[k].data);
        for (size_t k = 0; p->out != NULL && k < p->n_out; k++)
            qdqi_free_aligned(p->out[k].data);
        qdqi_free(p->in);
        qdqi_free(p->out);
        qdq_compiled_destroy(&p->compiled);
    }
    qdqi_free(b->parts);
    b->parts = NULL;
    b->n_parts = 0;
    qdq_partition_list_destroy(&b->list);
}

static qdq_status partition(bench_case *b) {
    drop_parts(b);
    QDQI_TRY(qdq_graph_partition(b->graph, QDQ_POLICY_FUSION, &b->list, &b->err));
    const size_t n = qdq_partition_list_count(b->list);
    b->parts = qdqi_calloc(n + 1, sizeof *b->parts);
    if (b->parts == NULL) return QDQI_NO_MEMORY(&b->err);
    for (size_t i = 0; i < n; i++) {
        const qdq_partition *p = qdq_partition_list_get(b->list, i);
        if (is_marker(p)) continue;
        part *mine = &b->parts[b->n_parts++];
        mine->p = p;
        mine->n_in = qdq_partition_n_inputs(p);
        mine->n_out = qdq_partition_n_outputs(p);
        mine->in = qdqi_calloc(mine->n_in + 1, sizeof *mine->in);
        mine->out = qdqi_calloc(mine->n_out + 1, sizeof *mine->out);
        if (mine->in == NULL || mine->out == NULL) return QDQI_NO_MEMORY(&b->err);
    }
    return QDQ_OK;
}

static bool is_graph_output(const qdq_graph *graph, uint64_t id) {
    for (size_t i = 0; i < qdq_graph_n_outputs(graph); i++) {
        qdq_tensor_desc desc;
        if (qdq_graph_output_desc(graph, i, &desc, NULL, NULL) == QDQ_OK && desc.id == id) return true;
    }
    return false;
}

/* Layout that the producing partition chose, else the filled input's. */
static const qdq_tensor_desc *layout_of_input(const bench_case *b, size_t i_part, uint64_t id) {
    const bench_tensor *t = bench_find(&b->inputs, id);
    if (t != NULL) return &t->t.desc;
    for (size_t i = 0; i < i_part; i++)
        for (size_t k = 0; k < b->parts[i].n_out; k++)
            if (b->parts[i].out[k].desc.id == id) return &b->parts[i].out[k].desc;
    return NULL;
}

static qdq_status compile_part(bench_case *b, size_t i) {
    part *p = &b->parts[i];
    qdq_tensor_desc *descs = qdqi_calloc(p->n_in + p->n_out + 1, sizeof *descs);
    if (descs == NULL) return QDQI_NO_MEMORY(&b->err);
    qdq_tensor_desc *in = descs, *out = descs + p->n_in;
    qdq_status st = QDQ_OK;
    for (size_t k = 0; k < p->n_in && st == QDQ_OK; k++) {
        st = qdq_partition_input(p->p, k, &in[k], &b->err);
        const qdq_tensor_desc *known = st == QDQ_OK ? layout_of_input(b, i, in[k].id) : NULL;
        if (known != NULL) in[k] = *known;
        p->in[k].desc = in[k];
    }
    for (size_t k = 0; k < p->n_out && st == QDQ_OK; k++) {
        st = qdq_partition_output(p->p, k, &out[k], &b->err);
        if (st == QDQ_OK && !is_graph_output(b->graph, out[k].id)) out[k].layout = QDQ_LAYOUT_ANY;
        p->out[k].desc = out[k];
    }
    if (st == QDQ_OK)
        st = qdq_partition_compile(p->p, b->run->engine, in, p->n_in, out, p->n_out, &p->compiled, &b->err);
    for (size_t k = 0; k < p->n_in && st == QDQ_OK; k++)
        st = qdq_compiled_desc(p->compiled, p->in[k].desc.id, &p->in[k].desc, &b->err);
    for (size_t k = 0; k < p->n_out && st == QDQ_OK; k++)
        st = qdq_compiled_desc(p->compiled, p->out[k].desc.id, &p->out[k].desc, &b->err);
    qdqi_free(descs);
    return st;
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

static const qdqi_json_op *producer(const bench_case *b, uint64_t id) {
    for (size_t i = 0; i < b->json->n_ops; i++)
        for (size_t k = 0; k < b->json->ops[i].n_out; k++)
            if (b->json->ops[i].out[k].id == id) return &b->json->ops[i];
    return NULL;
}

static bool is_quantize(const qdqi_json_op *op) {
    return op != NULL && (strcmp(op->kind, "Quantize") == 0 || strcmp(op->kind, "DynamicQuantize") == 0);
}

static qdq_status want_tensor(bench_case *b, uint64_t id) {
    if (bench_find(&b->ref, id) != NULL || bench_find(&b->inputs, id) != NULL) return QDQ_OK;
    qdq_tensor_desc desc;
    bench_tensor *t;
    QDQI_TRY(qdq_graph_tensor_desc(b->graph, id, &desc, &b->err));
    desc.layout = QDQ_LAYOUT_ANY; /* dense, whatever the graph says */
    return bench_add(&b->ref, &desc, &t, &b->err);
}

static qdq_status run_reference(bench_case *b) {
    bench_free(&b->ref);
    for (size_t i = 0; i < b->n_parts; i++) {
        for (size_t k = 0; k < b->parts[i].n_out; k++) {
            qdq_tensor_desc desc;
            QDQI_TRY(qdq_partition_output(b->parts[i].p, k, &desc, &b->err));
            QDQI_TRY(want_tensor(b, desc.id));
            const qdqi_json_op *from = producer(b, desc.id);
            for (size_t j = 0; is_quantize(from) && j < from->n_in; j++)
                QDQI_TRY(want_tensor(b, from->in[j].id));
        }
        for (size_t k = 0; k < b->parts[i].n_in; k++) {
            qdq_tensor_desc desc;
            QDQI_TRY(qdq_partition_input(b->parts[i].p, k, &desc, &b->err));
            QDQI_TRY(want_tensor(b, desc.id));
        }
    }
    qdq_tensor *all = qdqi_calloc(b->inputs.n + b->ref.n + 1, sizeof *all);
    if (all == NULL) return QDQI_NO_MEMORY(&b->err);
    size_t n_in = 0;
    for (size_t i = 0; i < b->inputs.n; i++)
        if (!b->inputs.v[i].is_constant) all[n_in++] = b->inputs.v[i].t;
    for (size_t i = 0; i < b->ref.n; i++)
        all[n_in + i] = b->ref.v[i].t;
    const double start = bench_now_s();
    const qdq_status st = qdq_graph_run_reference(b->graph, all, n_in, all + n_in, b->ref.n, &b->err);
    b->o->ref_s += bench_now_s() - start;
    qdqi_free(all);
    return st;
}

/* The worst shares over the results of partitions. */
static void judge(const bench_case *b, double *zeros, double *saturated) {
    *zeros = *saturated = 0.0;
    for (size_t i = 0; i < b->n_parts; i++) {
        for (size_t k = 0; k < b->parts[i].n_out; k++) {
            qdq_tensor_desc desc;
            if (qdq_partition_output(b->parts[i].p, k, &desc, NULL) != QDQ_OK) continue;
            const bench_tensor *t = bench_find(&b->ref, desc.id);
            if (t == NULL) continue;
            const qdqh_rule rule = {.exact = true};
            const qdqh_counts n = qdqh_compare(&t->t, &t->t, &rule, NULL, 0);
            if (n.total == 0) continue;
            *zeros = fmax(*zeros, (double)n.zeros / (double)n.total);
            if (t->t.desc.dtype != QDQ_DTYPE_BOOLEAN)
                *saturated = fmax(*saturated, (double)n.saturated / (double)n.total);
        }
    }
}

/* Fill, run the reference, and drive the graph harder or softer while the result is mostly zeros or saturation. A zero that
 * is the lower bound of an unsigned type counts as both: more drive from above is tried first. */
static qdq_status fill_and_run(bench_case *b) {
    bench_drive drive = {.amplitude = 4, .density = 1.0}, best = drive;
    double best_bad = 2.0;
    for (int i = 0;; i++) {
        const bool last = i == MAX_REFILLS;
        if (last) drive = best;
        QDQI_TRY(fill(b, &drive));
        QDQI_TRY(partition(b));
        QDQI_TRY(run_reference(b));
        double zeros, saturated;
        judge(b, &zeros, &saturated);
        const double bad = fmax(zeros - zero_limit, saturated - saturation_limit);
        if (bad <= 0.0 || last || b->o->ref_s > 30.0) return QDQ_OK;
        if (bad < best_bad) {
            best_bad = bad;
            best = drive;
        }
        if (zeros > zero_limit && !drive.no_negative) {
            drive.no_negative = true;
        } else if (zeros > zero_limit) {
            drive.amplitude *= 4;
            drive.density *= 4.0;
        } else {
            drive.no_negative = false;
            drive.amplitude = drive.amplitude > 1 ? drive.amplitude / 2 : 1;
            drive.density /= 8.0;
        }
    }
}

/* ---- execute and compare ---------------------------------------------------------------------------------------- */

static qdq_status feed(bench_case *b, part *p) {
    for (size_t k = 0; k < p->n_in; k++) {
        const uint64_t id = p->in[k].desc.id;
        const bench_tensor *from = bench_find(&b->inputs, id);
        if (from == NULL) from = bench_find(&b->ref, id);
        if (from == NULL) return qdqi_fail(&b->err, QDQ_E_INTERNAL, "no values for tensor %" PRIu64, id);
        QDQI_TRY(make_tensor(&p->in[k].desc, &p->in[k], &b->err));
        copy_values(&from->t, &p->in[k]);
    }
    for (size_t k = 0; k < p->n_out; k++)
        QDQI_TRY(make_tensor(&p->out[k].desc, &p->out[k], &b->err));
    return QDQ_OK;
}

static void unfeed(part *p) {
    for (size_t k = 0; k < p->n_in; k++) {
        qdqi_free_aligned(p->in[k].data);
        p->in[k].data = NULL;
    }
    for (size_t k = 0; k < p->n_out; k++) {
        qdqi_free_aligned(p->out[k].data);
        p->out[k].data = NULL;
    }
}

static qdq_status execute(bench_case *b, part *p) {
    return qdq_compiled_execute(p->compiled, p->in, p->n_in, p->out, p->n_out, &b->err);
}

static qdq_status time_part(bench_case *b, part *p, double budget_ms) {
    QDQI_TRY(execute(b, p)); /* warm-up */
    double sum = 0.0;
    p->min_ms = INFINITY;
    for (long n = 1;; n++) {
        const double start = bench_now_s();
        QDQI_TRY(execute(b, p));
        const double ms = 1e3 * (bench_now_s() - start);
        sum += ms;
        p->min_ms = fmin(p->min_ms, ms);
        p->avg_ms = sum / (double)n;
        if (b->run->fix_times > 0 ? n >= b->run->fix_times : sum >= budget_ms) return QDQ_OK;
    }
}

static bool is_narrow(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_BF16 || dtype == QDQ_DTYPE_F16;
}

static const qdqi_json_op *op_by_id(const bench_case *b, uint64_t id) {
    for (size_t i = 0; i < b->json->n_ops; i++)
        if (b->json->ops[i].id == id) return &b->json->ops[i];
    return NULL;
}

static bool is_exact_alone(const char *kind) {
    static const char *const kinds[] = {"Quantize", "Dequantize",    "DynamicQuantize", "DynamicDequantize",
                                        "TypeCast", "StaticReshape", "StaticTranspose", "Reorder",
                                        "Concat",   "MaxPool",       "Maximum",         "Minimum",
                                        "ReLU",     "Abs",           "Clamp",           "Round",
                                        "Select",   "GenIndex",      "GreaterEqual",    NULL};
    for (const char *const *k = kinds; *k != NULL; k++)
        if (strcmp(*k, kind) == 0) return true;
    return false;
}

static qdqh_rule rule_of(const bench_case *b, const part *p) {
    qdqh_rule rule = {0};
    const size_t n = qdq_partition_n_ops(p->p);
    for (size_t i = 0; i < n; i++) {
        uint64_t id = 0;
        const char *kind = "";
        if (qdq_partition_op(p->p, i, &id, &kind, NULL, NULL) != QDQ_OK) continue;
        rule.exact = n == 1 && is_exact_alone(kind);
        rule.transcendental |= bench_is_transcendental(kind);
        rule.long_sums |=
            strcmp(kind, "MatMul") == 0 || strncmp(kind, "Conv", 4) == 0 || strncmp(kind, "Reduce", 6) == 0;
        rule.scores |= i > 0 && strcmp(kind, "SoftMax") == 0;
        const qdqi_json_op *op = op_by_id(b, id);
        rule.requantized |= is_quantize(op) && i + 1 < n;
        for (size_t k = 0; op != NULL && n > 1 && k < op->n_in; k++)
            rule.narrow |= is_narrow(op->in[k].dtype);
    }
    return rule;
}

/* Parameters of the Quantize that made tensor `id`; false when it is not such a result or they are not known. The static
 * ones borrow from the case; runtime ones are copied into `room` (arena of the case). */
static bool quantizer_of(bench_case *b, uint64_t id, qdqh_quantizer *q) {
    const qdqi_json_op *op = producer(b, id);
    if (!is_quantize(op) || op->n_in < 1) return false;
    *q = (qdqh_quantizer){0};
    const bench_tensor *x = bench_find(&b->ref, op->in[0].id);
    if (x == NULL) x = bench_find(&b->inputs, op->in[0].id);
    if (x == NULL) return false;
    q->x = &x->t;
    const qdqi_json_attr *scales = qdqi_json_find_attr(op, "scales"), *zps = qdqi_json_find_attr(op, "zps");
    const qdqi_json_attr *axis = qdqi_json_find_attr(op, "axis");
    int64_t ax = axis != NULL && axis->type == 'i' ? axis->v.s64 : 1;
    const int32_t ndims = x->t.desc.ndims;
    if (ax < 0) ax += ndims;
    q->axis = ax >= 0 && ax < ndims ? (int32_t)ax : 0;
    if (strcmp(op->kind, "Quantize") == 0) {
        if (scales == NULL || scales->type != 'F' || scales->n == 0) return false;
        q->scales = scales->v.f32s;
        q->n_scales = scales->n;
        q->zps = zps != NULL && zps->type == 'I' && zps->n > 0 ? zps->v.s64s : NULL;
        q->n_zps = zps != NULL ? zps->n : 0;
        return true;
    }
    for (size_t port = 1; port < op->n_in && port < 3; port++) {
        const bench_tensor *t = bench_find(&b->inputs, op->in[port].id);
        if (t == NULL) t = bench_find(&b->ref, op->in[port].id);
        int64_t n;
        if (t == NULL || qdq_tensor_desc_n_elems(&t->t.desc, &n, NULL) != QDQ_OK) return false;
        float *f = qdqi_arena_alloc(&b->json->arena, (size_t)n + 1, sizeof *f);
        int64_t *z = qdqi_arena_alloc(&b->json->arena, (size_t)n + 1, sizeof *z);
        if (f == NULL || z == NULL) return false;
        for (int64_t i = 0; i < n; i++) {
            f[i] = qdqi_load_f32(t->t.data, t->t.desc.dtype, i);
            z[i] = port == 2 ? qdqi_load_i64(t->t.data, t->t.desc.dtype, i) : 0;
        }
        if (port == 1) {
            q->scales = f;
            q->n_scales = (size_t)n;
        } else {
            q->zps = z;
            q->n_zps = (size_t)n;
        }
    }
    return q->scales != NULL;
}

static qdq_status check_part(bench_case *b, part *p, qdqh_counts *sum) {
    const qdqh_rule rule = rule_of(b, p);
    for (size_t k = 0; k < p->n_out; k++) {
        const bench_tensor *want = bench_find(&b->ref, p->out[k].desc.id);
        if (want == NULL) return qdqi_fail(&b->err, QDQ_E_INTERNAL, "no reference for a result");
        if (p->out[k].desc.dtype != want->t.desc.dtype || p->out[k].desc.ndims != want->t.desc.ndims ||
            memcmp(p->out[k].desc.dims, want->t.desc.dims, (size_t)want->t.desc.ndims * sizeof(int64_t)) != 0)
            return qdqi_fail(
                &b->err, QDQ_E_BAD_SHAPE, "tensor %" PRIu64 ": compiled as %s %s, expected %s %s", want->t.desc.id,
                qdq_dtype_name(p->out[k].desc.dtype), qdqi_shape_str(p->out[k].desc.ndims, p->out[k].desc.dims).s,
                qdq_dtype_name(want->t.desc.dtype), qdqi_shape_str(want->t.desc.ndims, want->t.desc.dims).s);
        qdqh_quantizer q;
        const bool has_q = quantizer_of(b, want->t.desc.id, &q);
        const qdqh_counts n = qdqh_compare(&p->out[k], &want->t, &rule, has_q ? &q : NULL, b->run->verbose);
        sum->errors += n.errors;
        sum->total += n.total;
        sum->zeros += n.zeros;
        if (n.errors > 0 && b->run->verbose >= 1)
            printf("  [COMPARE] tensor %" PRIu64 " of a partition `%s`: errors:%" PRId64 " total:%" PRId64 "\n",
                   want->t.desc.id, qdq_partition_pattern(p->p), n.errors, n.total);
    }
    return QDQ_OK;
}

static void print_table(const bench_case *b) {
    printf("  %-4s %-28s %10s  %s\n", "part", "pattern", "ms", "ops | how");
    for (size_t i = 0; i < b->n_parts; i++) {
        const part *p = &b->parts[i];
        printf("  %-4zu %-28s %10.4f  ", i, qdq_partition_pattern(p->p), p->min_ms);
        for (size_t k = 0; k < qdq_partition_n_ops(p->p); k++) {
            const char *kind = "?";
            if (qdq_partition_op(p->p, k, NULL, &kind, NULL, NULL) == QDQ_OK) printf("%s%s", k == 0 ? "" : ";", kind);
        }
        printf(" | %s\n", p->compiled == NULL ? "" : qdq_compiled_summary(p->compiled));
    }
}

/* ---- the case --------------------------------------------------------------------------------------------------- */

static void settle(bench_case *b, bench_result result, const char *why) {
    b->o->result = result;
    snprintf(b->o->why, sizeof b->o->why, "%s", why);
}

static qdq_status run_parts(bench_case *b) {
    qdqh_counts sum = {0};
    for (size_t i = 0; i < b->n_parts; i++) {
        part *p = &b->parts[i];
        QDQI_TRY(compile_part(b, i));
        if (b->run->mode == BENCH_MODE_INIT) continue;
        QDQI_TRY(feed(b, p));
        const double start = bench_now_s();
        QDQI_TRY(execute(b, p));
        p->min_ms = p->avg_ms = 1e3 * (bench_now_s() - start);
        if (b->run->mode & BENCH_MODE_CORRECTNESS) {
            const double compare = bench_now_s();
            QDQI_TRY(check_part(b, p, &sum));
            b->o->compare_s += bench_now_s() - compare;
        }
        if (b->run->mode & BENCH_MODE_PERFORMANCE) QDQI_TRY(time_part(b, p, b->run->max_ms / (double)b->n_parts));
        b->o->min_ms += p->min_ms;
        b->o->avg_ms += p->avg_ms;
        unfeed(p);
    }
    if (b->run->verbose >= 1) print_table(b);
    if (b->run->mode == BENCH_MODE_INIT) {
        settle(b, BENCH_INITIALIZED, "");
    } else if (!(b->run->mode & BENCH_MODE_CORRECTNESS)) {
        settle(b, BENCH_EXECUTED, "");
    } else if (sum.errors > 0) {
        char why[96];
        snprintf(why, sizeof why, "errors:%" PRId64 " total:%" PRId64, sum.errors, sum.total);
        settle(b, BENCH_FAILED, why);
    } else if ((double)sum.zeros > zero_limit * (double)sum.total) {
        settle(b, BENCH_MISTRUSTED, "more than 80% of the result is zero");
    } else {
        settle(b, BENCH_PASSED, "");
    }
    return QDQ_OK;
}

static qdq_status run_case(bench_case *b) {
    QDQI_TRY(load(b));
    if (b->run->mode & BENCH_MODE_LIST) {
        settle(b, BENCH_LISTED, "");
        return QDQ_OK;
    }
    QDQI_TRY(find_inputs(b));
    if (b->run->mode == BENCH_MODE_INIT) {
        const bench_drive drive = {.amplitude = 4, .density = 1.0};
        QDQI_TRY(fill(b, &drive));
        QDQI_TRY(partition(b));
    } else {
        QDQI_TRY(fill_and_run(b));
    }
    b->o->n_partitions = b->n_parts;
    const long want = b->problem->expected_n_partitions;
    if (want != 0 && b->n_parts != (size_t)want) {
        char why[96];
        snprintf(why, sizeof why, "%zu partitions, expected %ld", b->n_parts, want);
        settle(b, BENCH_FAILED, why);
        if (b->run->verbose >= 1) print_table(b);
        return QDQ_OK;
    }
    return run_parts(b);
}

static bench_result result_of(qdq_status status, bool in_file) {
    switch (status) {
    case QDQ_E_UNKNOWN_OP:
    case QDQ_E_UNSUPPORTED:
    case QDQ_E_NO_ISA:
    case QDQ_E_NO_ONEDNN: return BENCH_UNIMPLEMENTED;
    default: return in_file ? BENCH_INVALID_ARGUMENTS : BENCH_FAILED;
    }
}

void bench_case_run(const bench_run *run, const bench_problem *problem, bench_outcome *out) {
    *out = (bench_outcome){0};
    bench_case b = {.run = run, .problem = problem, .o = out};
    const qdq_status st = run_case(&b);
    /* until inputs are known, what fails is the file or the rewrites */
    if (st != QDQ_OK)
        settle(&b, result_of(st, b.inputs.n == 0), b.err.text[0] != '\0' ? b.err.text : qdq_status_text(st));
    drop_parts(&b);
    bench_free(&b.inputs);
    bench_free(&b.ref);
    qdq_graph_destroy(&b.graph);
    qdqi_json_case_free(&b.json);
}
