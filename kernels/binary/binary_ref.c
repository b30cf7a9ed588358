#include "kernels/binary/binary_row.h"

#include <math.h>
#include <string.h>

float qk_binary_load(const qk_binary_end *end, const void *data, size_t i) {
    const char *p = (const char *)data + i * qk_binary_bytes(end->dtype);
    float f;
    int32_t s32;
    uint16_t bf16;
    switch ((int)end->dtype) {
    case QDQ_DTYPE_U8: return (float)((int64_t) * (const uint8_t *)p - end->zp) * end->scale;
    case QDQ_DTYPE_S8: return (float)((int64_t) * (const int8_t *)p - end->zp) * end->scale;
    case QDQ_DTYPE_S32: memcpy(&s32, p, sizeof s32); return (float)s32;
    case QDQ_DTYPE_BF16: {
        memcpy(&bf16, p, sizeof bf16);
        uint32_t bits = (uint32_t)bf16 << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    default: memcpy(&f, p, sizeof f); return f;
    }
}

static float apply(qk_binary_op op, float v, float w) {
    switch (op) {
    case QK_BINARY_ADD: return v + w;
    case QK_BINARY_SUB: return v - w;
    case QK_BINARY_SUB_REV: return w - v;
    case QK_BINARY_MUL: return v * w;
    case QK_BINARY_DIV: return v / w;
    case QK_BINARY_DIV_REV: return w / v;
    case QK_BINARY_MAX: return v > w ? v : w;
    case QK_BINARY_MIN: return v < w ? v : w;
    }
    return v;
}

static void store(const qk_binary *chain, void *dst, size_t i, float v) {
    const qk_binary_end *end = &chain->dst;
    if (end->dtype == QDQ_DTYPE_F32) {
        memcpy((char *)dst + 4 * i, &v, sizeof v);
        return;
    }
    float q = v / end->scale;
    int64_t x = end->zp, lo = end->dtype == QDQ_DTYPE_S8 ? INT8_MIN : 0, hi = lo + 255;
    if (!isnan(q)) {
        float r = rintf(chain->add_zp_first ? q + (float)end->zp : q);
        x = (int64_t)fminf(fmaxf(r, -0x1p40f), 0x1p40f) + (chain->add_zp_first ? 0 : end->zp);
    }
    ((uint8_t *)dst)[i] = (uint8_t)(x < lo ? lo : x > hi ? hi : x);
}

void qk_binary_ref(const qk_binary *chain, const void *src, const void *const *operands, void *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float v = qk_binary_load(&chain->src, src, chain->src.step ? i : 0);
        for (uint32_t k = 0; k < chain->n_steps; k++) {
            const qk_binary_step *s = &chain->steps[k];
            v = apply(s->op, v, qk_binary_load(&s->operand, operands[k], s->operand.step ? i : 0));
        }
        store(chain, dst, i, v);
    }
}
