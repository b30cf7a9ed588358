/* A graph from a file, for the commands that look at graphs: an ONNX model or a JSON case. */
#ifndef QDQI_CLI_MODEL_H
#define QDQI_CLI_MODEL_H

#include "cli/cli.h"

enum { QDQI_MODEL_MAX_ITEMS = 64 };

typedef struct qdqi_model_args {
    const char *path;
    bool single, reference;
    qdq_dim_binding dims[QDQI_MODEL_MAX_ITEMS];
    qdq_input_shape shapes[QDQI_MODEL_MAX_ITEMS];
    int64_t shape_dims[QDQI_MODEL_MAX_ITEMS][QDQ_MAX_NDIMS];
    size_t n_dims, n_shapes;
    char *owned[2 * QDQI_MODEL_MAX_ITEMS]; /* names cut out of arguments */
    size_t n_owned;
} qdqi_model_args;

/* The lines of a usage text for what qdqi_model_option reads. */
#define QDQI_MODEL_OPTIONS                                                                                             \
    "  --dim NAME=SIZE        value of a symbolic dimension of a model (else 1)\n"                                     \
    "  --shape NAME:1x3x64x64 shape of an input, instead of the one in the file; of a case by number: 0:1x3x64x64\n"   \
    "  --single               every op on its own, not fused\n"                                                        \
    "  --reference            every op on its own, by the plain reference implementation\n"

/* Take one argument as qdqi_args_next read it: the file's name, or an option of QDQI_MODEL_OPTIONS. An exit code other than OK: it is
 * reported. `*taken_out` is false for an option of someone else. */
int qdqi_model_option(const qdqi_command *command, qdqi_model_args *model, qdqi_args *from, const char *option,
                      const char *value, bool *taken_out);
void qdqi_model_args_free(qdqi_model_args *model);

/* Load and finalize. A case's constants have no content in the file: they get some, so that they are packed and folded as a model's
 * are. */
qdq_status qdqi_model_load(const qdqi_model_args *model, qdq_graph **graph_out, qdq_error *err);
/* Load, and explain. */
qdq_status qdqi_model_explain(const qdqi_model_args *model, qdq_explanation **explanation_out, qdq_error *err);

/* "abcd", "acdb": dims by descending stride, dim 0 is a; "any" when not known. */
typedef struct qdqi_layout_text {
    char s[32];
} qdqi_layout_text;
qdqi_layout_text qdqi_layout_str(const qdq_tensor_desc *desc);

#endif
