#include "native/native_prim.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "onednn/prim.h"

#include <stdio.h>
#include <string.h>

typedef struct native_arg {
    qdqi_dnnl_arg arg;
    bool packed;
    qdqi_dnnl_md md; /* unless packed */
    size_t bytes;
    unsigned char *key;
    size_t key_bytes;
} native_arg;

struct qdqi_native_prim {
    qdqi_dnnl_prim base;
    const qdqi_native_ops *ops;
    void *impl;
    uint32_t refs; /* its reorders hold it: both belong to the plan that is being made, on one thread */
    uint32_t n_args, cap_args;
    native_arg *args;
    qdq_status failed;
    char types[64];
};

static _Thread_local const char *last_why = "no_native_kernel";

const char *qdqi_native_why(void) {
    return last_why;
}

qdq_status qdqi_native_refuse(qdq_error *err, const char *primitive, const char *why) {
    last_why = why;
    return qdqi_fail(err, QDQ_E_UNSUPPORTED, "native %s: %s", primitive, why);
}

/* ---- the table ---- */

static qdqi_native_prim *own(qdqi_dnnl_prim *base) {
    return (qdqi_native_prim *)base;
}
static const qdqi_native_prim *of(const qdqi_dnnl_prim *base) {
    return (const qdqi_native_prim *)base;
}

static void destroy(qdqi_dnnl_prim *base) {
    qdqi_native_prim *prim = own(base);
    if (--prim->refs != 0) return;
    if (prim->ops->clear != NULL) prim->ops->clear(prim->impl);
    for (uint32_t i = 0; i < prim->n_args; i++)
        qdqi_free(prim->args[i].key);
    qdqi_free(prim->args);
    qdqi_free_aligned(prim->impl);
    qdqi_free(prim);
}

static const native_arg *find_arg(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg) {
    for (uint32_t i = 0; i < of(prim)->n_args; i++)
        if (of(prim)->args[i].arg == arg) return &of(prim)->args[i];
    return NULL;
}

static uint32_t n_args(const qdqi_dnnl_prim *prim) {
    return of(prim)->n_args;
}
static qdqi_dnnl_arg arg_at(const qdqi_dnnl_prim *prim, uint32_t i) {
    return of(prim)->args[i].arg;
}
static size_t arg_bytes(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg) {
    const native_arg *a = find_arg(prim, arg);
    return a == NULL ? 0 : a->bytes;
}
static bool arg_strides(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, int64_t *strides_out) {
    const native_arg *a = find_arg(prim, arg);
    if (a == NULL || a->packed) return false;
    memcpy(strides_out, a->md.strides, (size_t)a->md.ndims * sizeof *strides_out);
    return true;
}
static bool arg_is(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided) {
    const native_arg *a = find_arg(prim, arg);
    return a != NULL && !a->packed && !strided->any && a->md.dtype == strided->dtype &&
           qdqi_native_same_layout(&a->md, strided);
}
static const void *arg_key(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, size_t *bytes_out) {
    const native_arg *a = find_arg(prim, arg);
    *bytes_out = a == NULL ? 0 : a->key_bytes;
    return a == NULL ? NULL : a->key;
}

/* Element by element between two strided tensors of equal dims and dtype: what packing a plain argument means. */
static void copy_strided(const qdqi_dnnl_md *src, const char *from, const qdqi_dnnl_md *dst, char *to, size_t elem) {
    const int32_t nd = src->ndims;
    int64_t at[QDQ_MAX_NDIMS] = {0};
    for (;;) {
        int64_t i = 0, k = 0;
        for (int32_t d = 0; d < nd; d++) {
            i += at[d] * src->strides[d];
            k += at[d] * dst->strides[d];
        }
        memcpy(to + (size_t)k * elem, from + (size_t)i * elem, elem);
        int32_t d = nd - 1;
        while (d >= 0 && ++at[d] == src->dims[d])
            at[d--] = 0;
        if (d < 0) return;
    }
}

static qdq_status pack_arg(const qdqi_native_prim *prim, const native_arg *a, const qdqi_dnnl_md *src,
                           const void *src_data, void *dst, qdq_error *err) {
    if (a->packed) return prim->ops->pack(prim->impl, a->arg, src, src_data, dst, err);
    bool same = src->ndims == a->md.ndims && src->dtype == a->md.dtype;
    for (int32_t d = 0; same && d < src->ndims; d++)
        same = src->dims[d] == a->md.dims[d];
    if (!same) return qdqi_fail(err, QDQ_E_INTERNAL, "%s: packing a tensor of other dims", prim->base.impl);
    copy_strided(src, src_data, &a->md, dst, qdq_dtype_bits(src->dtype) / 8);
    return QDQ_OK;
}

static qdq_status pack(const qdqi_dnnl_prim *base, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src, const void *src_data,
                       void *dst, qdq_error *err) {
    const native_arg *a = find_arg(base, arg);
    if (a == NULL) return qdqi_fail(err, QDQ_E_INTERNAL, "%s has no argument %d to pack", base->impl, (int)arg);
    return pack_arg(of(base), a, src, src_data, dst, err);
}

typedef struct reorder_impl {
    qdqi_native_prim *prim;
    const native_arg *arg;
    qdqi_dnnl_md src;
} reorder_impl;

static qdq_status run_reorder(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)engine;
    const reorder_impl *r = impl;
    return pack_arg(r->prim, r->arg, &r->src, bufs[0], bufs[1], err);
}
static void clear_reorder(void *impl) {
    reorder_impl *r = impl;
    if (r->prim != NULL) destroy(&r->prim->base);
}

static qdq_status reorder_for(const qdqi_dnnl_prim *base, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided, bool to_prim,
                              qdqi_dnnl_prim **out, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run_reorder, .clear = clear_reorder};
    const native_arg *a = find_arg(base, arg);
    if (a == NULL) return qdqi_fail(err, QDQ_E_INTERNAL, "reorder: %s has no argument %d", base->impl, (int)arg);
    if (!to_prim) return qdqi_native_refuse(err, "reorder", "no_native_kernel");
    qdqi_dnnl_md src;
    QDQI_TRY(qdqi_native_layout(strided, "reorder", &src, err));
    reorder_impl *impl;
    qdqi_native_prim *prim = qdqi_native_new(&ops, "reorder", "pack", sizeof *impl, (void **)&impl);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    *impl = (reorder_impl){(qdqi_native_prim *)(uintptr_t)base, a, src};
    impl->prim->refs++;
    qdqi_native_add_md(prim, QDQI_DNNL_SRC, &src);
    if (a->packed)
        qdqi_native_add_packed(prim, QDQI_DNNL_DST, a->bytes, a->key, a->key_bytes);
    else
        qdqi_native_add_md(prim, QDQI_DNNL_DST, &a->md);
    return qdqi_native_finish(prim, out, err);
}

static qdq_status run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state;
    const qdqi_native_prim *prim = impl;
    return prim->ops->run(prim->impl, bufs, engine, err);
}
static void impl_destroy(void *impl) {
    destroy(impl);
}

static qdq_status step(qdqi_plan *plan, qdqi_dnnl_prim *base, const qdqi_buf *bufs, uint32_t n_bufs, uint32_t part,
                       qdq_error *err) {
    static const qdqi_step_ops ops = {.provider = "native", .run = run, .impl_destroy = impl_destroy};
    const qdqi_native_prim *prim = of(base);
    qdq_status st = QDQ_OK;
    if (n_bufs != prim->n_args)
        st = qdqi_fail(err, QDQ_E_INTERNAL, "%s: %u buffers for %u arguments", base->impl, n_bufs, prim->n_args);
    for (uint32_t i = 0; st == QDQ_OK && i < n_bufs; i++) {
        const size_t have = bufs[i] == QDQI_NO_BUF ? 0 : qdqi_plan_buf_bytes(plan, bufs[i]);
        if (bufs[i] == QDQI_NO_BUF || have < prim->args[i].bytes)
            st = qdqi_fail(err, QDQ_E_INTERNAL, "%s: argument %u has a buffer of %zu bytes, expected %zu", base->impl,
                           i, have, prim->args[i].bytes);
    }
    if (st != QDQ_OK) {
        destroy(base);
        return st;
    }
    return qdqi_plan_step(plan, &ops, base, bufs, n_bufs, part, base->note, err);
}

static const qdqi_prim_ops prim_ops = {
    .destroy = destroy,
    .n_args = n_args,
    .arg = arg_at,
    .arg_bytes = arg_bytes,
    .arg_strides = arg_strides,
    .arg_is = arg_is,
    .arg_key = arg_key,
    .pack = pack,
    .reorder_for = reorder_for,
    .step = step,
};

/* ---- making ---- */

qdqi_native_prim *qdqi_native_new(const qdqi_native_ops *ops, const char *primitive, const char *kernel,
                                  size_t impl_bytes, void **impl_out) {
    qdqi_native_prim *prim = qdqi_calloc(1, sizeof *prim);
    void *impl = prim == NULL ? NULL : qdqi_malloc_aligned(impl_bytes);
    if (impl == NULL) {
        qdqi_free(prim);
        return NULL;
    }
    memset(impl, 0, impl_bytes);
    prim->base.ops = &prim_ops;
    prim->base.is_native = true;
    prim->ops = ops;
    prim->impl = impl;
    prim->refs = 1;
    snprintf(prim->base.impl, sizeof prim->base.impl, "%s %s", primitive, kernel);
    *impl_out = impl;
    return prim;
}

void qdqi_native_drop(qdqi_native_prim *prim) {
    destroy(&prim->base);
}

static native_arg *new_arg(qdqi_native_prim *prim, qdqi_dnnl_arg arg) {
    if (prim->n_args == prim->cap_args) {
        const uint32_t cap = prim->cap_args == 0 ? 8 : prim->cap_args * 2;
        native_arg *args = qdqi_realloc_array(prim->args, cap, sizeof *args);
        if (args == NULL) {
            prim->failed = QDQ_E_NO_MEMORY;
            return NULL;
        }
        prim->args = args;
        prim->cap_args = cap;
    }
    native_arg *a = &prim->args[prim->n_args++];
    *a = (native_arg){.arg = arg};
    return a;
}

static void set_key(qdqi_native_prim *prim, native_arg *a, const void *key, size_t bytes) {
    a->key = qdqi_calloc(1, bytes == 0 ? 1 : bytes);
    if (a->key == NULL)
        prim->failed = QDQ_E_NO_MEMORY;
    else if (bytes != 0)
        memcpy(a->key, key, bytes);
    a->key_bytes = bytes;
}

uint32_t qdqi_native_add_md(qdqi_native_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *md) {
    native_arg *a = new_arg(prim, arg);
    if (a == NULL) return QDQI_NO_ARG;
    a->md = *md;
    a->bytes = qdqi_native_span(md);
    unsigned char key[sizeof "native plain" + sizeof *md] = "native plain";
    qdqi_dnnl_md clean;
    memset(&clean, 0, sizeof clean); /* padding bytes are part of the key */
    clean.ndims = md->ndims;
    clean.dtype = md->dtype;
    memcpy(clean.dims, md->dims, (size_t)md->ndims * sizeof md->dims[0]);
    memcpy(clean.strides, md->strides, (size_t)md->ndims * sizeof md->strides[0]);
    memcpy(key + sizeof "native plain", &clean, sizeof clean);
    set_key(prim, a, key, sizeof key);
    const bool in_note =
        arg == QDQI_DNNL_SRC || arg == QDQI_DNNL_SRC1 || arg == QDQI_DNNL_WEIGHTS || arg == QDQI_DNNL_DST;
    const size_t n = strlen(prim->types);
    if (in_note) snprintf(prim->types + n, sizeof prim->types - n, "%s", qdq_dtype_name(md->dtype));
    return prim->n_args - 1;
}

uint32_t qdqi_native_add_vector(qdqi_native_prim *prim, qdqi_dnnl_arg arg, int64_t n, qdq_dtype dtype) {
    const qdqi_dnnl_md md = {.ndims = 1, .dims = {n}, .strides = {1}, .dtype = dtype};
    return qdqi_native_add_md(prim, arg, &md);
}

uint32_t qdqi_native_add_packed(qdqi_native_prim *prim, qdqi_dnnl_arg arg, size_t bytes, const void *key,
                                size_t key_bytes) {
    native_arg *a = new_arg(prim, arg);
    if (a == NULL) return QDQI_NO_ARG;
    a->packed = true;
    a->bytes = bytes;
    set_key(prim, a, key, key_bytes);
    return prim->n_args - 1;
}

uint32_t qdqi_native_add_scratch(qdqi_native_prim *prim, size_t bytes) {
    if (bytes == 0) return QDQI_NO_ARG;
    return qdqi_native_add_packed(prim, QDQI_DNNL_SCRATCH, bytes, NULL, 0);
}

static uint32_t add_values(qdqi_native_prim *prim, qdqi_dnnl_arg arg, bool has, const qdqi_dnnl_md *md, int mask,
                           const int64_t group[2], qdq_dtype dtype, qdq_dtype fallback, int64_t *n_out) {
    *n_out = 0;
    if (!has) return QDQI_NO_ARG;
    const int64_t n = md == NULL ? -1 : qdqi_native_count(md, mask, group);
    if (n < 0) {
        prim->failed = QDQ_E_UNSUPPORTED;
        return QDQI_NO_ARG;
    }
    *n_out = n;
    return qdqi_native_add_vector(prim, arg, n, dtype == QDQ_DTYPE_UNDEF ? fallback : dtype);
}

void qdqi_native_add_attr(qdqi_native_prim *prim, const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *src,
                          const qdqi_dnnl_md *src1, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *dst,
                          qdqi_native_attr_args *args) {
    const uint32_t no = QDQI_NO_ARG;
    *args = (qdqi_native_attr_args){no, no, no, no, no, no, no, 0, 0, 0, 0, 0, 0, {0}};
    for (uint32_t i = 0; i < QDQI_DNNL_MAX_POSTS; i++)
        args->post[i] = no;
    if (attr == NULL) return;
    const qdqi_dnnl_quant *s = &attr->src, *s1 = &attr->src1, *w = &attr->weights, *d = &attr->dst;
    int64_t unused;
    const qdq_dtype f32 = QDQ_DTYPE_F32, s32 = QDQ_DTYPE_S32;
    args->scale_src = add_values(prim, QDQI_DNNL_SCALE_SRC, s->has_scale, src, s->scale_mask, s->group, s->scale_dtype,
                                 f32, &args->n_scale_src);
    args->zp_src =
        add_values(prim, QDQI_DNNL_ZP_SRC, s->has_zp, src, s->zp_mask, s->group, s->zp_dtype, s32, &args->n_zp_src);
    args->scale_src1 = add_values(prim, QDQI_DNNL_SCALE_SRC1, s1->has_scale, src1, s1->scale_mask, s1->group,
                                  s1->scale_dtype, f32, &unused);
    args->scale_weights = add_values(prim, QDQI_DNNL_SCALE_WEIGHTS, w->has_scale, weights, w->scale_mask, w->group,
                                     w->scale_dtype, f32, &args->n_scale_weights);
    args->zp_weights = add_values(prim, QDQI_DNNL_ZP_WEIGHTS, w->has_zp, weights, w->zp_mask, w->group, w->zp_dtype,
                                  s32, &args->n_zp_weights);
    args->scale_dst = add_values(prim, QDQI_DNNL_SCALE_DST, d->has_scale, dst, d->scale_mask, d->group, d->scale_dtype,
                                 f32, &args->n_scale_dst);
    args->zp_dst =
        add_values(prim, QDQI_DNNL_ZP_DST, d->has_zp, dst, d->zp_mask, d->group, d->zp_dtype, s32, &args->n_zp_dst);
    if (s1->has_zp) prim->failed = QDQ_E_UNSUPPORTED; /* no primitive has one */
    for (uint32_t i = 0; i < attr->n_posts; i++) {
        const qdqi_dnnl_alg alg = attr->posts[i].alg;
        if (alg >= QDQI_DNNL_BIN_ADD && alg <= QDQI_DNNL_BIN_PRELU)
            args->post[i] = qdqi_native_add_md(prim, (qdqi_dnnl_arg)(QDQI_DNNL_POST_OP + i), &attr->posts[i].operand);
    }
}

qdq_status qdqi_native_finish(qdqi_native_prim *prim, qdqi_dnnl_prim **out, qdq_error *err) {
    const qdq_status failed = prim->failed;
    if (failed != QDQ_OK) {
        qdqi_native_drop(prim);
        return failed == QDQ_E_NO_MEMORY ? QDQI_NO_MEMORY(err)
                                         : qdqi_native_refuse(err, "attributes", "no_native_kernel");
    }
    snprintf(prim->base.note, sizeof prim->base.note, "%s %s", prim->base.impl, prim->types);
    *out = &prim->base;
    return QDQ_OK;
}

/* ---- requests ---- */

qdq_status qdqi_native_layout(const qdqi_dnnl_md *asked, const char *primitive, qdqi_dnnl_md *md, qdq_error *err) {
    if (asked == NULL) return qdqi_fail(err, QDQ_E_NULL_ARG, "native %s: a tensor is NULL", primitive);
    if (asked->ndims < 1 || asked->ndims > QDQ_MAX_NDIMS) return qdqi_native_refuse(err, primitive, "rank");
    const size_t bits = qdq_dtype_bits(asked->dtype);
    if (bits < 8) return qdqi_native_refuse(err, primitive, bits == 0 ? "dtype" : "sub_byte_dtype");
    *md = *asked;
    md->any = false;
    int64_t n = 1, last = 0;
    for (int32_t d = md->ndims - 1; d >= 0; d--) {
        if (md->dims[d] == 0) return qdqi_native_refuse(err, primitive, "zero_size");
        if (md->dims[d] < 0) return qdqi_fail(err, QDQ_E_BAD_SHAPE, "native %s: dim %d is not known", primitive, d);
        if (asked->any) md->strides[d] = n;
        int64_t reach;
        if (!qdqi_mul_i64(n, md->dims[d], &n) || md->strides[d] < 0 ||
            !qdqi_mul_i64(md->dims[d] - 1, md->strides[d], &reach) || !qdqi_add_i64(last, reach, &last))
            return qdqi_native_refuse(err, primitive, "size");
    }
    size_t bytes;
    if (last == INT64_MAX || !qdqi_dtype_bytes(md->dtype, last + 1, &bytes) || bytes > SIZE_MAX / 1024 ||
        !qdqi_dtype_bytes(md->dtype, n, &bytes) || bytes > SIZE_MAX / 1024)
        return qdqi_native_refuse(err, primitive, "size");
    return QDQ_OK;
}

int64_t qdqi_native_n_elems(const qdqi_dnnl_md *md) {
    int64_t n = 1;
    for (int32_t d = 0; d < md->ndims; d++)
        n *= md->dims[d];
    return n;
}

bool qdqi_native_is_dense(const qdqi_dnnl_md *md) {
    int64_t n = 1;
    for (int32_t d = md->ndims - 1; d >= 0; d--) {
        if (md->dims[d] != 1 && md->strides[d] != n) return false;
        n *= md->dims[d];
    }
    return true;
}

bool qdqi_native_same_layout(const qdqi_dnnl_md *a, const qdqi_dnnl_md *b) {
    if (a->ndims != b->ndims) return false;
    for (int32_t d = 0; d < a->ndims; d++)
        if (a->dims[d] != b->dims[d] || (a->dims[d] != 1 && a->strides[d] != b->strides[d])) return false;
    return true;
}

size_t qdqi_native_span(const qdqi_dnnl_md *md) {
    size_t last = 0;
    for (int32_t d = 0; d < md->ndims; d++) {
        if (md->dims[d] == 0) return 0;
        last += (size_t)(md->dims[d] - 1) * (size_t)md->strides[d];
    }
    return (last * qdq_dtype_bits(md->dtype) + qdq_dtype_bits(md->dtype) + 7) / 8;
}

int64_t qdqi_native_count(const qdqi_dnnl_md *md, int mask, const int64_t group[2]) {
    int64_t n = 1;
    if (mask < 0 || mask >> md->ndims != 0) return -1;
    for (int32_t d = 0; d < md->ndims; d++) {
        if ((mask >> d & 1) == 0) continue;
        int64_t values = md->dims[d];
        const int32_t from_last_two = d - (md->ndims - 2);
        if (group[0] > 0 && group[1] > 0 && from_last_two >= 0) {
            if (values % group[from_last_two] != 0) return -1;
            values /= group[from_last_two];
        }
        if (!qdqi_mul_i64(n, values, &n)) return -1;
    }
    return n;
}

bool qdqi_native_no_quant(const qdqi_dnnl_attr *attr) {
    if (attr == NULL) return true;
    const qdqi_dnnl_quant *sides[] = {&attr->src, &attr->src1, &attr->weights, &attr->dst};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        if (sides[i]->has_scale || sides[i]->has_zp) return false;
    return true;
}

bool qdqi_native_no_attr(const qdqi_dnnl_attr *attr) {
    return attr == NULL || (attr->n_posts == 0 && qdqi_native_no_quant(attr));
}
