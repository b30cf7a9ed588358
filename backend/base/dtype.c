#include "base/dtype.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

const char *qdq_dtype_name(qdq_dtype dtype) {
    switch (dtype) {
#define QDQ_DTYPE_ROW(name, value, text, bits)                                                                         \
    case QDQ_DTYPE_##name: return text;
        QDQ_DTYPE_MAP(QDQ_DTYPE_ROW)
#undef QDQ_DTYPE_ROW
    }
    return "undef";
}

qdq_dtype qdq_dtype_from_name(const char *name) {
    if (name == NULL) return QDQ_DTYPE_UNDEF;
#define QDQ_DTYPE_ROW(id, value, text, bits)                                                                           \
    if (strcmp(name, text) == 0) return QDQ_DTYPE_##id;
    QDQ_DTYPE_MAP(QDQ_DTYPE_ROW)
#undef QDQ_DTYPE_ROW
    return QDQ_DTYPE_UNDEF;
}

size_t qdq_dtype_bits(qdq_dtype dtype) {
    switch (dtype) {
#define QDQ_DTYPE_ROW(name, value, text, bits)                                                                         \
    case QDQ_DTYPE_##name: return bits;
        QDQ_DTYPE_MAP(QDQ_DTYPE_ROW)
#undef QDQ_DTYPE_ROW
    }
    return 0;
}

bool qdqi_dtype_is_float(qdq_dtype dtype) {
    switch (dtype) {
    case QDQ_DTYPE_F16:
    case QDQ_DTYPE_BF16:
    case QDQ_DTYPE_F32:
    case QDQ_DTYPE_F64:
    case QDQ_DTYPE_F8_E5M2:
    case QDQ_DTYPE_F8_E4M3: return true;
    case QDQ_DTYPE_UNDEF:
    case QDQ_DTYPE_S32:
    case QDQ_DTYPE_S8:
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_BOOLEAN:
    case QDQ_DTYPE_S4:
    case QDQ_DTYPE_U4:
    case QDQ_DTYPE_S64:
    case QDQ_DTYPE_S16:
    case QDQ_DTYPE_U16: return false;
    }
    return false;
}

bool qdqi_dtype_is_int(qdq_dtype dtype) {
    return dtype != QDQ_DTYPE_UNDEF && dtype != QDQ_DTYPE_BOOLEAN && qdq_dtype_bits(dtype) != 0 &&
           !qdqi_dtype_is_float(dtype);
}

static bool is_signed(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_S32 || dtype == QDQ_DTYPE_S8 || dtype == QDQ_DTYPE_S4 || dtype == QDQ_DTYPE_S64 ||
           dtype == QDQ_DTYPE_S16;
}

int64_t qdqi_dtype_min(qdq_dtype dtype) {
    if (!is_signed(dtype)) return 0;
    const size_t bits = qdq_dtype_bits(dtype);
    return bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
}

int64_t qdqi_dtype_max(qdq_dtype dtype) {
    if (dtype == QDQ_DTYPE_BOOLEAN) return 1;
    if (!qdqi_dtype_is_int(dtype)) return 0;
    const size_t bits = qdq_dtype_bits(dtype);
    if (bits == 64) return INT64_MAX;
    return is_signed(dtype) ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
}

bool qdqi_dtype_bytes(qdq_dtype dtype, int64_t n, size_t *bytes_out) {
    const size_t bits = qdq_dtype_bits(dtype);
    if (n < 0 || (uint64_t)n > SIZE_MAX) return false;
    if (bits < 8) {
        *bytes_out = (size_t)n / 2 + (size_t)n % 2;
        return true;
    }
    return qdqi_mul_size((size_t)n, bits / 8, bytes_out);
}

/* ---- narrow floats ---- */

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

/* Decode sign | exp (e bits) | mantissa (m bits) with IEEE subnormals; specials are the caller's. */
static float decode(uint32_t v, int e_bits, int m_bits, int bias) {
    const uint32_t sign = v >> (e_bits + m_bits);
    const int32_t e = (int32_t)(v >> m_bits & ((1u << e_bits) - 1));
    const uint32_t m = v & ((1u << m_bits) - 1);
    const float mag =
        e == 0 ? ldexpf((float)m, 1 - bias - m_bits) : ldexpf((float)(m | 1u << m_bits), e - bias - m_bits);
    return sign != 0 ? -mag : mag;
}

/* Round |f| (finite) half to even to e/m bits. The result may carry into the exponent past the largest finite value:
 * the caller decides what overflow is. */
static uint32_t encode_mag(float f, int m_bits, int bias) {
    const uint32_t u = bits_of(f) & 0x7fffffffu;
    const int32_t e32 = (int32_t)(u >> 23);
    if (e32 == 0) return 0; /* an f32 subnormal is far below half of the smallest step of every narrow type */
    const uint32_t sig = (u & 0x7fffffu) | 0x800000u; /* 24 bits */
    int32_t e = e32 - 127 + bias;
    int32_t drop = 23 - m_bits;
    if (e < 1) {
        drop += 1 - e;
        e = 0;
        if (drop > 24) return 0;
    }
    const uint32_t kept = sig >> drop;
    const uint32_t rest = sig & ((1u << drop) - 1);
    const uint32_t half = 1u << (drop - 1);
    const uint32_t up = rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u;
    /* a normal's implicit bit becomes an addition to the exponent field; a rounding carry moves up by itself */
    return (e == 0 ? 0u : (uint32_t)(e - 1) << m_bits) + kept + up;
}

float qdqi_f32_of_f16(uint16_t h) {
    if ((h & 0x7c00u) == 0x7c00u) {
        const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
        return float_of(sign | 0x7f800000u | (uint32_t)(h & 0x3ffu) << 13);
    }
    return decode(h, 5, 10, 15);
}

uint16_t qdqi_f16_of_f32(float f) {
    const uint32_t sign = bits_of(f) >> 16 & 0x8000u;
    if (isnan(f)) return (uint16_t)(sign | 0x7e00u);
    const uint32_t mag = isinf(f) ? 0x7c00u : encode_mag(f, 10, 15);
    return (uint16_t)(sign | (mag > 0x7c00u ? 0x7c00u : mag));
}

float qdqi_f32_of_bf16(uint16_t h) {
    return float_of((uint32_t)h << 16);
}

uint16_t qdqi_bf16_of_f32(float f) {
    const uint32_t u = bits_of(f);
    if (isnan(f)) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

float qdqi_f32_of_f8_e4m3(uint8_t v) {
    return (v & 0x7fu) == 0x7fu ? float_of((uint32_t)(v & 0x80u) << 24 | 0x7fc00000u) : decode(v, 4, 3, 7);
}

uint8_t qdqi_f8_e4m3_of_f32(float f, bool saturate) {
    const uint32_t sign = bits_of(f) >> 24 & 0x80u;
    if (isnan(f)) return (uint8_t)(sign | 0x7fu);
    uint32_t mag = isinf(f) ? 0x7fu : encode_mag(f, 3, 7);
    if (mag > 0x7eu || fabsf(f) >= 480.0f) mag = saturate ? 0x7eu : 0x7fu;
    return (uint8_t)(sign | mag);
}

float qdqi_f32_of_f8_e5m2(uint8_t v) {
    return qdqi_f32_of_f16((uint16_t)((uint32_t)v << 8));
}

uint8_t qdqi_f8_e5m2_of_f32(float f, bool saturate) {
    const uint32_t sign = bits_of(f) >> 24 & 0x80u;
    if (isnan(f)) return (uint8_t)(sign | 0x7eu);
    uint32_t mag = isinf(f) ? 0x7cu : encode_mag(f, 2, 15);
    if (mag >= 0x7cu) mag = saturate ? 0x7bu : 0x7cu;
    return (uint8_t)(sign | mag);
}

/* ---- elements ---- */

static unsigned nibble(const void *data, int64_t i) {
    const uint8_t byte = ((const uint8_t *)data)[i / 2];
    return i % 2 == 0 ? byte & 15u : (unsigned)byte >> 4;
}

#define AT(type) (((const type *)data)[i])

int64_t qdqi_load_i64(const void *data, qdq_dtype dtype, int64_t i) {
    switch (dtype) {
    case QDQ_DTYPE_S32: return AT(int32_t);
    case QDQ_DTYPE_S8: return AT(int8_t);
    case QDQ_DTYPE_U8: return AT(uint8_t);
    case QDQ_DTYPE_BOOLEAN: return AT(uint8_t) != 0;
    case QDQ_DTYPE_S64: return AT(int64_t);
    case QDQ_DTYPE_S16: return AT(int16_t);
    case QDQ_DTYPE_U16: return AT(uint16_t);
    case QDQ_DTYPE_U4: return (int64_t)nibble(data, i);
    case QDQ_DTYPE_S4: return (int64_t)(nibble(data, i) ^ 8u) - 8;
    case QDQ_DTYPE_UNDEF: return 0;
    case QDQ_DTYPE_F16:
    case QDQ_DTYPE_BF16:
    case QDQ_DTYPE_F32:
    case QDQ_DTYPE_F64:
    case QDQ_DTYPE_F8_E5M2:
    case QDQ_DTYPE_F8_E4M3: {
        const double v = qdqi_load_f64(data, dtype, i);
        if (isnan(v)) return 0;
        if (v >= 0x1p63) return INT64_MAX;
        if (v <= -0x1p63) return INT64_MIN;
        return (int64_t)v;
    }
    }
    return 0;
}

double qdqi_load_f64(const void *data, qdq_dtype dtype, int64_t i) {
    if (dtype == QDQ_DTYPE_F64) return AT(double);
    if (qdqi_dtype_is_float(dtype)) return (double)qdqi_load_f32(data, dtype, i);
    return (double)qdqi_load_i64(data, dtype, i);
}

float qdqi_load_f32(const void *data, qdq_dtype dtype, int64_t i) {
    switch (dtype) {
    case QDQ_DTYPE_F16: return qdqi_f32_of_f16(AT(uint16_t));
    case QDQ_DTYPE_BF16: return qdqi_f32_of_bf16(AT(uint16_t));
    case QDQ_DTYPE_F32: return AT(float);
    case QDQ_DTYPE_F64: return (float)AT(double);
    case QDQ_DTYPE_F8_E5M2: return qdqi_f32_of_f8_e5m2(AT(uint8_t));
    case QDQ_DTYPE_F8_E4M3: return qdqi_f32_of_f8_e4m3(AT(uint8_t));
    case QDQ_DTYPE_UNDEF:
    case QDQ_DTYPE_S32:
    case QDQ_DTYPE_S8:
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_BOOLEAN:
    case QDQ_DTYPE_S4:
    case QDQ_DTYPE_U4:
    case QDQ_DTYPE_S64:
    case QDQ_DTYPE_S16:
    case QDQ_DTYPE_U16: return (float)qdqi_load_i64(data, dtype, i);
    }
    return 0.0f;
}

#undef AT
#define AT(type) (((type *)data)[i])

void qdqi_store_i64(void *data, qdq_dtype dtype, int64_t i, int64_t value) {
    if (qdqi_dtype_is_float(dtype)) {
        qdqi_store_f64(data, dtype, i, (double)value);
        return;
    }
    const int64_t lo = qdqi_dtype_min(dtype), hi = qdqi_dtype_max(dtype);
    if (dtype == QDQ_DTYPE_BOOLEAN) value = value != 0;
    value = value < lo ? lo : value > hi ? hi : value;
    switch (dtype) {
    case QDQ_DTYPE_S32: AT(int32_t) = (int32_t)value; break;
    case QDQ_DTYPE_S8: AT(int8_t) = (int8_t)value; break;
    case QDQ_DTYPE_BOOLEAN:
    case QDQ_DTYPE_U8: AT(uint8_t) = (uint8_t)value; break;
    case QDQ_DTYPE_S64: AT(int64_t) = value; break;
    case QDQ_DTYPE_S16: AT(int16_t) = (int16_t)value; break;
    case QDQ_DTYPE_U16: AT(uint16_t) = (uint16_t)value; break;
    case QDQ_DTYPE_S4:
    case QDQ_DTYPE_U4: {
        uint8_t *byte = (uint8_t *)data + i / 2;
        const unsigned v = (unsigned)value & 15u;
        *byte = (uint8_t)(i % 2 == 0 ? (*byte & 0xf0u) | v : (*byte & 0x0fu) | v << 4);
        break;
    }
    case QDQ_DTYPE_UNDEF:
    case QDQ_DTYPE_F16:
    case QDQ_DTYPE_BF16:
    case QDQ_DTYPE_F32:
    case QDQ_DTYPE_F64:
    case QDQ_DTYPE_F8_E5M2:
    case QDQ_DTYPE_F8_E4M3: break;
    }
}

void qdqi_store_f64(void *data, qdq_dtype dtype, int64_t i, double value) {
    if (dtype == QDQ_DTYPE_F64) {
        AT(double) = value;
    } else if (dtype == QDQ_DTYPE_BOOLEAN) {
        AT(uint8_t) = value != 0.0;
    } else if (qdqi_dtype_is_int(dtype)) {
        const double r = isnan(value) ? 0.0 : rint(value);
        qdqi_store_i64(data, dtype, i, r >= 0x1p63 ? INT64_MAX : r <= -0x1p63 ? INT64_MIN : (int64_t)r);
    } else {
        qdqi_store_f32(data, dtype, i, (float)value);
    }
}

void qdqi_store_f32(void *data, qdq_dtype dtype, int64_t i, float value) {
    switch (dtype) {
    case QDQ_DTYPE_F16: AT(uint16_t) = qdqi_f16_of_f32(value); break;
    case QDQ_DTYPE_BF16: AT(uint16_t) = qdqi_bf16_of_f32(value); break;
    case QDQ_DTYPE_F32: AT(float) = value; break;
    case QDQ_DTYPE_F8_E5M2: AT(uint8_t) = qdqi_f8_e5m2_of_f32(value, true); break;
    case QDQ_DTYPE_F8_E4M3: AT(uint8_t) = qdqi_f8_e4m3_of_f32(value, true); break;
    case QDQ_DTYPE_UNDEF: break;
    case QDQ_DTYPE_F64:
    case QDQ_DTYPE_S32:
    case QDQ_DTYPE_S8:
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_BOOLEAN:
    case QDQ_DTYPE_S4:
    case QDQ_DTYPE_U4:
    case QDQ_DTYPE_S64:
    case QDQ_DTYPE_S16:
    case QDQ_DTYPE_U16: qdqi_store_f64(data, dtype, i, (double)value); break;
    }
}
