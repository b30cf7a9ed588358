#include "kbench_report.h"

#include <string.h>

void kbench_print_head(FILE *out, const char *title) {
    fprintf(out, "\n## %s\n\n", title);
    fprintf(out, "| case | level | threads | us | rate | of limit | x floor | x oneDNN | oneDNN us | oneDNN is |\n");
    fprintf(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n");
}

double kbench_rate(const kbench_result *r) {
    return (r->macs > 0.0 ? r->macs : (double)r->bytes) / r->own * 1e-9;
}

const char *kbench_rate_unit(const kbench_result *r) {
    return r->macs > 0.0 ? "GMAC/s" : "GB/s";
}

bool kbench_is_same_case(const kbench_result *a, const kbench_result *b) {
    return strcmp(a->family, b->family) == 0 && strcmp(a->name, b->name) == 0;
}

bool kbench_is_best_level(const kbench_result *results, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (results[k].threads == results[i].threads && kbench_is_same_case(&results[k], &results[i])) return false;
    return true;
}

/* A ratio, or nothing where one of the two was not measured. */
static void print_ratio(FILE *out, double a, double b) {
    if (a > 0.0 && b > 0.0)
        fprintf(out, " %.2f |", a / b);
    else
        fprintf(out, " |");
}

void kbench_print_row(FILE *out, const kbench_result *r) {
    fprintf(out, "| %s | %s | %d | %.2f | %.1f %s |", r->name, qk_isa_name(r->isa), r->threads, r->own * 1e6,
            kbench_rate(r), kbench_rate_unit(r));
    print_ratio(out, r->limit, r->own);
    print_ratio(out, r->own, r->floor);
    print_ratio(out, r->peer, r->own);
    if (r->peer > 0.0)
        fprintf(out, " %.2f | %s |\n", r->peer * 1e6, r->peer_name);
    else
        fprintf(out, " | |\n");
    fflush(out);
}

void kbench_print_plain(FILE *out, const char *text) {
    for (; *text; text++)
        if (*text >= ' ' && !strchr("\"\\<>&", *text)) fputc(*text, out);
}

void kbench_print_json(FILE *out, const char *machine, const kbench_result *results, size_t n) {
    fprintf(out, "{\"machine\": \"");
    kbench_print_plain(out, machine);
    fprintf(out, "\", \"results\": [");
    for (size_t i = 0; i < n; i++) {
        const kbench_result *r = &results[i];
        fprintf(out, "%s\n  {\"family\": \"%s\", \"case\": \"%s\", \"level\": \"%s\", \"threads\": %d, ", i ? "," : "",
                r->family, r->name, qk_isa_name(r->isa), r->threads);
        fprintf(out, "\"us\": %.4f, \"bytes\": %zu, \"macs\": %.0f, \"limit_us\": %.4f, \"limit_streams\": %s",
                r->own * 1e6, r->bytes, r->macs, r->limit * 1e6, r->limit_streams ? "true" : "false");
        fprintf(out, ", \"one_thread_us\": %.4f", r->one_thread * 1e6);
        if (r->floor > 0.0) fprintf(out, ", \"floor_us\": %.4f", r->floor * 1e6);
        if (r->peer > 0.0) {
            fprintf(out, ", \"onednn_us\": %.4f, \"onednn\": \"", r->peer * 1e6);
            kbench_print_plain(out, r->peer_name);
            fputc('"', out);
        }
        fputc('}', out);
    }
    fprintf(out, "\n]}\n");
}
