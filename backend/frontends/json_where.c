#include "json_where.h"

#include <stdbool.h>

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_space(cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static void skip_string(cursor *c) {
    for (c->p++; c->p < c->end && *c->p != '"'; c->p++)
        if (*c->p == '\\' && c->p + 1 < c->end) c->p++;
    if (c->p < c->end) c->p++;
}

/* Over one value of any kind, without recursion: brackets are counted. */
static void skip_value(cursor *c) {
    size_t depth = 0;
    while (c->p < c->end) {
        const char ch = *c->p;
        if (ch == '"') {
            skip_string(c);
        } else if (ch == '{' || ch == '[') {
            depth++;
            c->p++;
        } else if (ch == '}' || ch == ']') {
            if (depth == 0) return; /* the container's end: the value was a bare word */
            depth--;
            c->p++;
        } else if (depth == 0 && ch == ',') {
            return;
        } else {
            c->p++;
            continue;
        }
        if (depth == 0) return;
    }
}

/* From the opening bracket to the start of member `index`. False when there is no such member. */
static bool enter(cursor *c, size_t index) {
    skip_space(c);
    if (c->p >= c->end || (*c->p != '{' && *c->p != '[')) return false;
    const bool object = *c->p == '{';
    c->p++;
    for (size_t i = 0; c->p < c->end; i++) {
        skip_space(c);
        if (c->p >= c->end || *c->p == '}' || *c->p == ']') return false;
        if (object) {
            if (*c->p != '"') return false;
            skip_string(c);
            skip_space(c);
            if (c->p >= c->end || *c->p != ':') return false;
            c->p++;
            skip_space(c);
        }
        if (i == index) return true;
        skip_value(c);
        skip_space(c);
        if (c->p < c->end && *c->p == ',') c->p++;
    }
    return false;
}

static bool walk(cursor *c, const qdqi_json_step *step) {
    return step == NULL || (walk(c, step->up) && enter(c, step->index));
}

qdqi_json_where qdqi_json_find(const char *text, size_t n, const qdqi_json_step *step) {
    cursor c = {text, text + n};
    skip_space(&c);
    if (!walk(&c, step)) c.p = text;
    qdqi_json_where at = {1, 1};
    for (const char *p = text; p < c.p; p++) {
        if (*p == '\n') {
            at.line++;
            at.col = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) { /* not a continuation byte of UTF-8 */
            at.col++;
        }
    }
    return at;
}
