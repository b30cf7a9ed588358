#include "base/text.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void qdqi_text_add(qdqi_text *text, const char *fmt, ...) {
    if (text->failed) return;
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        text->failed = true;
    } else if (text->n + (size_t)n + 1 > text->capacity) {
        const size_t capacity = 2 * (text->n + (size_t)n + 1);
        char *grown = qdqi_realloc_array(text->s, capacity, 1);
        if (grown == NULL) {
            text->failed = true;
        } else {
            text->s = grown;
            text->capacity = capacity;
        }
    }
    if (!text->failed) {
        vsnprintf(text->s + text->n, text->capacity - text->n, fmt, again);
        text->n += (size_t)n;
    }
    va_end(again);
}

void qdqi_text_free(qdqi_text *text) {
    qdqi_free(text->s);
    *text = (qdqi_text){0};
}

qdqi_shape_text qdqi_shape_str(int32_t ndims, const int64_t *dims) {
    qdqi_shape_text out = {"?"};
    if (ndims == 0) snprintf(out.s, sizeof out.s, "-");
    size_t n = 0;
    for (int32_t i = 0; i < ndims && i < QDQ_MAX_NDIMS && n < sizeof out.s; i++) {
        const char *sep = i == 0 ? "" : "x";
        const int w = dims[i] == QDQ_DIM_UNKNOWN ? snprintf(out.s + n, sizeof out.s - n, "%s?", sep)
                                                 : snprintf(out.s + n, sizeof out.s - n, "%s%" PRId64, sep, dims[i]);
        if (w < 0) break;
        n += (size_t)w;
    }
    return out;
}
