/* qdq COMMAND …: the table of commands. */
#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>

static const qdqi_command *const commands[] = {
    &qdqi_command_run, &qdqi_command_explain,  &qdqi_command_draw,
    &qdqi_command_ops, &qdqi_command_patterns, &qdqi_command_version,
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

int qdqi_cli_failed(const qdq_error *err) {
    /* names of a file's tensors are in the text: it stays one line */
    fputs("qdq: ", stderr);
    const char *text = err->text[0] != '\0' ? err->text : qdq_status_text(err->status);
    for (; *text != '\0'; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, stderr);
    fputc('\n', stderr);
    return QDQI_EXIT_FAILED;
}

int qdqi_cli_usage_error(const qdqi_command *command, const char *fmt, ...) {
    fprintf(stderr, "qdq %s: ", command->name);
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, " (see qdq %s --help)\n", command->name);
    return QDQI_EXIT_USAGE;
}

static void print_help(FILE *to) {
    fputs("usage: qdq COMMAND [OPTION…]\n\nRuns quantized models, and shows how they are run.\n\ncommands:\n", to);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`qdq COMMAND --help` explains a command. Exit codes: 0 done, 1 failed (one line on stderr says why), 2 "
          "wrong\n"
          "usage. QDQ_VERBOSE=refuse,plan,time,cache makes the library report on stderr.\n",
          to);
}

static bool is_help(const char *arg) {
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i])) return true;
    return false;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return QDQI_EXIT_USAGE;
    }
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return QDQI_EXIT_OK;
    }
    const char *name = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) != 0) continue;
        if (wants_help(argc - 1, argv + 1)) {
            fputs(commands[i]->usage, stdout);
            return QDQI_EXIT_OK;
        }
        const int code = commands[i]->run(argc - 1, argv + 1);
        if (code == QDQI_EXIT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
            fputs("qdq: standard output cannot be written\n", stderr);
            return QDQI_EXIT_FAILED;
        }
        return code;
    }
    fprintf(stderr, "qdq: there is no command \"%.60s\" (see qdq --help)\n", name);
    return QDQI_EXIT_USAGE;
}
