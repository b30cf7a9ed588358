// A net's graph, fused: partitions one by one, or a session.
#include "fusion/net.h"

#include <algorithm>
#include <cstring>

namespace qdq_test {

namespace {

struct Buffer {
    std::vector<uint64_t> words; // aligned
    qdq_tensor tensor = {};
};

int64_t Offset(const qdq_tensor_desc &d, int64_t i) {
    int64_t offset = 0;
    for (int32_t k = d.ndims - 1; k >= 0; k--) {
        offset += (i % d.dims[k]) * d.strides[k];
        i /= d.dims[k];
    }
    return offset;
}

bool Allocate(const qdq_tensor_desc &desc, Buffer *buffer, std::string *failure) {
    qdq_error err = {};
    size_t bytes = 0;
    if (qdq_tensor_desc_size_bytes(&desc, &bytes, &err) != QDQ_OK) {
        *failure = err.text;
        return false;
    }
    buffer->words.assign(bytes / 8 + 1, 0xa5a5a5a5a5a5a5a5u);
    buffer->tensor.desc = desc;
    buffer->tensor.data = buffer->words.data();
    return true;
}

// Between a dense array and the layout of `desc`; sub-byte types are always dense.
void CopyElems(const qdq_tensor_desc &desc, uint8_t *strided, uint8_t *dense, bool to_strided) {
    int64_t n = 1;
    for (int32_t i = 0; i < desc.ndims; i++)
        n *= desc.dims[i];
    const size_t bits = qdq_dtype_bits(desc.dtype);
    if (bits < 8) {
        std::memcpy(to_strided ? strided : dense, to_strided ? dense : strided, BytesOf(desc.dtype, n));
        return;
    }
    const size_t e = bits / 8;
    for (int64_t i = 0; i < n; i++) {
        uint8_t *a = strided + static_cast<size_t>(Offset(desc, i)) * e, *b = dense + static_cast<size_t>(i) * e;
        std::memcpy(to_strided ? a : b, to_strided ? b : a, e);
    }
}

struct ListDeleter {
    void operator()(qdq_partition_list *l) const { qdq_partition_list_destroy(&l); }
};
struct CompiledDeleter {
    void operator()(qdq_compiled *c) const { qdq_compiled_destroy(&c); }
};
struct SessionDeleter {
    void operator()(qdq_session *s) const { qdq_session_destroy(&s); }
};

std::string RunPart(const Net &net, const std::vector<Id> &outputs, const qdq_partition *part, qdq_engine *engine,
                    bool any_layout, Outcome *outcome) {
    qdq_error err = {};
    const size_t n_in = qdq_partition_n_inputs(part), n_out = qdq_partition_n_outputs(part);
    std::vector<qdq_tensor_desc> in(n_in), out(n_out);
    for (size_t i = 0; i < n_in; i++) {
        if (qdq_partition_input(part, i, &in[i], &err) != QDQ_OK) return err.text;
        const Value &v = net.At(static_cast<Id>(in[i].id) - 1);
        if (v.strides.empty()) in[i] = DenseDesc(in[i].id, v.dtype, v.dims);
    }
    for (size_t i = 0; i < n_out; i++) {
        if (qdq_partition_output(part, i, &out[i], &err) != QDQ_OK) return err.text;
        bool is_output = false;
        for (const Id id : outputs)
            is_output = is_output || static_cast<uint64_t>(id) + 1 == out[i].id;
        const Value &v = net.At(static_cast<Id>(out[i].id) - 1);
        out[i] = DenseDesc(out[i].id, v.dtype, v.dims);
        if (any_layout && is_output) out[i].layout = QDQ_LAYOUT_ANY;
        if (!any_layout) // where the caller wants it
            std::copy(v.strides.begin(), v.strides.end(), out[i].strides);
    }
    qdq_compiled *raw = nullptr;
    if (qdq_partition_compile(part, engine, in.data(), n_in, out.data(), n_out, &raw, &err) != QDQ_OK)
        return std::string("compile: ") + err.text;
    std::unique_ptr<qdq_compiled, CompiledDeleter> compiled(raw);
    if (outcome->impl.empty()) outcome->impl = qdq_compiled_summary(raw);

    std::string failure;
    std::vector<Buffer> ins(n_in), outs(n_out);
    std::vector<qdq_tensor> in_tensors, out_tensors;
    for (size_t i = 0; i < n_in; i++) {
        if (qdq_compiled_desc(raw, in[i].id, &in[i], &err) != QDQ_OK) return err.text;
        if (!Allocate(in[i], &ins[i], &failure)) return failure;
        Bytes dense = net.At(static_cast<Id>(in[i].id) - 1).data;
        CopyElems(in[i], static_cast<uint8_t *>(ins[i].tensor.data), dense.data(), true);
        in_tensors.push_back(ins[i].tensor);
    }
    for (size_t i = 0; i < n_out; i++) {
        if (qdq_compiled_desc(raw, out[i].id, &out[i], &err) != QDQ_OK) return err.text;
        if (!Allocate(out[i], &outs[i], &failure)) return failure;
        out_tensors.push_back(outs[i].tensor);
    }
    // twice: what the first run leaves behind must not matter
    for (int run = 0; run < 2; run++)
        if (qdq_compiled_execute(raw, in_tensors.data(), n_in, out_tensors.data(), n_out, &err) != QDQ_OK)
            return std::string("execute: ") + err.text;
    for (size_t i = 0; i < n_out && failure.empty(); i++) {
        const Id id = static_cast<Id>(out[i].id) - 1;
        const Value &v = net.At(id);
        if (out[i].dtype != v.dtype || out[i].ndims != static_cast<int32_t>(v.dims.size()))
            return "value %" + std::to_string(id) + ": compiled with another data type or rank";
        for (size_t d = 0; d < v.dims.size(); d++)
            if (out[i].dims[d] != v.dims[d]) return "value %" + std::to_string(id) + ": compiled with another shape";
        Bytes dense(v.data.size() + 1);
        CopyElems(out[i], static_cast<uint8_t *>(outs[i].tensor.data), dense.data(), false);
        failure = Compare(net, id, dense.data(), outcome);
    }
    return failure;
}

} // namespace

Outcome RunFused(const Net &net, const std::vector<Id> &outputs, qdq_engine *engine, bool any_layout) {
    Outcome outcome;
    GraphPtr graph(net.Graph(outputs, &outcome.failure));
    if (!graph) return outcome;
    qdq_error err = {};
    qdq_partition_list *raw = nullptr;
    if (qdq_graph_partition(graph.get(), QDQ_POLICY_FUSION, &raw, &err) != QDQ_OK) {
        outcome.failure = std::string("partition: ") + err.text;
        return outcome;
    }
    std::unique_ptr<qdq_partition_list, ListDeleter> list(raw);
    outcome.n_partitions = qdq_partition_list_count(raw);
    if (outcome.n_partitions) outcome.pattern = qdq_partition_pattern(qdq_partition_list_get(raw, 0));
    for (size_t i = 0; i < outcome.n_partitions && outcome.failure.empty(); i++)
        outcome.failure = RunPart(net, outputs, qdq_partition_list_get(raw, i), engine, any_layout, &outcome);
    return outcome;
}

Outcome RunSession(const Net &net, const std::vector<Id> &outputs, qdq_engine *engine) {
    Outcome outcome;
    GraphPtr graph(net.Graph(outputs, &outcome.failure));
    if (!graph) return outcome;
    qdq_error err = {};
    qdq_session *raw = nullptr;
    if (qdq_session_create(graph.get(), engine, nullptr, &raw, &err) != QDQ_OK) {
        outcome.failure = std::string("session: ") + err.text;
        return outcome;
    }
    std::unique_ptr<qdq_session, SessionDeleter> session(raw);
    outcome.n_partitions = qdq_session_n_parts(raw);
    for (size_t i = 0; i < outcome.n_partitions; i++) {
        qdq_session_part_info info;
        if (qdq_session_part(raw, i, &info, &err) != QDQ_OK) continue;
        outcome.pattern += (i ? " " : "") + std::string(info.pattern);
        outcome.impl += (i ? " | " : "") + std::string(info.impl);
    }
    std::vector<const void *> ins;
    std::vector<Buffer> in_buffers(qdq_session_n_inputs(raw)), out_buffers(qdq_session_n_outputs(raw));
    std::vector<void *> outs;
    for (size_t i = 0; i < in_buffers.size(); i++) {
        qdq_tensor_desc desc;
        if (qdq_session_input_desc(raw, i, &desc, nullptr, &err) != QDQ_OK ||
            !Allocate(desc, &in_buffers[i], &outcome.failure))
            return outcome;
        Bytes dense = net.At(static_cast<Id>(desc.id) - 1).data;
        CopyElems(desc, static_cast<uint8_t *>(in_buffers[i].tensor.data), dense.data(), true);
        ins.push_back(in_buffers[i].tensor.data);
    }
    for (size_t i = 0; i < out_buffers.size(); i++) {
        qdq_tensor_desc desc;
        if (qdq_session_output_desc(raw, i, &desc, nullptr, &err) != QDQ_OK ||
            !Allocate(desc, &out_buffers[i], &outcome.failure))
            return outcome;
        outs.push_back(out_buffers[i].tensor.data);
    }
    if (qdq_session_run(raw, ins.data(), ins.size(), outs.data(), outs.size(), &err) != QDQ_OK) {
        outcome.failure = std::string("run: ") + err.text;
        return outcome;
    }
    for (size_t i = 0; i < outs.size() && outcome.failure.empty(); i++) {
        const qdq_tensor_desc &desc = out_buffers[i].tensor.desc;
        Bytes dense(net.At(outputs[i]).data.size() + 1);
        CopyElems(desc, static_cast<uint8_t *>(outs[i]), dense.data(), false);
        outcome.failure = Compare(net, outputs[i], dense.data(), &outcome);
    }
    return outcome;
}

} // namespace qdq_test
