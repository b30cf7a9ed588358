/* qdq ops */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void print_range(FILE *to, int min, int max) {
    if (max < 0)
        fprintf(to, "%d…", min);
    else if (min == max)
        fprintf(to, "%d", min);
    else
        fprintf(to, "%d…%d", min, max);
}

/* ---- the list ---- */

static qdq_status print_list(FILE *to, bool markdown, bool links, qdq_error *err) {
    if (markdown) fprintf(to, "| op | origin | inputs | outputs |\n|---|---|---|---|\n");
    for (size_t i = 0; i < qdq_backend_n_ops(); i++) {
        qdq_op_info info;
        QDQI_TRY(qdq_backend_op(i, &info, err));
        if (links)
            fprintf(to, "| [%s](%s.md) | %s | ", info.kind, info.kind, info.origin);
        else
            fprintf(to, markdown ? "| `%s` | %s | " : "%-24s %-14s ", info.kind, info.origin);
        print_range(to, info.min_inputs, info.max_inputs);
        fputs(markdown ? " | " : " -> ", to);
        print_range(to, info.min_outputs, info.max_outputs);
        fputs(markdown ? " |\n" : "\n", to);
    }
    return QDQ_OK;
}

/* ---- a page per op ---- */

/* Text in a cell of a table: a bar would end it. */
static void print_cell(FILE *to, const char *text) {
    for (; *text != '\0'; text++)
        fprintf(to, *text == '|' ? "\\|" : "%c", *text);
}

/* The n-th of "a, [b], c"; the number itself when there are no names. */
static void print_port_name(FILE *to, const char *names, int port) {
    for (int i = 0; i < port && names != NULL; i++) {
        names = strchr(names, ',');
        if (names != NULL) names += strspn(names, ", ");
    }
    if (names == NULL || *names == '\0')
        fprintf(to, "%d", port);
    else
        fprintf(to, "%.*s", (int)strcspn(names, ","), names);
}

static void print_ports(FILE *to, size_t op, const qdq_op_info *info, bool output) {
#define QDQ_DTYPE_ITEM(name, value, text, bits) QDQ_DTYPE_##name,
    static const qdq_dtype dtypes[] = {QDQ_DTYPE_MAP(QDQ_DTYPE_ITEM)};
#undef QDQ_DTYPE_ITEM
    const int max = output ? info->max_outputs : info->max_inputs;
    const int n = max >= 0 ? max : (output ? info->min_outputs : info->min_inputs) + 1;
    for (int port = 0; port < n; port++) {
        fprintf(to, "| %s ", output ? "out" : "in");
        print_port_name(to, output ? info->outputs : info->inputs, port);
        if (max < 0 && port == n - 1) fputs("…", to);
        fputs(" |", to);
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
            if (qdq_backend_op_takes(op, output, (size_t)port, dtypes[d]))
                fprintf(to, " %s", qdq_dtype_name(dtypes[d]));
        fputs(" |\n", to);
    }
}

/* As short as it can be and still be the same f32. */
static void print_number(FILE *to, double number) {
    char text[32];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if ((float)strtod(text, NULL) == (float)number) break;
    }
    fputs(text, to);
}

static void print_default(FILE *to, const qdq_op_attr_info *a) {
    const bool list = strchr(a->type, '[') != NULL;
    if (a->required)
        fputs("required", to);
    else if (!a->has_default)
        fputs("none", to);
    else if (list)
        fputs("empty", to);
    else if (a->default_string != NULL)
        fprintf(to, "`%s`", a->default_string);
    else if (strcmp(a->type, "bool") == 0)
        fputs(a->default_number != 0.0 ? "true" : "false", to);
    else
        print_number(to, a->default_number);
}

static void print_values(FILE *to, const qdq_op_attr_info *a) {
    if (a->choices != NULL)
        print_cell(to, a->choices);
    else if (strcmp(a->type, "bool") == 0)
        fputs("true, false", to);
    else if (a->has_min && a->has_max && a->max < INT32_MAX)
        fprintf(to, "%" PRId64 "…%" PRId64, a->min, a->max);
    else if (a->has_min)
        fprintf(to, "at least %" PRId64, a->min);
    else
        fputs("any", to);
}

static qdq_status print_attrs(FILE *to, size_t op, const qdq_op_info *info, qdq_error *err) {
    if (info->n_attrs == 0) {
        fputs("\nNo attributes.\n", to);
        return QDQ_OK;
    }
    fputs("\n| attribute | type | default | values |\n|---|---|---|---|\n", to);
    for (size_t i = 0; i < info->n_attrs; i++) {
        qdq_op_attr_info a;
        QDQI_TRY(qdq_backend_op_attr(op, i, &a, err));
        fprintf(to, "| `%s` | %s | ", a.name, a.type);
        print_default(to, &a);
        fputs(" | ", to);
        print_values(to, &a);
        fputs(" |\n", to);
    }
    return QDQ_OK;
}

static qdq_status print_page(FILE *to, size_t op, qdq_error *err) {
    qdq_op_info info;
    QDQI_TRY(qdq_backend_op(op, &info, err));
    fprintf(to, "# %s\n\nSemantics and spelling: %s. Inputs ", info.kind, info.origin);
    print_range(to, info.min_inputs, info.max_inputs);
    fputs(", outputs ", to);
    print_range(to, info.min_outputs, info.max_outputs);
    fputs(".\n", to);
    if (info.formula[0] != '\0') fprintf(to, "\n    %s\n", info.formula);
    fputs("\n| port | data types |\n|---|---|\n", to);
    print_ports(to, op, &info, false);
    print_ports(to, op, &info, true);
    QDQI_TRY(print_attrs(to, op, &info, err));
    fprintf(to, "\nRules of the table: data types `%s`, shapes `%s`, checks `%s`.\n", info.dtype_rule, info.shape_rule,
            info.check_rule);
    return QDQ_OK;
}

/* DIR/<name>.md, written by `print`. */
static qdq_status write_page(const char *dir, const char *name, qdq_status (*print)(FILE *, size_t, qdq_error *),
                             size_t op, qdq_error *err) {
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s.md", dir, name);
    if (n < 0 || (size_t)n >= sizeof path) return qdqi_fail(err, QDQ_E_IO, "%.80s…: the path is too long", dir);
    FILE *to = fopen(path, "w");
    if (to == NULL) return qdqi_fail(err, QDQ_E_IO, "%s: %s", path, strerror(errno));
    const qdq_status st = print(to, op, err);
    const bool written = ferror(to) == 0;
    if (fclose(to) != 0 || !written) return qdqi_fail(err, QDQ_E_IO, "%s: %s", path, strerror(errno));
    return st;
}

static qdq_status print_index(FILE *to, size_t op, qdq_error *err) {
    (void)op;
    fputs("# Op kinds\n\nPrinted by `qdq ops --pages`, out of the op tables. How numbers are quantized:\n"
          "[quantization](../quantization.md).\n\n",
          to);
    return print_list(to, true, true, err);
}

static qdq_status write_pages(const char *dir, qdq_error *err) {
    QDQI_TRY(write_page(dir, "README", print_index, 0, err));
    for (size_t i = 0; i < qdq_backend_n_ops(); i++) {
        qdq_op_info info;
        QDQI_TRY(qdq_backend_op(i, &info, err));
        QDQI_TRY(write_page(dir, info.kind, print_page, i, err));
    }
    printf("%zu pages in %s\n", qdq_backend_n_ops() + 1, dir);
    return QDQ_OK;
}

static int run(int argc, char **argv) {
    qdqi_args args = {.argc = argc, .at = 1, .argv = argv};
    const char *option = NULL, *value = NULL, *pages = NULL;
    bool markdown = false;
    while (qdqi_args_next(&args, &option, &value)) {
        if (option != NULL && strcmp(option, "--markdown") == 0 && value == NULL) {
            markdown = true;
        } else if (option != NULL && strcmp(option, "--pages") == 0) {
            pages = qdqi_args_value(&args, value);
            if (pages == NULL) return qdqi_cli_usage_error(&qdqi_command_ops, "--pages needs a value");
        } else {
            return qdqi_cli_usage_error(&qdqi_command_ops, "unexpected argument \"%.60s\"",
                                        option != NULL ? option : value);
        }
    }
    qdq_error err = {0};
    const qdq_status st = pages != NULL ? write_pages(pages, &err) : print_list(stdout, markdown, false, &err);
    return st == QDQ_OK ? QDQI_EXIT_OK : qdqi_cli_failed(&err);
}

const qdqi_command qdqi_command_ops = {
    .name = "ops",
    .summary = "the op kinds that graphs may have",
    .usage = "usage: qdq ops [--markdown] [--pages DIR]\n\n"
             "List the op kinds that graphs may have: kind, whose semantics, number of inputs and outputs.\n"
             "  --markdown   as a table\n"
             "  --pages DIR  write a Markdown page per op kind into an existing folder instead: ports, attributes, "
             "formula\n",
    .run = run,
};
