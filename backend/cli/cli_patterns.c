/* qdq patterns */
#include "cli/cli.h"

#include <string.h>

static int run(int argc, char **argv) {
    bool markdown = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--markdown") != 0)
            return qdqi_cli_usage_error(&qdqi_command_patterns, "unexpected argument \"%.60s\"", argv[i]);
        markdown = true;
    }
    if (markdown) printf("| order | pattern |\n|---|---|\n");
    for (size_t i = 0; i < qdq_backend_n_patterns(); i++) {
        if (markdown)
            printf("| %zu | `%s` |\n", i + 1, qdq_backend_pattern(i));
        else
            printf("%s\n", qdq_backend_pattern(i));
    }
    return QDQI_EXIT_OK;
}

const qdqi_command qdqi_command_patterns = {
    .name = "patterns",
    .summary = "the fusion patterns, in the order they are tried",
    .usage = "usage: qdq patterns [--markdown]\n\nList the fusion patterns in the order in which they are tried.\n",
    .run = run,
};
