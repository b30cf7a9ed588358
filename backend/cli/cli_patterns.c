/* qdq patterns: the catalogue, from its tables. */
#include "cli/cli.h"

#include <string.h>

/* doc/patterns.md is this output; a test compares. */
static int print_markdown(void) {
    const char *family = "", *name = NULL, *text = NULL;
    qdq_error err = {0};
    printf(
        "# Fusion patterns\n\n"
        "Printed by `qdq patterns --markdown` from the tables in `patterns/`; a test keeps this file equal to it.\n\n"
        "Entries are tried in this order, each at every op; an op belongs to the first that takes it. In the\n"
        "pictures data flows downward; `[x]` may be absent, `x|y` is either, `{min,max}` is how many. These words\n"
        "stand for sets of ops:\n\n"
        "| set | ops |\n|---|---|\n");
    for (size_t i = 0; qdq_backend_pattern_set(i, &name, &text); i++)
        printf("| %s | %s |\n", name, text);
    for (size_t i = 0; i < qdq_backend_n_patterns(); i++) {
        qdq_pattern_info info;
        if (qdq_backend_pattern_info(i, &info, &err) != QDQ_OK) return qdqi_cli_failed(&err);
        if (strcmp(family, info.family) != 0) printf("\n## %s\n", info.family);
        family = info.family;
        printf("\n### %zu. %s\n\nRequired ops: %zu. Recipe: `%s`.\n\n```\n%s```\n", i + 1, info.name, info.n_required,
               info.recipe, info.picture);
    }
    return QDQI_EXIT_OK;
}

static int run(int argc, char **argv) {
    bool markdown = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--markdown") != 0)
            return qdqi_cli_usage_error(&qdqi_command_patterns, "unexpected argument \"%.60s\"", argv[i]);
        markdown = true;
    }
    if (markdown) return print_markdown();
    for (size_t i = 0; i < qdq_backend_n_patterns(); i++)
        printf("%s\n", qdq_backend_pattern(i));
    return QDQI_EXIT_OK;
}

const qdqi_command qdqi_command_patterns = {
    .name = "patterns",
    .summary = "the fusion patterns, in the order they are tried",
    .usage = "usage: qdq patterns [--markdown]\n\n"
             "List the fusion patterns in the order in which they are tried; --markdown: with their pictures.\n",
    .run = run,
};
