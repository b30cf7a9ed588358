/* A file that holds one ONNX TensorProto (the test data of the onnx package). */
#ifndef QDQ_TENSOR_FILE_H
#define QDQ_TENSOR_FILE_H

#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Its descriptor (dense) and content; `*data_out` is malloc'ed, and NULL without elements. Errors as those of qdq_onnx_load_file. */
qdq_status qh_read_tensor_file(const char *path, qdq_tensor_desc *desc_out, void **data_out, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
