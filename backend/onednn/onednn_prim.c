#include "onednn/onednn_impl.h"
#include "onednn/prim.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <stdio.h>
#include <string.h>

typedef struct prim_arg {
    qdqi_dnnl_arg arg;
    int dnnl_arg;
    dnnl_memory_desc_t md;
    size_t bytes;
    uint8_t *key;
    size_t key_bytes;
} prim_arg;

typedef struct dnnl_prim {
    qdqi_dnnl_prim base;
    dnnl_primitive_t primitive;
    uint32_t n_args;
    prim_arg *args;
} dnnl_prim;

/* Every primitive that comes in through the table below is one of these. */
static const dnnl_prim *of(const qdqi_dnnl_prim *base) {
    return (const dnnl_prim *)base;
}

/* ---- making ---- */

qdq_status qdqi_dnnl_draft_md(qdqi_dnnl_draft *draft, dnnl_memory_desc_t *slot, qdqi_dnnl_arg arg,
                              const qdqi_dnnl_md *md, qdq_error *err) {
    static const struct {
        const char *name;
        int dnnl_arg;
    } rows[] = {[QDQI_DNNL_SRC] = {"src", DNNL_ARG_SRC},
                [QDQI_DNNL_SRC1] = {"src1", DNNL_ARG_SRC_1},
                [QDQI_DNNL_WEIGHTS] = {"weights", DNNL_ARG_WEIGHTS},
                [QDQI_DNNL_BIAS] = {"bias", DNNL_ARG_BIAS},
                [QDQI_DNNL_DST] = {"dst", DNNL_ARG_DST}};
    QDQI_TRY(qdqi_dnnl_make_md(md, draft->primitive, rows[arg].name, slot, err));
    qdqi_dnnl_draft_role(draft, arg, rows[arg].dnnl_arg);
    if (arg != QDQI_DNNL_BIAS) {
        const size_t n = strlen(draft->types);
        snprintf(draft->types + n, sizeof draft->types - n, "%s", qdq_dtype_name(md->dtype));
    }
    return QDQ_OK;
}

void qdqi_dnnl_draft_role(qdqi_dnnl_draft *draft, qdqi_dnnl_arg arg, int dnnl_arg) {
    if (draft->n_roles < QDQI_DNNL_MAX_ROLES) draft->roles[draft->n_roles++] = (qdqi_dnnl_role){arg, dnnl_arg};
}

qdq_status qdqi_dnnl_draft_src_dst(qdqi_dnnl_draft *draft, const qdqi_request *r, qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_draft_md(draft, &draft->src, QDQI_DNNL_SRC, r->src, err));
    QDQI_TRY(qdqi_dnnl_draft_md(draft, &draft->dst, QDQI_DNNL_DST, r->dst, err));
    return qdqi_dnnl_draft_attr(draft, r->attr, r->src, NULL, NULL, r->dst, err);
}

qdq_status qdqi_dnnl_wrong_alg(const qdqi_dnnl_draft *draft, qdqi_dnnl_alg alg, qdq_error *err) {
    return qdqi_fail(err, QDQ_E_INTERNAL, "%s: algorithm %d is not of this primitive", draft->primitive, (int)alg);
}

void qdqi_dnnl_draft_clear(qdqi_dnnl_draft *draft) {
    const dnnl_memory_desc_t mds[] = {draft->src, draft->src1, draft->weights, draft->bias, draft->dst};
    for (size_t i = 0; i < sizeof mds / sizeof mds[0]; i++)
        if (mds[i] != NULL) dnnl_memory_desc_destroy(mds[i]);
    if (draft->attr != NULL) dnnl_primitive_attr_destroy(draft->attr);
}

static void destroy(qdqi_dnnl_prim *base) {
    dnnl_prim *prim = (dnnl_prim *)base;
    if (prim->primitive != NULL) dnnl_primitive_destroy(prim->primitive);
    for (uint32_t i = 0; i < prim->n_args; i++) {
        if (prim->args[i].md != NULL) dnnl_memory_desc_destroy(prim->args[i].md);
        qdqi_free(prim->args[i].key);
    }
    qdqi_free(prim->args);
    qdqi_free(prim);
}

/* Takes `md` over, on failure too. */
static qdq_status add_arg(dnnl_prim *prim, qdqi_dnnl_arg arg, int dnnl_arg, dnnl_memory_desc_t md, qdq_error *err) {
    prim_arg *a = &prim->args[prim->n_args++];
    *a = (prim_arg){.arg = arg, .dnnl_arg = dnnl_arg, .md = md, .bytes = dnnl_memory_desc_get_size(md)};
    QDQI_TRY(qdqi_dnnl_check(dnnl_memory_desc_get_blob(NULL, &a->key_bytes, md), prim->base.impl, err));
    a->key = qdqi_calloc(1, a->key_bytes);
    if (a->key == NULL) return QDQI_NO_MEMORY(err);
    return qdqi_dnnl_check(dnnl_memory_desc_get_blob(a->key, &a->key_bytes, md), prim->base.impl, err);
}

static qdq_status add_queried(dnnl_prim *prim, const_dnnl_primitive_desc_t pd, qdqi_dnnl_arg arg, int dnnl_arg,
                              dnnl_query_t what, int index, qdq_error *err) {
    const_dnnl_memory_desc_t found = dnnl_primitive_desc_query_md(pd, what, index);
    if (found == NULL || dnnl_memory_desc_get_size(found) == 0) {
        if (arg == QDQI_DNNL_SCRATCH) return QDQ_OK;
        return qdqi_fail(err, QDQ_E_ONEDNN, "%s: argument %d has no descriptor", prim->base.impl, dnnl_arg);
    }
    dnnl_memory_desc_t md = NULL;
    QDQI_TRY(qdqi_dnnl_check(dnnl_memory_desc_clone(&md, found), prim->base.impl, err));
    return add_arg(prim, arg, dnnl_arg, md, err);
}

static qdq_status add_args(dnnl_prim *prim, const qdqi_dnnl_draft *draft, const_dnnl_primitive_desc_t pd,
                           qdq_error *err) {
    prim->args = qdqi_calloc((size_t)draft->n_sources + draft->n_roles + draft->n_vectors + 1, sizeof *prim->args);
    if (prim->args == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < draft->n_sources; i++)
        QDQI_TRY(add_queried(prim, pd, (qdqi_dnnl_arg)(QDQI_DNNL_SRC_N + i), DNNL_ARG_MULTIPLE_SRC + (int)i,
                             dnnl_query_exec_arg_md, DNNL_ARG_MULTIPLE_SRC + (int)i, err));
    for (uint32_t i = 0; i < draft->n_roles; i++)
        QDQI_TRY(add_queried(prim, pd, draft->roles[i].arg, draft->roles[i].dnnl_arg, dnnl_query_exec_arg_md,
                             draft->roles[i].dnnl_arg, err));
    for (uint32_t i = 0; i < draft->n_vectors; i++) {
        const qdqi_dnnl_vector *v = &draft->vectors[i];
        const dnnl_dims_t dims = {v->n}, strides = {1};
        dnnl_memory_desc_t md = NULL;
        QDQI_TRY(
            qdqi_dnnl_check(dnnl_memory_desc_create_with_strides(&md, 1, dims, (dnnl_data_type_t)v->dtype, strides),
                            prim->base.impl, err));
        QDQI_TRY(add_arg(prim, v->arg, v->dnnl_arg, md, err));
    }
    return add_queried(prim, pd, QDQI_DNNL_SCRATCH, DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md, 0, err);
}

static qdq_status build(dnnl_prim *prim, const qdqi_dnnl_draft *draft, const_dnnl_primitive_desc_t pd, qdq_error *err) {
    const char *info = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&info) != dnnl_success || info == NULL)
        info = "?";
    prim->base.is_ref = strncmp(info, "ref", 3) == 0;
    snprintf(prim->base.impl, sizeof prim->base.impl, "%s %s", draft->primitive, info);
    snprintf(prim->base.note, sizeof prim->base.note, "%s %s", prim->base.impl, draft->types);
    QDQI_TRY(add_args(prim, draft, pd, err));
    return qdqi_dnnl_check(dnnl_primitive_create(&prim->primitive, pd), prim->base.impl, err);
}

qdq_status qdqi_dnnl_draft_finish(qdqi_dnnl_draft *draft, dnnl_status_t status, dnnl_primitive_desc_t pd,
                                  qdqi_dnnl_prim **out, qdq_error *err) {
    if (status != dnnl_success) {
        char what[96];
        snprintf(what, sizeof what, "%s %s", draft->primitive, draft->types);
        return qdqi_dnnl_check(status, what, err);
    }
    dnnl_prim *prim = qdqi_calloc(1, sizeof *prim);
    qdq_status st = prim == NULL ? QDQI_NO_MEMORY(err) : QDQ_OK;
    if (st == QDQ_OK) {
        prim->base.ops = &qdqi_dnnl_prim_ops;
        st = build(prim, draft, pd, err);
        if (st != QDQ_OK) destroy(&prim->base);
    }
    dnnl_primitive_desc_destroy(pd);
    if (st == QDQ_OK) *out = &prim->base;
    return st;
}

qdq_status qdqi_dnnl_create(const qdqi_request *request, qdqi_dnnl_prim **out, qdq_error *err) {
    static const struct {
        const char *name;
        qdqi_dnnl_maker *make;
    } rows[] = {[QDQI_MAKE_MATMUL] = {"matmul", qdqi_dnnl_make_matmul},
                [QDQI_MAKE_CONVOLUTION] = {"convolution", qdqi_dnnl_make_convolution},
                [QDQI_MAKE_POOLING] = {"pooling", qdqi_dnnl_make_pooling},
                [QDQI_MAKE_ELTWISE] = {"eltwise", qdqi_dnnl_make_eltwise},
                [QDQI_MAKE_BINARY] = {"binary", qdqi_dnnl_make_binary},
                [QDQI_MAKE_SOFTMAX] = {"softmax", qdqi_dnnl_make_softmax},
                [QDQI_MAKE_LAYERNORM] = {"layernorm", qdqi_dnnl_make_layernorm},
                [QDQI_MAKE_GROUPNORM] = {"groupnorm", qdqi_dnnl_make_groupnorm},
                [QDQI_MAKE_BATCHNORM] = {"batchnorm", qdqi_dnnl_make_batchnorm},
                [QDQI_MAKE_REDUCTION] = {"reduction", qdqi_dnnl_make_reduction},
                [QDQI_MAKE_RESAMPLING] = {"resampling", qdqi_dnnl_make_resampling},
                [QDQI_MAKE_CONCAT] = {"concat", qdqi_dnnl_make_concat},
                [QDQI_MAKE_REORDER] = {"reorder", qdqi_dnnl_make_reorder}};
    qdqi_dnnl_draft draft = {.primitive = rows[request->kind].name};
    const qdq_status st = rows[request->kind].make(&draft, request, out, err);
    qdqi_dnnl_draft_clear(&draft);
    return st;
}

/* ---- asking ---- */

static uint32_t n_args(const qdqi_dnnl_prim *prim) {
    return of(prim)->n_args;
}
static qdqi_dnnl_arg arg_at(const qdqi_dnnl_prim *prim, uint32_t i) {
    return of(prim)->args[i].arg;
}

static const prim_arg *find_arg(const qdqi_dnnl_prim *base, qdqi_dnnl_arg arg) {
    const dnnl_prim *prim = of(base);
    for (uint32_t i = 0; i < prim->n_args; i++)
        if (prim->args[i].arg == arg) return &prim->args[i];
    return NULL;
}

const_dnnl_memory_desc_t qdqi_dnnl_prim_md(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg) {
    const prim_arg *a = find_arg(prim, arg);
    return a == NULL ? NULL : a->md;
}

static size_t arg_bytes(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg) {
    const prim_arg *a = find_arg(prim, arg);
    return a == NULL ? 0 : a->bytes;
}

static const void *arg_key(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, size_t *bytes_out) {
    const prim_arg *a = find_arg(prim, arg);
    *bytes_out = a == NULL ? 0 : a->key_bytes;
    return a == NULL ? NULL : a->key;
}

static bool arg_strides(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, int64_t *strides_out) {
    const_dnnl_memory_desc_t md = qdqi_dnnl_prim_md(prim, arg);
    int ndims = 0;
    const dnnl_dims_t *dims = NULL, *strides = NULL;
    dnnl_data_type_t dtype = dnnl_data_type_undef;
    if (md == NULL || dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &ndims) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_data_type, &dtype) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_dims, (void *)&dims) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_strides, (void *)&strides) != dnnl_success)
        return false;
    /* inner blocks, padding, compensation: all make it differ from a descriptor of the same dims and strides */
    dnnl_memory_desc_t plain = NULL;
    if (dnnl_memory_desc_create_with_strides(&plain, ndims, *dims, dtype, *strides) != dnnl_success) return false;
    const bool is_plain = dnnl_memory_desc_equal(md, plain) != 0;
    dnnl_memory_desc_destroy(plain);
    if (is_plain) memcpy(strides_out, *strides, (size_t)ndims * sizeof *strides_out);
    return is_plain;
}

static bool arg_is(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided) {
    const_dnnl_memory_desc_t md = qdqi_dnnl_prim_md(prim, arg);
    dnnl_memory_desc_t plain = NULL;
    if (md == NULL || strided->any || qdqi_dnnl_make_md(strided, "", "", &plain, NULL) != QDQ_OK) return false;
    const bool same = dnnl_memory_desc_equal(md, plain) != 0;
    dnnl_memory_desc_destroy(plain);
    return same;
}

/* ---- running ---- */

/* One per execution context: the handles that oneDNN wants set before each run. */
typedef struct prim_state {
    dnnl_stream_t stream;
    dnnl_exec_arg_t *args;
    void **bound; /* the address each memory object holds now */
    uint32_t n_args;
} prim_state;

static void state_destroy(void *opaque, const qdq_engine *engine) {
    (void)engine;
    prim_state *state = opaque;
    if (state == NULL) return;
    for (uint32_t i = 0; state->args != NULL && i < state->n_args; i++)
        if (state->args[i].memory != NULL) dnnl_memory_destroy(state->args[i].memory);
    if (state->stream != NULL) dnnl_stream_destroy(state->stream);
    qdqi_free(state->args);
    qdqi_free(state->bound);
    qdqi_free(state);
}

static qdq_status fill_state(prim_state *state, const dnnl_prim *prim, qdq_error *err) {
    state->args = qdqi_calloc(prim->n_args, sizeof *state->args);
    state->bound = qdqi_calloc(prim->n_args, sizeof *state->bound);
    if (state->args == NULL || state->bound == NULL) return QDQI_NO_MEMORY(err);
    state->n_args = prim->n_args;
    const dnnl_engine_t engine = qdqi_dnnl_engine();
    QDQI_TRY(
        qdqi_dnnl_check(dnnl_stream_create(&state->stream, engine, dnnl_stream_default_flags), prim->base.impl, err));
    for (uint32_t i = 0; i < prim->n_args; i++) {
        state->args[i].arg = prim->args[i].dnnl_arg;
        QDQI_TRY(qdqi_dnnl_check(dnnl_memory_create(&state->args[i].memory, prim->args[i].md, engine, DNNL_MEMORY_NONE),
                                 prim->base.impl, err));
    }
    return QDQ_OK;
}

static qdq_status state_create(const void *impl, const qdq_engine *engine, void **state_out, qdq_error *err) {
    prim_state *state = qdqi_calloc(1, sizeof *state);
    if (state == NULL) return QDQI_NO_MEMORY(err);
    const qdq_status st = fill_state(state, impl, err);
    if (st != QDQ_OK) {
        state_destroy(state, engine);
        return st;
    }
    *state_out = state;
    return QDQ_OK;
}

static qdq_status run(const void *impl, void *opaque, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)engine;
    const dnnl_prim *prim = impl;
    prim_state *state = opaque;
    for (uint32_t i = 0; i < state->n_args; i++) {
        if (state->bound[i] == bufs[i]) continue;
        if (dnnl_memory_set_data_handle(state->args[i].memory, bufs[i]) != dnnl_success)
            return qdqi_fail(err, QDQ_E_ONEDNN, "%s: cannot bind argument %u", prim->base.impl, i);
        state->bound[i] = bufs[i];
    }
    dnnl_status_t status = dnnl_primitive_execute(prim->primitive, state->stream, (int)state->n_args, state->args);
    if (status == dnnl_success) status = dnnl_stream_wait(state->stream);
    if (status == dnnl_success) return QDQ_OK;
    (void)qdqi_dnnl_check(status, prim->base.impl, err);
    if (err != NULL) err->status = QDQ_E_ONEDNN;
    return QDQ_E_ONEDNN;
}

static void impl_destroy(void *impl) {
    destroy(impl);
}

/* Bytes from the first to the last element. oneDNN's size of a strided descriptor counts the gap behind the last element of
 * the outer dim too, which a box inside a larger tensor does not have. */
static size_t touched_bytes(const dnnl_prim *prim, const prim_arg *a) {
    qdqi_dnnl_md md = {0};
    const dnnl_dims_t *dims = NULL;
    int ndims = 0;
    size_t last = 0;
    if (!arg_strides(&prim->base, a->arg, md.strides) ||
        dnnl_memory_desc_query(a->md, dnnl_query_ndims_s32, &ndims) != dnnl_success ||
        dnnl_memory_desc_query(a->md, dnnl_query_dims, (void *)&dims) != dnnl_success)
        return a->bytes;
    dnnl_data_type_t dtype = dnnl_data_type_undef;
    if (dnnl_memory_desc_query(a->md, dnnl_query_data_type, &dtype) != dnnl_success) return a->bytes;
    for (int i = 0; i < ndims; i++) {
        if ((*dims)[i] == 0) return 0;
        last += (size_t)((*dims)[i] - 1) * (size_t)md.strides[i];
    }
    const size_t bytes = (last + 1) * dnnl_data_type_size(dtype);
    return bytes < a->bytes ? bytes : a->bytes;
}

static qdq_status step(qdqi_plan *plan, qdqi_dnnl_prim *base, const qdqi_buf *bufs, uint32_t n_bufs, uint32_t part,
                       qdq_error *err) {
    static const qdqi_step_ops step_ops = {
        .provider = "onednn",
        .state_create = state_create,
        .state_destroy = state_destroy,
        .run = run,
        .impl_destroy = impl_destroy,
    };
    dnnl_prim *prim = (dnnl_prim *)base;
    if (n_bufs != prim->n_args) {
        const qdq_status st =
            qdqi_fail(err, QDQ_E_INTERNAL, "%s: %u buffers for %u arguments", prim->base.impl, n_bufs, prim->n_args);
        destroy(base);
        return st;
    }
    for (uint32_t i = 0; i < n_bufs; i++) {
        if (bufs[i] != QDQI_NO_BUF && qdqi_plan_buf_bytes(plan, bufs[i]) >= touched_bytes(prim, &prim->args[i]))
            continue;
        const qdq_status st =
            qdqi_fail(err, QDQ_E_INTERNAL, "%s: argument %u has a buffer of %zu bytes, expected %zu", prim->base.impl,
                      i, bufs[i] == QDQI_NO_BUF ? 0 : qdqi_plan_buf_bytes(plan, bufs[i]), prim->args[i].bytes);
        destroy(base);
        return st;
    }
    return qdqi_plan_step(plan, &step_ops, prim, bufs, n_bufs, part, prim->base.note, err);
}

const qdqi_prim_ops qdqi_dnnl_prim_ops = {
    .destroy = destroy,
    .n_args = n_args,
    .arg = arg_at,
    .arg_bytes = arg_bytes,
    .arg_strides = arg_strides,
    .arg_is = arg_is,
    .arg_key = arg_key,
    .pack = qdqi_dnnl_pack_for,
    .reorder_for = qdqi_dnnl_make_reorder_for,
    .step = step,
};
