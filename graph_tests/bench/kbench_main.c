/* qdq-kbench; see kbench.h and doc/benchmarks.md. */
#include "kbench_impl.h"
#include "kernels/simd/scalar.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kbench_fail(const char *what) {
    fprintf(stderr, "qdq-kbench: %s\n", what);
    exit(1);
}

/* ---- what families ask for ---- */

bool kbench_wants(const kbench *b, const char *name) {
    return strstr(name, b->match) != NULL;
}

/* Buffers begin at different offsets in their pages: at the same one, loads would wait for stores 4096 bytes away. */
static char *allocate(kbench *b, size_t bytes) {
    static size_t colour;
    const size_t offset = 64 + 64 * (colour = (colour + 13) % 48), whole = (bytes + offset + 2 * 4096) / 4096 * 4096;
    kbench_block *p = aligned_alloc(4096, whole);
    if (!p) kbench_fail("out of memory");
    p->next = b->blocks;
    b->blocks = p;
    return (char *)p + offset;
}

void *kbench_buffer(kbench *b, size_t bytes) {
    uint8_t *p = (uint8_t *)allocate(b, bytes);
    uint64_t state = b->seed += 42;
    if (b->only_list) return memset(p, 0, bytes < 4096 ? bytes : 4096);
    for (size_t i = 0; i < bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        p[i] = (uint8_t)(state >> 56);
    }
    return p;
}

float *kbench_floats(kbench *b, size_t n) {
    float *p = (float *)(void *)allocate(b, n * sizeof *p);
    uint64_t state = b->seed += 42;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        p[i] = 0.01f * (float)((int)(state >> 56) - 128);
    }
    return p;
}

void *kbench_typed(kbench *b, qdq_dtype dtype, size_t n) {
    if (dtype == QDQ_DTYPE_F32) return kbench_floats(b, n);
    char *p = kbench_buffer(b, n * qks_bytes(dtype));
    if (qks_bytes(dtype) == 1) return p;
    for (size_t i = 0; i < n; i++)
        qks_store(dtype, p, i, 0.01f * (float)((int)(uint8_t)p[2 * i + 1] - 128));
    return p;
}

size_t kbench_worth(size_t work, size_t grain) {
    return work / grain ? work / grain : 1;
}

size_t kbench_part(size_t n, size_t grain, int part, int n_parts, size_t *n_out) {
    const size_t grains = (n + grain - 1) / grain, each = (grains + (size_t)n_parts - 1) / (size_t)n_parts * grain;
    const size_t first = (size_t)part * each < n ? (size_t)part * each : n;
    *n_out = n - first < each ? n - first : each;
    return first;
}

/* ---- the program ---- */

static const struct {
    const char *name;
    void (*run)(kbench *);
} families[] = {
#define KBENCH(family) {#family, kbench_##family},
#include "kbench.def"
#undef KBENCH
};

static const char usage[] =
    "usage: qdq-kbench [OPTION...]\n"
    "  --family=NAME,... these families only: limits"
#define KBENCH(family) " " #family
#include "kbench.def"
#undef KBENCH
    "\n"
    "  --match=WORD      cases whose name contains WORD\n"
    "  --threads=N[,N]   numbers of threads (1,2)\n"
    "  --min-ms=MS       time for each figure, five runs at least (10)\n"
    "  --level=NAME      the best level of instruction set up to this one (QDQ_MAX_ISA)\n"
    "  --levels=all      every level that has a kernel\n"
    "  --markdown        the tables of a document: limits, summary, what falls short, a table per family\n"
    "  --worst           a summary, and one table of all families, the worst first\n"
    "  --list            what there is to measure, unmeasured: kernel, level, family, case\n"
    "  --json=FILE       the figures, too\n"
    "  --svg=FILE        a chart of them, too\n";

static const char *value_of(const char *arg, const char *option) {
    const size_t n = strlen(option);
    return strncmp(arg, option, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

static bool parse(kbench *b, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *v;
        if ((v = value_of(argv[i], "--family"))) {
            b->wanted_family = v;
        } else if ((v = value_of(argv[i], "--match"))) {
            b->match = v;
        } else if ((v = value_of(argv[i], "--threads"))) {
            for (b->n_threads = 0; *v && b->n_threads < KBENCH_MAX_THREAD_COUNTS; b->n_threads++) {
                char *end;
                const long n = strtol(v, &end, 10);
                if (n < 1 || n > 1024 || end == v || (*end && *end != ',')) return false;
                b->threads[b->n_threads] = (int)n;
                v = *end ? end + 1 : end;
            }
            if (*v || b->n_threads == 0) return false;
        } else if ((v = value_of(argv[i], "--min-ms"))) {
            b->min_seconds = strtod(v, NULL) * 1e-3;
        } else if ((v = value_of(argv[i], "--levels"))) {
            if (strcmp(v, "all") != 0 && strcmp(v, "best") != 0) return false;
            b->all_levels = strcmp(v, "all") == 0;
        } else if ((v = value_of(argv[i], "--level"))) {
            qk_isa isa;
            if (!qk_isa_from_name(v, &isa)) return false;
            qk_isa_set_cap(isa);
        } else if (strcmp(argv[i], "--markdown") == 0) {
            b->form = KBENCH_MARKDOWN;
        } else if (strcmp(argv[i], "--worst") == 0) {
            b->form = KBENCH_WORST;
        } else if (strcmp(argv[i], "--list") == 0) {
            b->only_list = true;
        } else if ((v = value_of(argv[i], "--json"))) {
            b->json_path = v;
        } else if ((v = value_of(argv[i], "--svg"))) {
            b->svg_path = v;
        } else {
            return false;
        }
    }
    return true;
}

static void machine_name(char *out, size_t n) {
    char line[256];
    snprintf(out, n, "unknown CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f) return;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(out, n, "%s", strchr(line, ':') + 2);
            break;
        }
    fclose(f);
}

static qk_isa best_level(void) {
    qk_isa best = QK_ISA_ref;
    for (int isa = 0; isa < QK_ISA_COUNT; isa++)
        if (qk_isa_has((qk_isa)isa)) best = (qk_isa)isa;
    return best;
}

#if defined(__clang__)
static const char compiler[] = __VERSION__;
#else
static const char compiler[] = "gcc " __VERSION__;
#endif

static void write_file(const kbench *b, const char *path, const char *machine,
                       void (*print)(FILE *, const char *, const kbench_result *, size_t)) {
    if (!path) return;
    FILE *f = fopen(path, "w");
    if (!f) kbench_fail("cannot write the file");
    print(f, machine, b->results, b->n_results);
    if (fclose(f) != 0) kbench_fail("cannot write the file");
}

static bool is_wanted(const kbench *b, const char *family) {
    const size_t n = strlen(family);
    for (const char *p = b->wanted_family; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, family, n) == 0 && (p[n] == '\0' || p[n] == ',')) return true;
    }
    return !b->wanted_family;
}

int main(int argc, char **argv) {
    static kbench b = {.match = "", .threads = {1, 2}, .n_threads = 2, .min_seconds = 0.01};
    if (!parse(&b, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    char machine[200], cpu[128];
    machine_name(cpu, sizeof cpu);
    snprintf(machine, sizeof machine, "%s, %d cores, level %s", cpu, omp_get_num_procs(), qk_isa_name(best_level()));
    if (!b.only_list)
        printf("%s; L1 %zu KiB, L2 %zu KiB; %s; medians\n", machine, qk_isa_l1d_bytes() >> 10, qk_isa_l2_bytes() >> 10,
               compiler);
    bool any = false;
    if (is_wanted(&b, "limits") && !*b.match && !b.only_list) {
        kbench_measure_limits(&b);
        any = true;
    }
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (!is_wanted(&b, families[i].name)) continue;
        any = true;
        b.family = families[i].name;
        b.head_is_printed = false;
        if (b.form != KBENCH_ROWS) fprintf(stderr, "%s\n", b.family);
        families[i].run(&b);
        while (b.blocks) {
            kbench_block *p = b.blocks;
            b.blocks = p->next;
            free(p);
        }
    }
    if (b.form != KBENCH_ROWS) kbench_print_tables(stdout, b.form, b.results, b.n_results);
    write_file(&b, b.json_path, machine, kbench_print_json);
    write_file(&b, b.svg_path, machine, kbench_print_svg);
    for (int k = 0; k < 2; k++)
        free(b.streams[k]);
    free(b.results);
    if (!any) fputs(usage, stderr);
    return any ? 0 : 2;
}
