/* Where in a JSON text a value stands. jansson tells line and column of syntax errors only; for values that are well
 * formed but wrong, the text is scanned again along the path that leads to the value. Only errors pay for it. */
#ifndef QDQI_JSON_WHERE_H
#define QDQI_JSON_WHERE_H

#include <stddef.h>

/* One step from a container to a member: the number of the array element or of the object member, in text order. */
typedef struct qdqi_json_step {
    const struct qdqi_json_step *up; /* step that leads to the container; NULL: the container is the document */
    size_t index;
} qdqi_json_step;

typedef struct qdqi_json_where {
    size_t line, col; /* from 1; columns count characters */
} qdqi_json_where;

/* `text` must be well-formed JSON; the position of the start otherwise. `step` NULL is the document itself. */
qdqi_json_where qdqi_json_find(const char *text, size_t n, const qdqi_json_step *step);

#endif
