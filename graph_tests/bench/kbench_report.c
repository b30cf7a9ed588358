#include "kbench_report.h"

#include <string.h>

void kbench_print_head(FILE *out, const char *title) {
    fprintf(out, "\n## %s\n\n", title);
    fprintf(out, "| case | level | threads | us | rate | of limit | x floor | x oneDNN | oneDNN us | oneDNN is |\n");
    fprintf(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n");
}

static double rate(const kbench_result *r) {
    return (r->macs > 0.0 ? r->macs : (double)r->bytes) / r->own * 1e-9;
}

/* A ratio, or nothing where one of the two was not measured. */
static void print_ratio(FILE *out, double a, double b) {
    if (a > 0.0 && b > 0.0)
        fprintf(out, " %.2f |", a / b);
    else
        fprintf(out, " |");
}

void kbench_print_row(FILE *out, const kbench_result *r) {
    fprintf(out, "| %s | %s | %d | %.2f | %.1f %s |", r->name, qk_isa_name(r->isa), r->threads, r->own * 1e6, rate(r),
            r->macs > 0.0 ? "GMAC/s" : "GB/s");
    print_ratio(out, r->limit, r->own);
    print_ratio(out, r->own, r->floor);
    print_ratio(out, r->peer, r->own);
    if (r->peer > 0.0)
        fprintf(out, " %.2f | %s |\n", r->peer * 1e6, r->peer_name);
    else
        fprintf(out, " | |\n");
    fflush(out);
}

/* Our own names have nothing that a string would need to escape; the machine's is asked for such. */
static void print_plain(FILE *out, const char *text) {
    for (; *text; text++)
        if (*text >= ' ' && !strchr("\"\\<>&", *text)) fputc(*text, out);
}

void kbench_print_json(FILE *out, const char *machine, const kbench_result *results, size_t n) {
    fprintf(out, "{\"machine\": \"");
    print_plain(out, machine);
    fprintf(out, "\", \"results\": [");
    for (size_t i = 0; i < n; i++) {
        const kbench_result *r = &results[i];
        fprintf(out, "%s\n  {\"family\": \"%s\", \"case\": \"%s\", \"level\": \"%s\", \"threads\": %d, ", i ? "," : "",
                r->family, r->name, qk_isa_name(r->isa), r->threads);
        fprintf(out, "\"us\": %.4f, \"bytes\": %zu, \"macs\": %.0f, \"limit_us\": %.4f, \"limit_streams\": %s",
                r->own * 1e6, r->bytes, r->macs, r->limit * 1e6, r->limit_streams ? "true" : "false");
        if (r->floor > 0.0) fprintf(out, ", \"floor_us\": %.4f", r->floor * 1e6);
        if (r->peer > 0.0) {
            fprintf(out, ", \"onednn_us\": %.4f, \"onednn\": \"", r->peer * 1e6);
            print_plain(out, r->peer_name);
            fputc('"', out);
        }
        fputc('}', out);
    }
    fprintf(out, "\n]}\n");
}

/* ---- the chart ---- */

enum { LEFT = 330, WIDTH = 520, ROW = 15, TOP = 62, RIGHT = 120 };

static bool is_same_case(const kbench_result *a, const kbench_result *b) {
    return a->threads == b->threads && strcmp(a->family, b->family) == 0 && strcmp(a->name, b->name) == 0;
}

/* Levels are measured best first, so the first of a case is its best. */
static bool is_drawn(const kbench_result *results, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (is_same_case(&results[k], &results[i])) return false;
    return results[i].limit > 0.0;
}

static double place(double part) {
    return LEFT + WIDTH * (part > 1.1 ? 1.1 : part) / 1.1;
}

void kbench_print_svg(FILE *out, const char *machine, const kbench_result *results, size_t n) {
    size_t rows = 0;
    const char *family = "";
    for (size_t i = 0; i < n; i++)
        if (is_drawn(results, i)) {
            rows += strcmp(family, results[i].family) != 0 ? 3 : 1;
            family = results[i].family;
        }
    const double height = TOP + ROW * (double)rows + 20;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" font-family=\"sans-serif\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            LEFT + WIDTH + RIGHT, height);
    fprintf(out, "<text x=\"10\" y=\"20\" font-size=\"15\">Kernels, as a share of what the machine can do</text>\n");
    fprintf(out, "<text x=\"10\" y=\"38\" fill=\"#555\">");
    print_plain(out, machine);
    fprintf(out, "; bars: 1 thread dark, more threads light; circles: oneDNN</text>\n");
    for (int tenth = 0; tenth <= 10; tenth += 2) {
        const double x = place(tenth / 10.0);
        fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.0f\" stroke=\"%s\"/>\n", x, TOP - 8, x,
                height - 14, tenth == 10 ? "#c33" : "#ddd");
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%d %%</text>\n", x, TOP - 12,
                10 * tenth);
    }
    double y = TOP;
    family = "";
    for (size_t i = 0; i < n; i++) {
        const kbench_result *r = &results[i];
        if (!is_drawn(results, i)) continue;
        if (strcmp(family, r->family) != 0) {
            family = r->family;
            y += 2 * ROW;
            fprintf(out, "<text x=\"10\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", y - 3, family);
        }
        const double share = r->limit / r->own;
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s, %d</text>\n", LEFT - 6, y + ROW - 4, r->name,
                r->threads);
        fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", LEFT, y + 2,
                place(share) - LEFT, ROW - 4, r->threads == 1 ? "#3b6ea5" : "#9dbfe0");
        if (r->peer > 0.0)
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#e08a1e\"/>\n", place(r->limit / r->peer),
                    y + ROW / 2.0);
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#555\">%.0f %s</text>\n", place(1.1) + 4, y + ROW - 4, rate(r),
                r->macs > 0.0 ? "GMAC/s" : "GB/s");
        y += ROW;
    }
    fprintf(out, "</svg>\n");
}
