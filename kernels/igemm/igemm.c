#include "kernels/igemm/igemm_row.h"

typedef enum igemm_types { x8, f32, bf16 } igemm_types;

static const struct {
    qk_isa isa;
    igemm_types types;
    size_t nr, kr, elem_bytes;
    bool is_paired;
    qk_igemm_fn *fn;
    qk_igemm_end_fn *end_fn;
    qk_igemm_pack_fn *pack_fn;
    qk_igemm_dots_fn *dots_fn;
} rows[] = {
#define SINGLE          false
#define PAIRED          true
#define WITH_END(name)  name
#define WITH_PACK(name) name
#define WITH_DOTS(name) name
#define NO_END(name)    NULL
#define NO_PACK(name)   NULL
#define NO_DOTS(name)   NULL
#define QK_IGEMM(level, types, nr, kr, bytes, paired, end, pack, dots)                                                 \
    {QK_ISA_##level,                                                                                                   \
     types,                                                                                                            \
     nr,                                                                                                               \
     kr,                                                                                                               \
     bytes,                                                                                                            \
     paired,                                                                                                           \
     qk_igemm_##types##_##level,                                                                                       \
     end(qk_igemm_##types##_end_##level),                                                                              \
     pack(qk_igemm_pack_##types##_##level),                                                                            \
     dots(qk_igemm_dots_##types##_##level)},
#include "kernels/igemm/igemm.def"
#undef QK_IGEMM
#undef SINGLE
#undef PAIRED
#undef WITH_END
#undef WITH_PACK
#undef NO_END
#undef NO_PACK
#undef WITH_DOTS
#undef NO_DOTS
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

static qk_igemm_sums_fn *choose_sums(void) {
#if defined(__x86_64__)
    if (qk_isa_has(QK_ISA_avx2)) return qk_igemm_sums_avx2;
#endif
    return qk_igemm_sums_ref;
}

static void choose_line(qk_igemm *g) {
    g->line = NULL;
    g->line_rows = 0;
#if defined(__x86_64__)
    if (g->row_sums == NULL || !qk_isa_has(QK_ISA_avx2)) return;
    const bool is_wide = qk_isa_has(QK_ISA_avx512);
    g->line = is_wide ? qk_igemm_line_avx512 : qk_igemm_line_avx2;
    g->line_rows = is_wide ? 1 : 2;
#endif
}

static bool set_sizes(qk_igemm *g) {
    size_t kc, tables, certified;
    if (__builtin_add_overflow(g->kc, g->kr - 1, &kc)) return false;
    kc = kc / g->kr * g->kr;
    g->n_panels = (g->n - 1) / QK_IGEMM_COLS + 1;
    if (kc > PTRDIFF_MAX / 4 || __builtin_mul_overflow(kc, QK_IGEMM_COLS * g->elem_bytes, &g->panel_bytes))
        return false;
    g->panel_bytes = (g->panel_bytes + 63) / 64 * 64;
    g->n_parts = (g->kc - 1) / QK_IGEMM_PART + 1;
    g->part = ((g->kc - 1) / g->n_parts + 32) / 32 * 32;
    g->n_parts = (g->kc - 1) / g->part + 1;
    const size_t n_tables = g->row_sums == NULL ? 0 : g->is_paired ? 2 : 1;
    if (__builtin_mul_overflow(g->n_panels, QK_IGEMM_COLS * sizeof(int32_t) * n_tables, &tables)) return false;
    if (g->is_paired && (__builtin_mul_overflow(g->n_panels, qk_igemm_certified_bytes(g), &certified) ||
                         __builtin_add_overflow(tables, certified, &tables)))
        return false;
    return !__builtin_mul_overflow(g->panel_bytes, g->n_panels, &g->packed_bytes) &&
           !__builtin_add_overflow(g->packed_bytes, tables, &g->packed_bytes);
}

static bool types_of(const qk_igemm *g, igemm_types *out) {
    *out = g->src == QDQ_DTYPE_F32 ? f32 : g->src == QDQ_DTYPE_BF16 ? bf16 : x8;
    return *out == x8 ? is_x8(g->src) && is_x8(g->weights) : g->src == g->weights;
}

bool qk_igemm_init(qk_igemm *g) {
    igemm_types types;
    if (!types_of(g, &types) || g->kc == 0 || g->n == 0) return false;
    size_t i = 0;
    while (i < N_ROWS && (rows[i].types != types || !qk_isa_has(rows[i].isa)))
        i++;
    if (i == N_ROWS) return false;
    g->run = rows[i].fn;
    g->run_to_end = rows[i].end_fn;
    g->pack = rows[i].pack_fn;
    g->dots = rows[i].dots_fn;
    g->isa = rows[i].isa;
    g->nr = rows[i].nr;
    g->kr = rows[i].kr;
    g->elem_bytes = rows[i].elem_bytes;
    g->is_paired = rows[i].is_paired;
    g->k_step = 0;
    g->row_sums = types == x8 ? choose_sums() : NULL;
    choose_line(g);
    g->src_shift = g->src == QDQ_DTYPE_S8 ? 128 : 0;
    g->weights_shift = g->weights == QDQ_DTYPE_U8 ? 128 : 0;
    return set_sizes(g);
}

const int32_t *qk_igemm_col_sums(const qk_igemm *g, const void *packed) {
    return (const int32_t *)(const void *)((const uint8_t *)packed + g->n_panels * g->panel_bytes);
}

static float load_f32(qdq_dtype dtype, const void *data, ptrdiff_t at) {
    uint16_t half;
    uint32_t bits;
    float f;
    if (dtype == QDQ_DTYPE_F32) {
        memcpy(&f, (const char *)data + 4 * at, sizeof f);
        return f;
    }
    memcpy(&half, (const char *)data + 2 * at, sizeof half);
    bits = (uint32_t)half << 16;
    if (dtype == QDQ_DTYPE_F16) { /* the exponent moves by a multiplication, which is right for subnormals, too */
        const uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
        memcpy(&f, &magnitude, sizeof f);
        f *= 0x1p112f;
        if ((half & 0x7c00u) == 0x7c00u) {
            bits = magnitude | 0x7f800000u;
            memcpy(&f, &bits, sizeof f);
        }
        return half & 0x8000u ? -f : f;
    }
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* One block of nr columns, in the order [k / kr][nr][kr]. */
typedef struct block {
    const qk_igemm *g;
    const qk_igemm_source *source;
    ptrdiff_t at; /* the source's element of k 0, column 0 */
    uint8_t *out;
    int32_t *sums, *pairs; /* of the columns; is_paired */
} block;

/* Element by element, floats or bytes. */
static void pack_cells(const block *b, size_t n_cols) {
    const qk_igemm *g = b->g;
    const qk_igemm_source *s = b->source;
    const uint8_t flip = g->weights_shift != 0 ? 0x80 : 0;
    for (size_t k = 0; k < g->kc; k++) {
        const size_t to = k / g->kr * g->kr * g->nr, in = k % g->kr;
        for (size_t j = 0; j < n_cols; j++) {
            const ptrdiff_t from = b->at + (ptrdiff_t)k * s->k_stride + (ptrdiff_t)j * s->n_stride;
            uint8_t *p = b->out + (to + j * g->kr + in) * g->elem_bytes;
            if (g->elem_bytes == 4) {
                const float f = load_f32(s->dtype, s->data, from);
                memcpy(p, &f, sizeof f);
                continue;
            }
            if (g->weights == QDQ_DTYPE_BF16) {
                memcpy(p, (const char *)s->data + 2 * from, 2);
                continue;
            }
            const int8_t w = (int8_t)(((const uint8_t *)s->data)[from] ^ flip);
            b->sums[j] += w;
            *p = (uint8_t)w;
        }
    }
}

/* Bytes in vectors. False: there are none. */
static bool pack_bytes(const block *b, size_t n_cols) {
    const qk_igemm *g = b->g;
    if (g->row_sums == NULL || g->isa == QK_ISA_ref) return false;
#if defined(__x86_64__)
    for (size_t col = 0; col < n_cols; col += 16) {
        const qk_igemm_source *s = b->source;
        const uint8_t *from = (const uint8_t *)s->data + b->at + (ptrdiff_t)col * s->n_stride;
        qk_igemm_pack16_avx2(g, from, s->k_stride, s->n_stride, n_cols - col < 16 ? n_cols - col : 16,
                             b->out + col * g->kr * g->elem_bytes, b->sums + col, b->pairs + col);
    }
#else
    (void)n_cols;
#endif
    return true;
}

static void pack_panel(const qk_igemm *g, const qk_igemm_source *s, size_t p, size_t n_cols, uint8_t *panel,
                       int32_t *sums, int32_t *pairs) {
    const size_t kc = qk_igemm_kc(g), block_bytes = kc * g->nr * g->elem_bytes;
    if (n_cols < QK_IGEMM_COLS || kc != g->kc) memset(panel, 0, g->panel_bytes);
    for (size_t col = 0; col < n_cols; col += g->nr) {
        const block b = {g,
                         s,
                         (ptrdiff_t)(p * QK_IGEMM_COLS + col) * s->n_stride,
                         panel + col / g->nr * block_bytes,
                         sums + col,
                         pairs + col};
        const size_t cols = n_cols - col < g->nr ? n_cols - col : g->nr;
        if (!pack_bytes(&b, cols)) pack_cells(&b, cols);
    }
}

void qk_igemm_pack(const qk_igemm *g, const qk_igemm_source *s, void *packed, size_t first, size_t n) {
    for (size_t p = first; p < first + n; p++) {
        const size_t n_cols = qk_igemm_cols_of(g, p);
        uint8_t *panel = (uint8_t *)packed + p * g->panel_bytes;
        int32_t sums[QK_IGEMM_COLS] = {0}, pairs[QK_IGEMM_COLS] = {0},
                *tables = (int32_t *)(void *)((uint8_t *)packed + g->n_panels * g->panel_bytes);
        if (g->pack == NULL || !g->pack(g, s, p, panel, sums)) pack_panel(g, s, p, n_cols, panel, sums, pairs);
        if (g->row_sums == NULL) continue;
        memcpy(tables + p * QK_IGEMM_COLS, sums, sizeof sums);
        if (g->is_paired) memcpy(tables + (g->n_panels + p) * QK_IGEMM_COLS, pairs, sizeof pairs);
    }
}
