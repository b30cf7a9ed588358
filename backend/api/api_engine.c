#include "runtime/engine.h"

qdq_status qdq_engine_create(const qdq_engine_options *options, qdq_engine **engine_out, qdq_error *err) {
    QDQI_NOT_NULL(err, engine_out);
    return qdqi_engine_create(options, engine_out, err);
}

void qdq_engine_destroy(qdq_engine **engine) {
    if (engine == NULL) return;
    qdqi_engine_release(*engine);
    *engine = NULL;
}

qdq_status qdq_engine_cache_stats(const qdq_engine *engine, qdq_cache_stats *stats_out, qdq_error *err) {
    QDQI_NOT_NULL(err, engine);
    QDQI_NOT_NULL(err, stats_out);
    qdqi_const_stats(engine, stats_out);
    return QDQ_OK;
}
