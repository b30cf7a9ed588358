#include "kernels/conv/conv_dw_row.h"
#include "kernels/simd/vec512.h"

#define VEC           __m512i
#define LANES         ((size_t)16)
#define VLOAD(p)      _mm512_loadu_si512(p)
#define VSTORE(p, v)  _mm512_storeu_si512(p, v)
#define VDOT(s, x, w) _mm512_dpbusd_epi32(s, x, w)
#define VECTORS       4
#define END_BYTES     1
#define END_FLOAT(s)  _mm512_cvtepi32_ps(s)
#include "kernels/conv/conv_dw_body.h"

/* Interleaving works inside 128-bit parts and makes four vectors of each; with the dwords of a line transposed 4 x 4 before, they
 * come out in the order of the channels. */
QK_INLINE __m512i line_at(const qk_dw_lines *l, size_t i, size_t n_lines, size_t column, __mmask64 lanes) {
    if (i >= n_lines) return _mm512_setzero_si512();
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i x = _mm512_maskz_loadu_epi8(lanes, l->line[i] + column * l->step[i]);
    return _mm512_permutexvar_epi32(order, _mm512_xor_si512(x, _mm512_set1_epi8((char)l->flip)));
}

QK_INLINE void weave_lines(const qk_dw_lines *l, size_t n_lines, size_t n, int32_t *out, size_t plane) {
    const __mmask64 lanes = l->n_channels >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << l->n_channels) - 1;
    const size_t n_vectors = (l->n_channels + LANES - 1) / LANES;
    for (size_t c = 0; c < n; c++) {
        const __m512i x0 = line_at(l, 0, n_lines, c, lanes), x1 = line_at(l, 1, n_lines, c, lanes);
        const __m512i x2 = line_at(l, 2, n_lines, c, lanes), x3 = line_at(l, 3, n_lines, c, lanes);
        const __m512i lo01 = _mm512_unpacklo_epi8(x0, x1), hi01 = _mm512_unpackhi_epi8(x0, x1);
        const __m512i lo23 = _mm512_unpacklo_epi8(x2, x3), hi23 = _mm512_unpackhi_epi8(x2, x3);
        int32_t *to = out + c * LANES;
        VSTORE(to, _mm512_unpacklo_epi16(lo01, lo23));
        if (n_vectors > 1) VSTORE(to + plane * LANES, _mm512_unpackhi_epi16(lo01, lo23));
        if (n_vectors > 2) VSTORE(to + 2 * plane * LANES, _mm512_unpacklo_epi16(hi01, hi23));
        if (n_vectors > 3) VSTORE(to + 3 * plane * LANES, _mm512_unpackhi_epi16(hi01, hi23));
    }
}

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    if (l->n == 1)
        weave_lines(l, 1, n, out, plane);
    else if (l->n == 2)
        weave_lines(l, 2, n, out, plane);
    else if (l->n == 3)
        weave_lines(l, 3, n, out, plane);
    else
        weave_lines(l, 4, n, out, plane);
}

/* ---- strips: one name for the intrinsics of all widths ---- */

#define _mm512_loadu_si(p)     _mm512_loadu_si512(p)
#define _mm512_storeu_si(p, v) _mm512_storeu_si512(p, v)
#define _mm512_xor_si(a, b)    _mm512_xor_si512(a, b)
#define _mm512_setzero_si()    _mm512_setzero_si512()
#define _mm512_castsi_ps(a)    _mm512_castsi512_ps(a)
#define _mm256_loadu_si(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define _mm256_storeu_si(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define _mm256_xor_si(a, b)    _mm256_xor_si256(a, b)
#define _mm256_setzero_si()    _mm256_setzero_si256()
#define _mm256_castsi_ps(a)    _mm256_castsi256_ps(a)
#define _mm_loadu_si(p)        _mm_loadu_si128((const __m128i *)(const void *)(p))
#define _mm_storeu_si(p, v)    _mm_storeu_si128((__m128i *)(void *)(p), v)
#define _mm_xor_si(a, b)       _mm_xor_si128(a, b)
#define _mm_setzero_si()       _mm_setzero_si128()
#define _mm_castsi_ps(a)       _mm_castsi128_ps(a)

#define WIDTH                  16
#define L(name)                name##_of_64
#define M(name)                _mm512_##name
#define VI                     __m512i
#define VF                     __m512
#define MASK                   __mmask64
#include "kernels/conv/conv_dw_line_body.h"
#undef WIDTH
#undef L
#undef M
#undef VI
#undef VF
#undef MASK

#define WIDTH   8
#define L(name) name##_of_32
#define M(name) _mm256_##name
#define VI      __m256i
#define VF      __m256
#define MASK    __mmask32
#include "kernels/conv/conv_dw_line_body.h"
#undef WIDTH
#undef L
#undef M
#undef VI
#undef VF
#undef MASK

#define WIDTH   4
#define L(name) name##_of_16
#define M(name) _mm_##name
#define VI      __m128i
#define VF      __m128
#define MASK    __mmask16
#include "kernels/conv/conv_dw_line_body.h"
#undef WIDTH
#undef L
#undef M
#undef VI
#undef VF
#undef MASK

/* All 64 channels of a column are 16 dwords. */
static void spread(const qk_dw_lines *l, size_t in_group, size_t part, size_t n, int32_t *out, size_t plane) {
    const __mmask64 lanes = l->n_channels >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << l->n_channels) - 1;
    const __m512i flip = _mm512_set1_epi8((char)l->flip);
    int32_t from[QK_DW_BLOCK];
    for (size_t c = 0; c < QK_DW_BLOCK; c++)
        from[c] = (int32_t)(c / in_group * (in_group / 4) + part);
    for (size_t i = 0; i < n; i++) {
        const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, l->line[0] + i * l->step[0]), flip);
        for (size_t c = 0; c < l->n_channels; c += LANES)
            VSTORE(out + c * plane + i * LANES, _mm512_permutexvar_epi32(VLOAD(from + c), x));
    }
}

#include "kernels/conv/conv_dw_columns_body.h"
#include "kernels/conv/conv_dw_groups_body.h"

#define VFLIPS(flip) _mm512_set1_epi8((char)(flip))
#include "kernels/conv/conv_dw_strip_body.h"

/* A line's dwords in the order in which interleaving makes vectors of channels in order: see line_at. */
QK_INLINE __m512i strip_line(const uint8_t *p, __mmask64 lanes, VEC flip) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, p), flip));
}

/* Five lines: four side by side, and one. */
QK_INLINE void weave_five(strip_kind k, const uint8_t *const *p, size_t n, VEC flip, size_t set, VEC *to) {
    const __mmask64 lanes = n >= QK_DW_BLOCK ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
    const bool is_last = set == 1;
    const __m512i none = _mm512_setzero_si512(), x0 = strip_line(p[is_last ? 4 : 0], lanes, flip);
    const __m512i x1 = is_last ? none : strip_line(p[1], lanes, flip);
    const __m512i x2 = is_last ? none : strip_line(p[2], lanes, flip);
    const __m512i x3 = is_last ? none : strip_line(p[3], lanes, flip);
    const __m512i lo01 = _mm512_unpacklo_epi8(x0, x1), lo23 = _mm512_unpacklo_epi8(x2, x3);
    to[0] = _mm512_unpacklo_epi16(lo01, lo23);
    if (k.n_vectors > 1) to[1] = _mm512_unpackhi_epi16(lo01, lo23);
    if (k.n_vectors < 4) return;
    const __m512i hi01 = _mm512_unpackhi_epi8(x0, x1), hi23 = _mm512_unpackhi_epi8(x2, x3);
    to[2] = _mm512_unpacklo_epi16(hi01, hi23);
    to[3] = _mm512_unpackhi_epi16(hi01, hi23);
}

/* The channels of a block under a window of 5 x 5. */
QK_INLINE void strip_of_five(const qk_dw_strip *l, const qk_conv_end *e, size_t stride) {
    const size_t n = l->n_channels;
    if (n == QK_DW_BLOCK)
        strip_channels(l, e, 0, QK_DW_BLOCK, (strip_kind){5, 5, stride, 2, 4, 1}, weave_five);
    else if (n > 32)
        strip_channels(l, e, 0, n, (strip_kind){5, 5, stride, 2, 4, 1}, weave_five);
    else if (n > 16)
        strip_channels(l, e, 0, n, (strip_kind){5, 5, stride, 2, 2, 1}, weave_five);
    else
        strip_channels(l, e, 0, n, (strip_kind){5, 5, stride, 2, 1, 1}, weave_five);
}

static void strip(const qk_dw_strip *l, const qk_conv_end *e) {
    if (l->kernel == 5 && l->stride == 1)
        strip_of_five(l, e, 1);
    else if (l->kernel == 5)
        strip_of_five(l, e, 2);
    else if (l->n_channels > 32)
        strip_of_64(l, e);
    else if (l->n_channels > 16)
        strip_of_32(l, e);
    else
        strip_of_16(l, e);
}

const qk_dw_row qk_dw_row_avx512vnni = {QK_ISA_avx512vnni, 4, LANES, weave, sum_outputs, spread, true, strip,
                                        group_strip};
