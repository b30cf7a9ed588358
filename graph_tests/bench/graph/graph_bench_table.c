#include "graph_bench.h"

#include <math.h>
#include <string.h>

typedef struct measurement {
    const gb_options *options;
    bool peer_first;
    gb_phases *out;
} measurement;

static void measure(void *arg) {
    const measurement *m = arg;
    gb_measure_phases(m->options, m->peer_first, m->out);
}

static bool measure_apart(const gb_options *options, bool peer_first, gb_phases out[2]) {
    measurement m = {options, peer_first, out};
    char why[GB_WHY_BYTES];
    if (gb_apart(measure, &m, out, 2 * sizeof *out, options->timeout_s, why)) return true;
    out[0] = out[1] = (gb_phases){.diff = -1.0};
    snprintf(out[1].note, sizeof out[1].note, "%s", why);
    return false;
}

static double least(double a, double b) {
    if (a <= 0.0) return b;
    return b <= 0.0 ? a : fmin(a, b);
}

/* The better of both orders, phase by phase. */
static void merge(gb_phases *to, const gb_phases *other) {
    if (to->n_parts < other->n_parts) to->n_parts = other->n_parts;
    if (to->n_skipped < other->n_skipped) to->n_skipped = other->n_skipped;
    to->partition_us = least(to->partition_us, other->partition_us);
    to->compile_us = least(to->compile_us, other->compile_us);
    to->first_us = least(to->first_us, other->first_us);
    to->execute_us = least(to->execute_us, other->execute_us);
    to->least_us = least(to->least_us, other->least_us);
    to->heap = least(to->heap, other->heap);
    to->diff = fmax(to->diff, other->diff);
    if (to->note[0] == '\0') memcpy(to->note, other->note, sizeof to->note);
}

static void print_pair(double ours, double peer, double unit, int digits) {
    const double both[2] = {ours, peer};
    for (int i = 0; i < 2; i++) {
        if (both[i] > 0.0)
            printf(" %.*f |", digits, both[i] / unit);
        else
            fputs(" - |", stdout);
    }
}

static void print_parts(const gb_phases *p) {
    if (p->n_skipped > 0)
        printf(" %zu + %zu |", p->n_parts - p->n_skipped, p->n_skipped);
    else
        printf(" %zu |", p->n_parts);
}

static void print_row(const gb_options *o, const char *name, const gb_phases p[2]) {
    printf("| %s |", name);
    print_parts(&p[0]);
    print_parts(&p[1]);
    print_pair(p[0].partition_us, p[1].partition_us, 1.0, 0);
    if (!o->partition_only) {
        print_pair(p[0].compile_us, p[1].compile_us, 1.0, 0);
        print_pair(p[0].first_us, p[1].first_us, 1.0, 0);
        print_pair(p[0].execute_us, p[1].execute_us, 1.0, 1);
        if (p[0].execute_us > 0.0 && p[1].execute_us > 0.0)
            printf(" %.2f |", p[1].execute_us / p[0].execute_us);
        else
            fputs(" - |", stdout);
        print_pair(p[0].heap, p[1].heap, 1024.0, 0);
        for (int i = 0; i < 2 && o->check; i++)
            printf(p[i].diff >= 0.0 ? " %g |" : " - |", p[i].diff);
    }
    printf(" %s%s%s |\n", p[0].note, p[0].note[0] != '\0' && p[1].note[0] != '\0' ? "; " : "", p[1].note);
    fflush(stdout);
}

static void print_head(const gb_options *o) {
    fputs("| case | parts | peer | partition us | peer |", stdout);
    if (!o->partition_only)
        fputs(" compile us | peer | first us | peer | execute us | peer | ratio | KiB | peer |", stdout);
    if (o->check && !o->partition_only) fputs(" diff | peer |", stdout);
    fputs(" note |\n|---|---|---|---|---|", stdout);
    if (!o->partition_only) fputs("---|---|---|---|---|---|---|---|---|", stdout);
    if (o->check && !o->partition_only) fputs("---|---|", stdout);
    fputs("---|\n", stdout);
}

typedef struct sum {
    double log_ratio, worst;
    char worst_case[256];
    int n, n_below, n_more_parts;
} sum;

static void add(sum *s, const char *name, const gb_phases p[2]) {
    if (p[0].n_parts - p[0].n_skipped > p[1].n_parts - p[1].n_skipped && p[1].n_parts > 0) s->n_more_parts++;
    if (p[0].execute_us <= 0.0 || p[1].execute_us <= 0.0) return;
    const double ratio = p[1].execute_us / p[0].execute_us;
    if (s->n == 0 || ratio < s->worst) {
        s->worst = ratio;
        snprintf(s->worst_case, sizeof s->worst_case, "%s", name);
    }
    s->log_ratio += log(ratio);
    s->n_below += ratio < 0.95;
    s->n++;
}

/* The file's name without what follows the point; the folder's, where models are all called model.onnx. */
static void name_of(const char *path, char *name, size_t bytes) {
    const char *base = gb_base_name(path);
    const char *folder = base;
    while (folder > path && (folder == base || folder[-1] != '/'))
        folder--;
    if (strcmp(base, "model.onnx") == 0 && folder < base)
        snprintf(name, bytes, "%.*s", (int)(base - folder) - 1, folder);
    else
        snprintf(name, bytes, "%.*s", (int)strcspn(base, "."), base);
}

static bool run_case(gb_options *o, const char *name, sum *s) {
    gb_phases p[2], other[2];
    const bool alive = measure_apart(o, false, p);
    if (measure_apart(o, true, other))
        for (int i = 0; i < 2; i++)
            merge(&p[i], &other[i]);
    if (!alive) { /* the peer took both down */
        o->only_ours = true;
        if (measure_apart(o, false, other)) merge(&p[0], &other[0]);
        o->only_ours = false;
    }
    print_row(o, name, p);
    add(s, name, p);
    return p[0].note[0] == '\0';
}

bool gb_compare(gb_options *o, char **paths, int n) {
    sum s = {0};
    bool ok = true;
    o->partition_only = o->chain > 0;
    print_head(o);
    if (o->chain > 0) {
        char name[64];
        snprintf(name, sizeof name, "chain of %d blocks", o->chain);
        return run_case(o, name, &s);
    }
    for (int i = 0; i < n; i++) {
        if (strncmp(paths[i], "--", 2) == 0) continue;
        o->path = paths[i];
        char name[256];
        name_of(paths[i], name, sizeof name);
        ok &= run_case(o, name, &s);
    }
    if (s.n > 0)
        printf("\n%d cases compared: geometric mean of execute %.2f, least %.2f (%s), %d below 0.95; %d with more "
               "partitions than the peer\n",
               s.n, exp(s.log_ratio / s.n), s.worst, s.worst_case, s.n_below, s.n_more_parts);
    return ok;
}
