#include "lower/fold_batch.h"

#include "lower/lower.h"

#include <string.h>

/* Dims i and i + 1 are one dim of d[i] * d[i + 1]. */
static bool is_one_dim(const qdqi_dnnl_md *md, int32_t i) {
    const int64_t outer = md->dims[i], inner = md->dims[i + 1];
    if (outer == 1 || inner == 1) return true;
    return inner != 0 && md->strides[i] % inner == 0 && md->strides[i] / inner == md->strides[i + 1];
}

/* An operand that is broadcast to `full` there: along both dims, or along neither. */
static bool folds_with(const qdqi_dnnl_md *md, const qdqi_dnnl_md *full, int32_t i) {
    const bool both = md->dims[i] == full->dims[i] && md->dims[i + 1] == full->dims[i + 1];
    return (md->dims[i] == 1 && md->dims[i + 1] == 1) || (both && is_one_dim(md, i));
}

static void fold_md(qdqi_dnnl_md *md, int32_t i) {
    if (md->dims[i + 1] == 1) md->strides[i + 1] = md->strides[i];
    md->dims[i + 1] *= md->dims[i];
    const size_t n = (size_t)(md->ndims - 1 - i);
    memmove(md->dims + i, md->dims + i + 1, n * sizeof md->dims[0]);
    memmove(md->strides + i, md->strides + i + 1, n * sizeof md->strides[0]);
    md->ndims--;
}

static bool is_binary(const qdqi_dnnl_post *post) {
    return post->alg >= QDQI_DNNL_BIN_ADD && post->alg <= QDQI_DNNL_BIN_PRELU;
}

/* Values per index of a dim that goes, or per group: such a mask stays as it is. */
static bool mask_folds(const qdqi_dnnl_quant *q, int32_t i) {
    return ((q->scale_mask | q->zp_mask) & (3 << i)) == 0 && q->group[0] == 0 && q->group[1] == 0;
}

static int without_bit(int mask, int32_t i) {
    return (mask & ((1 << i) - 1)) | ((mask >> (i + 1)) << i);
}

static bool attr_folds(const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *dst, int32_t i) {
    if (!mask_folds(&attr->src, i) || !mask_folds(&attr->weights, i) || !mask_folds(&attr->dst, i)) return false;
    for (uint32_t k = 0; k < attr->n_posts; k++)
        if (is_binary(&attr->posts[k]) && !folds_with(&attr->posts[k].operand, dst, i)) return false;
    return true;
}

static void fold_attr(qdqi_dnnl_attr *attr, int32_t i) {
    qdqi_dnnl_quant *const quants[] = {&attr->src, &attr->weights, &attr->dst};
    for (size_t k = 0; k < sizeof quants / sizeof quants[0]; k++) {
        quants[k]->scale_mask = without_bit(quants[k]->scale_mask, i);
        quants[k]->zp_mask = without_bit(quants[k]->zp_mask, i);
    }
    for (uint32_t k = 0; k < attr->n_posts; k++)
        if (is_binary(&attr->posts[k])) fold_md(&attr->posts[k].operand, i);
}

static void fold(const qdqi_mm_request *r, int32_t i) {
    fold_md(r->src, i);
    fold_md(r->weights, i);
    fold_md(r->plain_weights, i);
    if (r->bias->ndims != 0) fold_md(r->bias, i);
    fold_md(r->dst, i);
    fold_attr(r->attr, i);
}

static bool results_fold(const qdqi_mm_request *r, int32_t i) {
    return is_one_dim(r->dst, i) && (r->bias->ndims == 0 || folds_with(r->bias, r->dst, i)) &&
           attr_folds(r->attr, r->dst, i);
}

/* Folded at i, a column would have neighbours as its elements (see make_plain of the recipe). */
static bool is_no_loose_column(const qdqi_dnnl_md *md, int32_t i) {
    return md->dims[i + 2] != 1 || md->strides[md->dims[i + 1] == 1 ? i : i + 1] == 1;
}

/* The last batch dim into M: the weights do not have it, src and dst have their rows one after the other. */
static bool batch_is_rows(const qdqi_mm_request *r, int32_t i) {
    return r->dst->dims[i] > 1 && r->weights->dims[i] == 1 && r->src->dims[i] == r->dst->dims[i] &&
           is_one_dim(r->src, i) && is_no_loose_column(r->src, i) && is_no_loose_column(r->dst, i) &&
           results_fold(r, i);
}

static bool batches_are_one(const qdqi_mm_request *r, int32_t i) {
    return folds_with(r->src, r->dst, i) && folds_with(r->weights, r->dst, i) && results_fold(r, i);
}

static bool has_unit(const qdqi_mm_request *r, int32_t i) {
    return (r->dst->dims[i] == 1 || r->dst->dims[i + 1] == 1) && batches_are_one(r, i);
}

void qdqi_fold_batches(const qdqi_mm_request *request) {
    const qdqi_mm_request *r = request;
    while (r->dst->ndims > 2 && batch_is_rows(r, r->dst->ndims - 3)) {
        /* K x N of the weights stay the last two dims: the dim of 1 in front of them goes */
        const int32_t i = r->dst->ndims - 3;
        const int64_t k = r->weights->dims[i + 1], k_stride = r->weights->strides[i + 1];
        const int64_t plain_stride = r->plain_weights->strides[i + 1];
        fold(r, i);
        r->weights->dims[i] = r->plain_weights->dims[i] = k;
        r->weights->strides[i] = k_stride;
        r->plain_weights->strides[i] = plain_stride;
    }
    for (int32_t i = r->dst->ndims - 4; i >= 0 && r->dst->ndims > 4; i--)
        if (batches_are_one(r, i)) fold(r, i);
    const bool row_major =
        qdqi_md_is_row_major(r->src) && qdqi_md_is_row_major(r->dst) && qdqi_md_is_row_major(r->weights);
    for (int32_t i = r->dst->ndims - 4; i >= 0 && !row_major; i--)
        if (has_unit(r, i)) fold(r, i);
    qdqi_md_unit_strides(r->src);
    qdqi_md_unit_strides(r->weights);
    qdqi_md_unit_strides(r->plain_weights);
    qdqi_md_unit_strides(r->dst);
    for (uint32_t k = 0; k < r->attr->n_posts; k++)
        if (is_binary(&r->attr->posts[k])) qdqi_md_unit_strides(&r->attr->posts[k].operand);
}
