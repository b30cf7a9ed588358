/* The chart: one line per case, a bar for each number of threads. */
#include "kbench_report.h"

#include <string.h>

enum { LEFT = 330, WIDTH = 520, ROW = 15, TOP = 62, RIGHT = 120 };

static double place(double part) {
    return LEFT + WIDTH * (part > 1.1 ? 1.1 : part) / 1.1;
}

static bool is_drawn(const kbench_result *results, size_t i) {
    return results[i].limit > 0.0 && kbench_is_best_level(results, i);
}

/* The first number of threads opens the line of a case. */
static bool opens_line(const kbench_result *results, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (results[k].limit > 0.0 && kbench_is_same_case(&results[k], &results[i])) return false;
    return true;
}

static void print_head(FILE *out, const char *machine, double height) {
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" font-family=\"sans-serif\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            LEFT + WIDTH + RIGHT, height);
    fprintf(out, "<text x=\"10\" y=\"20\" font-size=\"15\">Kernels, as a share of what the machine can do</text>\n");
    fprintf(out, "<text x=\"10\" y=\"38\" fill=\"#555\">");
    kbench_print_plain(out, machine);
    fprintf(out, "; bars: 1 thread dark, more threads light; circles: oneDNN</text>\n");
    for (int tenth = 0; tenth <= 10; tenth += 2) {
        const double x = place(tenth / 10.0);
        fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.0f\" stroke=\"%s\"/>\n", x, TOP - 8, x,
                height - 14, tenth == 10 ? "#c33" : "#ddd");
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%d %%</text>\n", x, TOP - 12,
                10 * tenth);
    }
}

/* Half a line's height, below the line's top. */
static void print_bar(FILE *out, const kbench_result *r, double y, const char *colour) {
    const double thick = (ROW - 4) / 2.0;
    fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", LEFT, y,
            place(r->limit / r->own) - LEFT, thick, colour);
    if (r->peer > 0.0)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"#e08a1e\"/>\n", place(r->limit / r->peer),
                y + thick / 2.0);
}

void kbench_print_svg(FILE *out, const char *machine, const kbench_result *results, size_t n) {
    size_t rows = 0;
    const char *family = "";
    for (size_t i = 0; i < n; i++)
        if (is_drawn(results, i) && opens_line(results, i)) {
            rows += strcmp(family, results[i].family) != 0 ? 3 : 1;
            family = results[i].family;
        }
    print_head(out, machine, TOP + ROW * (double)rows + 20);
    double y = TOP;
    family = "";
    for (size_t i = 0; i < n; i++) {
        const kbench_result *r = &results[i];
        if (!is_drawn(results, i) || !opens_line(results, i)) continue;
        if (strcmp(family, r->family) != 0) {
            family = r->family;
            y += 2 * ROW;
            fprintf(out, "<text x=\"10\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", y - 3, family);
        }
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6, y + ROW - 4, r->name);
        print_bar(out, r, y + 2, "#3b6ea5");
        size_t more = i + 1;
        while (more < n && !(results[more].threads != r->threads && kbench_is_same_case(&results[more], r)))
            more++;
        if (more < n) print_bar(out, &results[more], y + 2 + (ROW - 4) / 2.0, "#9dbfe0");
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#555\">%.0f %s</text>\n", place(1.1) + 4, y + ROW - 4,
                kbench_rate(r), kbench_rate_unit(r));
        y += ROW;
    }
    fprintf(out, "</svg>\n");
}
