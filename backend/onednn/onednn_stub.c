/* The facade of a build without oneDNN: it answers every request with QDQ_E_NO_ONEDNN, so that no primitive ever exists. */
#include "onednn/onednn.h"

bool qdqi_dnnl_available(void) {
    return false;
}
bool qdqi_dnnl_jit_off(void) {
    return false;
}
const char *qdqi_dnnl_version(void) {
    return "none";
}
bool qdqi_dnnl_int8_exact(void) {
    return false;
}
bool qdqi_dnnl_has_dtype(qdq_dtype dtype) {
    (void)dtype;
    return false;
}

qdq_status qdqi_dnnl_create(const qdqi_request *request, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)request, (void)out;
    return qdqi_fail(err, QDQ_E_NO_ONEDNN, "this build has no oneDNN");
}
