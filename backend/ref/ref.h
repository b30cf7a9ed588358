/* The plain meaning of every op. One function per row of ir/ops.def, one small file per family. This is the fallback of
 * every candidate list and the oracle of every test: f32 results, f64 accumulation, integer-exact quantization.
 *
 * A function reads inputs through qdqi_ref_in_* and writes through qdqi_ref_out_*: these give dense row-major arrays in the
 * natural compute type whatever the dtype and strides of the tensor are. Conversions and copies live in scratch memory
 * whose size qdqi_ref_scratch_bytes bounds, so that running allocates nothing. Single-threaded, re-entrant. */
#ifndef QDQI_REF_H
#define QDQI_REF_H

#include "ir/desc.h"
#include "ir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_ref_tensor {
    const qdq_tensor_desc *desc; /* concrete dims and strides; NULL: a missing optional input */
    void *data;
} qdqi_ref_tensor;

typedef struct qdqi_ref_args {
    const qdqi_op *op;
    uint32_t n_in, n_out;
    const qdqi_ref_tensor *in, *out;
    void *scratch; /* 64-byte aligned */
    size_t scratch_bytes;
} qdqi_ref_args;

/* Upper bound of the scratch of qdqi_ref_run on these descriptors. Errors: OVERFLOW. */
qdq_status qdqi_ref_scratch_bytes(const qdqi_op *op, const qdq_tensor_desc *const *in,
                                  const qdq_tensor_desc *const *out, size_t *bytes_out, qdq_error *err);
/* Compute `args->op`. Errors: BAD_* for contents that break the op's rules (an index out of range, a zero scale), INTERNAL. */
qdq_status qdqi_ref_run(const qdqi_ref_args *args, qdq_error *err);

/* What one slice of a QuantizeV2 or TFDequantize op is computed with, and for the former the range that it gives out; the formulas
 * are in ref_tf.c and, in vectors, in kernels/tf/tf.h. False: a QuantizeV2 whose range has no finite step. `min` and `max` are finite and
 * in order. */
typedef enum qdqi_tf_mode { QDQI_TF_MIN_COMBINED, QDQI_TF_MIN_FIRST, QDQI_TF_SCALED } qdqi_tf_mode;
typedef struct qdqi_tf_params {
    float out_min, out_max, low, high, factor, base, half, top;
} qdqi_tf_params;
qdqi_tf_mode qdqi_ref_tf_mode(const qdqi_op *op);
bool qdqi_ref_tf_params(const qdqi_op *op, qdq_dtype stored, float min, float max, qdqi_tf_params *out);

/* TensorFlow's QuantizeV2 and TFDequantize with a range [min, max], as real = (q - zp) * scale: modes SCALED and MIN_FIRST.
 * False where no integer zero point (MIN_COMBINED) or no full range of the type (a narrow QuantizeV2) says the same. */
bool qdqi_ref_tf_affine(const qdqi_op *op, qdq_dtype stored, float min, float max, float *scale_out, int32_t *zp_out);

/* The fold function of qdqi_graph_finalize. */
qdq_status qdqi_ref_fold(const qdq_graph *graph, const qdqi_op *op, void *const *out_data, qdq_error *err);

/* The reference executor: a whole finalized graph, op by op, in topological order. As qdq_graph_run_reference. */
qdq_status qdqi_ref_graph(const qdq_graph *graph, const qdq_tensor *inputs, size_t n_inputs, const qdq_tensor *outputs,
                          size_t n_outputs, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
