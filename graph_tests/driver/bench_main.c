/* Command line, batch files, result lines, summary. */
#include "bench.h"

#include "base/alloc.h"

#include <errno.h>
#include <limits.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LIST = 64, MAX_BATCH_DEPTH = 16, MAX_PARENTS = 4 };

/* Values of one knob: a comma-separated list on the command line; a case runs once for each. */
typedef struct values {
    const char *v[MAX_LIST];
    size_t n;
} values;

/* Settings that --reset puts back. */
typedef struct settings {
    values in_shapes, op_attrs, dt, mb, op_kind, fpmath, expected;
} settings;

typedef struct totals {
    long n_tests, by_result[BENCH_N_RESULTS];
    double min_ms, avg_ms, fill_s, ref_s, compare_s;
} totals;

typedef struct bench {
    bench_run run;
    settings s;
    totals t;
    qdqi_arena arena;
    const char *batch; /* that is being read, for look-ups */
    int depth;
    bool template_printed;
    double start_s;
} bench;

static void usage(FILE *to) {
    fputs("usage: qdq-bench [--graph] [OPTION...] --case=FILE | --batch=FILE ...\n"
          "  --case=FILE                  run a JSON graph; looked for as given, beside the batch file and in the "
          "folders\n"
          "                               above it, then in --case-dir or $QDQ_BENCH_CASES\n"
          "  --batch=FILE                 read options from a file: words separated by space, # comments\n"
          "  --mode=C|P|CP|I|L            correctness, performance, both, compile only, list only\n"
          "  --in-shapes=ID:SHAPE[*TAG]+… shapes or layouts of graph inputs (2x3x4, - for rank 0; abcd, acdb, axb …)\n"
          "  --op-attrs=ID:NAME:VAL*…+…   attributes of ops; lists with x between the elements\n"
          "  --mb=N  --dt=DT|ID:DT+…  --op-kind=ID:KIND+…\n"
          "  --expected-n-partitions=N    default 1; 0 for any\n"
          "  --attr-fpmath=MODE[:BOOL]    accepted; computation is strict\n"
          "  --reset                      put the options above back\n"
          "  --fix-times-per-prb=N  --max-ms-per-prb=N  --perf-template=TEXT  --threads=N  --case-dir=DIR\n"
          "  -vN                          1: partitions and their times; 6: points that differ; 99: all points\n"
          "Exit code: 0 when at least one test ran and none failed; 1 otherwise.\n",
          to);
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static const char *keep(bench *b, const char *text) {
    char *copy = qdqi_arena_strdup(&b->arena, text);
    if (copy == NULL) {
        fputs("qdq-bench: out of memory\n", stderr);
        exit(1);
    }
    return copy;
}

/* Report a bad command line; the run goes on to the summary and fails. */
static bool complain(const char *what, const char *text) {
    fprintf(stderr, "qdq-bench: %s `%s`\n", what, text);
    return false;
}

static bool set_values(bench *b, values *list, const char *text) {
    list->n = 0;
    const char *rest = text;
    for (;;) {
        const char *comma = strchr(rest, ',');
        if (list->n == MAX_LIST) return complain("a list is too long:", text);
        char *copy = qdqi_arena_dup(&b->arena, rest, strlen(rest) + 1);
        if (copy == NULL) return complain("out of memory at", text);
        if (comma != NULL) copy[comma - rest] = '\0';
        list->v[list->n++] = copy;
        if (comma == NULL) return true;
        rest = comma + 1;
    }
}

static bool to_long(const char *text, long lo, long hi, long *out) {
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *out >= lo && *out <= hi;
}

static bool set_mode(bench *b, const char *text) {
    b->run.mode = 0;
    if (strcmp(text, "I") == 0)
        b->run.mode = BENCH_MODE_INIT;
    else if (strcmp(text, "L") == 0)
        b->run.mode = BENCH_MODE_LIST;
    else
        for (const char *s = text; *s != '\0'; s++) {
            if (*s != 'C' && *s != 'P') return complain("--mode is one of C P CP I L, not", text);
            b->run.mode |= *s == 'C' ? BENCH_MODE_CORRECTNESS : BENCH_MODE_PERFORMANCE;
        }
    return b->run.mode != 0 || complain("--mode is one of C P CP I L, not", text);
}

static bool check_fpmath(const values *list) {
    static const char *const modes[] = {"strict", "bf16", "f16", "tf32", "any"};
    for (size_t i = 0; i < list->n; i++) {
        const size_t n = strcspn(list->v[i], ":");
        const char *flag = list->v[i] + n;
        bool ok = false;
        for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++)
            ok |= strlen(modes[k]) == n && memcmp(modes[k], list->v[i], n) == 0;
        ok &= *flag == '\0' || strcmp(flag, ":true") == 0 || strcmp(flag, ":false") == 0;
        if (!ok) return complain("--attr-fpmath: not a mode:", list->v[i]);
    }
    return true;
}

static void reset(bench *b) {
    const settings none = {{{""}, 1}, {{""}, 1}, {{""}, 1}, {{"0"}, 1}, {{""}, 1}, {{"strict"}, 1}, {{"1"}, 1}};
    b->s = none;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static bool is_file(const char *path) {
    return access(path, R_OK) == 0;
}

static const char *join(bench *b, const char *dir, size_t n_dir, const char *name) {
    qdqi_text text = {0};
    qdqi_text_add(&text, "%.*s%s%s", (int)n_dir, dir, n_dir > 0 ? "/" : "", name);
    const char *path = text.s != NULL ? keep(b, text.s) : name;
    qdqi_text_free(&text);
    return path;
}

/* As given; beside the batch file and in the folders above it (cases are named from the root of their collection); in the
 * folder of cases. The name itself when it is nowhere, for the error that follows. */
static const char *find_file(bench *b, const char *name) {
    if (is_file(name) || *name == '/') return name;
    if (b->batch != NULL) {
        size_t n = strlen(b->batch);
        for (int i = 0; i < MAX_PARENTS && n > 0; i++) {
            while (n > 0 && b->batch[n - 1] != '/')
                n--;
            if (n > 0) n--; /* the slash */
            const char *path = join(b, b->batch, n, name);
            if (is_file(path)) return path;
        }
    }
    const char *dir = b->run.case_dir != NULL ? b->run.case_dir : getenv("QDQ_BENCH_CASES");
    if (dir != NULL) {
        const char *path = join(b, dir, strlen(dir), name);
        if (is_file(path)) return path;
    }
    return name;
}

/* ---- cases ------------------------------------------------------------------------------------------------------ */

static const char *word_of(bench_result result) {
    switch (result) {
#define BENCH_RESULT_ROW(id, word, bad)                                                                                \
    case BENCH_##id: return word;
        BENCH_RESULTS(BENCH_RESULT_ROW)
#undef BENCH_RESULT_ROW
    case BENCH_N_RESULTS: break;
    }
    return "?";
}

static bool is_bad(bench_result result) {
    switch (result) {
#define BENCH_RESULT_ROW(id, word, bad)                                                                                \
    case BENCH_##id: return bad;
        BENCH_RESULTS(BENCH_RESULT_ROW)
#undef BENCH_RESULT_ROW
    case BENCH_N_RESULTS: break;
    }
    return true;
}

/* Print the performance template: %name% fields, the rest as it stands. */
static void print_perf(const bench *b, const bench_problem *p, const bench_outcome *o) {
    for (const char *s = b->run.perf_template; *s != '\0';) {
        const char *end = *s == '%' ? strchr(s + 1, '%') : NULL;
        if (end == NULL) {
            putchar(*s++);
            continue;
        }
        const size_t n = (size_t)(end - s) - 1;
        if (n == 6 && memcmp(s + 1, "engine", n) == 0)
            fputs("cpu", stdout);
        else if (n == 3 && memcmp(s + 1, "prb", n) == 0)
            fputs(p->repro, stdout);
        else if (n == 4 && memcmp(s + 1, "name", n) == 0)
            fputs(p->name, stdout);
        else if (n == 5 && memcmp(s + 1, "-time", n) == 0)
            printf("%g", o->min_ms);
        else if (n == 5 && memcmp(s + 1, "0time", n) == 0)
            printf("%g", o->avg_ms);
        else if (n == 5 && memcmp(s + 1, "parts", n) == 0)
            printf("%zu", o->n_partitions);
        else
            printf("%.*s", (int)(n + 2), s);
        s = end + 1;
    }
    putchar('\n');
}

static void progress(const bench *b, const char *name) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K[%ld] %s", b->t.n_tests + 1, name);
}

static void progress_end(void) {
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

static void count(bench *b, const bench_outcome *o) {
    totals *t = &b->t;
    t->n_tests++;
    t->by_result[o->result]++;
    t->min_ms += o->min_ms;
    t->avg_ms += o->avg_ms;
    t->fill_s += o->fill_s;
    t->ref_s += o->ref_s;
    t->compare_s += o->compare_s;
}

static void run_problem(bench *b, const bench_problem *p) {
    if (b->run.verbose >= 1) printf("run: %s\n", p->repro);
    fflush(stdout);
    progress(b, p->name);
    bench_outcome o;
    bench_case_run(&b->run, p, &o);
    progress_end();
    const bool perf = (b->run.mode & BENCH_MODE_PERFORMANCE) && !is_bad(o.result);
    if (perf) {
        if (!b->template_printed) printf("Output template: %s\n", b->run.perf_template);
        b->template_printed = true;
        print_perf(b, p, &o);
    }
    if (!perf || o.result != BENCH_EXECUTED)
        printf("%ld:%s%s%s%s __REPRO: %s\n", b->t.n_tests, word_of(o.result), o.why[0] != '\0' ? " (" : "", o.why,
               o.why[0] != '\0' ? ")" : "", p->repro);
    count(b, &o);
    fflush(stdout);
}

static void add_knob(qdqi_text *text, const char *name, const char *value, const char *usual) {
    if (strcmp(value, usual) != 0) qdqi_text_add(text, " --%s=%s", name, value);
}

static bool run_one(bench *b, const char *name, const size_t *at) {
    const settings *s = &b->s;
    const char *mb = s->mb.v[at[3]], *expected = s->expected.v[at[6]];
    long mb_value, expected_value;
    if (!to_long(mb, 0, LONG_MAX, &mb_value)) return complain("--mb is a number from 0, not", mb);
    if (!to_long(expected, 0, LONG_MAX, &expected_value))
        return complain("--expected-n-partitions is a number from 0, not", expected);
    qdqi_text repro = {0};
    if (b->run.mode & BENCH_MODE_PERFORMANCE)
        qdqi_text_add(&repro, "--mode=%s ", b->run.mode & BENCH_MODE_CORRECTNESS ? "CP" : "P");
    if (b->run.mode & BENCH_MODE_PERFORMANCE && b->run.fix_times > 0)
        qdqi_text_add(&repro, "--fix-times-per-prb=%ld ", b->run.fix_times);
    qdqi_text_add(&repro, "--graph");
    add_knob(&repro, "mb", mb, "0");
    add_knob(&repro, "dt", s->dt.v[at[2]], "");
    add_knob(&repro, "in-shapes", s->in_shapes.v[at[0]], "");
    add_knob(&repro, "op-attrs", s->op_attrs.v[at[1]], "");
    add_knob(&repro, "op-kind", s->op_kind.v[at[4]], "");
    add_knob(&repro, "attr-fpmath", s->fpmath.v[at[5]], "strict");
    add_knob(&repro, "expected-n-partitions", expected, "1");
    qdqi_text_add(&repro, " --case=%s", name);
    const bench_problem p = {
        .name = name,
        .path = find_file(b, name),
        .repro = repro.failed ? name : repro.s,
        .rewrites = {.in_shapes = s->in_shapes.v[at[0]],
                     .op_attrs = s->op_attrs.v[at[1]],
                     .dt = s->dt.v[at[2]],
                     .mb = mb_value,
                     .skip_strangers = true,
                     .op_kind = s->op_kind.v[at[4]]},
        .expected_n_partitions = expected_value,
    };
    run_problem(b, &p);
    qdqi_text_free(&repro);
    return true;
}

/* Every combination of the values of the lists. */
static bool run_case(bench *b, const char *name) {
    const values *lists[] = {&b->s.in_shapes, &b->s.op_attrs, &b->s.dt,      &b->s.mb,
                             &b->s.op_kind,   &b->s.fpmath,   &b->s.expected};
    enum { N = sizeof lists / sizeof lists[0] };
    size_t at[N] = {0};
    bool ok = true;
    for (;;) {
        ok &= run_one(b, name, at);
        size_t i = N;
        while (i > 0 && ++at[i - 1] == lists[i - 1]->n)
            at[--i] = 0;
        if (i == 0) return ok;
    }
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

static bool take_option(bench *b, const char *arg);

static bool run_batch(bench *b, const char *name) {
    if (b->depth == MAX_BATCH_DEPTH) return complain("batch files are nested too deep at", name);
    const char *path = keep(b, find_file(b, name));
    FILE *f = fopen(path, "r");
    if (f == NULL) return complain("cannot open the batch file", name);
    const char *was = b->batch;
    b->batch = path;
    b->depth++;
    bool ok = true;
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, f) >= 0) {
        char *rest = line;
        for (char *word = strtok_r(rest, " \t\r\n", &rest); word != NULL && *word != '#';
             word = strtok_r(NULL, " \t\r\n", &rest))
            ok &= take_option(b, keep(b, word));
    }
    free(line);
    if (ferror(f)) ok = complain("cannot read the batch file", name);
    fclose(f);
    b->batch = was;
    b->depth--;
    return ok;
}

/* The value of "--NAME=VALUE", or NULL. */
static const char *value_of(const char *arg, const char *name) {
    const size_t n = strlen(name);
    return strncmp(arg, "--", 2) == 0 && strncmp(arg + 2, name, n) == 0 && arg[2 + n] == '=' ? arg + 3 + n : NULL;
}

static bool take_number(const char *arg, const char *text, long lo, long hi, long *out) {
    return to_long(text, lo, hi, out) || complain("not a number in range:", arg);
}

static bool take_option(bench *b, const char *arg) {
    const struct {
        const char *name;
        values *list;
    } lists[] = {{"in-shapes", &b->s.in_shapes},
                 {"op-attrs", &b->s.op_attrs},
                 {"dt", &b->s.dt},
                 {"mb", &b->s.mb},
                 {"op-kind", &b->s.op_kind},
                 {"attr-fpmath", &b->s.fpmath},
                 {"expected-n-partitions", &b->s.expected}};
    const char *v;
    long number;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if ((v = value_of(arg, lists[i].name)) != NULL)
            return set_values(b, lists[i].list, v) && (lists[i].list != &b->s.fpmath || check_fpmath(&b->s.fpmath));
    if (strcmp(arg, "--graph") == 0) return true;
    if (strcmp(arg, "--reset") == 0) {
        reset(b);
        return true;
    }
    if ((v = value_of(arg, "case")) != NULL) return run_case(b, v);
    if ((v = value_of(arg, "batch")) != NULL) return run_batch(b, v);
    if ((v = value_of(arg, "mode")) != NULL) return set_mode(b, v);
    if ((v = value_of(arg, "fix-times-per-prb")) != NULL) return take_number(arg, v, 0, LONG_MAX, &b->run.fix_times);
    if ((v = value_of(arg, "max-ms-per-prb")) != NULL) {
        if (!take_number(arg, v, 1, 60000, &number)) return false;
        b->run.max_ms = (double)number;
        return true;
    }
    if ((v = value_of(arg, "perf-template")) != NULL) {
        b->run.perf_template = keep(b, v);
        b->template_printed = false;
        return true;
    }
    if ((v = value_of(arg, "case-dir")) != NULL) {
        b->run.case_dir = keep(b, v);
        return true;
    }
    if (value_of(arg, "threads") != NULL) return true; /* taken before the engine was made */
    if ((v = value_of(arg, "engine")) != NULL) return strncmp(v, "cpu", 3) == 0 || complain("no such engine:", v);
    if (strncmp(arg, "-v", 2) == 0 && to_long(arg + 2, 0, 99, &number)) {
        b->run.verbose = (int)number;
        return true;
    }
    return complain("unknown option", arg);
}

static void summary(const bench *b) {
    const totals *t = &b->t;
    const long good = t->by_result[BENCH_PASSED] + t->by_result[BENCH_INITIALIZED] + t->by_result[BENCH_EXECUTED];
    long failed = 0;
    for (int i = 0; i < BENCH_N_RESULTS; i++)
        failed += is_bad((bench_result)i) ? t->by_result[i] : 0;
    printf("tests:%ld passed:%ld skipped:%ld mistrusted:%ld unimplemented:%ld invalid_arguments:%ld failed:%ld "
           "listed:%ld\n",
           t->n_tests, good, t->by_result[BENCH_SKIPPED], t->by_result[BENCH_MISTRUSTED],
           t->by_result[BENCH_UNIMPLEMENTED], t->by_result[BENCH_INVALID_ARGUMENTS], failed,
           t->by_result[BENCH_LISTED]);
    if (b->run.mode & BENCH_MODE_PERFORMANCE) printf("total perf: min(ms):%g avg(ms):%g\n", t->min_ms, t->avg_ms);
    const double total = bench_now_s() - b->start_s, per_cent = total > 0.0 ? 100.0 / total : 0.0;
    printf("total: %.2fs; fill: %.2fs (%.0f%%); compute_ref: %.2fs (%.0f%%); compare: %.2fs (%.0f%%);\n", total,
           t->fill_s, t->fill_s * per_cent, t->ref_s, t->ref_s * per_cent, t->compare_s, t->compare_s * per_cent);
}

static bool has_failure(const bench *b) {
    for (int i = 0; i < BENCH_N_RESULTS; i++)
        if (is_bad((bench_result)i) && b->t.by_result[i] > 0) return true;
    return b->t.n_tests == 0;
}

static bool make_engine(bench *b, int argc, char **argv) {
    long n_threads = 0;
    for (int i = 1; i < argc; i++) {
        const char *v = value_of(argv[i], "threads");
        if (v != NULL && !take_number(argv[i], v, 1, 4096, &n_threads)) return false;
    }
    const qdq_engine_options options = {.struct_bytes = sizeof options, .n_threads = (int)n_threads};
    qdq_error err = {0};
    if (qdq_engine_create(&options, &b->run.engine, &err) == QDQ_OK) return true;
    return complain("no engine:", err.text);
}

int main(int argc, char **argv) {
    bench b = {.run = {.mode = BENCH_MODE_CORRECTNESS,
                       .max_ms = 3000.0,
                       .perf_template = "perf,%engine%,%prb%,%-time%,%0time%"},
               .start_s = bench_now_s()};
    reset(&b);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0) continue;
        usage(stdout);
        return 0;
    }
    bool ok = make_engine(&b, argc, argv);
    for (int i = 1; i < argc && b.run.engine != NULL; i++)
        ok &= take_option(&b, argv[i]);
    summary(&b);
    if (b.t.n_tests == 0) fputs("qdq-bench: no test ran (--help tells how)\n", stderr);
    qdq_engine_destroy(&b.run.engine);
    const bool failed = !ok || has_failure(&b);
    qdqi_arena_free(&b.arena);
    return failed ? 1 : 0;
}
