/* One reference function per row of ir/ops.def (several rows may share one), plus one for all elementwise unary ops. */
#ifndef QDQI_REF_FNS_H
#define QDQI_REF_FNS_H

#include "ref/ref_io.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QDQI_OP(id, name, origin, min_in, max_in, min_out, max_out, dtypes, shape, check, fn, ...)                     \
    qdq_status qdqi_ref_##fn(qdqi_ref_ctx *c);
#include "ir/ops.def"
#undef QDQI_OP
qdq_status qdqi_ref_unary(qdqi_ref_ctx *c);
/* A host's own op. */
qdq_status qdqi_ref_custom(qdqi_ref_ctx *c);

#ifdef __cplusplus
}
#endif
#endif
