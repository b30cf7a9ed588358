/* Small text helpers: a growing string, and shapes as text for messages. */
#ifndef QDQI_TEXT_H
#define QDQI_TEXT_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A growing NUL-terminated string. Zero-initialise; `failed` is sticky after an allocation failure. */
typedef struct qdqi_text {
    char *s; /* NULL while empty */
    size_t n, capacity;
    bool failed;
} qdqi_text;

void qdqi_text_add(qdqi_text *text, const char *fmt, ...) QDQI_PRINTF(2, 3);
void qdqi_text_free(qdqi_text *text);

/* "2x64x?x56" (rank 0: "-", unknown rank: "?") for messages. */
typedef struct qdqi_shape_text {
    char s[160];
} qdqi_shape_text;
qdqi_shape_text qdqi_shape_str(int32_t ndims, const int64_t *dims);

#ifdef __cplusplus
}
#endif
#endif
