#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    qdqi_log_topic topic;
} topics[] = {{"refuse", QDQI_LOG_REFUSE}, {"plan", QDQI_LOG_PLAN}, {"time", QDQI_LOG_TIME}, {"cache", QDQI_LOG_CACHE}};

enum { N_TOPICS = (int)(sizeof topics / sizeof topics[0]), NOT_READ = -1 };

static int read_environment(void) {
    const char *env = getenv("QDQ_VERBOSE");
    int mask = 0;
    if (env == NULL) return 0;
    if (strcmp(env, "all") == 0) return (1 << N_TOPICS) - 1;
    for (int i = 0; i < N_TOPICS; i++) {
        const size_t n = strlen(topics[i].name);
        for (const char *p = strstr(env, topics[i].name); p != NULL; p = strstr(p + 1, topics[i].name)) {
            const bool starts = p == env || p[-1] == ',';
            if (starts && (p[n] == '\0' || p[n] == ',')) mask |= (int)topics[i].topic;
        }
    }
    return mask;
}

bool qdqi_log_on(qdqi_log_topic topic) {
    static atomic_int mask = NOT_READ;
    int m = atomic_load_explicit(&mask, memory_order_relaxed);
    if (m == NOT_READ) {
        m = read_environment();
        atomic_store_explicit(&mask, m, memory_order_relaxed);
    }
    return (m & (int)topic) != 0;
}

void qdqi_log(qdqi_log_topic topic, const char *fmt, ...) {
    if (!qdqi_log_on(topic)) return;
    const char *name = "";
    for (int i = 0; i < N_TOPICS; i++)
        if (topics[i].topic == topic) name = topics[i].name;
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    fprintf(stderr, "qdq,%s,%s\n", name, line);
}
