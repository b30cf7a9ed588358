/* Between lowering and the oneDNN facade: descriptors, argument lists, packed constants. */
#include "base/alloc.h"
#include "base/dtype.h"
#include "lower/single.h"

#include <string.h>

void qdqi_md_of(const qdq_tensor_desc *desc, qdqi_dnnl_md *md) {
    *md = (qdqi_dnnl_md){.ndims = desc->ndims, .dtype = desc->dtype};
    memcpy(md->dims, desc->dims, sizeof md->dims);
    memcpy(md->strides, desc->strides, sizeof md->strides);
    if (md->ndims == 0) { /* oneDNN has no rank 0 */
        md->ndims = 1;
        md->dims[0] = 1;
        md->strides[0] = 1;
    }
}

void qdqi_md_permuted(const qdq_tensor_desc *desc, const int32_t *perm, qdqi_dnnl_md *md) {
    *md = (qdqi_dnnl_md){.ndims = desc->ndims, .dtype = desc->dtype};
    for (int32_t i = 0; i < desc->ndims; i++) {
        md->dims[i] = desc->dims[perm[i]];
        md->strides[i] = desc->strides[perm[i]];
    }
}

void qdqi_md_unsqueeze_front(qdqi_dnnl_md *md, int32_t ndims) {
    const int32_t add = ndims - md->ndims;
    if (add <= 0) return;
    int64_t span = 1;
    for (int32_t i = 0; i < md->ndims; i++)
        if (md->dims[i] * md->strides[i] > span) span = md->dims[i] * md->strides[i];
    memmove(md->dims + add, md->dims, (size_t)md->ndims * sizeof md->dims[0]);
    memmove(md->strides + add, md->strides, (size_t)md->ndims * sizeof md->strides[0]);
    for (int32_t i = 0; i < add; i++) {
        md->dims[i] = 1;
        md->strides[i] = span;
    }
    md->ndims = ndims;
}

bool qdqi_md_is_row_major(const qdqi_dnnl_md *md) {
    int64_t next = 1;
    for (int32_t i = md->ndims - 1; i >= 0; i--) {
        if (md->dims[i] != 1 && md->strides[i] != next) return false;
        if (md->dims[i] == 0 || next > INT64_MAX / md->dims[i]) return false;
        next *= md->dims[i];
    }
    return true;
}

void qdqi_md_unit_strides(qdqi_dnnl_md *md) {
    int64_t span = 1;
    const bool dense = qdqi_md_is_row_major(md);
    for (int32_t i = md->ndims - 1; i >= 0; i--) {
        if (md->dims[i] == 1) continue;
        if (md->dims[i] == 0 || md->strides[i] > INT64_MAX / md->dims[i]) return; /* refused later */
        if (md->strides[i] * md->dims[i] > span) span = md->strides[i] * md->dims[i];
    }
    int64_t inner = 1; /* the usual ones when row-major */
    for (int32_t i = md->ndims - 1; i >= 0; i--) {
        if (md->dims[i] == 1) md->strides[i] = dense ? inner : span;
        inner *= dense ? md->dims[i] : 1;
    }
    if (md->dims[md->ndims - 1] == 1) md->strides[md->ndims - 1] = 1;
}

void qdqi_args_add(qdqi_args *args, qdqi_dnnl_arg arg, qdqi_buf buf) {
    if (args->n < sizeof args->rows / sizeof args->rows[0]) {
        args->rows[args->n].arg = arg;
        args->rows[args->n].buf = buf;
    }
    args->n++;
}

qdq_status qdqi_lower_prim(qdqi_lower *lw, qdqi_dnnl_prim *prim, const qdqi_args *args, qdq_error *err) {
    const uint32_t n = qdqi_dnnl_prim_n_args(prim);
    qdqi_buf *bufs = qdqi_malloc((n == 0 ? 1 : n) * sizeof *bufs);
    qdq_status st = bufs == NULL ? QDQI_NO_MEMORY(err) : QDQ_OK;
    if (st == QDQ_OK && args->n > sizeof args->rows / sizeof args->rows[0])
        st = qdqi_refuse(err, "onednn", "too_many_arguments");
    for (uint32_t i = 0; i < n && st == QDQ_OK; i++) {
        const qdqi_dnnl_arg arg = qdqi_dnnl_prim_arg(prim, i);
        bufs[i] = QDQI_NO_BUF;
        if (arg == QDQI_DNNL_SCRATCH) {
            st = qdqi_plan_temp(lw->plan, qdqi_dnnl_prim_arg_bytes(prim, arg), &bufs[i], err);
            continue;
        }
        for (uint32_t k = 0; k < args->n; k++)
            if (args->rows[k].arg == arg) bufs[i] = args->rows[k].buf;
        if (bufs[i] == QDQI_NO_BUF)
            st = qdqi_fail(err, QDQ_E_INTERNAL, "%s: no buffer for argument %d", qdqi_dnnl_prim_impl(prim), (int)arg);
    }
    if (st == QDQ_OK)
        st = qdqi_dnnl_step(lw->plan, prim, bufs, n, lw->part, err);
    else
        qdqi_dnnl_prim_destroy(prim);
    qdqi_free(bufs);
    return st;
}

struct pack_arg {
    const qdqi_dnnl_prim *prim;
    qdqi_dnnl_arg arg;
    const qdqi_dnnl_md *md;
    const void *data;
    size_t data_bytes;
    bool flip;
};

static qdq_status pack(void *dst, size_t bytes, void *p, qdq_error *err) {
    (void)bytes;
    const struct pack_arg *a = p;
    if (!a->flip) return qdqi_dnnl_pack(a->prim, a->arg, a->md, a->data, dst, err);
    uint8_t *flipped = qdqi_malloc_aligned(a->data_bytes);
    if (flipped == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < a->data_bytes; i++)
        flipped[i] = (uint8_t)(((const uint8_t *)a->data)[i] ^ 0x80u);
    const qdq_status st = qdqi_dnnl_pack(a->prim, a->arg, a->md, flipped, dst, err);
    qdqi_free_aligned(flipped);
    return st;
}

qdq_status qdqi_lower_pack(qdqi_lower *lw, const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *md,
                           const void *data, size_t data_bytes, bool flip, qdqi_buf *buf_out, qdq_error *err) {
    size_t layout_bytes;
    const void *layout = qdqi_dnnl_prim_arg_key(prim, arg, &layout_bytes);
    const size_t key_bytes = layout_bytes + sizeof *md + 1;
    unsigned char *key = qdqi_calloc(1, key_bytes);
    if (key == NULL) return QDQI_NO_MEMORY(err);
    qdqi_dnnl_md clean;
    memset(&clean, 0, sizeof clean); /* padding bytes are part of the key */
    clean.ndims = md->ndims;
    clean.dtype = md->dtype;
    memcpy(clean.dims, md->dims, (size_t)md->ndims * sizeof md->dims[0]);
    memcpy(clean.strides, md->strides, (size_t)md->ndims * sizeof md->strides[0]);
    memcpy(key, layout, layout_bytes);
    memcpy(key + layout_bytes, &clean, sizeof clean);
    key[key_bytes - 1] = flip;
    struct pack_arg a = {prim, arg, md, data, data_bytes, flip};
    qdqi_const c;
    const qdq_status st = qdqi_const_get(lw->engine, data, data_bytes, key, key_bytes,
                                         qdqi_dnnl_prim_arg_bytes(prim, arg), pack, &a, &c, err);
    qdqi_free(key);
    QDQI_TRY(st);
    return qdqi_plan_const(lw->plan, c, buf_out, err);
}

void qdqi_set_channels_last_by(qdq_tensor_desc *desc, const int32_t *perm) {
    int64_t s = 1;
    const int32_t nd = desc->ndims;
    desc->layout = QDQ_LAYOUT_STRIDED;
    for (int32_t k = 0; k < nd; k++) {
        /* innermost first: C, then spatial from the last, then N */
        const int32_t d = perm[k == 0 ? 1 : (k + 1 < nd ? nd - k : 0)];
        desc->strides[d] = s;
        s *= desc->dims[d] == 0 ? 1 : desc->dims[d];
    }
}
