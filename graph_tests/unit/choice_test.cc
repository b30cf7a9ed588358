// Who is asked first, and what is said about it.
#include "kernels/isa/isa.h"
#include "lower/choice.h"
#include "lower/request.h"
#include "onednn/prim.h"
#include "onednn_run.h"

#include <set>

using namespace onednn_run;

namespace {

const Provider chosen = {"either", qdqi_make, false};

qdqi_class ClassOfProduct(qdq_dtype src, qdq_dtype weights, int64_t m, int64_t k, int64_t n, bool constant = true) {
    Tensor a(src, {m, k}), b(weights, {k, n}), d(QDQ_DTYPE_F32, {m, n});
    b.md.any = constant;
    qdqi_request r = {};
    r.kind = QDQI_MAKE_MATMUL;
    r.src = &a.md;
    r.second = &b.md;
    r.dst = &d.md;
    return qdqi_request_class(&r);
}

TEST(Choice, ClassesOfProducts) {
    const qdq_dtype u8 = QDQ_DTYPE_U8, s8 = QDQ_DTYPE_S8, f32 = QDQ_DTYPE_F32;
    EXPECT_EQ(ClassOfProduct(u8, s8, 1, 16, 16), QDQI_CLASS_matmul_int8_tiny);
    EXPECT_EQ(ClassOfProduct(u8, s8, 8, 1024, 1024), QDQI_CLASS_matmul_int8_gemv);
    EXPECT_EQ(ClassOfProduct(u8, s8, 9, 1024, 1024), QDQI_CLASS_matmul_int8_large);
    EXPECT_EQ(ClassOfProduct(s8, s8, 64, 128, 128), QDQI_CLASS_matmul_int8_small);
    EXPECT_EQ(ClassOfProduct(u8, s8, 64, 128, 128, false), QDQI_CLASS_matmul_int8_runtime);
    EXPECT_EQ(ClassOfProduct(f32, f32, 1, 16, 16), QDQI_CLASS_matmul_float_tiny);
    EXPECT_EQ(ClassOfProduct(f32, f32, 256, 1024, 1024), QDQI_CLASS_matmul_float_large);
    EXPECT_EQ(ClassOfProduct(f32, s8, 1, 16, 16), QDQI_CLASS_other) << "weights that are decompressed";
    std::set<std::string> names;
    for (int i = 0; i < (int)QDQI_N_CLASSES; i++)
        names.insert(qdqi_class_name((qdqi_class)i));
    EXPECT_EQ(names.size(), (size_t)QDQI_N_CLASSES);
}

// The table's row, the order, and the note agree.
TEST(Choice, TheNoteSaysWhatWasMeasured) {
    const struct {
        const char *name;
        const char *level;
        double native_ns, onednn_ns;
    } rows[] = {
#define CHOICE(name, level, native_ns, onednn_ns) {#name, #level, native_ns, onednn_ns},
#include "lower/choice.def"
#undef CHOICE
    };
    qk_isa best = QK_ISA_ref;
    double ratio = 0;
    for (const auto &row : rows) {
        qk_isa isa;
        ASSERT_TRUE(qk_isa_from_name(row.level, &isa)) << row.level;
        EXPECT_GT(row.native_ns, 0) << row.name;
        EXPECT_GT(row.onednn_ns, 0) << row.name;
        if (std::string(row.name) != "binary" || !qk_isa_has(isa) || isa < best) continue;
        best = isa;
        ratio = row.onednn_ns / row.native_ns;
    }
    Tensor a(QDQ_DTYPE_F32, {4, 16}), b(QDQ_DTYPE_F32, {4, 16}), d(QDQ_DTYPE_F32, {4, 16});
    qdqi_dnnl_prim *prim = nullptr;
    qdq_error err = {};
    ASSERT_EQ(chosen.Make(Binary(QDQI_DNNL_BIN_ADD, &a.md, &b.md, &d.md), &prim, &err), QDQ_OK) << err.text;
    const bool native = qdqi_dnnl_prim_is_native(prim);
    const std::string note = prim->note;
    qdqi_dnnl_prim_destroy(prim);
    if (!qdqi_dnnl_available()) {
        EXPECT_TRUE(native) << note;
        EXPECT_EQ(note.find("measured"), std::string::npos) << note;
    } else if (ratio != 0) {
        EXPECT_EQ(native, ratio > 1 / 0.95) << note;
        EXPECT_NE(note.find("in class binary)"), std::string::npos) << note;
        EXPECT_NE(note.find(native ? "(native first: measured " : "(oneDNN first: measured "), std::string::npos)
            << note;
    }
}

// What one refuses goes to the other, whoever is first.
TEST(Choice, ARefusalIsNotTheEnd) {
    Tensor a(QDQ_DTYPE_F32, {4, 16}), b(QDQ_DTYPE_F32, {4, 16}), d(QDQ_DTYPE_F32, {4, 16});
    qdqi_dnnl_attr attr = {};
    attr.src1.has_scale = true; // which our own kernels do not take
    qdqi_dnnl_prim *prim = nullptr;
    qdq_error err = {};
    const qdq_status st = chosen.Make(Binary(QDQI_DNNL_BIN_ADD, &a.md, &b.md, &d.md, &attr), &prim, &err);
    EXPECT_EQ(st == QDQ_OK, qdqi_dnnl_available()) << err.text;
    if (st == QDQ_OK) {
        EXPECT_FALSE(qdqi_dnnl_prim_is_native(prim));
        qdqi_dnnl_prim_destroy(prim);
    } else {
        EXPECT_EQ(st, QDQ_E_UNSUPPORTED) << err.text;
    }
}

} // namespace
