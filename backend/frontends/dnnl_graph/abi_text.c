/* A string that grows, and memory for arrays. */
#include "abi.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *abi_calloc(size_t n, size_t bytes) {
    return calloc(n == 0 ? 1 : n, bytes);
}

bool abi_grow(void *array, size_t used, size_t *capacity, size_t elem_bytes) {
    if (used < *capacity) return true;
    const size_t bigger = *capacity < 4 ? 4 : *capacity * 2;
    if (bigger <= *capacity || bigger > SIZE_MAX / elem_bytes) return false;
    void *old;
    memcpy(&old, array, sizeof old); /* the caller's pointer, of whatever type */
    void *grown = realloc(old, bigger * elem_bytes);
    if (grown == NULL) return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = bigger;
    return true;
}

/* Room for n more bytes and the NUL. */
static bool reserve(abi_text *text, size_t n) {
    if (text->failed) return false;
    if (n >= SIZE_MAX / 2 - text->n) {
        text->failed = true;
        return false;
    }
    const size_t need = text->n + n + 1;
    if (need <= text->cap) return true;
    const size_t cap = need < 128 ? 128 : need * 2;
    char *grown = realloc(text->s, cap);
    if (grown == NULL) {
        text->failed = true;
        return false;
    }
    text->s = grown;
    text->cap = cap;
    return true;
}

void abi_text_add(abi_text *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0)
        text->failed = true;
    else if (reserve(text, (size_t)n)) {
        vsnprintf(text->s + text->n, (size_t)n + 1, format, again);
        text->n += (size_t)n;
    }
    va_end(again);
}

void abi_text_bytes(abi_text *text, const void *bytes, size_t n) {
    if (n == 0 || !reserve(text, n)) return;
    memcpy(text->s + text->n, bytes, n);
    text->n += n;
    text->s[text->n] = '\0';
}

void abi_text_free(abi_text *text) {
    free(text->s);
    *text = (abi_text){0};
}
