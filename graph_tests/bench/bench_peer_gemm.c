#include "bench_peer_gemm.h"

#if QDQ_WITH_ONEDNN
#include "bench_peer_dnnl.h"

bench_peer *bench_peer_layer(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst,
                             float *scales, float *bias) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), w = bench_peer_desc(weights), d = bench_peer_desc(dst), any = NULL,
                       row = NULL, column = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_dims_t n = {dst->dims[1]}, one_by_n = {1, dst->dims[1]};
    (void)dnnl_primitive_attr_create(&attr);
    (void)dnnl_post_ops_create(&ops);
    if (scales) {
        (void)dnnl_primitive_attr_set_scales_mask(attr, DNNL_ARG_WEIGHTS, 2);
        (void)dnnl_memory_desc_create_with_tag(&row, 1, n, dnnl_f32, dnnl_a);
        (void)dnnl_memory_desc_create_with_tag(&column, 2, one_by_n, dnnl_f32, dnnl_ab);
        bench_peer_arg(p, DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, row, scales);
        bench_peer_arg(p, DNNL_ARG_BIAS, column, bias);
        (void)dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
        (void)dnnl_primitive_attr_set_post_ops(attr, ops);
    }
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    (void)dnnl_memory_desc_create_with_tag(&any, 2, weights->dims, (dnnl_data_type_t)weights->dtype,
                                           dnnl_format_tag_any);
    if (dnnl_matmul_primitive_desc_create(&pd, p->engine, s, any, column, d, attr) != dnnl_success ||
        !bench_peer_packed(p, pd, w, weights->data)) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    p = bench_peer_finish(p, pd);
    dnnl_post_ops_destroy(ops);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_t mds[] = {s, w, d, any, row, column};
    for (size_t i = 0; i < sizeof mds / sizeof mds[0]; i++)
        if (mds[i]) dnnl_memory_desc_destroy(mds[i]);
    return p;
}

bench_peer *bench_peer_product(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), w = bench_peer_desc(weights), d = bench_peer_desc(dst);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    (void)dnnl_primitive_attr_create(&attr);
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_WEIGHTS, w, weights->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    bench_peer_scales(p, attr, DNNL_ARG_SRC, src);
    bench_peer_scales(p, attr, DNNL_ARG_WEIGHTS, weights);
    bench_peer_scales(p, attr, DNNL_ARG_DST, dst);
    (void)dnnl_matmul_primitive_desc_create(&pd, p->engine, s, w, NULL, d, attr);
    p = bench_peer_finish(p, pd);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(w);
    dnnl_memory_desc_destroy(d);
    return p;
}
#else
bench_peer *bench_peer_layer(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst,
                             float *scales, float *bias) {
    (void)src, (void)weights, (void)dst, (void)scales, (void)bias;
    return NULL;
}
bench_peer *bench_peer_product(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst) {
    (void)src, (void)weights, (void)dst;
    return NULL;
}
#endif
