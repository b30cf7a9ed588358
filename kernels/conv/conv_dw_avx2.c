#include "kernels/conv/conv_dw_row.h"
#include "kernels/simd/vec256.h"

#define VEC           __m256i
#define LANES         ((size_t)8)
#define VLOAD(p)      _mm256_loadu_si256((const __m256i *)(p))
#define VSTORE(p, v)  _mm256_storeu_si256((__m256i *)(p), v)
#define VDOT(s, x, w) _mm256_add_epi32(s, _mm256_madd_epi16(x, w))
#define VECTORS       2
#define END_BYTES     1
#define END_FLOAT(s)  _mm256_cvtepi32_ps(s)
#include "kernels/conv/conv_dw_body.h"

QK_INLINE __m128i load16(const uint8_t *p, size_t n) {
    if (n >= 16) return _mm_loadu_si128((const __m128i *)(const void *)p);
    uint8_t some[16] = {0};
    memcpy(some, p, n);
    return _mm_loadu_si128((const __m128i *)(const void *)some);
}

/* Sixteen channels, or the last ones; `two`: of two lines; it and n_channels >= 16 are constants of the caller. */
QK_INLINE void weave16(const qk_dw_lines *l, size_t c, size_t n_channels, size_t n, int32_t *out, size_t plane,
                       bool two) {
    const __m128i flip = _mm_set1_epi8((char)l->flip), zero = _mm_setzero_si128();
    const uint8_t *p0 = l->line[0] + c, *p1 = two ? l->line[1] + c : NULL;
    const size_t step0 = l->step[0], step1 = two ? l->step[1] : 0;
    for (size_t i = 0; i < n; i++, out += LANES) {
        const __m128i x0 = _mm_xor_si128(load16(p0 + i * step0, n_channels), flip);
        const __m128i x1 = two ? _mm_xor_si128(load16(p1 + i * step1, n_channels), flip) : zero;
        VSTORE(out, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x0, x1)));
        if (n_channels > 8) VSTORE(out + plane * LANES, _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x0, x1)));
    }
}

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c += 16, out += 2 * plane * LANES) {
        const size_t left = l->n_channels - c;
        if (left >= 16 && l->n > 1)
            weave16(l, c, 16, n, out, plane, true);
        else if (left >= 16)
            weave16(l, c, 16, n, out, plane, false);
        else if (l->n > 1)
            weave16(l, c, left, n, out, plane, true);
        else
            weave16(l, c, left, n, out, plane, false);
    }
}

static void spread(const qk_dw_lines *l, size_t in_group, size_t part, size_t n, int32_t *out, size_t plane) {
    const __m128i flip = _mm_set1_epi8((char)l->flip);
    int32_t from[LANES];
    for (size_t c = 0; c < LANES; c++)
        from[c] = (int32_t)(c / in_group * (in_group / 2) + part);
    for (size_t c = 0; c < l->n_channels; c += LANES, out += plane * LANES)
        for (size_t i = 0; i < n; i++) {
            const __m128i x = _mm_xor_si128(qv_load1(l->line[0] + i * l->step[0] + c, l->n_channels - c), flip);
            const __m256i words = _mm256_castsi128_si256(_mm_cvtepu8_epi16(x));
            VSTORE(out + i * LANES, _mm256_permutevar8x32_epi32(words, VLOAD(from)));
        }
}

#define VFLIPS(flip) _mm256_set1_epi8((char)(flip))
#include "kernels/conv/conv_dw_strip_body.h"

/* Two lines side by side, or one; sixteen channels. */
QK_INLINE void weave_lines(strip_kind k, const uint8_t *const *p, size_t n, VEC flip, size_t set, VEC *to) {
    const __m128i f = _mm256_castsi256_si128(flip), x0 = _mm_xor_si128(load16(p[2 * set], n), f);
    if (2 * set + 1 == k.n_lines) {
        to[0] = _mm256_cvtepu8_epi32(x0);
        to[1] = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(x0, x0));
        return;
    }
    const __m128i x1 = _mm_xor_si128(load16(p[2 * set + 1], n), f);
    to[0] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x0, x1));
    to[1] = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x0, x1));
}

/* Two of the channels of a group, in the lanes of all of its outputs; eight channels. */
QK_INLINE void weave_group(strip_kind k, const uint8_t *const *p, size_t n, VEC flip, size_t set, VEC *to) {
    const size_t n_parts = k.in_group / 2;
    const VEC x = _mm256_xor_si256(_mm256_broadcastq_epi64(qv_load1(p[set / n_parts], n)), flip);
    const uint32_t pair = 0x80018000u + 0x20002u * (uint32_t)(set % n_parts); /* of bytes, widened */
    const int low = (int)pair, high = (int)(pair + (k.in_group == 8 ? 0 : 0x40004u));
    to[0] = _mm256_shuffle_epi8(x, _mm256_setr_epi32(low, low, low, low, high, high, high, high));
}

static void strip(const qk_dw_strip *l, const qk_conv_end *e) {
    if (l->kernel == 3 && l->stride == 1)
        strip_all(l, e, (strip_kind){3, 3, 1, 2, 2, 1}, weave_lines);
    else if (l->kernel == 3)
        strip_all(l, e, (strip_kind){3, 3, 2, 2, 2, 1}, weave_lines);
    else if (l->stride == 1)
        strip_all(l, e, (strip_kind){5, 5, 1, 3, 2, 1}, weave_lines);
    else
        strip_all(l, e, (strip_kind){5, 5, 2, 3, 2, 1}, weave_lines);
}

static void group_strip(const qk_dw_strip *l, const qk_conv_end *e) {
    if (l->in_group == 4 && l->stride == 1)
        strip_all(l, e, (strip_kind){3, 3, 1, 6, 1, 4}, weave_group);
    else if (l->in_group == 4)
        strip_all(l, e, (strip_kind){3, 3, 2, 6, 1, 4}, weave_group);
    else if (l->stride == 1)
        strip_all(l, e, (strip_kind){3, 3, 1, 12, 1, 8}, weave_group);
    else
        strip_all(l, e, (strip_kind){3, 3, 2, 12, 1, 8}, weave_group);
}

const qk_dw_row qk_dw_row_avx2 = {QK_ISA_avx2, 2, LANES, weave, sum_outputs, spread, true, strip, group_strip};
