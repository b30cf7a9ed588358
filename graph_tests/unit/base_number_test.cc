// Numbers as text: what strtof reads in the C locale, in this process' every locale.
#include "base/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace {

// strtof's value; NaN when the text is none or does not fit.
float Read(const std::string &text) {
    float v = 0;
    return qdqi_text_f32(text.data(), text.size(), &v) ? v : NAN;
}

TEST(BaseNumber, ReadsWhatStrtofReads) {
    for (const char *text : {"0",
                             "1",
                             "-1",
                             "+2",
                             "0.01",
                             ".5",
                             "5.",
                             "-0.25",
                             "1e3",
                             "1E-3",
                             "1e+38",
                             "3.4028235e38",
                             "-3.4028235e38",
                             "1e-45",
                             "1e-46",
                             "7e-46",
                             "1.17549435e-38",
                             "0.1",
                             "0.2",
                             "16777217",
                             "123456789012345678901234567890",
                             "0.000000000000000000000000000000000000000000001",
                             "100000000000000000000000000000000000000",
                             "3.14159265358979323846264338327950288"})
        EXPECT_EQ(Read(text), std::strtof(text, nullptr)) << text;
    EXPECT_TRUE(std::signbit(Read("-0")));
    std::mt19937 random(1);
    for (int i = 0; i < 200000; i++) {
        const uint32_t bits = random();
        float v;
        std::memcpy(&v, &bits, sizeof v);
        if (!std::isfinite(v)) continue;
        char text[64];
        std::snprintf(text, sizeof text, "%.*g", 1 + i % 12, static_cast<double>(v));
        const float want = std::strtof(text, nullptr);
        if (std::isfinite(want)) {
            ASSERT_EQ(Read(text), want) << text;
        }
    }
}

TEST(BaseNumber, RefusesWhatIsNone) {
    for (const char *text : {"",    "-",  "+",   ".",   "e",     "e5",  "1e",   "1e+",   "0x10",           "1,5",
                             " 1",  "1 ", "nan", "inf", "1.2.3", "--1", "1e39", "-1e39", "1e999999999999", "1f",
                             "1e5x"})
        EXPECT_TRUE(std::isnan(Read(text))) << text;
    EXPECT_EQ(Read("0e999999999999"), 0.0f);
    EXPECT_EQ(Read("1e-999999999999"), 0.0f);
    EXPECT_EQ(Read(std::string(1000, '0') + "7" + "." + std::string(1000, '0')), 7.0f);
    EXPECT_TRUE(std::isnan(Read(std::string(1000, '9'))));
    EXPECT_TRUE(std::isnan(Read(std::string("1\0", 2)))); // n counts
}

} // namespace
