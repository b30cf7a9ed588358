/* The figures of a whole run in tables: for a document, or the worst first. */
#include "kbench_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a figure should reach: the share of the stream limit, or so many times the time of the loop written by hand. */
static const double least_of_limit = 0.85, most_of_floor = 1.1;
/* Below this the figure falls short; the rest is noise. */
static const double least_grade = 0.97;

typedef struct table {
    const kbench_result *results;
    size_t n;
} table;

static const kbench_result *with_threads(const table *t, const kbench_result *r, int threads) {
    for (size_t i = 0; i < t->n; i++)
        if (t->results[i].threads == threads && kbench_is_same_case(&t->results[i], r)) return &t->results[i];
    return NULL;
}

/* How much of what it should be a figure is: the least of its share of the limit (or of the loop by hand, where arithmetic and not
 * bytes binds) over the goal, of its gain over oneDNN, and over itself on one thread. Infinite where nothing says. */
static double grade_of(const kbench_result *r) {
    double grade = INFINITY;
    const double floor = r->floor > 0.0 ? most_of_floor * r->floor / r->own : 0.0;
    const double limit = r->macs > 0.0 ? 0.0 : r->limit / r->own / least_of_limit;
    if (floor > 0.0 || limit > 0.0) grade = floor > limit ? floor : limit;
    if (r->peer > 0.0 && r->peer / r->own < grade) grade = r->peer / r->own;
    if (r->one_thread / r->own < grade) grade = r->one_thread / r->own;
    return grade;
}

/* Two digits that matter, or an empty cell. */
static void print_ratio(FILE *out, double a, double b) {
    if (a > 0.0 && b > 0.0)
        fprintf(out, a / b < 9.995 ? " %.2f |" : " %.0f |", a / b);
    else
        fprintf(out, " |");
}

/* ---- summary ---- */

typedef struct mean {
    double logs, least, most;
    size_t n;
} mean;

static void add(mean *m, double a, double b) {
    if (a <= 0.0 || b <= 0.0) return;
    const double ratio = a / b;
    m->logs += log(ratio);
    m->least = m->n == 0 || ratio < m->least ? ratio : m->least;
    m->most = m->n == 0 || ratio > m->most ? ratio : m->most;
    m->n++;
}

static void print_mean(FILE *out, const mean *m, bool most) {
    print_ratio(out, m->n ? exp(m->logs / (double)m->n) : 0.0, 1.0);
    print_ratio(out, m->n ? (most ? m->most : m->least) : 0.0, 1.0);
}

/* family NULL: all. */
static void print_summary_row(FILE *out, const table *t, const char *family, int threads) {
    mean limit = {0}, floor = {0}, peer = {0};
    size_t cases = 0, falls_short = 0;
    for (size_t i = 0; i < t->n; i++) {
        const kbench_result *r = &t->results[i];
        if (r->threads != threads || (family && strcmp(r->family, family) != 0)) continue;
        cases++;
        falls_short += grade_of(r) < least_grade;
        add(&limit, r->limit, r->own);
        add(&floor, r->own, r->floor);
        add(&peer, r->peer, r->own);
    }
    if (cases == 0) return;
    fprintf(out, "| %s | %d | %zu |", family ? family : "all", threads, cases);
    print_mean(out, &limit, false);
    print_mean(out, &floor, true);
    print_mean(out, &peer, false);
    fprintf(out, " %zu |\n", falls_short);
}

static bool is_first_of_family(const table *t, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (strcmp(t->results[k].family, t->results[i].family) == 0) return false;
    return true;
}

static bool is_first_with_threads(const table *t, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (t->results[k].threads == t->results[i].threads) return false;
    return true;
}

static void print_summary(FILE *out, const table *t) {
    fprintf(out, "\n| family | threads | cases | of limit | least | x floor | most | x oneDNN | least | short |\n"
                 "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t f = 0; f < t->n; f++)
        for (size_t k = 0; is_first_of_family(t, f) && k < t->n; k++)
            if (is_first_with_threads(t, k)) print_summary_row(out, t, t->results[f].family, t->results[k].threads);
    for (size_t k = 0; k < t->n; k++)
        if (is_first_with_threads(t, k)) print_summary_row(out, t, NULL, t->results[k].threads);
}

/* ---- the worst first ---- */

typedef struct graded {
    const kbench_result *result;
    double grade;
} graded;

static int by_grade(const void *a, const void *b) {
    const graded *x = a, *y = b;
    if (x->grade != y->grade) return x->grade < y->grade ? -1 : 1;
    return (x->result > y->result) - (x->result < y->result);
}

/* Those that are graded below, or all. */
static void print_worst(FILE *out, const table *t, bool is_all) {
    graded *all = malloc((t->n + 1) * sizeof *all);
    if (!all) return;
    for (size_t i = 0; i < t->n; i++)
        all[i] = (graded){&t->results[i], grade_of(&t->results[i])};
    qsort(all, t->n, sizeof *all, by_grade);
    fprintf(out, "\n| family | case | threads | grade | us | rate | of limit | x floor | x oneDNN |\n"
                 "|---|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < t->n && (is_all || all[i].grade < least_grade); i++) {
        const kbench_result *r = all[i].result;
        fprintf(out, "| %s | %s | %d |", r->family, r->name, r->threads);
        print_ratio(out, isfinite(all[i].grade) ? all[i].grade : 0.0, 1.0);
        fprintf(out, " %.2f | %.1f %s |", r->own * 1e6, kbench_rate(r), kbench_rate_unit(r));
        print_ratio(out, r->limit, r->own);
        print_ratio(out, r->own, r->floor);
        print_ratio(out, r->peer, r->own);
        fprintf(out, "\n");
    }
    free(all);
}

/* ---- a table per family ---- */

/* A case per line; further numbers of threads beside the first. */
static void print_family(FILE *out, const table *t, const char *family) {
    fprintf(out, "\n### %s\n\n| case |", family);
    for (size_t k = 0; k < t->n; k++)
        if (is_first_with_threads(t, k))
            fprintf(out, " us, %d thread%s |%s of limit | x floor | x oneDNN |", t->results[k].threads,
                    t->results[k].threads == 1 ? "" : "s", k == 0 ? " rate |" : "");
    fprintf(out, "\n|---|");
    for (size_t k = 0; k < t->n; k++)
        if (is_first_with_threads(t, k)) fprintf(out, "%s--:|--:|--:|--:|", k == 0 ? "--:|" : "");
    fprintf(out, "\n");
    for (size_t i = 0; i < t->n; i++) {
        const kbench_result *first = &t->results[i];
        if (strcmp(first->family, family) != 0 || with_threads(t, first, first->threads) != first ||
            first->threads != t->results[0].threads)
            continue;
        fprintf(out, "| %s |", first->name);
        for (size_t k = 0; k < t->n; k++) {
            if (!is_first_with_threads(t, k)) continue;
            const kbench_result *r = with_threads(t, first, t->results[k].threads);
            if (!r) {
                fprintf(out, " | | | |");
                continue;
            }
            fprintf(out, " %.2f |", r->own * 1e6);
            if (k == 0) fprintf(out, " %.1f %s |", kbench_rate(r), kbench_rate_unit(r));
            print_ratio(out, r->limit, r->own);
            print_ratio(out, r->own, r->floor);
            print_ratio(out, r->peer, r->own);
        }
        fprintf(out, "\n");
    }
}

void kbench_print_tables(FILE *out, kbench_form form, const kbench_result *results, size_t n) {
    kbench_result *best = malloc((n + 1) * sizeof *best);
    if (!best) return;
    table t = {best, 0};
    for (size_t i = 0; i < n; i++)
        if (kbench_is_best_level(results, i)) best[t.n++] = results[i];
    fprintf(out, "\n## Summary\n");
    print_summary(out, &t);
    if (form == KBENCH_WORST) {
        fprintf(out, "\n## The worst first\n");
        print_worst(out, &t, true);
    } else {
        fprintf(out, "\n## What falls short\n");
        print_worst(out, &t, false);
        fprintf(out, "\n## Families\n");
        for (size_t i = 0; i < t.n; i++)
            if (is_first_of_family(&t, i)) print_family(out, &t, t.results[i].family);
    }
    free(best);
}
