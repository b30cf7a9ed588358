/* qdq ops */
#include "cli/cli.h"

#include <string.h>

enum { UNLIMITED = 255 };

static void print_range(int min, int max) {
    if (max >= UNLIMITED)
        printf("%d…", min);
    else if (min == max)
        printf("%d", min);
    else
        printf("%d…%d", min, max);
}

static int run(int argc, char **argv) {
    bool markdown = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--markdown") != 0)
            return qdqi_cli_usage_error(&qdqi_command_ops, "unexpected argument \"%.60s\"", argv[i]);
        markdown = true;
    }
    if (markdown) printf("| op | origin | inputs | outputs |\n|---|---|---|---|\n");
    qdq_error err = {0};
    for (size_t i = 0; i < qdq_backend_n_ops(); i++) {
        qdq_op_info info;
        if (qdq_backend_op(i, &info, &err) != QDQ_OK) return qdqi_cli_failed(&err);
        printf(markdown ? "| `%s` | %s | " : "%-24s %-14s ", info.kind, info.origin);
        print_range(info.min_inputs, info.max_inputs);
        fputs(markdown ? " | " : " -> ", stdout);
        print_range(info.min_outputs, info.max_outputs);
        fputs(markdown ? " |\n" : "\n", stdout);
    }
    return QDQI_EXIT_OK;
}

const qdqi_command qdqi_command_ops = {
    .name = "ops",
    .summary = "the op kinds that graphs may have",
    .usage = "usage: qdq ops [--markdown]\n\n"
             "List the op kinds that graphs may have: kind, whose semantics, number of inputs and outputs.\n",
    .run = run,
};
