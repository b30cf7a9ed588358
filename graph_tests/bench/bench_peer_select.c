#include "bench_peer_select.h"

#include <stddef.h>

#if QDQ_WITH_ONEDNN
#include "bench_peer_dnnl.h"

enum { MAX_TENSORS = 4 };

/* Descriptors and arguments of n tensors, the destination last. */
static bench_peer *start(const bench_tensor *const *tensors, const int *args, int n, dnnl_memory_desc_t *descs) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    for (int i = 0; i < n; i++) {
        descs[i] = bench_peer_desc(tensors[i]);
        bench_peer_arg(p, args[i], descs[i], tensors[i]->data);
    }
    return p;
}

static bench_peer *finish(bench_peer *p, dnnl_primitive_desc_t pd, dnnl_memory_desc_t *descs, int n) {
    p = bench_peer_finish(p, pd);
    for (int i = 0; i < n; i++)
        dnnl_memory_desc_destroy(descs[i]);
    return p;
}

bench_peer *bench_peer_select(const bench_tensor *cond, const bench_tensor *x, const bench_tensor *y,
                              const bench_tensor *dst) {
    const bench_tensor *tensors[] = {x, y, cond, dst};
    const int args[] = {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_SRC_2, DNNL_ARG_DST};
    dnnl_memory_desc_t d[MAX_TENSORS];
    dnnl_primitive_desc_t pd = NULL;
    bench_peer *p = start(tensors, args, 4, d);
    if (!p) return NULL;
    (void)dnnl_binary_primitive_desc_create_v2(&pd, p->engine, dnnl_binary_select, d[0], d[1], d[2], d[3], NULL);
    return finish(p, pd, d, 4);
}

bench_peer *bench_peer_compare(const bench_tensor *x, const bench_tensor *y, const bench_tensor *dst) {
    const bench_tensor *tensors[] = {x, y, dst};
    const int args[] = {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_DST};
    dnnl_memory_desc_t d[MAX_TENSORS];
    dnnl_primitive_desc_t pd = NULL;
    bench_peer *p = start(tensors, args, 3, d);
    if (!p) return NULL;
    (void)dnnl_binary_primitive_desc_create(&pd, p->engine, dnnl_binary_ge, d[0], d[1], d[2], NULL);
    return finish(p, pd, d, 3);
}

bench_peer *bench_peer_prelu(const bench_tensor *x, const bench_tensor *slope, const bench_tensor *dst) {
    const bench_tensor *tensors[] = {x, slope, dst};
    const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    dnnl_memory_desc_t d[MAX_TENSORS];
    dnnl_primitive_desc_t pd = NULL;
    bench_peer *p = start(tensors, args, 3, d);
    if (!p) return NULL;
    (void)dnnl_prelu_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference, d[0], d[1], d[2], NULL);
    return finish(p, pd, d, 3);
}

#else

bench_peer *bench_peer_select(const bench_tensor *cond, const bench_tensor *x, const bench_tensor *y,
                              const bench_tensor *dst) {
    (void)cond, (void)x, (void)y, (void)dst;
    return NULL;
}
bench_peer *bench_peer_compare(const bench_tensor *x, const bench_tensor *y, const bench_tensor *dst) {
    (void)x, (void)y, (void)dst;
    return NULL;
}
bench_peer *bench_peer_prelu(const bench_tensor *x, const bench_tensor *slope, const bench_tensor *dst) {
    (void)x, (void)slope, (void)dst;
    return NULL;
}

#endif
