#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names come from files and may hold line ends; a text is one line. */
static void keep_one_line(char *text) {
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7F) *text = '?';
}

qdq_status qdqi_fail(qdq_error *err, qdq_status status, const char *fmt, ...) {
    if (err == NULL) return status;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    keep_one_line(err->text);
    err->status = status;
    return status;
}

qdq_status qdqi_fail_in(qdq_error *err, qdq_status status, const char *fmt, ...) {
    if (err == NULL) return status;
    char was[QDQ_ERROR_BYTES];
    memcpy(was, err->text, sizeof was);
    was[sizeof was - 1] = '\0';
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->text) {
        const size_t left = sizeof err->text - (size_t)n;
        /* a text longer than the buffer is cut; the front, which says where, is what must survive */
        if (snprintf(err->text + n, left, ": %s", was) < 0) err->text[n] = '\0';
    }
    keep_one_line(err->text);
    err->status = status;
    return status;
}

const char *qdq_status_name(qdq_status status) {
    switch (status) {
#define QDQ_STATUS_ROW(name, value, text)                                                                              \
    case QDQ_##name: return "QDQ_" #name;
        QDQ_STATUS_MAP(QDQ_STATUS_ROW)
#undef QDQ_STATUS_ROW
    }
    return "QDQ_E_?";
}

const char *qdq_status_text(qdq_status status) {
    switch (status) {
#define QDQ_STATUS_ROW(name, value, text)                                                                              \
    case QDQ_##name: return text;
        QDQ_STATUS_MAP(QDQ_STATUS_ROW)
#undef QDQ_STATUS_ROW
    }
    return "unknown status";
}
