#!/usr/bin/env python3
"""Make the ONNX models of this folder (needs onnx, onnxruntime, numpy).

ops_*.onnx hold many nodes whose inputs are constants. Every result NAME is an output, and so is NAME_expected, a
constant with what ONNX Runtime computes: a test loads the file, runs it, and compares the pairs.
bad_*.onnx must be refused; onnx_bad_test.cc has the messages. The others are read by onnx_load_test.cc by name.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(7)


def f32(*shape):
    return rng.uniform(-2, 2, shape).astype(np.float32)


def u8(*shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


def s8(*shape):
    return rng.integers(-127, 128, shape).astype(np.int8)


def i64(*values):
    return np.array(values, np.int64)


class Ops:
    """A model of many nodes on constants."""

    def __init__(self, name, opset, ms=False):
        self.name, self.opset, self.ms = name, opset, ms
        self.nodes, self.consts, self.outputs = [], {}, []

    def c(self, value):
        value = np.asarray(value)
        for name, known in self.consts.items():
            if known.dtype == value.dtype and known.shape == value.shape and np.array_equal(known, value):
                return name
        name = f"c{len(self.consts)}"
        self.consts[name] = value
        return name

    def op(self, op_type, *inputs, n_out=1, label=None, hidden=False, domain="", **attrs):
        label = label or f"{op_type}_{len(self.nodes)}"
        outs = [label if i == 0 else f"{label}.{i}" for i in range(n_out)]
        ins = [x if isinstance(x, str) else self.c(x) for x in inputs]
        self.nodes.append(helper.make_node(op_type, ins, outs, name="n_" + label, domain=domain, **attrs))
        if not hidden:
            self.outputs += outs
        return label

    def save(self):
        imports = [helper.make_opsetid("", self.opset)] + ([helper.make_opsetid("com.microsoft", 1)] if self.ms else [])
        inits = [numpy_helper.from_array(v, k) for k, v in self.consts.items()]

        def model(outputs, inits):
            graph = helper.make_graph(self.nodes, self.name, [], outputs, inits)
            return helper.make_model(graph, opset_imports=imports, ir_version=8 if self.opset < 19 else 10)

        bare = model([onnx.ValueInfoProto(name=o) for o in self.outputs], inits)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        session = ort.InferenceSession(bare.SerializeToString(), options, providers=["CPUExecutionProvider"])
        outs = []
        for name, value in zip(self.outputs, session.run(None, {})):
            value = np.asarray(value)
            inits.append(numpy_helper.from_array(value, name + "_expected"))
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            outs.append(helper.make_tensor_value_info(name, kind, None))
            outs.append(helper.make_tensor_value_info(name + "_expected", kind, None))
        write(self.name, model(outs, inits))


def write(name, model):
    with open(os.path.join(HERE, name + ".onnx"), "wb") as f:
        f.write(model.SerializeToString())


# ---- ops ----------------------------------------------------------------------------------------------------------


def ops_13():
    m = Ops("ops_13", 13)
    x, y, v = f32(2, 3, 4), f32(3, 1), f32(4)
    for op in "Relu Sigmoid Tanh Erf Exp Abs Neg Floor Ceil Round Sign Softplus Softsign Sin Cos Elu LeakyRelu Selu HardSigmoid".split():
        m.op(op, x)
    m.op("LeakyRelu", x, alpha=0.2)
    m.op("ThresholdedRelu", x, alpha=0.5)
    for op in ("Log", "Sqrt", "Reciprocal"):
        m.op(op, np.abs(x) + np.float32(0.5))
    for op in "Add Sub Mul Div Less Greater LessOrEqual GreaterOrEqual".split():
        m.op(op, x, y)
        m.op(op, v, x)
    m.op("Pow", np.abs(x), np.float32(2))
    m.op("Pow", np.abs(x), np.float32(0.5))
    m.op("Pow", np.abs(x), v)
    m.op("Sum", x)
    m.op("Sum", x, y)
    m.op("Sum", x, y, v)
    m.op("Mean", x, y, v)
    m.op("Min", x, y, v)
    m.op("Max", x)
    m.op("Max", x, y)
    m.op("PRelu", x, f32(3, 1))
    m.op("Mod", i64(7, -7, 5), i64(3, 3, -3))
    m.op("Mod", x, v, fmod=1)
    m.op("Equal", i64(1, 2, 3), i64(1, 5, 3))
    b1, b2 = np.array([1, 0, 1], bool), np.array([1, 1, 0], bool)
    for op in ("And", "Or", "Xor", "Equal"):
        m.op(op, b1, b2)
    m.op("Not", b1)
    m.op("Where", np.array([[True], [False], [True]]), x, v)
    m.op("Clip", x, np.float32(-0.5), np.float32(0.75))
    m.op("Clip", x, np.float32(0), "")
    m.op("Clip", x, "", np.float32(1))
    m.op("Clip", x, np.float32(1), np.float32(-1))
    m.op("Clip", i64(-5, 0, 9), i64(-1)[0], i64(4)[0])
    lo = m.op("ReduceMin", v, keepdims=0, label="runtime_min")
    m.op("Clip", x, lo, np.float32(0.5))
    m.op("MatMul", f32(2, 3, 4), f32(4, 5))
    m.op("MatMul", f32(3), f32(3, 2))
    m.op("MatMul", f32(2, 1, 3, 4), f32(2, 4, 3))
    a, w = f32(3, 4), f32(5, 4)
    m.op("Gemm", a, w, f32(5), transB=1)
    m.op("Gemm", a, w, f32(3, 1), transB=1, alpha=0.5, beta=2.0)
    m.op("Gemm", f32(4, 3), w.T.copy(), transA=1)
    m.op("Gemm", a, w.T.copy(), f32(1))
    for op in "ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2".split():
        m.op(op, x, axes=[1])
        m.op(op, x, axes=[-1, 0], keepdims=0)
        m.op(op, x)
    m.op("ReduceSum", x, i64(1))
    m.op("ReduceSum", x, i64(-1, 0), keepdims=0)
    m.op("ReduceSum", x, noop_with_empty_axes=1)
    m.op("ReduceSum", x, keepdims=0)
    m.op("Softmax", x)
    m.op("Softmax", x, axis=1)
    m.op("LogSoftmax", x, axis=0)
    m.op("ArgMax", x, axis=1)
    m.op("ArgMin", x, axis=-1, keepdims=0)
    m.op("ArgMax", np.array([[1, 3, 3]], np.float32), axis=1, select_last_index=1)
    m.op("CumSum", x, np.array(1, np.int64), reverse=1)
    m.op("TopK", x, i64(2), axis=1, n_out=2)
    m.save()


def nn_13():
    m = Ops("ops_nn_13", 13)
    x, w = f32(1, 4, 7, 6), f32(6, 4, 3, 3)
    m.op("Conv", x, w, f32(6))
    m.op("Conv", x, w, pads=[1, 0, 2, 1], strides=[2, 1])
    m.op("Conv", x, w, auto_pad="SAME_UPPER", strides=[2, 2])
    m.op("Conv", x, w, auto_pad="SAME_LOWER", strides=[2, 2], kernel_shape=[3, 3])
    m.op("Conv", x, w, auto_pad="VALID", dilations=[2, 2])
    m.op("Conv", x, f32(4, 1, 3, 3), group=4, pads=[1, 1, 1, 1])
    m.op("Conv", f32(2, 3, 9), f32(4, 3, 2), strides=[3])
    m.op("Conv", f32(1, 2, 4, 4, 4), f32(2, 2, 2, 2, 2), f32(2))
    m.op("ConvTranspose", x, f32(4, 3, 2, 2), f32(3), strides=[2, 2])
    m.op("ConvTranspose", x, f32(4, 2, 3, 3), group=2, strides=[2, 2], pads=[1, 1, 0, 1], output_padding=[1, 0])
    m.op("MaxPool", x, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
    m.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    m.op("MaxPool", x, kernel_shape=[3, 3], dilations=[2, 2])
    m.op("MaxPool", x, kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2])
    m.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    m.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1, strides=[2, 2])
    m.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    m.op("GlobalAveragePool", x)
    m.op("GlobalMaxPool", x)
    m.op("BatchNormalization", x, f32(4), f32(4), f32(4), np.abs(f32(4)) + np.float32(0.1), epsilon=1e-3)
    m.op("InstanceNormalization", x, f32(4), f32(4))
    m.op("LRN", x, size=3, alpha=0.1)
    scales = np.array([1, 1, 2, 2], np.float32)
    empty = np.zeros(0, np.float32)
    m.op("Resize", x, empty, scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    m.op("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="align_corners")
    m.op("Resize", x, empty, empty, i64(1, 4, 5, 9), mode="linear", coordinate_transformation_mode="half_pixel")
    m.save()


def shapes_13():
    m = Ops("ops_shape_13", 13)
    x = f32(2, 3, 4)
    ints = np.arange(24).reshape(2, 3, 4)
    m.op("Reshape", x, i64(0, -1))
    m.op("Reshape", x, i64(4, 3, 2))
    m.op("Flatten", x, axis=2)
    m.op("Flatten", x, axis=0)
    m.op("Transpose", x)
    m.op("Transpose", x, perm=[1, 2, 0])
    m.op("Squeeze", f32(1, 3, 1))
    m.op("Squeeze", f32(1, 3, 1), i64(-1))
    m.op("Unsqueeze", x, i64(0, -1))
    m.op("Concat", x, f32(2, 1, 4), axis=-2)
    m.op("Split", x, axis=2, n_out=2)
    m.op("Split", x, i64(1, 2), axis=1, n_out=2)
    m.op("Slice", x, i64(1, -3), i64(3, 1000), i64(1, 2), i64(1, 2))
    m.op("Slice", x, i64(-1), i64(-1000), i64(2), i64(-1))
    m.op("Gather", x, i64(2, 0), axis=1)
    m.op("Gather", x, np.array([[-1, 0]], np.int64), axis=2)
    m.op("GatherElements", x, np.array([[[1, 0, 0, 1]] * 3], np.int64), axis=0)
    m.op("Pad", x, i64(0, 1, 0, 1, 0, 2))
    m.op("Pad", x, i64(0, 1, 0, 0, 0, 2), np.float32(3.5))
    m.op("Pad", x, i64(0, 1, 1, 0, 1, 2), mode="reflect")
    m.op("Pad", x, i64(0, 1, 1, 0, 1, 2), mode="edge")
    m.op("Expand", f32(3, 1), i64(2, 1, 4))
    m.op("Tile", x, i64(1, 2, 2))
    m.op("Shape", x)
    m.op("Range", i64(1)[0], i64(10)[0], i64(3)[0])
    m.op("ConstantOfShape", i64(2, 3), value=helper.make_tensor("v", TensorProto.INT64, [1], [5]))
    m.op("ConstantOfShape", i64(2))
    m.op("DepthToSpace", f32(1, 8, 2, 3), blocksize=2)
    m.op("DepthToSpace", f32(1, 8, 2, 3), blocksize=2, mode="CRD")
    m.op("SpaceToDepth", f32(1, 2, 4, 6), blocksize=2)
    for to in (TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.BOOL, TensorProto.FLOAT16):
        m.op("Cast", np.abs(x), to=to)
    m.op("Cast", ints, to=TensorProto.FLOAT)
    m.op("Identity", x)
    m.op("Dropout", x)
    # arithmetic on shapes, as exporters write it
    shape = m.op("Shape", x, label="the_shape", hidden=True)
    first = m.op("Gather", shape, i64(0)[0], label="first_dim", hidden=True)
    rest = m.op("Mul", first, i64(6)[0], label="times", hidden=True)
    parts = [m.op("Unsqueeze", d, i64(0), label=f"u_{d}", hidden=True) for d in (first, rest)]
    wanted = m.op("Concat", *parts, axis=0, label="wanted", hidden=True)
    m.op("Reshape", f32(24), wanted, label="computed_reshape")
    for value in (dict(value_float=1.5), dict(value_int=3), dict(value_floats=[1.0, 2.0]), dict(value_ints=[4, 5, 6])):
        m.op("Constant", **value)
    m.save()


def ops_11():
    m = Ops("ops_11", 11)
    x = f32(2, 3, 4)
    m.op("Softmax", x)
    m.op("Softmax", x, axis=2)
    m.op("LogSoftmax", x, axis=0)
    hidden = m.op("Add", x, np.float32(1), label="hidden", hidden=True)
    m.op("Softmax", hidden, axis=1, label="softmax_of_unknown_rank")
    m.op("Squeeze", f32(1, 3, 1), axes=[0])
    m.op("Unsqueeze", x, axes=[0, 4])
    m.op("Split", x, axis=1, split=[2, 1], n_out=2)
    m.op("ReduceSum", x, axes=[0, 2])
    m.op("ReduceSum", x, keepdims=0)
    m.op("Clip", x, np.float32(-1))
    m.op("Gemm", f32(2, 3), f32(3, 2), f32(2))
    m.save()
    m = Ops("ops_10", 10)
    m.op("Pad", x, pads=[0, 0, 1, 1, 0, 0], value=2.0)
    m.op("Clip", x, min=-0.5, max=0.5)
    m.op("Clip", x, min=0.0)
    m.op("Resize", f32(1, 1, 2, 3), np.array([1, 1, 2, 3], np.float32), mode="nearest")
    m.op("Slice", x, i64(0), i64(2), i64(1))
    m.op("Dropout", x)
    m.save()


def ops_21():
    m = Ops("ops_21", 21)
    x = f32(2, 4, 3)
    m.op("Gelu", x)
    m.op("Gelu", x, approximate="tanh")
    m.op("HardSwish", x)
    m.op("Mish", x)
    m.op("LayerNormalization", x, f32(3), f32(3))
    m.op("LayerNormalization", x, f32(3), epsilon=1e-3)
    m.op("LayerNormalization", x, f32(4, 3), f32(4, 3), axis=1)
    m.op("GroupNormalization", x, f32(4), f32(4), num_groups=2)
    m.op("ReduceMean", x, i64(1))
    m.op("ReduceMax", x, i64(0, 2), keepdims=0)
    m.op("ReduceMean", x)
    m.op("Split", x, axis=1, num_outputs=3, n_out=3)
    m.op("Pad", x, i64(1, 2), np.float32(0), i64(1))
    m.op("Resize", f32(1, 2, 3, 3), "", np.array([2, 2], np.float32), axes=[2, 3], mode="nearest")
    m.op("Shape", x, start=1)
    m.op("Shape", x, start=-2, end=-1)
    m.op("Reshape", f32(0, 3), i64(3, 0), allowzero=1)
    m.save()


def quant():
    m = Ops("ops_quant_13", 13)
    x, q = f32(2, 3, 4), u8(2, 3, 4)
    s, z = np.float32(0.02), np.uint8(120)
    scales = np.array([0.01, 0.02, 0.05], np.float32)
    m.op("QuantizeLinear", x, s, z)
    m.op("QuantizeLinear", x, s)
    m.op("QuantizeLinear", x, scales, s8(3))
    m.op("QuantizeLinear", x, np.array([0.1, 0.2], np.float32), np.zeros(2, np.uint8), axis=-3)
    m.op("DequantizeLinear", q, s, z)
    m.op("DequantizeLinear", q, s)
    m.op("DequantizeLinear", s8(2, 3, 4), scales, s8(3))
    m.op("DequantizeLinear", s8(2, 3, 4), np.array([0.1, 0.2, 0.3, 0.4], np.float32), s8(4), axis=2)
    m.op("DequantizeLinear", np.array([7, -9, 100000], np.int32), scales, axis=0)
    m.op("DequantizeLinear", np.array(200, np.uint8), np.float32(0.5), np.uint8(100))
    m.op("DynamicQuantizeLinear", x, n_out=3)
    m.op("MatMulInteger", u8(2, 3, 4), u8(4, 5), np.uint8(120), np.uint8(3))
    m.op("MatMulInteger", u8(3, 4), s8(4, 2))
    m.op("ConvInteger", u8(1, 2, 5, 5), u8(3, 2, 3, 3), np.uint8(7), np.uint8(128), pads=[1, 1, 1, 1])
    args = [u8(1, 2, 5, 5), np.float32(0.02), np.uint8(100), s8(4, 2, 3, 3), np.array([0.01, 0.02, 0.015, 0.03], np.float32),
            np.zeros(4, np.int8), np.float32(0.11), np.uint8(128)]
    m.op("QLinearConv", *args, np.array([50, -70, 300, 0], np.int32), strides=[2, 1])
    m.op("QLinearConv", *args, pads=[0, 1, 1, 0])
    m.op("QLinearMatMul", u8(3, 4), np.float32(0.02), np.uint8(10), s8(4, 5), np.float32(0.01), np.int8(0), np.float32(0.07),
         np.uint8(128))
    m.save()

    m = Ops("ops_quant_21", 21)
    x = f32(2, 6)
    blocks = np.abs(f32(2, 3)) / np.float32(50) + np.float32(0.01)
    m.op("QuantizeLinear", x, blocks, s8(2, 3), axis=1, block_size=2)
    m.op("DequantizeLinear", s8(2, 6), blocks, axis=1, block_size=2)
    m.op("QuantizeLinear", x, np.float32(0.001), output_dtype=TensorProto.INT16)
    m.op("DequantizeLinear", np.array([30000, 31000], np.uint16), np.float32(2), np.uint16(32767))
    m.save()


def microsoft():
    m = Ops("ops_ms", 13, ms=True)
    ms = dict(domain="com.microsoft")
    a, b = u8(1, 3, 4, 4), u8(1, 3, 4, 4)
    sa, za, sb, zb, sy, zy = np.float32(0.02), np.uint8(100), np.float32(0.03), np.uint8(140), np.float32(0.05), np.uint8(128)
    m.op("QLinearAdd", a, sa, za, b, sb, zb, sy, zy, **ms)
    m.op("QLinearAdd", a, sa, za, u8(3, 1, 1), sb, zb, sy, zy, **ms)
    m.op("QLinearMul", a, sa, za, b, sb, zb, sy, zy, **ms)
    m.op("QLinearSigmoid", a, sa, za, np.float32(1 / 256), np.uint8(0), **ms)
    m.op("QLinearLeakyRelu", a, sa, za, sa, za, alpha=0.1, **ms)
    m.op("QLinearGlobalAveragePool", a, sa, za, sb, zb, channels_last=0, **ms)
    m.op("QLinearAveragePool", a, sa, za, sb, zb, kernel_shape=[2, 2], strides=[2, 2], **ms)
    m.op("QLinearSoftmax", u8(2, 5), sa, za, np.float32(1 / 256), np.uint8(0), axis=-1, opset=13, **ms)
    m.op("QLinearConcat", sy, zy, a, sa, za, b, sb, zb, axis=1, **ms)
    w = s8(5, 4)
    m.op("QGemm", u8(3, 4), sa, za, w, np.float32(0.01), np.int8(0), np.array([1, 20, -300, 4, 50], np.int32), sy, zy,
         transB=1, **ms)
    m.op("QGemm", u8(3, 4), sa, za, w, np.float32(0.01), np.int8(0), transB=1, **ms)
    m.op("QuantizeLinear", f32(4), np.float32(0.001), np.array(100, np.uint16), **ms)
    m.op("DequantizeLinear", u8(4), sa, za, **ms)
    m.op("Gelu", f32(2, 3), **ms)
    m.op("FastGelu", f32(2, 3), f32(3), **ms)
    m.save()


# ---- the forms that a model may have ------------------------------------------------------------------------------


def simple_model(nodes, inputs, outputs, inits=(), opset=13, extra_imports=(), ir=8):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(inits))
    imports = ([helper.make_opsetid("", opset)] if opset is not None else []) + list(extra_imports)
    return helper.make_model(graph, opset_imports=imports, ir_version=ir)


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def forms():
    """Every field form of an initializer holding 0, 1, 2, 3: each is cast to float; outputs o_<form>."""
    T = TensorProto
    inits, nodes, outs = [], [], []

    def add(form, tensor):
        tensor.name = form
        inits.append(tensor)
        nodes.append(helper.make_node("Cast", [form], ["o_" + form], to=FLOAT))
        outs.append(info("o_" + form, FLOAT, [4]))

    typed = dict(float_data=(T.FLOAT, "float_data"), int32_s32=(T.INT32, "int32_data"), int32_u8=(T.UINT8, "int32_data"),
                 int32_s8=(T.INT8, "int32_data"), int32_u16=(T.UINT16, "int32_data"), int32_s16=(T.INT16, "int32_data"),
                 int64_data=(T.INT64, "int64_data"), uint64_data=(T.UINT64, "uint64_data"), uint64_u32=(T.UINT32, "uint64_data"),
                 double_data=(T.DOUBLE, "double_data"))
    for form, (kind, field) in typed.items():
        t = T(dims=[4], data_type=kind)
        getattr(t, field).extend([0, 1, 2, 3])
        add(form, t)
    bits = [0x0000, 0x3C00, 0x4000, 0x4200], [0x0000, 0x3F80, 0x4000, 0x4040]
    add("int32_f16", T(dims=[4], data_type=T.FLOAT16, int32_data=bits[0]))
    add("int32_bf16", T(dims=[4], data_type=T.BFLOAT16, int32_data=bits[1]))
    add("int32_s4", T(dims=[4], data_type=T.INT4, int32_data=[0x10, 0x32]))
    add("int32_u4", T(dims=[4], data_type=T.UINT4, int32_data=[0x10, 0x32]))
    raw = dict(f32=np.float32, f16=np.float16, f64=np.float64, s8=np.int8, u8=np.uint8, s16=np.int16, u16=np.uint16, s32=np.int32,
               s64=np.int64, u32=np.uint32, u64=np.uint64)
    for form, kind in raw.items():
        add("raw_" + form, numpy_helper.from_array(np.arange(4).astype(kind)))
    add("raw_bf16", T(dims=[4], data_type=T.BFLOAT16, raw_data=np.array(bits[1], np.uint16).tobytes()))
    add("raw_s4", T(dims=[4], data_type=T.INT4, raw_data=bytes([0x10, 0x32])))
    write("forms", simple_model(nodes, [], outs, inits, opset=21, ir=10))


def external():
    data = np.arange(6, dtype=np.float32)
    with open(os.path.join(HERE, "external.bin"), "wb") as f:
        f.write(b"\0" * 64 + data.tobytes())

    def model(location, offset="64", length="24"):
        t = TensorProto(dims=[6], data_type=FLOAT, name="w", data_location=TensorProto.EXTERNAL)
        for key, value in dict(location=location, offset=offset, length=length).items():
            t.external_data.add(key=key, value=value)
        return simple_model([helper.make_node("Relu", ["w"], ["y"])], [], [info("y", FLOAT, [6])], [t])

    write("external", model("external.bin"))
    write("bad_external_absolute", model("/etc/passwd"))
    write("bad_external_escape", model("sub/../../external.bin"))
    write("bad_external_short", model("external.bin", offset="80"))
    write("bad_external_length", model("external.bin", length="20"))
    write("bad_external_missing", model("nothing.bin"))


def loading():
    add = helper.make_node("Add", ["a", "b"], ["y"], name="add")
    # symbolic dims shared by two inputs; a domain that nothing uses
    write("symbolic", simple_model([add], [info("a", FLOAT, ["N", 3]), info("b", FLOAT, ["N", "M"])], [info("y", FLOAT, ["N", 3])],
                                   extra_imports=[helper.make_opsetid("org.example.unused", 9)]))
    # nodes out of order, an input that is an initializer too, an unused input, a missing optional input, an output that is an input
    nodes = [helper.make_node("Clip", ["t", "", "max"], ["y"]), helper.make_node("Identity", ["s"], ["t"]),
             helper.make_node("Add", ["a", "w"], ["s"])]
    inits = [numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w"), numpy_helper.from_array(np.float32(4), "max")]
    inputs = [info("w", FLOAT, [3]), info("unused", FLOAT, [2]), info("a", FLOAT, [3])]
    write("wiring", simple_model(nodes, inputs, [info("y", FLOAT, [3]), info("a", FLOAT, [3]), info("w", FLOAT, [3])], inits))
    # double in, double out
    nodes = [helper.make_node("Mul", ["x", "two"], ["y"])]
    write("double", simple_model(nodes, [info("x", TensorProto.DOUBLE, [2])], [info("y", TensorProto.DOUBLE, [2])],
                                 [numpy_helper.from_array(np.float64(2), "two")]))
    # a small QDQ network for the program and for mutation
    w = s8(4, 2, 3, 3)
    inits = [numpy_helper.from_array(np.float32(0.05), "xs"), numpy_helper.from_array(np.uint8(128), "xz"),
             numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array([0.01, 0.02, 0.01, 0.03], np.float32), "ws"),
             numpy_helper.from_array(np.zeros(4, np.int8), "wz"),
             numpy_helper.from_array(np.array([10, -20, 30, 0], np.int32), "b"),
             numpy_helper.from_array(np.float32(0.05) * np.array([0.01, 0.02, 0.01, 0.03], np.float32), "bs"),
             numpy_helper.from_array(np.float32(0.2), "ys"), numpy_helper.from_array(np.uint8(0), "yz")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"], name="q0"),
             helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"], name="dq0"),
             helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], name="dqw", axis=0),
             helper.make_node("DequantizeLinear", ["b", "bs"], ["bd"], name="dqb", axis=0),
             helper.make_node("Conv", ["xd", "wd", "bd"], ["c"], name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"], name="relu"),
             helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["rq"], name="q1"),
             helper.make_node("DequantizeLinear", ["rq", "ys", "yz"], ["y"], name="dq1")]
    write("tiny", simple_model(nodes, [info("x", FLOAT, ["N", 2, 5, 5])], [info("y", FLOAT, ["N", 4, 5, 5])], inits))
    x = (np.arange(100, dtype=np.float32).reshape(2, 2, 5, 5) - 50) / 25
    np.save(os.path.join(HERE, "tiny_x.npy"), x)
    np.save(os.path.join(HERE, "tiny_x_fortran.npy"), np.asfortranarray(x))
    np.save(os.path.join(HERE, "tiny_x_f64.npy"), x[:1].astype(np.float64))
    np.save(os.path.join(HERE, "tiny_x_wrong.npy"), x[:1, :, :4])


def bad():
    x, y = info("x", FLOAT, [2, 3]), info("y", FLOAT, None)
    relu = helper.make_node("Relu", ["x"], ["y"], name="relu")
    w = numpy_helper.from_array(f32(2, 3), "w")

    def tensor(dims, **fields):
        return TensorProto(name="w", dims=dims, data_type=FLOAT, **fields)

    add = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    cases = dict(
        cycle=([helper.make_node("Add", ["x", "b"], ["a"], name="n1"), helper.make_node("Relu", ["a"], ["b"], name="n2"),
                helper.make_node("Relu", ["b"], ["y"], name="n3")], [x], [y]),
        cycle_identity=([helper.make_node("Identity", ["b"], ["a"]), helper.make_node("Identity", ["a"], ["b"]), relu], [x], [y]),
        negative_input=([relu], [info("x", FLOAT, [-2, 3])], [y]),
        huge_input=([relu], [info("x", FLOAT, [1 << 40, 1 << 40])], [y]),
        negative_dim=([add], [x], [y], [tensor([-2, 3])]),
        huge_dims=([add], [x], [y], [tensor([1 << 40, 1 << 40])]),
        huge_claim=([add], [x], [y], [tensor([1 << 33, 1 << 20], float_data=[1.0])]),
        raw_length=([add], [x], [y], [tensor([2, 3], raw_data=b"12345")]),
        typed_count=([add], [x], [y], [tensor([2, 3], float_data=[1.0])]),
        no_data=([add], [x], [y], [tensor([2, 3])]),
        dtype=([add], [x], [y], [TensorProto(name="w", dims=[1], data_type=TensorProto.STRING, string_data=[b"a"])]),
        ranks=([add], [x], [y], [tensor([1] * 13, float_data=[1.0])]),
        duplicate_initializer=([add], [x], [y], [w, w]),
        duplicate_output=([relu, helper.make_node("Exp", ["x"], ["y"], name="exp")], [x], [y]),
        duplicate_input=([relu], [x, x], [y]),
        unknown_tensor=([helper.make_node("Add", ["x", "nobody"], ["y"], name="add")], [x], [y]),
        unknown_output=([relu], [x], [info("z", FLOAT, None)]),
        no_output=([relu], [x], []),
        unknown_op=([helper.make_node("Frobnicate", ["x"], ["y"], name="frob")], [x], [y]),
        unknown_domain=([helper.make_node("Relu", ["x"], ["y"], name="relu", domain="org.example")], [x], [y]),
        unknown_attr=([helper.make_node("Relu", ["x"], ["y"], name="relu", leak=0.5)], [x], [y]),
        attr_type=([helper.make_node("LeakyRelu", ["x"], ["y"], name="leaky", alpha="much")], [x], [y]),
        arity=([helper.make_node("Add", ["x"], ["y"], name="add")], [x], [y]),
        shape_mismatch=([helper.make_node("Add", ["x", "w"], ["y"], name="add")], [x], [y], [numpy_helper.from_array(f32(5), "w")]),
        axis=([helper.make_node("DequantizeLinear", ["w", "s"], ["y"], name="dq")], [], [y],
              [numpy_helper.from_array(s8(2, 3, 1, 1), "w"), numpy_helper.from_array(np.array([1, 2], np.float32), "s")]),
        zero_scale=([helper.make_node("DequantizeLinear", ["w", "s"], ["y"], name="dq")], [], [y],
                    [numpy_helper.from_array(s8(2, 3), "w"), numpy_helper.from_array(np.float32(0), "s")]),
        runtime_pads=([helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1, 1])], [info("x", FLOAT, [1, 1, 4, 4])],
                      [y], [numpy_helper.from_array(f32(1, 1, 3, 3), "w")]),
    )
    for name, (nodes, inputs, outputs, *inits) in cases.items():
        write("bad_" + name, simple_model(nodes, inputs, outputs, *inits))
    write("bad_opset", simple_model([relu], [x], [y], opset=9))
    write("bad_no_opset", simple_model([relu], [x], [y], opset=None, extra_imports=[helper.make_opsetid("com.microsoft", 1)]))
    sparse = simple_model([add], [x], [y])
    sparse.graph.sparse_initializer.append(onnx.SparseTensorProto(dims=[2, 3]))
    write("bad_sparse", sparse)


def main():
    for name in sorted(os.listdir(HERE)):
        if name.endswith((".onnx", ".npy", ".bin")):
            os.remove(os.path.join(HERE, name))
    for make in (ops_11, ops_13, nn_13, shapes_13, ops_21, quant, microsoft, forms, external, loading, bad):
        make()
    total = sum(os.path.getsize(os.path.join(HERE, n)) for n in os.listdir(HERE) if n.endswith((".onnx", ".npy", ".bin")))
    print(f"{total} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
