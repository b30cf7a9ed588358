/* Numbers as text, whatever the host's locale: its decimal point may be a comma, which strtof would want. */
#ifndef QDQI_NUMBER_H
#define QDQI_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* n characters "[-+]digits[.digits][e[-+]digits]" as the nearest f32. False when they are no such number or it does not fit. */
bool qdqi_text_f32(const char *text, size_t n, float *out);

#ifdef __cplusplus
}
#endif
#endif
