/* Graphs written as a few lines of text, for tests; and what the partitioner made of them as text.
 *
 *     x:u8 2x4                      an input (? for a dimension not known)
 *     w:s8 4x8 const                a constant with content
 *     v:f32 4x8 promised            a constant whose content comes later (the property alone)
 *     a = Dequantize(x)             an op and its output; its name is that of its first output
 *     y:s8 = Quantize(a) {scales=[0.5] zps=[1]}
 *     p, q = Split(a) {axis=1}      several outputs
 *     r = Slice(a, b, c, -, d)      "-": an input left out
 *     out a y                       the graph's outputs; without this line, what no op consumes
 *
 * Lines end in a newline or ';'. Attributes: [1,2] integers, [1.0,2.0] floats, 3, 0.5, true, false, else a string; a required
 * attribute that is not given has the value of the table in text_graph.c. Data types and shapes of outputs are
 * inferred; Quantize makes s8 and TypeCast bf16 unless the output says another. */
#ifndef QDQ_TEXT_GRAPH_H
#define QDQ_TEXT_GRAPH_H

#include "ir/graph.h"
#include "patterns/partition.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A finalized graph; nothing is folded. Released with qdqi_graph_release. */
qdq_status qh_graph_from_text(const char *text, qdq_graph **graph_out, qdq_error *err);

/* "x8_matmul_post_ops(a b m r y) single(s)": partitions in order, each with the names of its ops, or with its children:
 * "attention[fp_matmul_post_ops(m d) single(s) single(y)]". malloc'ed; NULL when out of memory. */
char *qh_parts_text(const qdq_graph *graph, const qdqi_parts *parts);

/* Everything that a list of partitions promises, checked from the graph alone: each op is in exactly one (Dequantize ops,
 * views of one and ops on constants may be in several), ops in topological order, ports without duplicates and complete, every value
 * made before it is read, nothing needed outside hidden. True when all holds; else `err` says what does not. */
bool qh_parts_hold(const qdq_graph *graph, const qdqi_parts *parts, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
