/* Descriptor helpers. */
#include "unit/ir_support.h"

using namespace ir;

namespace {

const auto F = QDQ_DTYPE_F32;

TEST(IrDesc, StridesAndLayouts) {
    qdq_tensor_desc d = Tensor(1, F, {2, 3, 4, 5});
    EXPECT_EQ(d.strides[0], 60);
    EXPECT_EQ(d.strides[3], 1);
    EXPECT_TRUE(qdqi_is_dense(&d));
    EXPECT_TRUE(qdqi_is_packed(&d));
    EXPECT_EQ(qdqi_n_elems(&d), 120);
    qdqi_set_channels_last(&d);
    EXPECT_EQ(d.strides[0], 60);
    EXPECT_EQ(d.strides[1], 1);
    EXPECT_EQ(d.strides[2], 15);
    EXPECT_EQ(d.strides[3], 3);
    EXPECT_FALSE(qdqi_is_dense(&d));
    EXPECT_TRUE(qdqi_is_packed(&d));
    d.strides[0] = 61;
    EXPECT_FALSE(qdqi_is_packed(&d));
    int64_t span = 0;
    ASSERT_TRUE(qdqi_span_elems(&d, &span));
    EXPECT_EQ(span, 121);
    qdq_tensor_desc flat = Tensor(1, F, {2, 3});
    qdqi_set_channels_last(&flat);
    EXPECT_TRUE(qdqi_is_dense(&flat)) << "rank below 3";
}

TEST(IrDesc, DimsOfOneAndZero) {
    qdq_tensor_desc one = Tensor(1, F, {1, 3, 1});
    one.strides[0] = 77;
    one.strides[2] = 55;
    EXPECT_TRUE(qdqi_is_dense(&one));
    EXPECT_TRUE(qdqi_is_packed(&one));
    const qdq_tensor_desc plain = Tensor(1, F, {1, 3, 1});
    EXPECT_TRUE(qdqi_same_strides(&one, &plain));
    qdq_tensor_desc zero = Tensor(1, F, {0, 3});
    zero.strides[0] = 99;
    EXPECT_TRUE(qdqi_is_dense(&zero));
    EXPECT_EQ(qdqi_n_elems(&zero), 0);
    int64_t span = 9;
    EXPECT_TRUE(qdqi_span_elems(&zero, &span));
    EXPECT_EQ(span, 0);
    const qdq_tensor_desc scalar = Tensor(1, F, {});
    EXPECT_EQ(qdqi_n_elems(&scalar), 1);
    EXPECT_TRUE(qdqi_is_dense(&scalar));
    int64_t strides[2];
    const int64_t dims[] = {4, 0};
    qdqi_dense_strides(2, dims, strides);
    EXPECT_EQ(strides[0], 1) << "a zero dim counts as 1";
    qdq_tensor_desc stretched = Tensor(1, F, {2, 3}); /* a broadcast view uses elements twice */
    stretched.strides[0] = 0;
    EXPECT_FALSE(qdqi_is_packed(&stretched));
}

TEST(IrDesc, Bytes) {
    size_t bytes = 0;
    const qdq_tensor_desc nibbles = Tensor(1, QDQ_DTYPE_S4, {3, 3});
    ASSERT_EQ(qdqi_desc_bytes(&nibbles, &bytes, nullptr), QDQ_OK);
    EXPECT_EQ(bytes, 5u);
    qdq_tensor_desc gaps = Tensor(1, F, {2, 3});
    gaps.strides[0] = 10;
    ASSERT_EQ(qdqi_desc_bytes(&gaps, &bytes, nullptr), QDQ_OK);
    EXPECT_EQ(bytes, 13 * sizeof(float));
    const qdq_tensor_desc unknown = Unknown(1, F);
    EXPECT_EQ(qdqi_desc_bytes(&unknown, &bytes, nullptr), QDQ_E_BAD_STATE);
    qdq_tensor_desc huge = Tensor(1, F, {2, 2});
    huge.strides[0] = INT64_MAX;
    EXPECT_EQ(qdqi_desc_bytes(&huge, &bytes, nullptr), QDQ_E_OVERFLOW);
}

TEST(IrDesc, BroadcastAndAxis) {
    const qdq_tensor_desc a = Tensor(1, F, {2, 1, 4}), b = Tensor(2, F, {3, 1}), c = Tensor(3, F, {5});
    int32_t ndims = 0;
    int64_t dims[QDQ_MAX_NDIMS];
    ASSERT_TRUE(qdqi_broadcast(&a, &b, &ndims, dims));
    EXPECT_EQ(Dims(dims, dims + ndims), (Dims{2, 3, 4}));
    EXPECT_FALSE(qdqi_broadcast(&a, &c, &ndims, dims));
    int32_t axis = 0;
    EXPECT_TRUE(qdqi_norm_axis(-1, 3, &axis));
    EXPECT_EQ(axis, 2);
    EXPECT_FALSE(qdqi_norm_axis(3, 3, &axis));
    EXPECT_FALSE(qdqi_norm_axis(-4, 3, &axis));
    EXPECT_FALSE(qdqi_norm_axis(0, 0, &axis));
    EXPECT_FALSE(qdqi_norm_axis(INT64_MIN, 3, &axis));
    EXPECT_TRUE(qdqi_same_dims(&a, &a));
    EXPECT_FALSE(qdqi_same_dims(&a, &b));
}

} // namespace
