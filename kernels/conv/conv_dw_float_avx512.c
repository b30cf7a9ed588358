#include "kernels/conv/conv_dw_row.h"
#include "kernels/simd/vec512.h"

#define VEC           __m512
#define LANES         ((size_t)16)
#define VLOAD(p)      _mm512_loadu_ps(p)
#define VSTORE(p, v)  _mm512_storeu_ps(p, v)
#define VDOT(s, x, w) _mm512_fmadd_ps(x, w, s)
#define VECTORS       4
#define END_BYTES     0
#define END_FLOAT(s)  (s)
#include "kernels/conv/conv_dw_body.h"
#include "kernels/conv/conv_dw_columns_body.h"
#include "kernels/conv/conv_dw_float_body.h"

QK_INLINE __m512 values_at(const uint8_t *line, size_t channel, size_t left, qdq_dtype type) {
    const __mmask16 lanes = qk512_lanes(left);
    if (type == QDQ_DTYPE_F32) return _mm512_maskz_loadu_ps(lanes, line + channel * 4);
    const __m256i half = _mm256_maskz_loadu_epi16(lanes, line + channel * 2);
    return type == QDQ_DTYPE_F16 ? _mm512_cvtph_ps(half)
                                 : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c += LANES, out += plane * LANES)
        for (size_t i = 0; i < n; i++)
            VSTORE(out + i * LANES, values_at(l->line[0] + i * l->step[0], c, l->n_channels - c, l->type));
}

/* ---- 3 x 3: every column is read once, and goes to the three outputs that see it ---- */

#define EACH_TAP(DO) DO(0, 0) DO(0, 1) DO(0, 2) DO(1, 0) DO(1, 1) DO(1, 2) DO(2, 0) DO(2, 1) DO(2, 2)
#define WEIGHTS(i, t)                                                                                                  \
    const VEC w##i##t##0 = VLOAD(w + (3 * i + t) * QK_DW_BLOCK);                                                       \
    const VEC w##i##t##1 = VLOAD(w + (3 * i + t) * QK_DW_BLOCK + (n_vectors - 1) * LANES);
#define POINT(i) const uint8_t *p##i = line[i] == NULL ? NULL : line[i] + 4 * c;
/* A tap of column d to the sums s. */
#define ADD_LINE(s, i, t)                                                                                              \
    if (p##i != NULL) {                                                                                                \
        s##0 = VDOT(s##0, d##i##0, w##i##t##0);                                                                        \
        if (n_vectors > 1) s##1 = VDOT(s##1, d##i##1, w##i##t##1);                                                     \
    }
#define ADD(s, t) ADD_LINE(s, 0, t) ADD_LINE(s, 1, t) ADD_LINE(s, 2, t)
#define LOAD(i)                                                                                                        \
    VEC d##i##0 = none, d##i##1 = none;                                                                                \
    if (p##i != NULL) {                                                                                                \
        d##i##0 = n >= LANES ? VLOAD(p##i + at) : _mm512_maskz_loadu_ps(qk512_lanes(n), p##i + at);                    \
        if (n_vectors > 1) d##i##1 = VLOAD(p##i + at + 4 * LANES);                                                     \
    }
/* The next column: what is added of it, unless it is of the padding. */
#define COLUMN(...)                                                                                                    \
    if (x >= 0 && x < l->width) {                                                                                      \
        LOAD(0) LOAD(1) LOAD(2) __VA_ARGS__                                                                            \
    }                                                                                                                  \
    x++;                                                                                                               \
    at += step;
/* n_vectors vectors of channels from c on, of which n there are; constants of the caller where they are whole. */
QK_INLINE void three_columns(const qk_dw_strip *l, const qk_conv_end *all, size_t c, size_t n, size_t n_vectors) {
    const VEC none = _mm512_setzero_ps();
    const int32_t *w = l->weights + c;
    EACH_TAP(WEIGHTS)
    const qk_conv_end some = end_from(all, c, 0), *e = &some;
    const ptrdiff_t step = (ptrdiff_t)l->step;
    const uint8_t *const *line = l->line;
    for (size_t i = 0; i < l->n_lines; i++, line += 3) {
        POINT(0)
        POINT(1) POINT(2) uint8_t *to = e->dst + (ptrdiff_t)i * l->dst_step, *stop = to + (ptrdiff_t)l->n_out * e->step;
        int64_t x = -l->pad;
        ptrdiff_t at = x * step;
        VEC a0 = none, a1 = none, b0 = none, b1 = none, c0 = none, c1 = none;
#define END(s)                                                                                                         \
    end_floats(e, s##0, 0, to);                                                                                        \
    if (n_vectors > 1) end_floats(e, s##1, 1, to);                                                                     \
    s##0 = s##1 = none;                                                                                                \
    to += e->step;                                                                                                     \
    if (to == stop) break;
        COLUMNS(l->stride)
#undef END
    }
}

/* ---- 5 x 5: all weights of sixteen channels are in registers ---- */

#define VFLIPS(flip) _mm512_setzero_ps()
#include "kernels/conv/conv_dw_strip_body.h"

QK_INLINE void line_of(strip_kind k, const uint8_t *const *p, size_t n, VEC flip, size_t set, VEC *to) {
    (void)k;
    (void)flip;
    *to = n >= LANES ? VLOAD(p[set]) : _mm512_maskz_loadu_ps(qk512_lanes(n), p[set]);
}

static void strip(const qk_dw_strip *l, const qk_conv_end *e) {
    if (l->kernel == 5 && l->dilation == 1 && l->n_window == 5 && l->stride <= 2) {
        if (l->stride == 1)
            strip_all(l, e, (strip_kind){5, 5, 1, 5, 1, 1}, line_of);
        else
            strip_all(l, e, (strip_kind){5, 5, 2, 5, 1, 1}, line_of);
        return;
    }
    if (l->kernel != 3 || l->dilation != 1 || l->n_window != 3 || l->stride > 2) {
        any_strip(l, e);
        return;
    }
    size_t c = 0;
    for (; l->n_channels - c >= 2 * LANES; c += 2 * LANES)
        three_columns(l, e, c, 2 * LANES, 2);
    if (l->n_channels - c >= LANES) {
        three_columns(l, e, c, LANES, 1);
        c += LANES;
    }
    if (c < l->n_channels) three_columns(l, e, c, l->n_channels - c, 1);
}

const qk_dw_row qk_dw_float_row_avx512 = {QK_ISA_avx512, 1, LANES, weave, sum_outputs, NULL, true, strip, NULL};
