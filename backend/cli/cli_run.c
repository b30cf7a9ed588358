/* qdq run: load a model, run it, show what came out and where the time went. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ITEMS = 64, SEED = 1 };

/* "NAME=FILE" or "FILE" */
typedef struct input_arg {
    const char *name; /* NULL: by position */
    const char *path;
} input_arg;

typedef struct run_args {
    const char *model;
    const char *output_dir;
    int64_t repeat;
    int64_t threads;
    bool reference, single, verbose;
    input_arg inputs[MAX_ITEMS];
    qdq_dim_binding dims[MAX_ITEMS];
    qdq_input_shape shapes[MAX_ITEMS];
    int64_t shape_dims[MAX_ITEMS][QDQ_MAX_NDIMS];
    size_t n_inputs, n_dims, n_shapes;
    char *owned[3 * MAX_ITEMS]; /* names cut out of arguments */
    size_t n_owned;
} run_args;

/* Everything that is freed at the end. */
typedef struct run_state {
    qdqi_array given[MAX_ITEMS]; /* contents of args.inputs */
    qdq_graph *graph;
    qdq_engine *engine;
    qdq_session *session;
    qdqi_array *in, *out; /* per port; an input is a given one or random */
    const void **in_data;
    void **out_data;
    double *part_ms; /* of each partition before the timed runs */
    size_t n_in, n_out;
} run_state;

/* ---- arguments ---- */

/* The first `n` characters of an option's value, kept by args; NULL when out of memory. */
static const char *name_of(run_args *args, const char *value, size_t n) {
    char *name = qdqi_malloc(n + 1);
    if (name == NULL) return NULL;
    memcpy(name, value, n);
    name[n] = '\0';
    args->owned[args->n_owned++] = name;
    return name;
}

static int no_memory(void) {
    qdq_error err = {0};
    (void)QDQI_NO_MEMORY(&err);
    return qdqi_cli_failed(&err);
}

static int take_input(run_args *args, const char *value) {
    if (args->n_inputs == MAX_ITEMS) return qdqi_cli_usage_error(&qdqi_command_run, "more than %d inputs", MAX_ITEMS);
    input_arg *input = &args->inputs[args->n_inputs++];
    *input = (input_arg){.path = value};
    const char *equals = strchr(value, '=');
    if (equals == NULL || access(value, F_OK) == 0) return QDQI_EXIT_OK;
    if (equals == value || equals[1] == '\0')
        return qdqi_cli_usage_error(&qdqi_command_run, "--input %.80s is not FILE or NAME=FILE", value);
    input->name = name_of(args, value, (size_t)(equals - value));
    input->path = equals + 1;
    return input->name == NULL ? no_memory() : QDQI_EXIT_OK;
}

static int take_dim(run_args *args, const char *value) {
    if (args->n_dims == MAX_ITEMS) return qdqi_cli_usage_error(&qdqi_command_run, "more than %d dims", MAX_ITEMS);
    const char *equals = strrchr(value, '=');
    int64_t v = 0;
    if (equals == NULL || equals == value || !qdqi_parse_i64(equals + 1, 0, INT64_MAX, &v))
        return qdqi_cli_usage_error(&qdqi_command_run, "--dim %.80s is not NAME=SIZE", value);
    const char *name = name_of(args, value, (size_t)(equals - value));
    if (name == NULL) return no_memory();
    args->dims[args->n_dims++] = (qdq_dim_binding){.name = name, .value = v};
    return QDQI_EXIT_OK;
}

static int take_shape(run_args *args, const char *value) {
    if (args->n_shapes == MAX_ITEMS) return qdqi_cli_usage_error(&qdqi_command_run, "more than %d shapes", MAX_ITEMS);
    const char *colon = strrchr(value, ':');
    int64_t *dims = args->shape_dims[args->n_shapes];
    int32_t ndims = 0;
    if (colon == NULL || colon == value || !qdqi_parse_shape(colon + 1, &ndims, dims))
        return qdqi_cli_usage_error(&qdqi_command_run, "--shape %.80s is not NAME:1x3x224x224", value);
    const char *name = name_of(args, value, (size_t)(colon - value));
    if (name == NULL) return no_memory();
    args->shapes[args->n_shapes++] = (qdq_input_shape){.name = name, .ndims = ndims, .dims = dims};
    return QDQI_EXIT_OK;
}

static int take_number(const char *option, const char *value, int64_t min, int64_t max, int64_t *out) {
    if (qdqi_parse_i64(value, min, max, out)) return QDQI_EXIT_OK;
    return qdqi_cli_usage_error(&qdqi_command_run, "%s %.40s is not a number from %" PRId64 " to %" PRId64, option,
                                value, min, max);
}

static int take_option(run_args *args, const char *option, const char *value) {
    if (strcmp(option, "--input") == 0) return take_input(args, value);
    if (strcmp(option, "--dim") == 0) return take_dim(args, value);
    if (strcmp(option, "--shape") == 0) return take_shape(args, value);
    if (strcmp(option, "--repeat") == 0) return take_number(option, value, 1, 1000000000, &args->repeat);
    if (strcmp(option, "--threads") == 0) return take_number(option, value, 1, 4096, &args->threads);
    args->output_dir = value;
    return QDQI_EXIT_OK;
}

static bool *flag_of(run_args *args, const char *option) {
    if (strcmp(option, "--reference") == 0) return &args->reference;
    if (strcmp(option, "--single") == 0) return &args->single;
    if (strcmp(option, "--verbose") == 0) return &args->verbose;
    return NULL;
}

static bool has_value(const char *option) {
    static const char *const names[] = {"--input", "--dim", "--shape", "--repeat", "--threads", "--output-dir"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(option, names[i]) == 0) return true;
    return false;
}

static int parse(int argc, char **argv, run_args *args) {
    qdqi_args from = {.argc = argc, .at = 1, .argv = argv};
    const char *option = NULL, *value = NULL;
    while (qdqi_args_next(&from, &option, &value)) {
        if (option == NULL) {
            if (args->model != NULL) return qdqi_cli_usage_error(&qdqi_command_run, "two models: %.80s", value);
            args->model = value;
            continue;
        }
        bool *flag = flag_of(args, option);
        if (flag != NULL && value == NULL) {
            *flag = true;
        } else if (has_value(option)) {
            value = qdqi_args_value(&from, value);
            if (value == NULL) return qdqi_cli_usage_error(&qdqi_command_run, "%s needs a value", option);
            const int code = take_option(args, option, value);
            if (code != QDQI_EXIT_OK) return code;
        } else {
            return qdqi_cli_usage_error(&qdqi_command_run, "unknown option %.60s", option);
        }
    }
    if (args->model == NULL) return qdqi_cli_usage_error(&qdqi_command_run, "no model is given");
    return QDQI_EXIT_OK;
}

static void free_args(run_args *args) {
    for (size_t i = 0; i < args->n_owned; i++)
        qdqi_free(args->owned[i]);
}

/* ---- loading ---- */

static qdq_status load(const run_args *args, run_state *s, qdq_error *err) {
    qdq_input_shape data_shapes[MAX_ITEMS];
    for (size_t i = 0; i < args->n_inputs; i++) {
        QDQI_TRY(qdqi_npy_read(args->inputs[i].path, &s->given[i], err));
        data_shapes[i] =
            (qdq_input_shape){.name = args->inputs[i].name, .ndims = s->given[i].ndims, .dims = s->given[i].dims};
    }
    const qdq_onnx_options options = {.struct_bytes = sizeof options,
                                      .dims = args->dims,
                                      .n_dims = args->n_dims,
                                      .shapes = args->shapes,
                                      .n_shapes = args->n_shapes,
                                      .data_shapes = data_shapes,
                                      .n_data_shapes = args->n_inputs};
    return qdq_onnx_load_file(args->model, &options, &s->graph, err);
}

static const char *shown(const char *name, size_t i, char *buffer, size_t bytes) {
    if (name != NULL && name[0] != '\0') return name;
    snprintf(buffer, bytes, "#%zu", i);
    return buffer;
}

/* Index of the given array for an input, or args->n_inputs. */
static size_t given_for(const run_args *args, size_t port, const char *name) {
    for (size_t i = 0; i < args->n_inputs; i++)
        if (args->inputs[i].name == NULL ? i == port : name != NULL && strcmp(args->inputs[i].name, name) == 0)
            return i;
    return args->n_inputs;
}

static qdq_status check_given(const input_arg *arg, const qdqi_array *array, const qdq_tensor_desc *desc,
                              const char *name, qdq_error *err) {
    if (array->dtype != desc->dtype)
        return qdqi_fail(err, QDQ_E_BAD_DTYPE, "%s: data type %s, input \"%.100s\" expects %s", arg->path,
                         qdq_dtype_name(array->dtype), name, qdq_dtype_name(desc->dtype));
    bool same = array->ndims == desc->ndims;
    for (int32_t d = 0; same && d < desc->ndims; d++)
        same = array->dims[d] == desc->dims[d];
    if (same) return QDQ_OK;
    return qdqi_fail(err, QDQ_E_BAD_SHAPE, "%s: shape %s, input \"%.100s\" expects %s", arg->path,
                     qdqi_shape_str(array->ndims, array->dims).s, name, qdqi_shape_str(desc->ndims, desc->dims).s);
}

static qdq_status prepare_input(const run_args *args, run_state *s, size_t i, qdq_error *err) {
    qdq_tensor_desc desc;
    const char *name = NULL;
    char number[32];
    QDQI_TRY(qdq_session_input_desc(s->session, i, &desc, &name, err));
    const size_t from = given_for(args, i, name);
    name = shown(name, i, number, sizeof number);
    const char *source = "random values, seed 1";
    if (from < args->n_inputs) {
        QDQI_TRY(check_given(&args->inputs[from], &s->given[from], &desc, name, err));
        s->in[i] = s->given[from];
        s->given[from] = (qdqi_array){0};
        source = args->inputs[from].path;
    } else {
        QDQI_TRY(qdqi_array_create(&desc, &s->in[i], err));
        qdqi_array_fill_random(&s->in[i], SEED + i);
    }
    s->in_data[i] = s->in[i].data;
    printf("input  %s  %s %s  %s\n", name, qdq_dtype_name(desc.dtype), qdqi_shape_str(desc.ndims, desc.dims).s, source);
    return QDQ_OK;
}

static qdq_status prepare(const run_args *args, run_state *s, qdq_error *err) {
    const qdq_engine_options engine = {.struct_bytes = sizeof engine, .n_threads = (int)args->threads};
    const qdq_session_options options = {.struct_bytes = sizeof options,
                                         .policy = args->single ? QDQ_POLICY_SINGLE : QDQ_POLICY_FUSION,
                                         .reference = args->reference,
                                         .profile = true};
    QDQI_TRY(qdq_engine_create(&engine, &s->engine, err));
    QDQI_TRY(qdq_session_create(s->graph, s->engine, &options, &s->session, err));
    s->n_in = qdq_session_n_inputs(s->session);
    s->n_out = qdq_session_n_outputs(s->session);
    s->in = qdqi_calloc(s->n_in + 1, sizeof *s->in);
    s->out = qdqi_calloc(s->n_out + 1, sizeof *s->out);
    s->in_data = qdqi_calloc(s->n_in + 1, sizeof *s->in_data);
    s->out_data = qdqi_calloc(s->n_out + 1, sizeof *s->out_data);
    s->part_ms = qdqi_calloc(qdq_session_n_parts(s->session) + 1, sizeof *s->part_ms);
    if (s->in == NULL || s->out == NULL || s->in_data == NULL || s->out_data == NULL || s->part_ms == NULL)
        return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < s->n_in; i++)
        QDQI_TRY(prepare_input(args, s, i, err));
    for (size_t i = 0; i < s->n_out; i++) {
        qdq_tensor_desc desc;
        QDQI_TRY(qdq_session_output_desc(s->session, i, &desc, NULL, err));
        QDQI_TRY(qdqi_array_create(&desc, &s->out[i], err));
        s->out_data[i] = s->out[i].data;
    }
    return QDQ_OK;
}

/* ---- running ---- */

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static qdq_status run_once(run_state *s, double *ms_out, qdq_error *err) {
    const double start = now_ms();
    QDQI_TRY(qdq_session_run(s->session, s->in_data, s->n_in, s->out_data, s->n_out, err));
    *ms_out = now_ms() - start;
    return QDQ_OK;
}

typedef struct times {
    double min, sum;
    int64_t n;
    bool is_warm;
} times;

/* One run warms up; only a single run of the (slow) reference counts cold. */
static qdq_status run_all(const run_args *args, run_state *s, times *t, qdq_error *err) {
    double ms = 0.0;
    *t = (times){.is_warm = args->repeat > 1 || !args->reference};
    if (t->is_warm) QDQI_TRY(run_once(s, &ms, err));
    for (size_t i = 0; i < qdq_session_n_parts(s->session); i++) {
        qdq_session_part_info info;
        QDQI_TRY(qdq_session_part(s->session, i, &info, err));
        s->part_ms[i] = info.total_ms;
    }
    const bool shows_progress = args->repeat > 1 && isatty(STDERR_FILENO);
    double shown_at = now_ms();
    for (; t->n < args->repeat; t->n++) {
        QDQI_TRY(run_once(s, &ms, err));
        if (t->n == 0 || ms < t->min) t->min = ms;
        t->sum += ms;
        if (shows_progress && now_ms() - shown_at > 200.0) {
            shown_at = now_ms();
            fprintf(stderr, "\rrun %" PRId64 " of %" PRId64 " ", t->n + 1, args->repeat);
        }
    }
    if (shows_progress) fputs("\r                                        \r", stderr);
    return QDQ_OK;
}

/* ---- showing ---- */

static qdq_status print_outputs(const run_state *s, qdq_error *err) {
    for (size_t i = 0; i < s->n_out; i++) {
        qdq_tensor_desc desc;
        const char *name = NULL;
        char number[32];
        QDQI_TRY(qdq_session_output_desc(s->session, i, &desc, &name, err));
        printf("output %s  %s %s  %s\n", shown(name, i, number, sizeof number), qdq_dtype_name(desc.dtype),
               qdqi_shape_str(desc.ndims, desc.dims).s, qdqi_array_summary(&s->out[i]).s);
    }
    return QDQ_OK;
}

static qdq_status print_times(const run_args *args, const run_state *s, const times *t, qdq_error *err) {
    size_t n_parts = 0, n_folded = 0, n_fused_ops = 0, n_fused = 0, n_alone = 0;
    double sum = 0.0;
    for (size_t i = 0; i < qdq_session_n_parts(s->session); i++) {
        qdq_session_part_info info;
        QDQI_TRY(qdq_session_part(s->session, i, &info, err));
        sum += info.folded ? 0.0 : info.total_ms - s->part_ms[i];
    }
    printf("\n%10s %6s  %-28s %s\n", "ms", "share", "pattern", "ops  [implementation]  name");
    for (size_t i = 0; i < qdq_session_n_parts(s->session); i++) {
        qdq_session_part_info info;
        QDQI_TRY(qdq_session_part(s->session, i, &info, err));
        if (info.folded) {
            n_folded++;
            continue;
        }
        n_parts++;
        n_fused += info.n_ops > 1;
        n_fused_ops += info.n_ops > 1 ? info.n_ops : 0;
        n_alone += info.n_ops == 1;
        const double ms = info.total_ms - s->part_ms[i];
        printf("%10.4f %5.1f%%  %-28s %s  [%s]  %s\n", ms / (double)t->n, sum > 0.0 ? 100.0 * ms / sum : 0.0,
               info.pattern, info.ops, info.impl, info.name);
    }
    printf("\npartitions %zu: %zu fused with %zu ops, %zu ops left alone; %zu folded at compile\n", n_parts, n_fused,
           n_fused_ops, n_alone, n_folded);
    printf("time per run: min %.4f ms, average %.4f ms of %" PRId64 " run%s%s%s\n", t->min, t->sum / (double)t->n, t->n,
           t->n == 1 ? "" : "s", t->is_warm ? " after one to warm up" : "",
           args->reference ? ", reference implementation" : "");
    return QDQ_OK;
}

static qdq_status write_outputs(const run_args *args, const run_state *s, qdq_error *err) {
    const char *folder = args->output_dir;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return qdqi_fail(err, QDQ_E_IO, "%s: cannot be made: %s", folder, strerror(errno));
    for (size_t i = 0; i < s->n_out; i++) {
        qdqi_text path = {0};
        qdqi_text_add(&path, "%s/output_%zu.npy", folder, i);
        const qdq_status st = path.failed ? QDQI_NO_MEMORY(err) : qdqi_npy_write(path.s, &s->out[i], err);
        qdqi_text_free(&path);
        QDQI_TRY(st);
    }
    return QDQ_OK;
}

static qdq_status load_and_run(const run_args *args, run_state *s, qdq_error *err) {
    times t;
    const double start = now_ms();
    QDQI_TRY(load(args, s, err));
    const double loaded = now_ms();
    QDQI_TRY(prepare(args, s, err));
    if (args->verbose)
        printf("graph  %zu ops, read in %.1f ms, compiled in %.1f ms\n", qdq_graph_n_ops(s->graph), loaded - start,
               now_ms() - loaded);
    QDQI_TRY(run_all(args, s, &t, err));
    QDQI_TRY(print_outputs(s, err));
    QDQI_TRY(print_times(args, s, &t, err));
    return args->output_dir == NULL ? QDQ_OK : write_outputs(args, s, err);
}

static void free_state(run_state *s) {
    for (size_t i = 0; i < MAX_ITEMS; i++)
        qdqi_array_free(&s->given[i]);
    for (size_t i = 0; s->in != NULL && i < s->n_in; i++)
        qdqi_array_free(&s->in[i]);
    for (size_t i = 0; s->out != NULL && i < s->n_out; i++)
        qdqi_array_free(&s->out[i]);
    qdqi_free(s->in);
    qdqi_free(s->out);
    qdqi_free(s->in_data);
    qdqi_free(s->out_data);
    qdqi_free(s->part_ms);
    qdq_session_destroy(&s->session);
    qdq_engine_destroy(&s->engine);
    qdq_graph_destroy(&s->graph);
}

static int run(int argc, char **argv) {
    run_args args = {.repeat = 1};
    run_state state = {0};
    qdq_error err = {0};
    int code = parse(argc, argv, &args);
    if (code == QDQI_EXIT_OK && load_and_run(&args, &state, &err) != QDQ_OK) code = qdqi_cli_failed(&err);
    free_state(&state);
    free_args(&args);
    return code;
}

const qdqi_command qdqi_command_run = {
    .name = "run",
    .summary = "run an ONNX model; show its outputs and where the time goes",
    .usage =
        "usage: qdq run MODEL.onnx [OPTION…]\n\n"
        "Run a model once (or --repeat times); print a summary of every output, the time of every partition with the\n"
        "ops that it fused and how it is computed, and the time of the whole.\n\n"
        "  --input FILE.npy       an input, in the order of the model's inputs; or NAME=FILE.npy. Shapes of the files\n"
        "                         bind symbolic dimensions. Inputs without a file get random values (always the "
        "same).\n"
        "  --output-dir DIR       write the outputs to DIR/output_0.npy, … (DIR is made)\n"
        "  --repeat N             run N times after one run to warm up\n"
        "  --reference            every op on its own, by the plain reference implementation (slow)\n"
        "  --single               every op on its own, not fused\n"
        "  --threads N            number of threads\n"
        "  --dim NAME=SIZE        value of a symbolic dimension (else 1)\n"
        "  --shape NAME:1x3x64x64 shape of an input, instead of the one in the model\n"
        "  --verbose              also the number of ops, and the time to read and compile\n",
    .run = run,
};
