/* qdq version */
#include "cli/cli.h"

static int run(int argc, char **argv) {
    if (argc > 1) return qdqi_cli_usage_error(&qdqi_command_version, "unexpected argument \"%.60s\"", argv[1]);
    printf("libqdq %s\nproviders:", qdq_version());
    for (size_t i = 0; i < qdq_backend_n_providers(); i++)
        printf(" %s", qdq_backend_provider(i));
    putchar('\n');
    return QDQI_EXIT_OK;
}

const qdqi_command qdqi_command_version = {
    .name = "version",
    .summary = "the version, and the providers of kernels in this build",
    .usage = "usage: qdq version\n\nPrint the version of the library and the providers of kernels in this build.\n",
    .run = run,
};
