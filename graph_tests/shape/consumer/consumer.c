/* A stranger's use of an installed libqdq: a one-op graph, built, compiled and run. */
#include <qdq/qdq.h>

#include <stdio.h>

static qdq_status run(float *out, qdq_error *err) {
    const int64_t dims[] = {2, 3};
    const float in[6] = {-3, -2, -1, 0, 1, 2};
    const void *inputs[] = {in};
    void *outputs[] = {out};
    qdq_tensor_desc src, dst;
    qdq_op *op = NULL;
    qdq_graph *graph = NULL;
    qdq_engine *engine = NULL;
    qdq_session *session = NULL;
    qdq_status status =
        qdq_tensor_desc_init(1, QDQ_DTYPE_F32, 2, dims, QDQ_LAYOUT_STRIDED, QDQ_PROPERTY_VARIABLE, &src, err);
    if (!status)
        status = qdq_tensor_desc_init(2, QDQ_DTYPE_F32, 2, dims, QDQ_LAYOUT_STRIDED, QDQ_PROPERTY_VARIABLE, &dst, err);
    if (!status) status = qdq_op_create(0, "ReLU", "relu", &op, err);
    if (!status) status = qdq_op_add_input(op, &src, err);
    if (!status) status = qdq_op_add_output(op, &dst, err);
    if (!status) status = qdq_graph_create(&graph, err);
    if (!status) status = qdq_graph_add_op(graph, op, err);
    if (!status) status = qdq_graph_finalize(graph, err);
    if (!status) status = qdq_engine_create(NULL, &engine, err);
    if (!status) status = qdq_session_create(graph, engine, NULL, &session, err);
    if (!status) status = qdq_session_run(session, inputs, 1, outputs, 1, err);
    qdq_session_destroy(&session);
    qdq_engine_destroy(&engine);
    qdq_graph_destroy(&graph);
    qdq_op_destroy(&op);
    return status;
}

int main(void) {
    qdq_error err = {0};
    float out[6] = {9, 9, 9, 9, 9, 9};
    if (run(out, &err) != QDQ_OK) {
        printf("%s: %s\n", qdq_status_name(err.status), err.text);
        return 1;
    }
    printf("libqdq %s: ReLU gives", qdq_version());
    for (int i = 0; i < 6; i++)
        printf(" %g", (double)out[i]);
    printf("\n");
    return out[0] == 0 && out[2] == 0 && out[4] == 1 && out[5] == 2 ? 0 : 1;
}
