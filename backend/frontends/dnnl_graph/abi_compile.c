/* Compiling a partition, and what can be asked of the result. */
#include "abi.h"

#include <string.h>

void abi_code_retain(abi_code *code) {
    atomic_fetch_add_explicit(&code->refs, 1, memory_order_relaxed);
}

void abi_code_release(abi_code *code) {
    if (code == NULL || atomic_fetch_sub_explicit(&code->refs, 1, memory_order_acq_rel) > 1) return;
    abi_special_destroy(code->special);
    qdq_compiled_destroy(&code->compiled);
    qdq_session_destroy(&code->session);
    abi_partition_release(code->partition);
    free(code->in);
    free(code->out);
    free(code->pairs);
    free(code->line);
    free(code);
}

/* ---- the key under which code is cached ------------------------------------------------------------------------- */

static void key_number(abi_text *key, uint64_t n) {
    abi_text_bytes(key, &n, sizeof n);
}

static void key_lt(abi_text *key, const abi_lt *lt) {
    const int n = lt->ndims < 0 || lt->ndims > DNNL_MAX_NDIMS ? 0 : lt->ndims;
    key_number(key, lt->id);
    key_number(key, (uint64_t)lt->data_type << 32 | (uint64_t)lt->property << 16 | (uint64_t)lt->layout_type);
    key_number(key, (uint64_t)(unsigned)lt->ndims);
    abi_text_bytes(key, lt->dims, (size_t)n * sizeof lt->dims[0]);
    if (lt->layout_type == dnnl_graph_layout_type_strided)
        abi_text_bytes(key, lt->layout.strides, (size_t)n * sizeof lt->layout.strides[0]);
}

static void key_attr(abi_text *key, const abi_attr *a) {
    key_number(key, (uint64_t)a->attr);
    switch (abi_attr_type(a->attr)) {
    case 'f': abi_text_bytes(key, &a->v.f32, sizeof a->v.f32); break;
    case 'i': key_number(key, (uint64_t)a->v.s64); break;
    case 'b': key_number(key, a->v.flag); break;
    case 's': abi_text_bytes(key, a->v.text, strlen(a->v.text) + 1); break;
    default: /* lists */
        key_number(key, a->n);
        if (abi_attr_type(a->attr) == 'F')
            abi_text_bytes(key, a->v.f32s, a->n * sizeof a->v.f32s[0]);
        else
            abi_text_bytes(key, a->v.s64s, a->n * sizeof a->v.s64s[0]);
    }
}

static void key_op(abi_text *key, const abi_op *op) {
    key_number(key, op->id);
    key_number(key, (uint64_t)op->kind);
    key_number(key, op->n_in << 32 | op->n_out);
    key_number(key, op->n_attrs);
    for (size_t i = 0; i < op->n_in; i++)
        key_lt(key, &op->in[i]);
    for (size_t i = 0; i < op->n_out; i++)
        key_lt(key, &op->out[i]);
    for (size_t i = 0; i < op->n_attrs; i++)
        key_attr(key, &op->attrs[i]);
}

typedef struct request {
    dnnl_graph_partition_t p;
    const abi_lt **in, **out;
    size_t n_in, n_out;
    qdq_engine *engine;
} request;

static void make_key(const request *r, abi_text *key) {
    key_number(key, (uint64_t)(uintptr_t)r->engine);
    key_number(key, r->p->n_ops);
    key_number(key, r->n_in);
    key_number(key, r->n_out);
    for (size_t i = 0; i < r->p->n_ops; i++)
        key_op(key, r->p->ops[i]);
    for (size_t i = 0; i < r->n_in; i++)
        key_lt(key, r->in[i]);
    for (size_t i = 0; i < r->n_out; i++)
        key_lt(key, r->out[i]);
}

/* ---- making code ------------------------------------------------------------------------------------------------ */

static uint32_t find(const abi_lt **list, size_t n, uint64_t id) {
    for (size_t i = 0; i < n; i++)
        if (list[i]->id == id) return (uint32_t)i;
    return ABI_NONE;
}

/* A port, found in the caller's list. Others in the list are ignored. */
static dnnl_status_t take_port(const request *r, bool output, uint64_t id, qdq_dtype dtype, abi_port *port,
                               qdq_tensor_desc *desc) {
    const abi_lt **list = output ? r->out : r->in;
    port->at = find(list, output ? r->n_out : r->n_in, id);
    if (port->at == ABI_NONE) return dnnl_invalid_arguments;
    port->lt = *list[port->at];
    if (dtype != QDQ_DTYPE_UNDEF && (qdq_dtype)port->lt.data_type != dtype) return dnnl_invalid_arguments;
    port->constant = !output && port->lt.property == dnnl_graph_tensor_property_constant;
    return abi_lt_port(&port->lt, output, desc);
}

/* The ports of libqdq's partition in its order. */
static dnnl_status_t take_ports(const request *r, bool output, abi_port *ports, size_t n, qdq_tensor_desc *descs) {
    for (size_t i = 0; i < n; i++) {
        qdq_tensor_desc port;
        const qdq_status st =
            output ? qdq_partition_output(r->p->p, i, &port, NULL) : qdq_partition_input(r->p->p, i, &port, NULL);
        if (st != QDQ_OK) return abi_status(st);
        const dnnl_status_t status = take_port(r, output, port.id, port.dtype, &ports[i], &descs[i]);
        if (status != dnnl_success) return status;
    }
    return dnnl_success;
}

/* The ports of a group: each tensor once. */
static dnnl_status_t take_group_ports(const request *r, abi_code *code, qdq_tensor_desc *descs) {
    const struct dnnl_graph_partition *p = r->p;
    abi_map seen = {0};
    dnnl_status_t status = dnnl_success;
    code->n_in = 0;
    for (size_t i = 0; status == dnnl_success && i < p->n_in; i++) {
        if (abi_map_get(&seen, p->in[i].id) != ABI_NONE) continue;
        if (!abi_map_put(&seen, p->in[i].id, 0)) status = dnnl_out_of_memory;
        const size_t k = code->n_in++;
        if (status == dnnl_success)
            status = take_port(r, false, p->in[i].id, (qdq_dtype)p->in[i].data_type, &code->in[k], &descs[k]);
    }
    for (size_t i = 0; status == dnnl_success && i < p->n_out; i++)
        status =
            take_port(r, true, p->out[i].id, (qdq_dtype)p->out[i].data_type, &code->out[i], &descs[code->n_in + i]);
    abi_map_free(&seen);
    return status;
}

static qdq_status resolved(const abi_code *code, bool output, size_t i, qdq_tensor_desc *desc) {
    if (code->compiled != NULL)
        return qdq_compiled_desc(code->compiled, output ? code->out[i].lt.id : code->in[i].lt.id, desc, NULL);
    return output ? qdq_session_output_desc(code->session, i, desc, NULL, NULL)
                  : qdq_session_input_desc(code->session, i, desc, NULL, NULL);
}

static dnnl_status_t resolve(const abi_code *code, bool output) {
    abi_port *ports = output ? code->out : code->in;
    for (size_t i = 0; i < (output ? code->n_out : code->n_in); i++) {
        qdq_tensor_desc desc;
        size_t bytes;
        qdq_status st = resolved(code, output, i, &desc);
        if (st == QDQ_OK) st = qdq_tensor_desc_size_bytes(&desc, &bytes, NULL);
        if (st != QDQ_OK) return abi_status(st);
        abi_lt_resolve(&ports[i].lt, &desc);
        ports[i].signature = abi_lt_signature(&ports[i].lt);
        ports[i].empty = bytes == 0;
    }
    return dnnl_success;
}

static dnnl_status_t take_pairs(abi_code *code) {
    size_t n = 0;
    const qdq_inplace_pair *pairs = NULL;
    if (code->compiled == NULL) return dnnl_success;
    const qdq_status st = qdq_compiled_inplace_pairs(code->compiled, &n, &pairs, NULL);
    if (st != QDQ_OK || n == 0) return abi_status(st);
    code->pairs = abi_calloc(n, sizeof *code->pairs);
    if (code->pairs == NULL) return dnnl_out_of_memory;
    for (size_t i = 0; i < n; i++)
        code->pairs[i] = (dnnl_graph_inplace_pair_t){pairs[i].input_id, pairs[i].output_id};
    code->n_pairs = n;
    return dnnl_success;
}

static dnnl_status_t compile(const request *r, abi_code *code, qdq_tensor_desc *descs, qdq_error *err) {
    const bool one = r->p->p != NULL;
    dnnl_status_t status = one ? take_ports(r, false, code->in, code->n_in, descs) : take_group_ports(r, code, descs);
    if (one && status == dnnl_success) status = take_ports(r, true, code->out, code->n_out, descs + code->n_in);
    if (status != dnnl_success) return status;
    const qdq_status st = one ? qdq_partition_compile(r->p->p, r->engine, descs, code->n_in, descs + code->n_in,
                                                      code->n_out, &code->compiled, err)
                              : abi_session_create(code, descs, NULL, &code->session, err);
    if (st != QDQ_OK) return abi_status(st);
    status = resolve(code, false);
    if (status == dnnl_success) status = resolve(code, true);
    return status == dnnl_success ? take_pairs(code) : status;
}

static dnnl_status_t finish(abi_code *code) {
    bool constant = false;
    for (size_t i = 0; i < code->n_in; i++)
        constant |= code->in[i].constant && !code->in[i].empty;
    if (constant && (code->special = abi_special_create(code)) == NULL) return dnnl_out_of_memory;
    if ((abi_verbose() & (ABI_VERBOSE_EXEC | ABI_VERBOSE_CREATE)) == 0) return dnnl_success;
    code->line = abi_verbose_line(code);
    return code->line == NULL ? dnnl_out_of_memory : dnnl_success;
}

static dnnl_status_t make(const request *r, abi_code **out, qdq_error *err) {
    abi_code *code = abi_calloc(1, sizeof *code);
    if (code == NULL) return dnnl_out_of_memory;
    atomic_init(&code->refs, 1);
    abi_partition_retain(r->p);
    code->partition = r->p;
    code->engine = r->engine;
    code->n_in = r->p->p != NULL ? qdq_partition_n_inputs(r->p->p) : r->p->n_in;
    code->n_out = r->p->n_out;
    code->in = abi_calloc(code->n_in, sizeof *code->in);
    code->out = abi_calloc(code->n_out, sizeof *code->out);
    qdq_tensor_desc *descs = abi_calloc(code->n_in + code->n_out, sizeof *descs);
    dnnl_status_t status = dnnl_out_of_memory;
    if (code->in != NULL && code->out != NULL && descs != NULL) status = compile(r, code, descs, err);
    if (status == dnnl_success) status = finish(code);
    free(descs);
    if (status != dnnl_success) {
        abi_code_release(code);
        return status;
    }
    *out = code;
    return dnnl_success;
}

static dnnl_status_t get(const request *r, abi_code **out, bool *hit_out, qdq_error *err) {
    abi_text key = {0};
    make_key(r, &key);
    if (key.failed) {
        abi_text_free(&key);
        return dnnl_out_of_memory;
    }
    dnnl_status_t status = dnnl_success;
    *out = abi_code_cache_get(key.s, key.n);
    *hit_out = *out != NULL;
    if (*out == NULL) status = make(r, out, err);
    if (status == dnnl_success && !*hit_out) *out = abi_code_cache_put(key.s, key.n, *out);
    abi_text_free(&key);
    return status;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

static bool all_legal(const abi_lt **list, size_t n) {
    if (n > 0 && list == NULL) return false;
    for (size_t i = 0; i < n; i++)
        if (list[i] == NULL || !abi_lt_legal(list[i])) return false;
    return true;
}

dnnl_status_t dnnl_graph_partition_compile(dnnl_graph_partition_t partition,
                                           dnnl_graph_compiled_partition_t compiled_partition, size_t in_num,
                                           const dnnl_graph_logical_tensor_t **inputs, size_t out_num,
                                           const dnnl_graph_logical_tensor_t **outputs, dnnl_engine_t engine) {
    dnnl_engine_kind_t kind;
    if (partition == NULL || compiled_partition == NULL || engine == NULL) return dnnl_invalid_arguments;
    if (!all_legal(inputs, in_num) || !all_legal(outputs, out_num)) return dnnl_invalid_arguments;
    if (!partition->supported || dnnl_engine_get_kind(engine, &kind) != dnnl_success ||
        kind != partition->list->core->kind)
        return dnnl_invalid_arguments;
    const double start = abi_verbose() & ABI_VERBOSE_CREATE ? abi_now_ms() : 0;
    const request r = {.p = partition,
                       .in = inputs,
                       .out = outputs,
                       .n_in = in_num,
                       .n_out = out_num,
                       .engine = abi_engine_qdq(abi_engine_of(engine))};
    if (r.engine == NULL) return dnnl_out_of_memory;
    qdq_error err = {0};
    abi_code *code = NULL;
    bool hit = false;
    const dnnl_status_t status = get(&r, &code, &hit, &err);
    if (status != dnnl_success) return abi_fail(status, "compile", &err);
    abi_partition_retain(partition);
    abi_partition_release(compiled_partition->partition);
    abi_code_release(compiled_partition->code);
    compiled_partition->partition = partition;
    compiled_partition->code = code;
    compiled_partition->engine = engine;
    if (!hit) abi_dump_code(code);
    if (abi_verbose() & ABI_VERBOSE_CREATE)
        abi_verbose_print(hit ? "compile:compiled_partition_cache_hit" : "compile:cache_miss", compiled_partition,
                          abi_now_ms() - start);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_compiled_partition_create(dnnl_graph_compiled_partition_t *compiled_partition,
                                                   dnnl_graph_partition_t partition) {
    if (compiled_partition == NULL || partition == NULL) return dnnl_invalid_arguments;
    dnnl_graph_compiled_partition_t cp = abi_calloc(1, sizeof *cp);
    if (cp == NULL) return dnnl_out_of_memory;
    abi_partition_retain(partition);
    cp->partition = partition;
    *compiled_partition = cp;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_compiled_partition_destroy(dnnl_graph_compiled_partition_t compiled_partition) {
    if (compiled_partition != NULL) {
        abi_code_release(compiled_partition->code);
        abi_partition_release(compiled_partition->partition);
    }
    free(compiled_partition);
    return dnnl_success;
}

dnnl_status_t
dnnl_graph_compiled_partition_query_logical_tensor(const_dnnl_graph_compiled_partition_t compiled_partition, size_t tid,
                                                   dnnl_graph_logical_tensor_t *lt) {
    if (compiled_partition == NULL || lt == NULL) return dnnl_invalid_arguments;
    const abi_code *code = compiled_partition->code;
    if (code == NULL) return dnnl_invalid_arguments;
    for (size_t i = 0; i < code->n_out + code->n_in; i++) {
        const abi_port *port = i < code->n_out ? &code->out[i] : &code->in[i - code->n_out];
        if (port->lt.id != tid) continue;
        *lt = port->lt;
        return dnnl_success;
    }
    return dnnl_invalid_arguments;
}

dnnl_status_t dnnl_graph_compiled_partition_get_inplace_ports(const_dnnl_graph_compiled_partition_t compiled_partition,
                                                              size_t *num_inplace_pairs,
                                                              const dnnl_graph_inplace_pair_t **inplace_pairs) {
    if (compiled_partition == NULL || num_inplace_pairs == NULL || inplace_pairs == NULL) return dnnl_invalid_arguments;
    const abi_code *code = compiled_partition->code;
    *num_inplace_pairs = code == NULL ? 0 : code->n_pairs;
    *inplace_pairs = code == NULL ? NULL : code->pairs;
    return dnnl_success;
}
