/* Option structs of the public header, which begin with their size: callers built against an older or a newer header know fewer or
 * more fields. */
#ifndef QDQI_OPTIONS_H
#define QDQI_OPTIONS_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copy the caller's options (NULL: none) to `own`, own_bytes of this version's struct `type`; what he does not know is zero. Errors:
 * BAD_ARG when the size is none, or when a field that this version does not know asks for something (is not zero). */
qdq_status qdqi_options_read(const void *given, const char *type, void *own, size_t own_bytes, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
