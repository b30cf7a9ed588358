/* QDQ_VERBOSE=refuse,plan,time,error: what the library may print, to stderr. Unset: nothing. */
#ifndef QDQI_LOG_H
#define QDQI_LOG_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qdqi_log_topic {
    QDQI_LOG_REFUSE = 1, /* candidates that refused, and why */
    QDQI_LOG_PLAN = 2,   /* steps of compiled plans */
    QDQI_LOG_TIME = 4,   /* times of steps */
    QDQI_LOG_CACHE = 8
} qdqi_log_topic;

bool qdqi_log_on(qdqi_log_topic topic);
/* "qdq,<topic>,<text>\n" on stderr when the topic is on. */
void qdqi_log(qdqi_log_topic topic, const char *fmt, ...) QDQI_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
