/* The objects behind the public handles that span rooms. */
#ifndef QDQI_API_OBJECTS_H
#define QDQI_API_OBJECTS_H

#include "base/text.h"
#include "lower/lower.h"
#include "patterns/partition.h"

#ifdef __cplusplus
extern "C" {
#endif

struct qdq_partition {
    const qdq_graph *graph; /* of the list */
    const qdqi_part *part;
};

struct qdq_partition_list {
    const qdq_graph *graph; /* retained */
    qdqi_parts *parts;
    qdq_partition *items;
    uint32_t n;
};

/* A compiled set of partitions: what a compiled partition and a session have in common. */
typedef struct qdqi_program {
    const qdq_graph *graph; /* retained: names, schemas, custom ops */
    qdq_engine *engine;     /* retained */
    qdqi_plan *plan;
    uint32_t n_inputs, n_outputs;
    qdq_tensor_desc *inputs, *outputs; /* resolved descriptors in port order */
} qdqi_program;

/* Fill vals with the values that `parts` touch (all values of the graph when parts is NULL). */
qdq_status qdqi_program_open(qdqi_program *program, qdqi_lower *lw, const qdq_graph *graph, qdq_engine *engine,
                             const qdqi_part *part, qdq_error *err);
/* Make `value` the next input / output of the plan. */
qdq_status qdqi_program_input(qdqi_program *program, qdqi_lower *lw, uint32_t value, const qdq_tensor_desc *desc,
                              qdq_error *err);
qdq_status qdqi_program_output(qdqi_program *program, qdqi_lower *lw, uint32_t value, const qdq_tensor_desc *desc,
                               qdq_error *err);
/* After all partitions are lowered: ports, placement, resolved descriptors. */
qdq_status qdqi_program_close(qdqi_program *program, qdqi_lower *lw, qdq_error *err);
/* A whole graph in one program, lowered partition by partition: open, ports, partitions, close. `notes` may be NULL. `lw` is the
 * caller's to free, on failure too. */
qdq_status qdqi_program_of_graph(qdqi_program *program, qdqi_lower *lw, const qdq_graph *graph, qdq_engine *engine,
                                 const qdqi_parts *parts, bool reference_only, qdqi_notes *notes, qdq_error *err);
/* Run on buffers in port order. `profile` may be NULL. */
qdq_status qdqi_program_run(const qdqi_program *program, const void *const *inputs, size_t n_inputs,
                            void *const *outputs, size_t n_outputs, qdqi_profile *profile, qdq_error *err);
void qdqi_program_free(qdqi_program *program);
/* "onednn conv … + native copy": add the note of a step. */
void qdqi_program_note(const qdqi_program *program, size_t step, qdqi_text *text);

/* Input and output arrays on the stack up to this many ports; an execute of a wider partition allocates one. */
enum { QDQI_STACK_PORTS = 1024 };

#ifdef __cplusplus
}
#endif
#endif
