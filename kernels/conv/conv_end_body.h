/* Sums to results (conv_end.h), for a level that has included vec512.h or vec256.h and defined
 *     END_FLOAT(s)      a vector of sums as floats
 *     END_BYTES         whether results may be bytes
 * Included by the conv_*_body.h alone. */

/* Row by row scales and biases come from L1 anew: kept in registers, they would drive sums out of theirs. */
#define IS_LIKELY(x)  __builtin_expect(x, 1)
#define END_FORGET(p) __asm__ volatile("" : "+r"(p))

/* Vector c of the columns of a row that is to be bytes. */
QK_INLINE qv_f end_value(const qk_conv_end *e, VEC s, size_t c) {
    return qv_add(qv_mul(END_FLOAT(s), qv_load(e->scale + c * QV_LANES)), qv_load(e->bias + c * QV_LANES));
}

/* Vector c of a row, as floats; `left` of its lanes are stored. */
QK_INLINE void end_floats(const qk_conv_end *e, VEC s, size_t c, uint8_t *row) {
    if (e->n_cols <= c * QV_LANES) return;
    qv_f v = END_FLOAT(s);
    if (e->scale != NULL) v = qv_mul(v, qv_load(e->scale + c * QV_LANES));
    if (e->bias != NULL) v = qv_add(v, qv_load(e->bias + c * QV_LANES));
    if (e->is_relu) v = qv_max(qv_set1(0.0f), v);
    qv_store4(row + 4 * c * QV_LANES, e->n_cols - c * QV_LANES, qv_bits(v));
}

/* The same where a row is whole, with no other options. */
QK_INLINE void end_bare(VEC s, const float *bias, qv_f floor, size_t c, uint8_t *row) {
    const qv_f v = qv_max(floor, qv_add(END_FLOAT(s), qv_load(bias + c * QV_LANES)));
    qv_store4(row + 4 * c * QV_LANES, QV_LANES, qv_bits(v));
}

#if END_BYTES
#ifdef QK_SIMD_VEC512_H
typedef __m512i end_bytes;
QK_INLINE end_bytes end_pack(const qk_conv_end *e, const qv_i q[4]) {
    __m512i a = _mm512_packs_epi32(q[0], q[1]), b = _mm512_packs_epi32(q[2], q[3]);
    if (IS_LIKELY(e->is_bare)) return e->is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    const __m512i zp = _mm512_set1_epi16(e->zp);
    a = _mm512_adds_epi16(a, zp);
    b = _mm512_adds_epi16(b, zp);
    const __m512i low = _mm512_set1_epi8((char)e->low), high = _mm512_set1_epi8((char)e->high);
    if (e->is_signed) return _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(a, b), low), high);
    return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), low), high);
}
QK_INLINE end_bytes end_order(end_bytes b) {
    return qk512_order8(b);
}
/* The first n of n_vectors * 16 bytes from vector `from` on. */
QK_INLINE void end_store(uint8_t *to, end_bytes b, size_t from, size_t n_vectors, size_t n) {
    if (!IS_LIKELY(n >= n_vectors * 16)) {
        const __mmask64 lanes = (((__mmask64)1 << n) - 1) << from * 16;
        _mm512_mask_storeu_epi8(to - from * 16, lanes, b);
    } else if (n_vectors == 4) {
        _mm512_storeu_si512(to, b);
    } else if (n_vectors == 1) {
        const __m128i part = from == 0   ? _mm512_castsi512_si128(b)
                             : from == 1 ? _mm512_extracti32x4_epi32(b, 1)
                             : from == 2 ? _mm512_extracti32x4_epi32(b, 2)
                                         : _mm512_extracti32x4_epi32(b, 3);
        _mm_storeu_si128((__m128i *)(void *)to, part);
    } else { /* two, or three from 0 on */
        const __m256i part = from == 0 ? _mm512_castsi512_si256(b) : _mm512_extracti64x4_epi64(b, 1);
        _mm256_storeu_si256((__m256i *)(void *)to, part);
        if (n_vectors == 3) _mm_storeu_si128((__m128i *)(void *)(to + 32), _mm512_extracti32x4_epi32(b, 2));
    }
}
#else
typedef __m256i end_bytes;
QK_INLINE end_bytes end_pack(const qk_conv_end *e, const qv_i q[4]) {
    __m256i a = _mm256_packs_epi32(q[0], q[1]), b = _mm256_packs_epi32(q[2], q[3]);
    if (IS_LIKELY(e->is_bare)) return e->is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    const __m256i zp = _mm256_set1_epi16(e->zp);
    a = _mm256_adds_epi16(a, zp);
    b = _mm256_adds_epi16(b, zp);
    const __m256i low = _mm256_set1_epi8((char)e->low), high = _mm256_set1_epi8((char)e->high);
    if (e->is_signed) return _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(a, b), low), high);
    return _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(a, b), low), high);
}
QK_INLINE end_bytes end_order(end_bytes b) {
    return qk256_order8(b);
}
/* The first n of n_vectors * 8 bytes from vector `from` on. */
QK_INLINE void end_store(uint8_t *to, end_bytes b, size_t from, size_t n_vectors, size_t n) {
    if (!IS_LIKELY(n >= n_vectors * 8)) {
        uint8_t some[32];
        _mm256_storeu_si256((__m256i *)(void *)some, b);
        memcpy(to, some + from * 8, n);
        return;
    }
    const __m128i half = from < 2 ? _mm256_castsi256_si128(b) : _mm256_extracti128_si256(b, 1);
    if (n_vectors == 4)
        _mm256_storeu_si256((__m256i *)(void *)to, b);
    else if (n_vectors == 2)
        _mm_storeu_si128((__m128i *)(void *)to, half);
    else if (from % 2 == 0)
        _mm_storel_epi64((__m128i *)(void *)to, half);
    else
        _mm_storel_epi64((__m128i *)(void *)to, _mm_unpackhi_epi64(half, half));
}
#endif

/* Four vectors of sums to bytes; c0 … c3: which columns they are. */
QK_INLINE end_bytes end_four(const qk_conv_end *e, VEC s0, VEC s1, VEC s2, VEC s3, size_t c0, size_t c1, size_t c2,
                             size_t c3) {
    qv_f v[4] = {end_value(e, s0, c0), end_value(e, s1, c1), end_value(e, s2, c2), end_value(e, s3, c3)};
    qv_i q[4];
    if (!IS_LIKELY(!e->has_shift)) QK_FOUR_TIMES(k, v[k] = qv_add(v[k], qv_set1(e->shift)));
    QK_FOUR_TIMES(k, q[k] = qv_to_int(v[k]));
    return end_pack(e, q);
}
#endif

/* A tile's sums are s<row><vector>; n_rows and n_vectors are how many there are, `e` the end, `sums` where they go without one. */
#define END_SUMS(r)                                                                                                    \
    if (r < n_rows) {                                                                                                  \
        VSTORE(sums[r], s##r##0);                                                                                      \
        if (n_vectors > 1) VSTORE(sums[r] + LANES, s##r##1);                                                           \
        if (n_vectors > 2) VSTORE(sums[r] + 2 * LANES, s##r##2);                                                       \
        if (n_vectors > 3) VSTORE(sums[r] + 3 * LANES, s##r##3);                                                       \
    }
/* Where results go, in registers: as far as the compiler knows, what is stored may be `e`. */
#define END_PLACE                                                                                                      \
    END_FORGET(e);                                                                                                     \
    uint8_t *const put_to = e->dst;                                                                                    \
    const ptrdiff_t *const put_at = e->rows;                                                                           \
    const size_t n_put = e->n_cols;
#define END_FLOATS(r)                                                                                                  \
    if (r < n_rows) {                                                                                                  \
        uint8_t *const to = e->dst + e->rows[r];                                                                       \
        if (IS_LIKELY(e->is_bare && e->n_cols >= n_vectors * QV_LANES)) {                                              \
            const float *const bias = e->bias;                                                                         \
            const qv_f floor = qv_set1(e->floor);                                                                      \
            end_bare(s##r##0, bias, floor, 0, to);                                                                     \
            if (n_vectors > 1) end_bare(s##r##1, bias, floor, 1, to);                                                  \
            if (n_vectors > 2) end_bare(s##r##2, bias, floor, 2, to);                                                  \
            if (n_vectors > 3) end_bare(s##r##3, bias, floor, 3, to);                                                  \
        } else {                                                                                                       \
            end_floats(e, s##r##0, 0, to);                                                                             \
            if (n_vectors > 1) end_floats(e, s##r##1, 1, to);                                                          \
            if (n_vectors > 2) end_floats(e, s##r##2, 2, to);                                                          \
            if (n_vectors > 3) end_floats(e, s##r##3, 3, to);                                                          \
        }                                                                                                              \
    }
/* Rows of one, two or more vectors, so that four vectors become bytes together; the last of three stands twice. */
#define END_PUT(r, b, from)                                                                                            \
    if (r < n_rows) end_store(put_to + put_at[r], b, from, n_vectors, n_put);
#define END_BYTES1(r, r1, r2, r3)                                                                                      \
    if (r < n_rows) {                                                                                                  \
        END_PLACE                                                                                                      \
        const end_bytes b = end_order(end_four(e, s##r##0, s##r1##0, s##r2##0, s##r3##0, 0, 0, 0, 0));                 \
        END_PUT(r, b, 0) END_PUT(r1, b, 1) END_PUT(r2, b, 2) END_PUT(r3, b, 3)                                         \
    }
#define END_BYTES2(r, r1)                                                                                              \
    if (r < n_rows) {                                                                                                  \
        END_PLACE                                                                                                      \
        const end_bytes b = end_order(end_four(e, s##r##0, s##r##1, s##r1##0, s##r1##1, 0, 1, 0, 1));                  \
        END_PUT(r, b, 0) END_PUT(r1, b, 2)                                                                             \
    }
#define END_BYTES3(r)                                                                                                  \
    if (r < n_rows) {                                                                                                  \
        END_PLACE                                                                                                      \
        const end_bytes b = end_order(end_four(e, s##r##0, s##r##1, s##r##2, s##r##2, 0, 1, 2, 2));                    \
        END_PUT(r, b, 0)                                                                                               \
    }
#define END_BYTES4(r)                                                                                                  \
    if (r < n_rows) {                                                                                                  \
        END_PLACE                                                                                                      \
        const end_bytes b = end_order(end_four(e, s##r##0, s##r##1, s##r##2, s##r##3, 0, 1, 2, 3));                    \
        END_PUT(r, b, 0)                                                                                               \
    }
