/* A host that knows nothing of libqdq when it is linked: it opens the library, asks for the table of functions, and runs a
 * model through it.
 *
 *     load_at_runtime libqdq.so.0 MODEL.onnx
 *
 * Only the header is needed to compile this. */
#include <dlfcn.h>
#include <qdq/qdq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* dlsym answers with an object pointer, which C does not convert to a function. */
static const qdq_api *open_table(const char *library) {
    const qdq_api *(*get_api)(uint32_t) = NULL;
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *at = lib != NULL ? dlsym(lib, "qdq_get_api") : NULL;
    if (at == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    memcpy(&get_api, &at, sizeof at);
    const qdq_api *q = get_api(QDQ_API_VERSION);
    /* a library older than our header has a shorter table: look before using what was appended */
    if (q != NULL && q->n_bytes >= sizeof *q) return q;
    fprintf(stderr, "%s is too old for this program\n", library);
    return NULL;
}

/* Room for every port, zeroed. NULL with the error set. */
static void **make_buffers(const qdq_api *q, const qdq_session *s, size_t n, bool outputs, qdq_error *err) {
    void **data = calloc(n + 1, sizeof *data);
    for (size_t i = 0; data != NULL && i < n; i++) {
        qdq_tensor_desc desc;
        const char *name;
        size_t bytes;
        if ((outputs ? q->session_output_desc : q->session_input_desc)(s, i, &desc, &name, err) != QDQ_OK ||
            q->tensor_desc_size_bytes(&desc, &bytes, err) != QDQ_OK)
            return NULL; /* the program ends: what is allocated goes with it */
        data[i] = calloc(bytes + 1, 1);
        printf("%s %-12s %s, %zu bytes\n", outputs ? "out" : "in ", name, q->dtype_name(desc.dtype), bytes);
    }
    return data;
}

int main(int argc, char **argv) {
    qdq_error err = {0};
    qdq_graph *graph = NULL;
    qdq_engine *engine = NULL;
    qdq_session *session = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: load_at_runtime LIBQDQ MODEL.onnx\n");
        return 2;
    }
    const qdq_api *q = open_table(argv[1]);
    if (q == NULL) return 1;
    bool ok = q->onnx_load_file(argv[2], NULL, &graph, &err) == QDQ_OK &&
              q->engine_create(NULL, &engine, &err) == QDQ_OK &&
              q->session_create(graph, engine, NULL, &session, &err) == QDQ_OK;
    if (ok) {
        const size_t n_in = q->session_n_inputs(session), n_out = q->session_n_outputs(session);
        void **in = make_buffers(q, session, n_in, false, &err), **out = make_buffers(q, session, n_out, true, &err);
        ok = in != NULL && out != NULL &&
             q->session_run(session, (const void *const *)in, n_in, out, n_out, &err) == QDQ_OK;
        for (size_t i = 0; in != NULL && i < n_in; i++)
            free(in[i]);
        for (size_t i = 0; out != NULL && i < n_out; i++)
            free(out[i]);
        free(in);
        free(out);
    }
    if (ok)
        printf("libqdq %s ran it in %zu partitions\n", q->version(), q->session_n_parts(session));
    else
        fprintf(stderr, "%s: %s\n", q->status_name(err.status), err.text);
    q->session_destroy(&session);
    q->engine_destroy(&engine);
    q->graph_destroy(&graph);
    return ok ? 0 : 1;
}
