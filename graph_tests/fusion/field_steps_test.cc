// Ops with native loops of their own, held against the reference: casts of every type to every other, gathers at run time.
#include "fusion/field.h"

namespace qdq_test {
namespace {

class FieldSteps : public Field {
  protected:
    // Numbers on both sides of what the narrower types hold, 600 of them: more than one piece of the loops.
    Id All(qdq_dtype dtype) {
        const double some[] = {0,    -0.0,  1,     -1,    0.5,   -2.5,     126.6,  127.5,  -128.5,    255.4, 256,
                               -257, 448.0, 465.0, 57344, 65000, 40000000, -3.0e9, 1.5e19, -2.25e-30, 3e38,  7.3};
        const int64_t n = 600;
        Bytes data(BytesOf(dtype, n));
        for (int64_t i = 0; i < n; i++) {
            const double v = some[i % 22] * (i / 22 % 2 ? 1 : 1.125);
            if (dtype == QDQ_DTYPE_F32 && i == 77)
                qdqi_store_f32(data.data(), dtype, i, NAN);
            else
                qdqi_store_f64(data.data(), dtype, i, v);
        }
        return net.Leaf(dtype, {n}, data, false);
    }
};

TEST_F(FieldSteps, CastsOfEveryTypeToEveryOther) {
    const qdq_dtype types[] = {QDQ_DTYPE_F64,     QDQ_DTYPE_F32, QDQ_DTYPE_F16,    QDQ_DTYPE_BF16, QDQ_DTYPE_F8_E4M3,
                               QDQ_DTYPE_F8_E5M2, QDQ_DTYPE_S64, QDQ_DTYPE_S32,    QDQ_DTYPE_S16,  QDQ_DTYPE_U16,
                               QDQ_DTYPE_S8,      QDQ_DTYPE_U8,  QDQ_DTYPE_BOOLEAN};
    for (const qdq_dtype from : types)
        for (const qdq_dtype to : types)
            for (const bool saturate : {true, false}) {
                if (!saturate && to != QDQ_DTYPE_F8_E4M3 && to != QDQ_DTYPE_F8_E5M2) continue;
                Clear();
                const Id y = Op("Cast", {All(from)}, {AttrS("to", qdq_dtype_name(to)), AttrB("saturate", saturate)});
                const Outcome got = RunFused(net, {y}, engine, false);
                ASSERT_EQ(got.failure, "") << qdq_dtype_name(from) << " to " << qdq_dtype_name(to);
                ASSERT_NE(got.impl.find("native Cast"), std::string::npos) << got.impl;
            }
}

TEST_F(FieldSteps, GathersOfRunTimeIndices) {
    for (const qdq_dtype dtype : {QDQ_DTYPE_U8, QDQ_DTYPE_BF16, QDQ_DTYPE_S32, QDQ_DTYPE_F64})
        for (const qdq_dtype index : {QDQ_DTYPE_S32, QDQ_DTYPE_S64})
            for (const int64_t axis : {0, 1, 2, -1}) {
                Clear();
                const int64_t inner = axis == 1 ? 5 : 1;
                Bytes data(BytesOf(dtype, 3 * 4 * inner));
                for (int64_t i = 0; i < 12 * inner; i++)
                    qdqi_store_f64(data.data(), dtype, i, double(i * 7 % 60));
                const Id x = net.Leaf(dtype, {3, 4, inner}, data, false);
                const Longs at = axis == 2 || axis == -1 ? Longs{0, -1, 0, 0, -1, 0} : Longs{2, 0, -1, -3, 1, 2};
                const Id y = Op("Gather", {x, X(index, {2, 3}, at)}, {AttrI("axis", axis)});
                const Outcome got = RunFused(net, {y}, engine, false);
                ASSERT_EQ(got.failure, "") << net.Text();
                ASSERT_NE(got.impl.find("native Gather"), std::string::npos) << got.impl;
                Same({y});
            }
}

} // namespace
} // namespace qdq_test
