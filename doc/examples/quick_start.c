#include <qdq/qdq.h>
#include <stdio.h>

int main(int argc, char **argv) {
    qdq_error err = {0};
    qdq_graph *graph = NULL;
    qdq_engine *engine = NULL;
    qdq_session *session = NULL;
    float image[8][8] = {0}, logits[10] = {0};
    const void *in[] = {image};
    void *out[] = {logits};
    for (int y = 0; y < 8; y++)
        image[y][3] = image[y][4] = 1.0f; /* a one, drawn with a broad pen */
    const bool ok =
        argc == 2 && qdq_onnx_load_file(argv[1], NULL, &graph, &err) == QDQ_OK &&
        qdq_engine_create(NULL, &engine, &err) == QDQ_OK &&
        qdq_session_create(graph, engine, NULL, &session, &err) == QDQ_OK && /* fuse, compile, plan memory */
        qdq_session_run(session, in, 1, out, 1, &err) == QDQ_OK;             /* as often as you like, from any thread */
    for (int digit = 0; ok && digit < 10; digit++)
        printf("%d %8.3f\n", digit, logits[digit]);
    if (!ok) fprintf(stderr, "%s: %s\n", qdq_status_name(err.status), err.text);
    qdq_session_destroy(&session);
    qdq_engine_destroy(&engine);
    qdq_graph_destroy(&graph);
    return ok ? 0 : 1;
}
