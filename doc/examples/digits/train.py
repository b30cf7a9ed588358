#!/usr/bin/env python3
"""Train a small CNN on scikit-learn's 8x8 digits, export it to ONNX, quantize it with ONNX Runtime.

    python train.py            train, write the two models and the held-out images beside this file, then check
    python train.py --check    only measure the models that are already there

Needs numpy, scikit-learn, onnx and onnxruntime (and sympy, which onnxruntime's shape inference imports).
The network, with activations written as [N, channels, height, width]:

    input [N,1,8,8] = pixels / 16
      stem  Conv3x3 1->16, Relu
      res   Conv3x3 16->16, Relu, Conv3x3 16->16, Add(stem), Relu
      MaxPool 2x2                                              [N,16,4,4]
      dw    Conv3x3 16->16 with 16 groups, Relu
      pw    Conv1x1 16->32, Relu
      GlobalAveragePool, Flatten                               [N,32]
      fc    Gemm 32->10
    logits [N,10]
"""
import argparse
import os
import sys
import tempfile
import time

# One BLAS thread: the sums, and so the weights, must not depend on how many cores the machine has.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 20240
EPOCHS = 60
BATCH = 64
PEAK_RATE = 4e-3
WEIGHT_DECAY = 1e-4
OPSET = 17
IR_VERSION = 8
MIN_ACCURACY = 0.97  # of the float model, on the held-out images
MAX_DROP = 0.01  # of the int8 model against the float model


def load_split():
    """Images as f32 [M,1,8,8] in 0..1 and labels i64 [M]: (train images, test images, train labels, test labels)."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = digits.target.astype(np.int64)
    return train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=SEED)


# ---- layers: channels-last inside, so that im2col rows are contiguous ----


def patches3x3(x):
    """[N,H,W,C] -> [N,H,W,9,C]: the zero-padded 3x3 neighbourhood of every pixel."""
    n, h, w, c = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = np.empty((n, h, w, 9, c), x.dtype)
    for tap in range(9):
        dy, dx = divmod(tap, 3)
        out[:, :, :, tap] = padded[:, dy:dy + h, dx:dx + w]
    return out


def unpatch3x3(grad):
    """The transpose of patches3x3: every patch element is added back to the pixel it was read from."""
    n, h, w, _, c = grad.shape
    padded = np.zeros((n, h + 2, w + 2, c), grad.dtype)
    for tap in range(9):
        dy, dx = divmod(tap, 3)
        padded[:, dy:dy + h, dx:dx + w] += grad[:, :, :, tap]
    return padded[:, 1:-1, 1:-1]


class Layer:
    """A layer with a weight and a bias; backward stores their gradients and returns the gradient of the input."""

    def __init__(self, rng, weight_shape, fan_in, channels):
        he = np.sqrt(2.0 / fan_in)
        self.params = [(rng.standard_normal(weight_shape) * he).astype(np.float32), np.zeros(channels, np.float32)]
        self.grads = [None, None]


class Conv3x3(Layer):
    """Weight [9*Cin, Cout], tap-major."""

    def __init__(self, rng, cin, cout):
        super().__init__(rng, (9 * cin, cout), 9 * cin, cout)
        self.cin = cin

    def forward(self, x):
        self.shape = x.shape
        self.cols = patches3x3(x).reshape(-1, 9 * self.cin)
        return (self.cols @ self.params[0] + self.params[1]).reshape(*x.shape[:3], -1)

    def backward(self, grad):
        flat = grad.reshape(-1, grad.shape[-1])
        self.grads = [self.cols.T @ flat, flat.sum(0)]
        return unpatch3x3((flat @ self.params[0].T).reshape(*self.shape[:3], 9, self.cin))

    def onnx_weight(self):
        return self.params[0].reshape(3, 3, self.cin, -1).transpose(3, 2, 0, 1)


class Depthwise3x3(Layer):
    """Weight [9, C]."""

    def __init__(self, rng, channels):
        super().__init__(rng, (9, channels), 9, channels)

    def forward(self, x):
        self.cols = patches3x3(x)
        return (self.cols * self.params[0]).sum(3) + self.params[1]

    def backward(self, grad):
        wide = grad[:, :, :, None]
        self.grads = [(self.cols * wide).sum((0, 1, 2)), grad.sum((0, 1, 2))]
        return unpatch3x3(wide * self.params[0])

    def onnx_weight(self):
        return self.params[0].T.reshape(-1, 1, 3, 3)


class Dense(Layer):
    """Acts on the last axis. Weight [Cin, Cout]."""

    def __init__(self, rng, cin, cout):
        super().__init__(rng, (cin, cout), cin, cout)

    def forward(self, x):
        self.x = x
        return x @ self.params[0] + self.params[1]

    def backward(self, grad):
        flat = grad.reshape(-1, grad.shape[-1])
        self.grads = [self.x.reshape(-1, self.x.shape[-1]).T @ flat, flat.sum(0)]
        return grad @ self.params[0].T

    def onnx_weight(self):
        return self.params[0].T


class Conv1x1(Dense):
    def onnx_weight(self):
        return self.params[0].T[:, :, None, None]


class Relu:
    def forward(self, x):
        self.mask = x > 0
        return x * self.mask

    def backward(self, grad):
        return grad * self.mask


class MaxPool2x2:
    def forward(self, x):
        n, h, w, c = x.shape
        blocks = x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // 2, w // 2, c, 4)
        self.shape, self.best = x.shape, blocks.argmax(-1)
        return blocks.max(-1)

    def backward(self, grad):
        n, h, w, c = self.shape
        blocks = np.zeros((*grad.shape, 4), grad.dtype)
        np.put_along_axis(blocks, self.best[..., None], grad[..., None], -1)
        return blocks.reshape(n, h // 2, w // 2, c, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(self.shape)


class Net:
    def __init__(self, rng):
        self.stem, self.res1, self.res2 = Conv3x3(rng, 1, 16), Conv3x3(rng, 16, 16), Conv3x3(rng, 16, 16)
        self.dw, self.pw, self.fc = Depthwise3x3(rng, 16), Conv1x1(rng, 16, 32), Dense(rng, 32, 10)
        self.layers = [self.stem, self.res1, self.res2, self.dw, self.pw, self.fc]
        self.relus = [Relu() for _ in range(5)]
        self.pool = MaxPool2x2()
        self.res2.params[0] *= 0.5  # the sum of two branches would otherwise start with twice the variance

    def forward(self, images):
        relu = self.relus
        stem = relu[0].forward(self.stem.forward(images.transpose(0, 2, 3, 1)))
        branch = self.res2.forward(relu[1].forward(self.res1.forward(stem)))
        pooled = self.pool.forward(relu[2].forward(branch + stem))
        features = relu[3].forward(self.dw.forward(pooled))
        features = relu[4].forward(self.pw.forward(features))
        self.area = features.shape[1:3]
        return self.fc.forward(features.mean((1, 2)))

    def backward(self, grad):
        relu = self.relus
        height, width = self.area
        grad = self.fc.backward(grad)[:, None, None] / np.float32(height * width)
        grad = np.broadcast_to(grad, (grad.shape[0], height, width, grad.shape[-1]))
        grad = self.pw.backward(relu[4].backward(grad))
        grad = self.dw.backward(relu[3].backward(grad))
        total = relu[2].backward(self.pool.backward(grad))
        branch = self.res1.backward(relu[1].backward(self.res2.backward(total)))
        self.stem.backward(relu[0].backward(total + branch))


# ---- training ----


class AdamW:
    def __init__(self, layers):
        self.layers, self.step_count = layers, 0
        self.moments = [[(np.zeros_like(p), np.zeros_like(p)) for p in layer.params] for layer in layers]

    def step(self, rate):
        self.step_count += 1
        correct1, correct2 = 1 - 0.9**self.step_count, 1 - 0.999**self.step_count
        for layer, moments in zip(self.layers, self.moments):
            for param, grad, (first, second) in zip(layer.params, layer.grads, moments):
                first += 0.1 * (grad - first)
                second += 0.001 * (grad * grad - second)
                param -= rate * (first / correct1 / (np.sqrt(second / correct2) + 1e-8))
                if param.ndim > 1:
                    param -= rate * WEIGHT_DECAY * param


def cross_entropy(logits, labels):
    """Mean loss and its gradient."""
    shifted = logits - logits.max(1, keepdims=True)
    log_prob = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    rows = np.arange(len(labels))
    grad = np.exp(log_prob)
    grad[rows, labels] -= 1
    return -log_prob[rows, labels].mean(), grad / np.float32(len(labels))


def shifted_copies(rng, images):
    """Each image moved by -1, 0 or 1 pixel along each axis (0 half of the time), empty pixels coming in."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (8, 8), (2, 3))[:, 0]
    dy, dx = rng.choice(3, (2, len(images)), p=(0.25, 0.5, 0.25))
    return windows[np.arange(len(images)), dy, dx][:, None]


def train(images, labels):
    rng = np.random.default_rng(SEED)
    net = Net(rng)
    optimizer = AdamW(net.layers)
    batches = len(images) // BATCH
    total, step = EPOCHS * batches, 0
    start = time.monotonic()
    for epoch in range(EPOCHS):
        order, losses = rng.permutation(len(images)), []
        for batch in range(batches):
            pick = order[batch * BATCH:(batch + 1) * BATCH]
            loss, grad = cross_entropy(net.forward(shifted_copies(rng, images[pick])), labels[pick])
            net.backward(grad)
            warm_up = min(1.0, (step + 1) / (2 * batches))
            optimizer.step(PEAK_RATE * warm_up * 0.5 * (1 + np.cos(np.pi * step / total)))
            losses.append(loss)
            step += 1
        if sys.stderr.isatty():
            print(f"\repoch {epoch + 1}/{EPOCHS}  loss {np.mean(losses):.4f}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"trained {EPOCHS} epochs in {time.monotonic() - start:.0f} s, last loss {np.mean(losses):.4f}")
    return net


# ---- export and quantization ----


def build_onnx(net):
    weights, nodes = [], []

    def add(op, name, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def layer(op, name, source, **attributes):
        params = getattr(net, name)
        for suffix, value in (("weight", params.onnx_weight()), ("bias", params.params[1])):
            weights.append(numpy_helper.from_array(np.ascontiguousarray(value), f"{name}_{suffix}"))
        return add(op, name, [source, f"{name}_weight", f"{name}_bias"], **attributes)

    square = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    stem = add("Relu", "stem_relu", [layer("Conv", "stem", "input", **square)])
    branch = add("Relu", "res1_relu", [layer("Conv", "res1", stem, **square)])
    branch = layer("Conv", "res2", branch, **square)
    x = add("Relu", "res_relu", [add("Add", "res_add", [branch, stem])])
    x = add("MaxPool", "pool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = add("Relu", "dw_relu", [layer("Conv", "dw", x, group=16, **square)])
    x = add("Relu", "pw_relu", [layer("Conv", "pw", x, kernel_shape=[1, 1])])
    x = add("Flatten", "flatten", [add("GlobalAveragePool", "gap", [x])], axis=1)
    layer("Gemm", "fc", x, transB=1)
    nodes[-1].output[0] = "logits"

    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
                              producer_name="train.py")
    model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    return model


class Batches(CalibrationDataReader):
    def __init__(self, images):
        self.rest = iter(np.array_split(images, -(-len(images) // BATCH)))

    def get_next(self):
        images = next(self.rest, None)
        return None if images is None else {"input": images}


def quantize(float_path, int8_path, calibration):
    """The tool's own two steps, with nothing changed afterwards: what a user's model looks like."""
    with tempfile.TemporaryDirectory() as scratch:
        prepared = os.path.join(scratch, "prepared.onnx")
        quant_pre_process(float_path, prepared)
        quantize_static(prepared, int8_path, Batches(calibration), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


# ---- measuring ----


def run(path, images, optimize):
    options = ort.SessionOptions()
    options.graph_optimization_level = (ort.GraphOptimizationLevel.ORT_ENABLE_ALL if optimize
                                        else ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(["logits"], {"input": images})[0]


def check(folder):
    """Print the accuracy of both models; False when one of them is not good enough."""
    images = np.load(os.path.join(folder, "test_images.npy"))
    labels = np.load(os.path.join(folder, "test_labels.npy"))
    worst, answers = {}, {}
    for name in ("digits_f32", "digits_int8"):
        path = os.path.join(folder, f"{name}.onnx")
        onnx.checker.check_model(onnx.load(path), full_check=True)
        for optimize in (True, False):
            logits = run(path, images, optimize)
            answers[name, optimize] = logits
            right = int((logits.argmax(1) == labels).sum())
            worst[name] = min(worst.get(name, 1.0), right / len(labels))
            print(f"{name:11}  graph optimizations {'on ' if optimize else 'off'}  "
                  f"{right}/{len(labels)} right = {100 * right / len(labels):.2f} %")
    plain, fused, real = answers["digits_int8", False], answers["digits_int8", True], answers["digits_f32", False]
    print(f"int8 and float name the same digit for {(plain.argmax(1) == real.argmax(1)).sum()} images; "
          f"logits differ by {np.abs(plain - real).mean():.3f} on average, {np.abs(plain - real).max():.3f} at most")
    print(f"int8 with and without optimizations: {(plain != fused).mean():.2%} of the logits differ, "
          f"by {np.abs(plain - fused).max():.3f} at most")
    good = worst["digits_f32"] >= MIN_ACCURACY and worst["digits_int8"] >= worst["digits_f32"] - MAX_DROP
    if not good:
        print(f"not good enough: float must reach {MIN_ACCURACY:.0%}, int8 may lose {MAX_DROP:.0%}", file=sys.stderr)
    return good


def make(folder):
    train_images, test_images, train_labels, test_labels = load_split()
    net = train(train_images, train_labels)
    path = {name: os.path.join(folder, name)
            for name in ("digits_f32.onnx", "digits_int8.onnx", "test_images.npy", "test_labels.npy")}
    onnx.save(build_onnx(net), path["digits_f32.onnx"])
    np.testing.assert_allclose(run(path["digits_f32.onnx"], test_images, True), net.forward(test_images),
                               rtol=1e-3, atol=1e-3, err_msg="the exported model is not the trained one")
    quantize(path["digits_f32.onnx"], path["digits_int8.onnx"], train_images)
    np.save(path["test_images.npy"], np.ascontiguousarray(test_images))
    np.save(path["test_labels.npy"], test_labels)


def main():
    parser = argparse.ArgumentParser(description="Train, export and quantize the digits model.")
    parser.add_argument("--check", action="store_true", help="only measure the models that are already there")
    parser.add_argument("--folder", default=HERE, help="where the models and arrays are (default: beside this script)")
    args = parser.parse_args()
    if not args.check:
        make(args.folder)
    return 0 if check(args.folder) else 1


if __name__ == "__main__":
    sys.exit(main())
