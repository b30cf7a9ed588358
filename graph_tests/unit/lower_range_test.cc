// Bounds taken after a Quantize give what the Quantize gives behind them, to the last integer.
#include "lower/qparams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace {

int32_t Quantize(float x, const qdqi_stored_range &r) {
    const float zp = static_cast<float>(r.zp), y = x / r.scale;
    const float q = r.add_zp_after_rounding ? std::nearbyint(y) + zp : std::nearbyint(y + zp);
    return static_cast<int32_t>(std::min(std::max(q, static_cast<float>(r.least)), static_cast<float>(r.most)));
}

void Check(qdq_dtype dtype, float scale, int32_t zp, bool after) {
    const float bounds[] = {-INFINITY, -700, -1, -0.75f, -0.5f, -0.25f, 0, 0.125f, 0.25f, 0.5f, 1.5f, 3, 900, INFINITY};
    const float xs[] = {-1e9f, -40, -1.25f, -0.75f, -0.25f, -0.125f, 0, 0.25f, 0.375f, 0.75f, 1.25f, 2.5f, 60, 1e9f};
    for (const float first : bounds) {
        for (const float second : bounds) {
            for (const bool max_first : {false, true}) {
                qdqi_stored_range r;
                qdqi_stored_range_init(&r, dtype, scale, zp, after);
                max_first ? qdqi_stored_range_max(&r, first) : qdqi_stored_range_min(&r, first);
                max_first ? qdqi_stored_range_min(&r, second) : qdqi_stored_range_max(&r, second);
                ASSERT_LE(r.low, r.high);
                for (const float x : xs) {
                    const float once = max_first ? std::max(x, first) : std::min(x, first);
                    const float twice = max_first ? std::min(once, second) : std::max(once, second);
                    ASSERT_EQ(std::min(std::max(Quantize(x, r), r.low), r.high), Quantize(twice, r))
                        << x << " bounds " << first << ", " << second << " scale " << scale << " zp " << zp;
                }
            }
        }
    }
}

TEST(LowerStoredRange, GivesTheIntegersOfTheBoundedValues) {
    for (const bool after : {false, true}) {
        for (const float scale : {0.5f, 0.03f, 7.0f, 1e-30f}) {
            for (const int32_t zp : {-128, -3, 0, 1, 2, 127})
                Check(QDQ_DTYPE_S8, scale, zp, after);
            for (const int32_t zp : {0, 1, 128, 255})
                Check(QDQ_DTYPE_U8, scale, zp, after);
        }
    }
}

} // namespace
