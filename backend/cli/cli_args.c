/* Arguments of commands. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool qdqi_args_next(qdqi_args *args, const char **name, const char **value) {
    static _Thread_local char option[64];
    *name = *value = NULL;
    if (args->at >= args->argc) return false;
    char *arg = args->argv[args->at++];
    const bool is_option = arg[0] == '-' && arg[1] != '\0' && args->argv != NULL;
    if (!is_option) {
        *value = arg;
        return true;
    }
    const char *equals = strchr(arg, '=');
    const size_t n = equals == NULL ? strlen(arg) : (size_t)(equals - arg);
    if (equals == NULL || n >= sizeof option) {
        *name = arg;
        return true;
    }
    memcpy(option, arg, n);
    option[n] = '\0';
    *name = option;
    *value = equals + 1;
    return true;
}

const char *qdqi_args_value(qdqi_args *args, const char *value) {
    if (value != NULL) return value;
    return args->at < args->argc ? args->argv[args->at++] : NULL;
}

bool qdqi_parse_i64(const char *text, int64_t min, int64_t max, int64_t *out) {
    char *end = NULL;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    *out = (int64_t)v;
    return errno == 0 && end != text && *end == '\0' && *out >= min && *out <= max;
}

bool qdqi_parse_shape(const char *text, int32_t *ndims_out, int64_t dims_out[QDQ_MAX_NDIMS]) {
    *ndims_out = 0;
    if (strcmp(text, "-") == 0) return true;
    for (const char *at = text;; at++) {
        char *end = NULL;
        errno = 0;
        const long long v = strtoll(at, &end, 10);
        if (errno != 0 || end == at || v < 0 || *at == '+' || *ndims_out == QDQ_MAX_NDIMS) return false;
        dims_out[(*ndims_out)++] = (int64_t)v;
        if (*end == '\0') return true;
        if (*end != 'x') return false;
        at = end;
    }
}
