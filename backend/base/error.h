/* Status plus an optional one-line text owned by the caller. */
#ifndef QDQI_ERROR_H
#define QDQI_ERROR_H

#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QDQI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define QDQI_PRINTF(fmt, args)
#endif

/* Write status and formatted text into `err` (NULL is legal) and return `status`. */
qdq_status qdqi_fail(qdq_error *err, qdq_status status, const char *fmt, ...) QDQI_PRINTF(3, 4);

/* Put "prefix: " in front of the text already in `err`; returns err's status. For adding where (a file, a node). */
qdq_status qdqi_fail_in(qdq_error *err, qdq_status status, const char *fmt, ...) QDQI_PRINTF(3, 4);

#define QDQI_NO_MEMORY(err) qdqi_fail((err), QDQ_E_NO_MEMORY, "out of memory")

#define QDQI_TRY(expr)                                                                                                 \
    do {                                                                                                               \
        const qdq_status qdqi_try_status = (expr);                                                                     \
        if (qdqi_try_status != QDQ_OK) return qdqi_try_status;                                                         \
    } while (0)

#define QDQI_TRY_GOTO(st, label, expr)                                                                                 \
    do {                                                                                                               \
        (st) = (expr);                                                                                                 \
        if ((st) != QDQ_OK) goto label;                                                                                \
    } while (0)

#define QDQI_NOT_NULL(err, arg)                                                                                        \
    do {                                                                                                               \
        if ((arg) == NULL) return qdqi_fail((err), QDQ_E_NULL_ARG, "%s: argument `%s` is NULL", __func__, #arg);       \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
