#include "kernels/igemm/igemm_transpose_body.h"

enum { STEP_BYTES = 4 * QK_IGEMM_COLS };

static __mmask64 lanes64(size_t n) {
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

QK_INLINE __m512i row_of(const uint8_t *p, __mmask64 lanes, __m512i flip) {
    return _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, p), flip);
}

static __m512i add_dwords(__m512i sum, __m512i bytes) {
    return _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), bytes);
}

/* Columns side by side: four rows of k at a time, interleaved. */
static void pack_rows(const qk_igemm *g, const uint8_t *data, ptrdiff_t k_stride, size_t n_cols, uint8_t *out,
                      int32_t *col_sums) {
    const __mmask64 lanes = lanes64(n_cols);
    const __m512i flip = _mm512_maskz_set1_epi8(lanes, g->weights_shift != 0 ? (char)0x80 : 0);
    __m512i sums[4];
    QK_FOUR_TIMES(j, sums[j] = _mm512_setzero_si512());
    for (size_t k = 0; k < g->kc; k += 4, out += STEP_BYTES) {
        __m512i r[4];
        QK_FOUR_TIMES(i, r[i] = k + i < g->kc ? row_of(data + (ptrdiff_t)(k + i) * k_stride, lanes, flip)
                                              : _mm512_setzero_si512());
        const __m512i a = _mm512_unpacklo_epi8(r[0], r[1]), b = _mm512_unpackhi_epi8(r[0], r[1]),
                      c = _mm512_unpacklo_epi8(r[2], r[3]), d = _mm512_unpackhi_epi8(r[2], r[3]);
        /* four columns of each lane's sixteen */
        const __m512i t0 = _mm512_unpacklo_epi16(a, c), t1 = _mm512_unpackhi_epi16(a, c),
                      t2 = _mm512_unpacklo_epi16(b, d), t3 = _mm512_unpackhi_epi16(b, d);
        const __m512i p0 = _mm512_shuffle_i32x4(t0, t1, 0x44), p1 = _mm512_shuffle_i32x4(t0, t1, 0xee),
                      p2 = _mm512_shuffle_i32x4(t2, t3, 0x44), p3 = _mm512_shuffle_i32x4(t2, t3, 0xee);
        const __m512i o[4] = {_mm512_shuffle_i32x4(p0, p2, 0x88), _mm512_shuffle_i32x4(p0, p2, 0xdd),
                              _mm512_shuffle_i32x4(p1, p3, 0x88), _mm512_shuffle_i32x4(p1, p3, 0xdd)};
        QK_FOUR_TIMES(j, {
            _mm512_storeu_si512(out + 64 * j, o[j]);
            sums[j] = add_dwords(sums[j], o[j]);
        });
    }
    QK_FOUR_TIMES(j, _mm512_storeu_si512(col_sums + 16 * j, sums[j]));
}

/* k side by side: 64 of sixteen columns at a time. */
static void pack_columns(const qk_igemm *g, const uint8_t *data, ptrdiff_t n_stride, size_t n_cols, uint8_t *out,
                         int32_t *col_sums) {
    __m512i sums = _mm512_setzero_si512();
    for (size_t k = 0; k < g->kc; k += 64, out += 16 * STEP_BYTES) {
        const __mmask64 lanes = lanes64(g->kc - k);
        const __m512i flip = _mm512_maskz_set1_epi8(lanes, g->weights_shift != 0 ? (char)0x80 : 0);
        __m512i v[16];
        SIXTEEN_TIMES(c, v[c] = c < n_cols ? row_of(data + (ptrdiff_t)k + c * n_stride, lanes, flip)
                                           : _mm512_setzero_si512());
        transpose16(v);
        const size_t n4 = g->kc - k < 64 ? (g->kc - k + 3) / 4 : 16;
        SIXTEEN_TIMES(
            i, if (i < n4) {
                _mm512_storeu_si512(out + i * STEP_BYTES, v[i]);
                sums = add_dwords(sums, v[i]);
            });
    }
    _mm512_storeu_si512(col_sums, sums);
}

bool qk_igemm_pack_x8_avx512vnni(const qk_igemm *g, const qk_igemm_source *s, size_t panel, void *out, int32_t *sums) {
    const size_t first = panel * QK_IGEMM_COLS, n_cols = qk_igemm_cols_of(g, panel);
    const uint8_t *data = (const uint8_t *)s->data + (ptrdiff_t)first * s->n_stride;
    if (s->n_stride == 1) {
        pack_rows(g, data, s->k_stride, n_cols, out, sums);
        return true;
    }
    if (s->k_stride != 1) return false;
    for (size_t c = 0; c < QK_IGEMM_COLS; c += 16) /* those beyond n_cols become zeros */
        pack_columns(g, data + (ptrdiff_t)(c < n_cols ? c : 0) * s->n_stride, s->n_stride, n_cols < c ? 0 : n_cols - c,
                     (uint8_t *)out + 4 * c, sums + c);
    return true;
}
