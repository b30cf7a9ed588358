/* What can be asked of any primitive; compiled with and without oneDNN. */
#include "onednn/prim.h"

#include <stdio.h>
#include <string.h>

void qdqi_dnnl_prim_destroy(qdqi_dnnl_prim *prim) {
    if (prim != NULL) prim->ops->destroy(prim);
}
const char *qdqi_dnnl_prim_impl(const qdqi_dnnl_prim *prim) {
    return prim->impl;
}
bool qdqi_dnnl_prim_is_ref(const qdqi_dnnl_prim *prim) {
    return prim->is_ref;
}
bool qdqi_dnnl_prim_is_native(const qdqi_dnnl_prim *prim) {
    return prim->is_native;
}
void qdqi_dnnl_prim_remark(qdqi_dnnl_prim *prim, const char *remark) {
    const size_t n = strlen(prim->note);
    snprintf(prim->note + n, sizeof prim->note - n, " (%s)", remark);
}
uint32_t qdqi_dnnl_prim_n_args(const qdqi_dnnl_prim *prim) {
    return prim->ops->n_args(prim);
}
qdqi_dnnl_arg qdqi_dnnl_prim_arg(const qdqi_dnnl_prim *prim, uint32_t i) {
    return prim->ops->arg(prim, i);
}
size_t qdqi_dnnl_prim_arg_bytes(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg) {
    return prim->ops->arg_bytes(prim, arg);
}
bool qdqi_dnnl_prim_arg_strides(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, int64_t *strides_out) {
    return prim->ops->arg_strides(prim, arg, strides_out);
}
bool qdqi_dnnl_prim_arg_is(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided) {
    return prim->ops->arg_is(prim, arg, strided);
}
const void *qdqi_dnnl_prim_arg_key(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, size_t *bytes_out) {
    return prim->ops->arg_key(prim, arg, bytes_out);
}
qdq_status qdqi_dnnl_pack(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src, const void *src_data,
                          void *dst, qdq_error *err) {
    return prim->ops->pack(prim, arg, src, src_data, dst, err);
}
qdq_status qdqi_dnnl_reorder_for(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided,
                                 bool to_prim, qdqi_dnnl_prim **out, qdq_error *err) {
    return prim->ops->reorder_for(prim, arg, strided, to_prim, out, err);
}
qdq_status qdqi_dnnl_step(qdqi_plan *plan, qdqi_dnnl_prim *prim, const qdqi_buf *bufs, uint32_t n_bufs, uint32_t part,
                          qdq_error *err) {
    return prim->ops->step(plan, prim, bufs, n_bufs, part, err);
}
