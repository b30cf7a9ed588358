/* Which descriptor speaks for a tensor id: that of its producer, else of its first mention. */
#ifndef QDQI_JSON_INDEX_H
#define QDQI_JSON_INDEX_H

#include "json_case.h"

typedef struct qdqi_json_mention {
    uint64_t id;
    size_t order;   /* of mention in the file */
    bool is_output; /* mentioned by the op that produces it */
    size_t op;
    qdq_tensor_desc *desc;
} qdqi_json_mention;

/* All mentions of all tensors, sorted by id; within an id outputs first, then in file order. */
typedef struct qdqi_json_index {
    qdqi_json_mention *mentions;
    size_t n;
} qdqi_json_index;

qdq_status qdqi_json_index_make(const qdqi_json_case *c, qdqi_json_index *index_out, qdq_error *err);
void qdqi_json_index_free(qdqi_json_index *index);
/* First mention of `id` in the index (the descriptor that speaks for it), or NULL. Further mentions follow it. */
qdqi_json_mention *qdqi_json_index_find(const qdqi_json_index *index, uint64_t id);

#endif
