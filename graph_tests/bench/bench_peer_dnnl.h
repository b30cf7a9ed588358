/* What a peer is made of, for the files that make more of them (bench_peer_<family>.c, under #if QDQ_WITH_ONEDNN):
 *
 *     bench_peer *p = bench_peer_start();  ... descriptors, bench_peer_arg for each ...  return bench_peer_finish(p, pd);  */
#ifndef BENCH_PEER_DNNL_H
#define BENCH_PEER_DNNL_H

#include "bench_peer.h"

#include "dnnl.h"

enum { BENCH_PEER_MAX_ARGS = 16 };

struct bench_peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[BENCH_PEER_MAX_ARGS]; /* the memory objects are the peer's */
    float scales[BENCH_PEER_MAX_ARGS];
    int32_t zps[BENCH_PEER_MAX_ARGS];
    char name[160];
    int n_args;
    int n_consts;
    bench_peer *first[2]; /* what runs before it, or NULL */
};

/* NULL when there is no engine. */
bench_peer *bench_peer_start(void);
void bench_peer_arg(bench_peer *p, int arg, const_dnnl_memory_desc_t md, void *data);
/* To be destroyed by the caller. */
dnnl_memory_desc_t bench_peer_desc(const bench_tensor *t);
/* The tensor's scale and zero point as attributes and arguments. */
void bench_peer_scales(bench_peer *p, dnnl_primitive_attr_t attr, int arg, const bench_tensor *t);
/* Packs `data`, which has the layout `plain`, into what pd wants for its weights, and adds that as an argument. */
bool bench_peer_packed(bench_peer *p, dnnl_primitive_desc_t pd, const_dnnl_memory_desc_t plain, void *data);
/* The primitive, from a descriptor that may be NULL; takes both over. NULL when oneDNN refuses. */
bench_peer *bench_peer_finish(bench_peer *p, dnnl_primitive_desc_t pd);

#endif
