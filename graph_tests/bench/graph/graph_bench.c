/* Every measurement runs in a process of its own: the peer fixes its constant cache at the first compile, and some graphs
 * make it abort. The parent never starts a thread, so that it may fork. */
#include "graph_bench.h"

#include <math.h>
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
          "  --how            our partitions and how they are computed, to stderr\n",
          f);
}

/* False when the child died; `out` then tells how. */
static bool measure_apart(const gb_options *options, int cache_mb, gb_outcome *out) {
    int pipe_fd[2];
    *out = (gb_outcome){.max_diff = -1.0};
    if (pipe(pipe_fd) != 0) {
        snprintf(out->note, sizeof out->note, "no pipe");
        return false;
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        close(pipe_fd[0]);
        gb_measure(options, cache_mb, out);
        const bool sent = write(pipe_fd[1], out, sizeof *out) == (ssize_t)sizeof *out;
        _exit(sent ? 0 : 1);
    }
    close(pipe_fd[1]);
    const bool got = pid > 0 && read(pipe_fd[0], out, sizeof *out) == (ssize_t)sizeof *out;
    close(pipe_fd[0]);
    int status = 0;
    if (pid > 0) waitpid(pid, &status, 0);
    if (got) return true;
    *out = (gb_outcome){.max_diff = -1.0};
    snprintf(out->note, sizeof out->note, WIFSIGNALED(status) ? "ended by signal %d" : "no result (%d)",
             WIFSIGNALED(status) ? WTERMSIG(status) : status);
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

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* One row of the table. Returns whether libqdq ran. */
static bool run_case(const gb_options *options) {
    gb_outcome on, off;
    gb_options apart = *options;
    apart.max_ms /= 2;
    if (options->show_how) fprintf(stderr, "%s\n", base_name(options->path));
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
    const char *name = base_name(options->path);
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
    else if (strcmp(arg, "--const-weights") == 0)
        o->const_weights = true;
    else if (strcmp(arg, "--how") == 0)
        o->show_how = true;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    gb_options o = {.n_threads = 1, .rounds = 50, .max_ms = 800.0};
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
