#include "kernels/quant/quant_row.h"

#include <math.h>
#include <string.h>

static int64_t quantize_one(float x, float scale, int32_t zp, qk_quant_order order, int64_t lo, int64_t hi) {
    float q = x / scale;
    int64_t v = zp;
    if (!isnan(q)) {
        float r = rintf(order == QK_ADD_THEN_ROUND ? q + (float)zp : q);
        /* Beyond this everything saturates, and below it the conversion is exact. */
        int64_t i = (int64_t)fminf(fmaxf(r, -0x1p40f), 0x1p40f);
        v = order == QK_ADD_THEN_ROUND ? i : i + zp;
    }
    return v < lo ? lo : v > hi ? hi : v;
}

#define TYPE(name, type, lo, hi)                                                                                       \
    static void q_runs_##name(const void *src, void *dst, size_t n_runs, size_t len, const float *scales,              \
                              const int32_t *zps, qk_quant_order order, bool stream) {                                 \
        (void)stream;                                                                                                  \
        const float *s = src;                                                                                          \
        type *d = dst;                                                                                                 \
        for (size_t r = 0; r < n_runs; r++, s += len, d += len)                                                        \
            for (size_t i = 0; i < len; i++)                                                                           \
                d[i] = (type)quantize_one(s[i], scales[r], zps ? zps[r] : 0, order, lo, hi);                           \
    }                                                                                                                  \
    static void q_cols_##name(const float *src, void *dst, size_t rows, size_t cols, const float *scales,              \
                              const int32_t *zps, qk_quant_order order, bool stream) {                                 \
        (void)stream;                                                                                                  \
        type *d = dst;                                                                                                 \
        for (size_t r = 0; r < rows; r++, src += cols, d += cols)                                                      \
            for (size_t c = 0; c < cols; c++)                                                                          \
                d[c] = (type)quantize_one(src[c], scales[c], zps ? zps[c] : 0, order, lo, hi);                         \
    }                                                                                                                  \
    static void dq_runs_##name(const void *src, void *dst, size_t n_runs, size_t len, const float *scales,             \
                               const int32_t *zps, bool stream) {                                                      \
        (void)stream;                                                                                                  \
        const type *s = src;                                                                                           \
        float *d = dst;                                                                                                \
        for (size_t r = 0; r < n_runs; r++, s += len, d += len)                                                        \
            for (size_t i = 0; i < len; i++)                                                                           \
                d[i] = (float)((int64_t)s[i] - (zps ? zps[r] : 0)) * scales[r];                                        \
    }                                                                                                                  \
    static void dq_cols_##name(const void *src, float *dst, size_t rows, size_t cols, const float *scales,             \
                               const int32_t *zps, bool stream) {                                                      \
        (void)stream;                                                                                                  \
        const type *s = src;                                                                                           \
        for (size_t r = 0; r < rows; r++, s += cols, dst += cols)                                                      \
            for (size_t c = 0; c < cols; c++)                                                                          \
                dst[c] = (float)((int64_t)s[c] - (zps ? zps[c] : 0)) * scales[c];                                      \
    }
TYPE(u8, uint8_t, 0, UINT8_MAX)
TYPE(s8, int8_t, INT8_MIN, INT8_MAX)
TYPE(u16, uint16_t, 0, UINT16_MAX)
TYPE(s16, int16_t, INT16_MIN, INT16_MAX)
TYPE(s32, int32_t, INT32_MIN, INT32_MAX)
#undef TYPE

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void f32_of_f16(const uint16_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t sign = (uint32_t)(src[i] & 0x8000u) << 16, rest = src[i] & 0x7fffu;
        if (rest >= 0x7c00u) /* infinity, or a NaN, which becomes quiet */
            dst[i] = float_of(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0));
        else if (rest >= 0x400u)
            dst[i] = float_of(sign | ((rest << 13) + (112u << 23)));
        else
            dst[i] = float_of(sign | bits_of((float)rest * 0x1p-24f));
    }
}

static void f16_of_f32(const float *src, uint16_t *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t u = bits_of(src[i]), sign = u >> 16 & 0x8000u, rest = u & 0x7fffffffu;
        uint32_t h;
        if (rest > 0x7f800000u)
            h = 0x7e00u | (rest >> 13 & 0x3ffu);
        else if (rest >= 0x477ff000u) /* 65520 and up */
            h = 0x7c00u;
        else if (rest >= 0x38800000u) /* normal: round half to even on the 13 bits that go */
            h = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
        else /* adding 0.5 leaves the value in units of 2^-24, rounded half to even by the addition itself */
            h = bits_of(float_of(rest) + 0.5f) - 0x3f000000u;
        dst[i] = (uint16_t)(sign | h);
    }
}

static void f32_of_bf16(const uint16_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = float_of((uint32_t)src[i] << 16);
}

static void bf16_of_f32(const float *src, uint16_t *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t u = bits_of(src[i]);
        dst[i] = (uint16_t)(isnan(src[i]) ? u >> 16 | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
    }
}

static void unpack4(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed) {
    unsigned sign = is_signed ? 8u : 0u;
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(((src[i / 2] >> (i % 2 * 4) & 15u) ^ sign) - sign);
}

static uint8_t nibble(uint8_t b, bool is_signed) {
    int v = is_signed ? (int8_t)b : b, lo = is_signed ? -8 : 0, hi = lo + 15;
    return (uint8_t)((v < lo ? lo : v > hi ? hi : v) & 15);
}

static void pack4(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed) {
    for (size_t i = 0; i < n; i += 2)
        dst[i / 2] = (uint8_t)(nibble(src[i], is_signed) | (i + 1 < n ? nibble(src[i + 1], is_signed) << 4 : 0));
}

static void minmax(const float *src, size_t n, float *min_out, float *max_out) {
    float lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        lo = src[i] < lo ? src[i] : lo;
        hi = src[i] > hi ? src[i] : hi;
    }
    /* Which of two zeros was met first must not show. */
    *min_out = lo + 0.0f;
    *max_out = hi + 0.0f;
}

#define ROW(form)                                                                                                      \
    { form##_u8, form##_s8, form##_u16, form##_s16, form##_s32 }
const qk_quant_row qk_quant_ref = {
    .q_runs = {ROW(q_runs)},
    .q_cols = ROW(q_cols),
    .dq_runs = {ROW(dq_runs)},
    .dq_cols = ROW(dq_cols),
    .f32_of_f16 = f32_of_f16,
    .f16_of_f32 = f16_of_f32,
    .f32_of_bf16 = f32_of_bf16,
    .bf16_of_f32 = bf16_of_f32,
    .unpack4 = unpack4,
    .pack4 = pack4,
    .minmax = minmax,
    .isa = QK_ISA_ref,
};
