/* Running a compiled partition. Tensors are matched by position, as they were compiled; nothing is searched, allocated or
 * locked on the way unless a caller changes the order of its tensors or the constant tensor cache is on. */
#include "abi_tensor.h"

enum { MAX_PORTS = 1024 }; /* on the stack */

static const_dnnl_graph_tensor_t search(const_dnnl_graph_tensor_t *tensors, size_t n, size_t id) {
    for (size_t i = 0; i < n; i++)
        if (tensors[i] != NULL && tensors[i]->lt.id == id) return tensors[i];
    return NULL;
}

/* The buffer of each port, in libqdq's order. */
static dnnl_status_t bind(const abi_port *ports, size_t n_ports, const_dnnl_graph_tensor_t *tensors, size_t n,
                          const void **out) {
    for (size_t i = 0; i < n_ports; i++) {
        const abi_port *port = &ports[i];
        const_dnnl_graph_tensor_t t = port->at < n ? tensors[port->at] : NULL;
        if (t == NULL || t->lt.id != port->lt.id) t = search(tensors, n, port->lt.id);
        if (t == NULL) return dnnl_invalid_arguments;
        if (t->signature != port->signature && !abi_lt_fits(&t->lt, &port->lt)) return dnnl_invalid_arguments;
        if (t->data == NULL && !port->empty) return dnnl_invalid_arguments;
        out[i] = t->data;
    }
    return dnnl_success;
}

static dnnl_status_t run(const abi_code *code, const void *const *in, void *const *out) {
    dnnl_status_t status;
    if (code->special != NULL && abi_special_enabled() && abi_special_run(code, in, out, &status)) return status;
    qdq_error found, *err = abi_verbose() & ABI_VERBOSE_ERROR ? &found : NULL; /* written when something fails */
    found.text[0] = '\0';
    const qdq_status st = code->compiled != NULL
                              ? qdq_compiled_run(code->compiled, in, code->n_in, out, code->n_out, err)
                              : qdq_session_run(code->session, in, code->n_in, out, code->n_out, err);
    return st == QDQ_OK ? dnnl_success : abi_fail(abi_status(st), "execute", err);
}

static dnnl_status_t bind_and_run(const abi_code *code, size_t n_in, const_dnnl_graph_tensor_t *in, size_t n_out,
                                  const_dnnl_graph_tensor_t *out, const void **bufs) {
    dnnl_status_t status = bind(code->in, code->n_in, in, n_in, bufs);
    if (status == dnnl_success) status = bind(code->out, code->n_out, out, n_out, bufs + code->n_in);
    return status == dnnl_success ? run(code, bufs, (void *const *)(bufs + code->n_in)) : status;
}

dnnl_status_t dnnl_graph_compiled_partition_execute(const_dnnl_graph_compiled_partition_t compiled_partition,
                                                    dnnl_stream_t stream, size_t num_inputs,
                                                    const_dnnl_graph_tensor_t *inputs, size_t num_outputs,
                                                    const_dnnl_graph_tensor_t *outputs) {
    if (compiled_partition == NULL || compiled_partition->code == NULL || stream == NULL) return dnnl_invalid_arguments;
    if ((num_inputs > 0 && inputs == NULL) || (num_outputs > 0 && outputs == NULL)) return dnnl_invalid_arguments;
    const abi_code *code = compiled_partition->code;
    const void *few[MAX_PORTS], **bufs = few;
    if (code->n_in + code->n_out > MAX_PORTS) bufs = abi_calloc(code->n_in + code->n_out, sizeof *bufs);
    if (bufs == NULL) return dnnl_out_of_memory;
    const bool timed = (abi_verbose() & ABI_VERBOSE_EXEC) != 0;
    const double start = timed ? abi_now_ms() : 0;
    const dnnl_status_t status = bind_and_run(code, num_inputs, inputs, num_outputs, outputs, bufs);
    if (timed && status == dnnl_success) abi_verbose_print("exec", compiled_partition, abi_now_ms() - start);
    if (bufs != few) free(bufs);
    return status;
}
