#include "kernels/gemm/gemm_row.h"

#include <string.h>

static const struct {
    qk_isa isa;
    size_t rows8, rows4;
    qk_gemm_fn *fn;
} rows[] = {
#define QK_GEMM(level, rows8, rows4) {QK_ISA_##level, rows8, rows4, qk_gemm_##level},
#include "kernels/gemm/gemm.def"
#undef QK_GEMM
};

qk_gemm_fn *qk_gemm_choose(const qk_gemm *gemm, size_t *max_rows_out, qk_isa *isa_out) {
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (max_rows_out) *max_rows_out = qk_gemm_is_4bit(gemm) ? rows[i].rows4 : rows[i].rows8;
    if (isa_out) *isa_out = rows[i].isa;
    return rows[i].fn;
}

static bool is_signed(const qk_gemm *g) {
    return g->weights == QDQ_DTYPE_S8 || g->weights == QDQ_DTYPE_S4;
}

/* Bytes of n_k packed values of k in all columns of a panel. */
static bool values_bytes(const qk_gemm *g, size_t n_k, size_t *out) {
    if (!qk_gemm_is_4bit(g)) return !__builtin_mul_overflow(n_k, (size_t)QK_GEMM_COLS, out);
    return !__builtin_mul_overflow(n_k / 8 + (n_k % 8 != 0), (size_t)QK_GEMM_COLS * 4, out);
}

bool qk_gemm_init(qk_gemm *g) {
    const bool known = qk_gemm_is_4bit(g) || g->weights == QDQ_DTYPE_S8 || g->weights == QDQ_DTYPE_U8;
    if (!known || g->k == 0 || g->n == 0 || g->k_group == 0 || g->k_group > g->k) return false;
    const size_t params = QK_GEMM_COLS * (sizeof(float) + (g->has_zp ? 1 : 0));
    const size_t n_groups = (g->k - 1) / g->k_group + 1;
    size_t group, last, panel;
    if (!values_bytes(g, g->k_group, &group) || __builtin_add_overflow(group, params, &group)) return false;
    if (!values_bytes(g, g->k - (n_groups - 1) * g->k_group, &last)) return false;
    if (__builtin_mul_overflow(n_groups - 1, group, &panel) || __builtin_add_overflow(panel, last + params, &panel))
        return false;
    g->n_panels = (g->n - 1) / QK_GEMM_COLS + 1;
    g->group_bytes = group;
    g->panel_bytes = panel;
    return !__builtin_mul_overflow(panel, g->n_panels, &g->packed_bytes);
}

/* Scales and zero points of one group of one panel. */
static bool pack_params(const qk_gemm *g, const qk_gemm_source *s, size_t group, size_t col, size_t n_cols,
                        uint8_t *out) {
    float *scales = (float *)(void *)out;
    int8_t *zps = (int8_t *)(out + QK_GEMM_COLS * sizeof *scales);
    const int32_t bias = is_signed(g) ? 0 : qk_gemm_is_4bit(g) ? 8 : 128;
    for (size_t j = 0; j < n_cols; j++) {
        const size_t at = group * s->scale_k_stride + (col + j) / s->n_group * s->scale_n_stride;
        scales[j] = s->scales[at];
        if (!g->has_zp) continue;
        if (s->zps[at] < INT8_MIN + bias || s->zps[at] > INT8_MAX + bias) return false;
        zps[j] = (int8_t)(s->zps[at] - bias);
    }
    return true;
}

static void pack_values8(const qk_gemm *g, const qk_gemm_source *s, size_t k, size_t n_k, size_t col, size_t n_cols,
                         uint8_t *out) {
    const uint8_t *data = s->data, flip = is_signed(g) ? 0 : 0x80;
    for (size_t i = 0; i < n_k; i++)
        for (size_t j = 0; j < n_cols; j++)
            out[i * QK_GEMM_COLS + j] = data[(k + i) * s->k_stride + (col + j) * s->n_stride] ^ flip;
}

static void pack_values4(const qk_gemm *g, const qk_gemm_source *s, size_t k, size_t n_k, size_t col, size_t n_cols,
                         uint8_t *out) {
    const uint8_t *data = s->data;
    const uint32_t flip = is_signed(g) ? 0 : 8;
    for (size_t i = 0; i < n_k; i++)
        for (size_t j = 0; j < n_cols; j++) {
            const size_t at = (k + i) * s->k_stride + (col + j) * s->n_stride;
            const uint32_t nibble = ((uint32_t)data[at / 2] >> at % 2 * 4 & 15u) ^ flip;
            uint32_t eight;
            uint8_t *to = out + (i / 8 * QK_GEMM_COLS + j) * sizeof eight;
            memcpy(&eight, to, sizeof eight);
            eight |= nibble << i % 8 * 4;
            memcpy(to, &eight, sizeof eight);
        }
}

bool qk_gemm_pack(const qk_gemm *g, const qk_gemm_source *s, void *packed) {
    memset(packed, 0, g->packed_bytes);
    const size_t params = QK_GEMM_COLS * (sizeof(float) + (g->has_zp ? 1 : 0));
    for (size_t p = 0; p < g->n_panels; p++) {
        const size_t col = p * QK_GEMM_COLS, n_cols = g->n - col < QK_GEMM_COLS ? g->n - col : QK_GEMM_COLS;
        for (size_t k = 0; k < g->k; k += g->k_group) {
            const size_t group = k / g->k_group, n_k = g->k - k < g->k_group ? g->k - k : g->k_group;
            uint8_t *out = (uint8_t *)packed + p * g->panel_bytes + group * g->group_bytes;
            if (!pack_params(g, s, group, col, n_cols, out)) return false;
            if (qk_gemm_is_4bit(g))
                pack_values4(g, s, k, n_k, col, n_cols, out + params);
            else
                pack_values8(g, s, k, n_k, col, n_cols, out + params);
        }
    }
    return true;
}
