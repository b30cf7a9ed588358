// Products whose batch dims can be seen as fewer, or as rows: what is shared, transposed or broadcast in every place.
#include "fusion/field.h"

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8;

class FieldBatches : public Field {
  protected:
    static Reals Waves(int64_t n, float size) {
        Reals v;
        for (int64_t i = 0; i < n; i++)
            v.push_back(size * static_cast<float>((i * 29) % 37 - 18));
        return v;
    }
    // Names of the implementations that one run of `out` used.
    std::string Impl(Id out) {
        const Outcome o = RunFused(net, {out}, engine, false);
        EXPECT_EQ(o.failure, "") << net.Text() << o.impl;
        return o.impl;
    }
};

TEST_F(FieldBatches, SharedOperandsOfFiveDims) { // C2; grouped-query attention: what a whole group shares
    for (const bool tb : {false, true})
        for (const bool mask : {false, true}) {
            Clear();
            const Id q = F({2, 2, 3, 5, 8}, Waves(480, 0.05f));
            const Id k = F(tb ? Dims{2, 2, 1, 7, 8} : Dims{2, 2, 1, 8, 7}, Waves(224, 0.1f));
            const Id m = Op("MatMul", {q, k}, {AttrB("transpose_b", tb)});
            const Id s = Op("Divide", {m, net.Floats({1}, {4.0f}, true)});
            const Id a =
                Op("Add", {s, F(mask ? Dims{2, 1, 1, 1, 7} : Dims{2, 2, 3, 5, 7}, Waves(mask ? 14 : 420, 1.0f))});
            Same({a});
            EXPECT_EQ(Impl(a).find("ref:any"), std::string::npos) << Impl(a);
        }
}

TEST_F(FieldBatches, QuantizedAndSharedOverEveryBatchDim) {
    const Dims batches[] = {{1, 1, 1}, {2, 1, 1}, {1, 3, 1}, {1, 1, 4}, {2, 3, 1}, {2, 1, 4}, {1, 3, 4}, {2, 3, 4}};
    for (const Dims &b : batches)
        for (const int64_t m : {1, 3}) {
            Clear();
            const int64_t n_b = b[0] * b[1] * b[2];
            const Id x = Dq(U8({2, 3, 4, m, 9}, Ramp(24 * m * 9, 0, 255)), {0.05f}, {7});
            const Id w = Dq(S8({b[0], b[1], b[2], 9, 5}, Ramp(n_b * 45, -128, 127, 53)), {0.03f});
            Same({Q(Op("ReLU", {Op("MatMul", {x, w})}), kU8, {0.1f}, {3})});
            Clear(); // and the other way round
            const Id y = Dq(U8({b[0], b[1], b[2], m, 9}, Ramp(n_b * m * 9, 0, 255)), {0.05f}, {7});
            const Id v = Dq(W(kS8, {2, 3, 4, 9, 5}, Ramp(1080, -128, 127, 53)), {0.03f});
            Same({Q(Op("MatMul", {y, v}), kS8, {0.2f}, {-3})});
        }
}

TEST_F(FieldBatches, OperandsBroadcastInEveryDim) {
    const Dims operands[] = {{1, 1, 1, 1}, {1, 1, 1, 5}, {1, 1, 6, 1}, {1, 3, 1, 1}, {2, 1, 1, 1}, {2, 3, 1, 1},
                             {1, 3, 6, 1}, {2, 1, 6, 5}, {1, 3, 6, 5}, {2, 3, 1, 5}, {2, 3, 6, 5}, {3, 6, 5},
                             {6, 5},       {5},          {6, 1},       {3, 1, 5}};
    for (const Dims &d : operands)
        for (const bool shared : {false, true}) {
            Clear();
            const Id x = Dq(S8({2, 3, 6, 8}, Ramp(288, -128, 127)), {0.05f}, {shared ? 5 : 0});
            const Id w = Dq(
                W(kS8, shared ? Dims{1, 1, 8, 5} : Dims{2, 3, 8, 5}, Ramp(shared ? 40 : 240, -128, 127, 53)), {0.03f});
            const Id sum = Op("Add", {Op("MatMul", {x, w}), Dq(U8(d, Ramp(Count(d), 0, 255, 71)), {0.1f}, {99})});
            Same({Q(sum, kS8, {0.3f}, {4})});
            Clear();
            const Id f = Op("MatMul",
                            {F({2, 3, 6, 8}, Waves(288, 0.1f)), net.Floats(shared ? Dims{1, 1, 8, 5} : Dims{2, 3, 8, 5},
                                                                           Waves(shared ? 40 : 240, 0.1f), true)});
            Same({Op("Multiply", {f, F(d, Waves(Count(d), 0.2f))})});
        }
}

TEST_F(FieldBatches, LayoutsThatAreNoOneDim) { // channels-last rows, transposed sources, permuted batches
    for (int v = 0; v < 16; v++) {
        Clear();
        const bool ta = v & 1, tb = v & 2, one_row = v & 8;
        const int64_t m = one_row ? 1 : 4;
        const Id x8 = S8(ta ? Dims{3, 2, 6, m} : Dims{3, 2, m, 6}, Ramp(36 * m, -128, 127));
        if (v & 4)
            net.values[static_cast<size_t>(x8)].strides = ta ? Dims{6 * m, 18 * m, m, 1} : Dims{m * 6, 18 * m, 6, 1};
        const Id x = Dq(x8, {0.05f}, {3});
        const Id w = Dq(W(kS8, tb ? Dims{1, 1, 5, 6} : Dims{1, 1, 6, 5}, Ramp(30, -128, 127, 53)), {0.03f});
        const Id p = Op("MatMul", {x, w}, {AttrB("transpose_a", ta), AttrB("transpose_b", tb)});
        Same({Q(p, kU8, {0.2f}, {128})});
    }
}

TEST_F(FieldBatches,
       MatricesInsideOfLargerOnes) { // rows apart, columns apart, transposed: of each operand, with dims of 1
    const auto layouts = [](int64_t rows, int64_t cols, int v) {
        const Dims all[] = {{}, {cols + 3, 1}, {2 * cols, 2}, {1, rows}, {1, rows + 2}};
        return all[v];
    };
    for (int v = 0; v < 125; v++)
        for (const auto &[m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{5, 6, 9},
                                      {5, 1, 9},
                                      {1, 6, 9},
                                      {5, 6, 1},
                                      {1, 1, 9},
                                      {5, 1, 1},
                                      {1, 6, 1}})
            for (int kind = v % 3; kind < 4; kind += 3) { // f32; with bias; int8; int8 with residual
                Clear();
                const bool int8 = kind >= 2;
                const Id x = int8 ? S8({m, k}, Ramp(m * k, -128, 127)) : F({m, k}, Waves(m * k, 0.1f));
                const Id w = int8 ? S8({k, n}, Ramp(k * n, -128, 127, 53)) : F({k, n}, Waves(k * n, 0.05f));
                net.values[static_cast<size_t>(x)].strides = layouts(m, k, v % 5);
                net.values[static_cast<size_t>(w)].strides = layouts(k, n, v / 5 % 5);
                std::vector<Id> in = {int8 ? Dq(x, {0.1f}, {3}) : x, int8 ? Dq(w, {0.02f}) : w};
                if (kind == 1) in.push_back(net.Floats({n}, Waves(n, 0.1f), true));
                Id y = Op("MatMul", in);
                if (kind == 3) y = Op("Add", {y, Dq(U8({m, n}, Ramp(m * n, 0, 255)), {0.05f}, {99})});
                if (int8) y = Q(y, kU8, {0.1f}, {77});
                net.values[static_cast<size_t>(y)].strides = layouts(m, n, v / 25);
                Same({y});
            }
}

TEST_F(FieldBatches, ScalesPerColumnOfFoldedProducts) {
    const Id x = Dq(U8({2, 2, 3, 4, 6}, Ramp(288, 0, 255)), {0.05f}, {7});
    const Id w =
        Dq(W(kS8, {1, 1, 1, 6, 5}, Ramp(30, -128, 127, 53)), {0.01f, 0.02f, 0.03f, 0.04f, 0.05f}, {1, 0, -2, 3, 4}, -1);
    const Id b = Dq(W(QDQ_DTYPE_S32, {5}, {100, -200, 300, -400, 500}), {0.01f});
    Same({Q(Op("Add", {Op("MatMul", {x, w}), b}), kS8, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f}, {1, 2, 3, 4, 5}, -1)});
}

} // namespace
} // namespace qdq_test
