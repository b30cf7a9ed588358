/* Rows of the types that the kernels on lines take, behind which memory ends. */
#ifndef ROWS_DATA_H
#define ROWS_DATA_H

#include "kernel_data.h"
#include "kernels/simd/scalar.h"
#include "level_sweep.h"

#include <cmath>
#include <vector>

static const qdq_dtype kRowTypes[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16, QDQ_DTYPE_U8, QDQ_DTYPE_S8};

static inline bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

class EndedRow {
  public:
    EndedRow(qdq_dtype dtype, size_t n) : dtype_(dtype), n_(n), bytes_(n * qks_bytes(dtype)) { bytes_.fill(0xa5); }
    /* Floats in -size … size, or any integers. */
    EndedRow(qdq_dtype dtype, size_t n, uint64_t seed, float size, float offset = 0.0f) : EndedRow(dtype, n) {
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = kd_next(&seed);
            if (is_x8(dtype))
                bytes_[i] = uint8_t(bits >> 8);
            else
                qks_store(dtype, bytes_.data(), i, offset + size * (float(bits >> 8) * 0x1p-23f - 1.0f));
        }
    }
    const void *data() const { return const_cast<EndedBytes &>(bytes_).data(); }
    void *data() { return bytes_.data(); }
    float operator[](size_t i) const { return qks_load(dtype_, data(), i); }
    qdq_dtype dtype() const { return dtype_; }
    size_t size() const { return n_; }

  private:
    qdq_dtype dtype_;
    size_t n_;
    EndedBytes bytes_;
};

/* How far a stored value may lie from the real one. 8 bits: half a step, and what f32 leaves open. */
static inline double tolerance(qdq_dtype dst, double want, double relative) {
    switch (int(dst)) {
    case QDQ_DTYPE_BF16: return std::fabs(want) * (0x1p-8 + relative) + 1e-38;
    case QDQ_DTYPE_F16: return std::fabs(want) * (0x1p-11 + relative) + 0x1p-24;
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_S8: return 0.5 + 1e-3;
    default: return std::fabs(want) * relative + 1e-37;
    }
}

/* Stored at i of dst: v, or v * factor + zp saturated. */
static inline void expect_stored(const EndedRow &dst, size_t i, double v, double factor, double zp, double relative,
                                 double absolute) {
    double want = v;
    if (is_x8(dst.dtype())) {
        const double low = dst.dtype() == QDQ_DTYPE_S8 ? -128.0 : 0.0;
        want = std::fmin(std::fmax(v * factor + zp, low), low + 255.0);
    }
    ASSERT_NEAR(double(dst[i]), want, tolerance(dst.dtype(), want, relative) + (is_x8(dst.dtype()) ? 0.0 : absolute))
        << qdq_dtype_name(dst.dtype()) << " element " << i;
}

#endif
