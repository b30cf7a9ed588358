#include "bench_peer_conv.h"

#if QDQ_WITH_ONEDNN
#include "bench_peer_dnnl.h"

bench_peer *bench_peer_conv(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *bias,
                            const bench_tensor *dst, const bench_window *window) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), w = bench_peer_desc(weights), b = bench_peer_desc(bias),
                       d = bench_peer_desc(dst), any = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t posts = NULL;
    dnnl_primitive_desc_t pd = NULL;
    (void)dnnl_primitive_attr_create(&attr);
    (void)dnnl_post_ops_create(&posts);
    (void)dnnl_post_ops_append_eltwise(posts, dnnl_eltwise_relu, 0.0f, 0.0f);
    (void)dnnl_primitive_attr_set_post_ops(attr, posts);
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_BIAS, b, bias->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    bench_peer_scales(p, attr, DNNL_ARG_SRC, src);
    bench_peer_scales(p, attr, DNNL_ARG_WEIGHTS, weights);
    (void)dnnl_memory_desc_create_with_tag(&any, weights->ndims, weights->dims, (dnnl_data_type_t)weights->dtype,
                                           dnnl_format_tag_any);
    const bench_tensor *few = window->transposed ? src : dst, *many = window->transposed ? dst : src;
    dnnl_dims_t dilations, ends;
    const dnnl_dims_t strides = {window->stride[0], window->stride[1]}, pads = {window->pad[0], window->pad[1]};
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (weights->dims[weights->ndims - 2 + i] - 1) * window->dilation[i] + 1;
        dilations[i] = window->dilation[i] - 1;
        ends[i] = (few->dims[2 + i] - 1) * window->stride[i] + reach - many->dims[2 + i] - window->pad[i];
    }
    const dnnl_status_t made =
        window->transposed ? dnnl_deconvolution_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference,
                                                                              dnnl_deconvolution_direct, s, any, b, d,
                                                                              strides, dilations, pads, ends, attr)
                           : dnnl_convolution_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference,
                                                                            dnnl_convolution_direct, s, any, b, d,
                                                                            strides, dilations, pads, ends, attr);
    if (made != dnnl_success || !bench_peer_packed(p, pd, w, weights->data)) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    p = bench_peer_finish(p, pd);
    dnnl_primitive_attr_destroy(attr);
    dnnl_post_ops_destroy(posts);
    dnnl_memory_desc_destroy(any);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(w);
    dnnl_memory_desc_destroy(b);
    dnnl_memory_desc_destroy(d);
    return p;
}

#else

bench_peer *bench_peer_conv(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *bias,
                            const bench_tensor *dst, const bench_window *window) {
    (void)src, (void)weights, (void)bias, (void)dst, (void)window;
    return NULL;
}

#endif
