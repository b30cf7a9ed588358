#include "bench_peer_quant.h"

#if QDQ_WITH_ONEDNN
#include "bench_peer_dnnl.h"

/* The numbers go nowhere. */
static float extremes[2];

static bench_peer *extreme(const bench_tensor *src, dnnl_alg_kind_t kind, float *result) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    bench_tensor one = {.data = result, .dtype = QDQ_DTYPE_F32, .ndims = src->ndims};
    for (int32_t d = 0; d < src->ndims; d++)
        one.dims[d] = one.strides[d] = 1;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(&one);
    dnnl_primitive_desc_t pd = NULL;
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, result);
    (void)dnnl_reduction_primitive_desc_create(&pd, p->engine, kind, s, d, 0.0f, 0.0f, NULL);
    p = bench_peer_finish(p, pd);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    return p;
}

bench_peer *bench_peer_dynamic_quantize(const bench_tensor *src, const bench_tensor *dst) {
    bench_peer *p = bench_peer_reorder(src, dst);
    if (!p) return NULL;
    p->first[0] = extreme(src, dnnl_reduction_max, &extremes[0]);
    p->first[1] = extreme(src, dnnl_reduction_min, &extremes[1]);
    if (!p->first[0] || !p->first[1]) bench_peer_destroy(&p);
    return p;
}

#else

#include <stddef.h>

bench_peer *bench_peer_dynamic_quantize(const bench_tensor *src, const bench_tensor *dst) {
    (void)src, (void)dst;
    return NULL;
}

#endif
