#include "base/options.h"

#include <string.h>

qdq_status qdqi_options_read(const void *given, const char *type, void *own, size_t own_bytes, qdq_error *err) {
    memset(own, 0, own_bytes);
    size_t bytes = own_bytes;
    if (given != NULL) {
        memcpy(&bytes, given, sizeof bytes);
        if (bytes < sizeof bytes)
            return qdqi_fail(err, QDQ_E_BAD_ARG, "%s: struct_bytes is %zu, expected sizeof(%s)", type, bytes, type);
        for (size_t i = own_bytes; i < bytes; i++)
            if (((const char *)given)[i] != 0)
                return qdqi_fail(err, QDQ_E_BAD_ARG, "%s: byte %zu of %zu is set, but this version knows %zu", type, i,
                                 bytes, own_bytes);
        memcpy(own, given, bytes < own_bytes ? bytes : own_bytes);
    }
    memcpy(own, &own_bytes, sizeof own_bytes);
    return QDQ_OK;
}
