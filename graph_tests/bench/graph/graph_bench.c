/* Every measurement runs in a process of its own: the peer fixes its constant cache at the first compile, and some graphs
 * make it abort. The parent never starts a thread, so that it may fork. */
#include "graph_bench.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CACHE_MB = 4096 };

static void usage(FILE *f) {
    fputs("usage: qdq-graph-bench [options] CASE.json...\n"
          "Run each JSON graph on libqdq and on oneDNN Graph and print a table of least times.\n"
          "  --threads=N      OpenMP threads of both (1)\n"
          "  --rounds=N       rounds, in which the two alternate (50)\n"
          "  --max-ms=N       no further round after N ms per case (800)\n"
          "  --const-weights  graph inputs that lead to weights and bias are constants, whatever the file says\n"
          "  --in-shapes=…, --op-attrs=…  change the cases, in the words of qdq-bench\n"
          "  --how            our partitions and how they are computed, to stderr\n"
          "Both sides through the C API of dnnl_graph.h instead, with the times of every phase:\n"
          "  --compare        CASE may be an ONNX model too\n"
          "  --ours=LIB       the library that stands in for oneDNN's (libqdq_dnnl_graph.so)\n"
          "  --shape=AxBxC    of a model's first input\n"
          "  --cache-mb=N     constant tensor cache of both (as they come)\n"
          "  --check          results beside the reference executor's\n"
          "  --chain=N        no CASE: a chain of N Dequantize-MatMul-ReLU-Quantize blocks, only partitioned\n"
          "  --timeout=S      give up a measurement after S seconds (600)\n",
          f);
}

bool gb_apart(void (*work)(void *arg), void *arg, void *out, size_t bytes, long timeout_s, char why[GB_WHY_BYTES]) {
    int pipe_fd[2];
    if (pipe(pipe_fd) != 0) {
        snprintf(why, GB_WHY_BYTES, "no pipe");
        return false;
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        close(pipe_fd[0]);
        work(arg);
        const bool sent = write(pipe_fd[1], out, bytes) == (ssize_t)bytes;
        _exit(sent ? 0 : 1);
    }
    close(pipe_fd[1]);
    struct pollfd ready = {.fd = pipe_fd[0], .events = POLLIN};
    const bool in_time = pid <= 0 || timeout_s <= 0 || poll(&ready, 1, (int)(timeout_s * 1000)) != 0;
    if (!in_time) kill(pid, SIGKILL);
    const bool got = pid > 0 && in_time && read(pipe_fd[0], out, bytes) == (ssize_t)bytes;
    close(pipe_fd[0]);
    int status = 0;
    if (pid > 0) waitpid(pid, &status, 0);
    if (got) return true;
    if (!in_time)
        snprintf(why, GB_WHY_BYTES, "not done after %ld s", timeout_s);
    else
        snprintf(why, GB_WHY_BYTES, WIFSIGNALED(status) ? "ended by signal %d" : "no result (%d)",
                 WIFSIGNALED(status) ? WTERMSIG(status) : status);
    return false;
}

typedef struct measurement {
    const gb_options *options;
    int cache_mb;
    gb_outcome *out;
} measurement;

static void measure(void *arg) {
    const measurement *m = arg;
    gb_measure(m->options, m->cache_mb, m->out);
}

/* False when the child died; `out` then tells how. */
static bool measure_apart(const gb_options *options, int cache_mb, gb_outcome *out) {
    measurement m = {options, cache_mb, out};
    char why[GB_WHY_BYTES];
    *out = (gb_outcome){.max_diff = -1.0};
    if (gb_apart(measure, &m, out, sizeof *out, options->timeout_s, why)) return true;
    *out = (gb_outcome){.max_diff = -1.0};
    snprintf(out->note, sizeof out->note, "%s", why);
    return false;
}

static double least(double a, double b) {
    if (a <= 0.0) return b;
    return b <= 0.0 ? a : fmin(a, b);
}

static void print_time(double us) {
    if (us > 0.0)
        printf(" %.1f |", us);
    else
        fputs(" - |", stdout);
}

const char *gb_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* One row of the table. Returns whether libqdq ran. */
static bool run_case(const gb_options *options) {
    gb_outcome on, off;
    gb_options apart = *options;
    apart.max_ms /= 2;
    if (options->show_how) fprintf(stderr, "%s\n", gb_base_name(options->path));
    const bool on_alive = measure_apart(&apart, CACHE_MB, &on);
    apart.show_how = false;
    const bool off_alive = measure_apart(&apart, 0, &off);
    double ours_us = least(on.ours_us, off.ours_us);
    if (!on_alive || !off_alive) { /* which side was it? */
        gb_outcome alone;
        apart.show_how = options->show_how;
        if (measure_apart(&apart, GB_OURS_ONLY, &alone)) {
            snprintf(off.note, sizeof off.note, "peer: %.400s", on_alive ? off.note : on.note);
            on.note[0] = '\0';
        }
        ours_us = least(ours_us, alone.ours_us);
        if (alone.n_ours > on.n_ours) on.n_ours = alone.n_ours;
    }
    const double peer_us = least(on.peer_us, off.peer_us);
    const char *name = gb_base_name(options->path);
    printf("| %.*s | %zu | %zu |", (int)strcspn(name, "."), name, on.n_ours, on.n_peer);
    print_time(ours_us);
    print_time(on.peer_us);
    print_time(off.peer_us);
    if (ours_us > 0.0 && peer_us > 0.0)
        printf(" %.2f | %g |", peer_us / ours_us, fmax(on.max_diff, off.max_diff));
    else
        fputs(" - | - |", stdout);
    printf(" %s |\n", on.note[0] != '\0' ? on.note : off.note);
    fflush(stdout);
    return ours_us > 0.0;
}

static bool take_number(const char *arg, const char *name, long hi, long *out) {
    const size_t n = strlen(name);
    char *end;
    if (strncmp(arg, name, n) != 0) return false;
    const long value = strtol(arg + n, &end, 10);
    if (end == arg + n || *end != '\0' || value < 1 || value > hi) return false;
    *out = value;
    return true;
}

/* False when `arg` is no option, or none that can be read. */
static bool take_option(gb_options *o, const char *arg) {
    long value;
    if (take_number(arg, "--threads=", 4096, &value))
        o->n_threads = (int)value;
    else if (take_number(arg, "--rounds=", 1000000, &value))
        o->rounds = (int)value;
    else if (take_number(arg, "--max-ms=", 3600000, &value))
        o->max_ms = (double)value;
    else if (take_number(arg, "--cache-mb=", 1 << 20, &value) || strcmp(arg, "--cache-mb=0") == 0)
        o->cache_mb = strcmp(arg, "--cache-mb=0") == 0 ? 0 : (int)value;
    else if (take_number(arg, "--chain=", 1000000, &value))
        o->chain = (int)value;
    else if (take_number(arg, "--timeout=", 100000, &value))
        o->timeout_s = value;
    else if (strncmp(arg, "--ours=", 7) == 0)
        o->ours = arg + 7;
    else if (strncmp(arg, "--in-shapes=", 12) == 0)
        o->in_shapes = arg + 12;
    else if (strncmp(arg, "--op-attrs=", 11) == 0)
        o->op_attrs = arg + 11;
    else if (strncmp(arg, "--shape=", 8) == 0)
        o->shape = arg + 8;
    else if (strcmp(arg, "--compare") == 0)
        o->compare = true;
    else if (strcmp(arg, "--check") == 0)
        o->check = true;
    else if (strcmp(arg, "--const-weights") == 0)
        o->const_weights = true;
    else if (strcmp(arg, "--how") == 0)
        o->show_how = true;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    gb_options o = {.n_threads = 1,
                    .rounds = 50,
                    .max_ms = 800.0,
                    .ours = "libqdq_dnnl_graph.so",
                    .cache_mb = -1,
                    .timeout_s = 600};
    int n_cases = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            return 0;
        }
        if (strncmp(argv[i], "--", 2) != 0) {
            n_cases++;
        } else if (!take_option(&o, argv[i])) {
            fprintf(stderr, "qdq-graph-bench: cannot read the option %s\n", argv[i]);
            return 2;
        }
    }
    if (o.chain > 0 || (o.compare && n_cases > 0)) return gb_compare(&o, argv + 1, argc - 1) ? 0 : 1;
    if (n_cases == 0) {
        usage(stderr);
        return 2;
    }
    printf("| case | parts | peer parts | libqdq us | peer us, cache on | peer us, cache off | peer best / ours "
           "| max diff | note |\n|---|---|---|---|---|---|---|---|---|\n");
    bool ok = true;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) continue;
        o.path = argv[i];
        ok &= run_case(&o);
    }
    return ok ? 0 : 1;
}
