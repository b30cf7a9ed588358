#include "harness/tensor_file.h"

#include "frontends/onnx_reader.h"

#include <stdlib.h>
#include <string.h>

/* The model reader's own decoding, of a tensor that stands alone. */
static qdq_status decode(Onnx__TensorProto *t, const char *path, qdq_tensor_desc *desc_out, void **data_out,
                         qdq_error *err) {
    const qdqi_onnx_reader reader = {.err = err};
    const void *data = NULL;
    void *owned = NULL;
    size_t bytes = 0;
    QDQI_TRY(qdqi_onnx_tensor_desc(t, path, desc_out, err));
    QDQI_TRY(qdq_tensor_desc_size_bytes(desc_out, &bytes, err));
    *data_out = NULL;
    if (bytes == 0) return QDQ_OK;
    QDQI_TRY(qdqi_onnx_tensor_data(&reader, t, path, desc_out, &data, &owned, err));
    *data_out = malloc(bytes);
    if (*data_out != NULL) memcpy(*data_out, data, bytes);
    qdqi_free(owned);
    return *data_out == NULL ? QDQI_NO_MEMORY(err) : QDQ_OK;
}

static void *take(void *user, size_t bytes) {
    (void)user;
    return qdqi_malloc(bytes == 0 ? 1 : bytes);
}

static void give_back(void *user, void *ptr) {
    (void)user;
    qdqi_free(ptr);
}

qdq_status qh_read_tensor_file(const char *path, qdq_tensor_desc *desc_out, void **data_out, qdq_error *err) {
    void *file = NULL;
    size_t bytes = 0;
    ProtobufCAllocator allocator = {.alloc = take, .free = give_back};
    QDQI_TRY(qdqi_onnx_read_file(path, 0, -1, &file, &bytes, err));
    Onnx__TensorProto *t = onnx__tensor_proto__unpack(&allocator, bytes, file);
    const qdq_status st =
        t == NULL ? qdqi_fail(err, QDQ_E_ONNX, "%s: is no tensor", path) : decode(t, path, desc_out, data_out, err);
    onnx__tensor_proto__free_unpacked(t, &allocator);
    qdqi_free(file);
    return st;
}
