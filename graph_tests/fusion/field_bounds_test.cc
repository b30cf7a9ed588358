// ReLU and Clamp one after the other between an op and its Quantize: recipes that take the bounds after the Quantize, on its
// integers, keep what they mean, where one lies outside of the other too.
#include "fusion/field.h"

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8;

struct Range {
    float min, max;
};

class FieldBounds : public Field {
  protected:
    Id Clamp(Id x, Range r) { return Op("Clamp", {x}, {AttrF("min", r.min), AttrF("max", r.max)}); }
    Id BatchNorm(Id x, int64_t channels) {
        const Reals ones(static_cast<size_t>(channels), 1.0f), zeros(static_cast<size_t>(channels), 0.0f);
        const Id g = net.Floats({channels}, ones, true), b = net.Floats({channels}, zeros, true);
        return Op("BatchNormInference", {x, g, b, b, g}, {AttrF("epsilon", 0.0f), AttrS("data_format", "NXC")});
    }
    Id LayerNorm(Id x) {
        return Op("LayerNorm", {x},
                  {AttrI("begin_norm_axis", -1), AttrB("keep_stats", false), AttrB("use_affine", false)});
    }
};

TEST_F(FieldBounds, RangesThatDoNotMeet) {
    const Range ranges[][2] = {{{-2, -1}, {0, 3}}, {{0, 1}, {2, 3}}, {{2, 3}, {0, 1}}, {{-1, 1}, {-3, 0.5f}}};
    for (const bool layer : {false, true}) {
        for (const auto &r : ranges) {
            Clear();
            const Id x = Dq(S8({2, 8}, Ramp(16, -128, 127)), {0.05f}, {3});
            Id y = layer ? LayerNorm(x) : BatchNorm(x, 8);
            y = Clamp(Clamp(y, r[0]), r[1]);
            Same({Q(y, kS8, {0.05f}, {-7})});
        }
        Clear(); // nothing is left of the clamped values but ReLU's zero
        const Id x = Dq(U8({2, 8}, Ramp(16, 0, 255)), {0.05f}, {128});
        const Id y = Op("ReLU", {Clamp(layer ? LayerNorm(x) : BatchNorm(x, 8), {-2, -1})});
        Expect(Q(y, kU8, {0.1f}, {9}), std::vector<double>(16, 9.0));
    }
}

} // namespace
} // namespace qdq_test
