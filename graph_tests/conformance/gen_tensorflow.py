#!/usr/bin/env python3
"""Vectors of TensorFlow's QuantizeV2 and Dequantize, computed by TensorFlow itself (package tensorflow-cpu).

    gen_tensorflow.py OUT.json

Modes x types x round modes x narrow ranges x axes x ranges x inputs. The layout of a row is told in
conformance_vectors_test.cc, which reads the file. Some results are no part of it (doc/quantization.md): a NaN input and a
range without a finite step, because the kernel's own result is undefined, and denormal numbers, which TensorFlow's threads
flush to zero. Where the kernel casts a float of 2^31 to qint32, which is undefined too and gives -2^31, the row holds what
saturating gives; the file counts these elements: "saturated" on QuantizeV2, "flipped" on Dequantize in mode SCALED per tensor.
"""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # the portable kernels, not their rewrites
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import json
import sys

import numpy as np
import tensorflow as tf

F32 = np.float32
TYPES = {
    "u8": (tf.quint8, tf.uint8),
    "s8": (tf.qint8, tf.int8),
    "u16": (tf.quint16, tf.uint16),
    "s16": (tf.qint16, tf.int16),
    "s32": (tf.qint32, tf.int32),
}
RANGES = [
    (0, 6), (-1, 1), (-6, -2), (2, 6), (0, 0), (0, 0.001), (-0.001, 0), (-128, 127), (0, 255), (-1e-6, 2e-6),
    (-3.3, 7.1), (-1e30, 1e30), (0, 3e38), (-1e-31, 1e-31), (-127.5, 127.5), (0.1, 0.3), (-0.3, -0.1), (-500, 3),
    (-7, 1000), (-0.0321, 0.0337), (-2, -1), (-20.7, 0), (1e-30, 2e-30), (-65536, 65535),
]  # fmt: skip
AXES = [  # ranges per slice
    [(-1, 1), (-20, 20), (-300, 300)],
    [(0, 6), (-3.3, 7.1), (-0.001, 0.002)],
    [(0, 0), (-5, -1), (2, 3)],
    [(-1e20, 1e20), (0, 1e-20), (-0.5, 0.25)],
]


def bits(a):
    return "".join("%08x" % v for v in np.asarray(a, F32).reshape(-1).view(np.uint32))


def special(rng, lo, hi, t):
    """Ends, beyond the ends, zeros, infinities, ties of the steps, and values in between."""
    info = np.iinfo(TYPES[t][1].as_numpy_dtype)
    lo, hi = min(0.0, float(lo)), max(0.0, float(hi))
    width = hi - lo if hi > lo else 0.01
    step = width / (float(info.max) - float(info.min))
    ties = [(int(k) + 0.5) * step + (lo if k % 2 else 0.0) for k in rng.integers(0, min(info.max, 200), 4)]
    values = [0.0, -0.0, lo, hi, lo - width, hi + width, np.inf, -np.inf, *ties, *(lo + width * rng.random(3))]
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(F32)


def quantize(x, mn, mx, t, mode, rnd, narrow, axis, ensure):
    q, omin, omax = tf.raw_ops.QuantizeV2(
        input=x, min_range=mn, max_range=mx, T=TYPES[t][0], mode=mode, round_mode=rnd, narrow_range=bool(narrow),
        axis=axis, ensure_minimum_range=ensure)  # fmt: skip
    return tf.bitcast(q, TYPES[t][1]).numpy(), omin.numpy(), omax.numpy()


def has_step(mn, mx, t, ensure, narrow):
    """Steps per unit of the adjusted range are finite, as an f32; and no denormal number is an end of it."""
    info = np.iinfo(TYPES[t][1].as_numpy_dtype)
    lo = min(0.0, float(mn))
    hi = max(0.0, float(mx), lo + max(1.0, abs(float(mn)), abs(float(mx))) * ensure)
    if narrow and info.min == 0 and hi == 0:
        return False  # the lowest value in use, 1, stands for the denormal 1/FLT_MAX
    return hi > lo and (float(info.max) - float(info.min)) / (hi - lo) < 3.4e38


def quantize_row(rows, x, mn, mx, t, mode, rnd, narrow, axis, ensure):
    if not all(has_step(a, b, t, ensure, narrow and mode == "SCALED") for a, b in zip(np.atleast_1d(mn), np.atleast_1d(mx))):
        return 0
    q, omin, omax = quantize(x, mn, mx, t, mode, rnd, narrow, axis, ensure)
    saturated = 0
    if t == "s32":
        shape = [1] * x.ndim
        shape[max(axis, 0)] = -1
        middle = ((omin.astype(np.float64) + omax.astype(np.float64)) / 2).reshape(shape)
        wrapped = (q == -(2**31)) & (x > middle)
        saturated = int(wrapped.sum())
        q = np.where(wrapped, 2**31 - 1, q)
    rows.append([mode, t, rnd, int(narrow), axis, float(ensure), list(x.shape), bits(mn), bits(mx), bits(x),
                 [int(v) for v in q.reshape(-1)], bits(omin), bits(omax)])  # fmt: skip
    return saturated


def rounds(mode):
    return ["HALF_AWAY_FROM_ZERO"] + (["HALF_TO_EVEN"] if mode == "SCALED" else [])


def quantize_rows(rng):
    rows, saturated = [], 0
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for t in TYPES:
            for rnd in rounds(mode):
                for narrow in (0, 1):
                    for ensure in (0.01, 0.0, 0.5):
                        if ensure == 0.5 and (narrow or rnd != "HALF_AWAY_FROM_ZERO"):
                            continue
                        for lo, hi in RANGES:
                            if narrow and mode != "SCALED" and (lo, hi) != (-1, 1):
                                continue  # narrow says nothing there: one range tells
                            x = special(rng, lo, hi, t)
                            saturated += quantize_row(rows, x, F32(lo), F32(hi), t, mode, rnd, narrow, -1, ensure)
    for mode in ("MIN_COMBINED", "SCALED"):
        for t in TYPES:
            for rnd in rounds(mode):
                for narrow in (0, 1) if mode == "SCALED" else (0,):
                    for axis in (0, 1, 2):
                        for per_slice in AXES:
                            shape = [2, 2, 2]
                            shape[axis] = len(per_slice)
                            lo, hi = (np.array(v, F32) for v in zip(*per_slice))
                            x = np.zeros(shape, F32)
                            for i, (a, b) in enumerate(per_slice):
                                index = [slice(None)] * 3
                                index[axis] = i
                                x[tuple(index)] = rng.choice(special(rng, a, b, t), (2, 2))
                            saturated += quantize_row(rows, x, lo, hi, t, mode, rnd, narrow, axis, 0.01)
    return rows, saturated


def dequantize_row(rows, rng, shape, mn, mx, t, mode, narrow, axis, dtype):
    info = np.iinfo(TYPES[t][1].as_numpy_dtype)
    q = rng.integers(info.min, info.max + 1, shape, np.int64)
    flat = q.reshape(-1)
    ends = [info.min, info.max, 0, 1, info.min + 1, info.max - 1, (info.max + info.min) // 2, info.max // 3]
    flat[: min(len(ends), len(flat))] = ends[: len(flat)]
    q = q.astype(TYPES[t][1].as_numpy_dtype)
    y = tf.raw_ops.Dequantize(
        input=tf.bitcast(tf.constant(q), TYPES[t][0]), min_range=mn, max_range=mx, mode=mode, narrow_range=bool(narrow),
        axis=axis, dtype=tf.float32 if dtype == "f32" else tf.bfloat16)  # fmt: skip
    y = tf.cast(y, tf.float32).numpy()
    flip = (q.astype(F32) == F32(2**31)) & (t == "s32" and mode == "SCALED" and axis < 0)
    y = np.where(flip, -y, y)
    rows.append([mode, t, dtype, int(narrow), axis, list(shape), bits(mn), bits(mx), [int(v) for v in q.reshape(-1)],
                 bits(y)])  # fmt: skip
    return int(flip.sum())


def is_denormal_step(lo, hi, t):
    info = np.iinfo(TYPES[t][1].as_numpy_dtype)
    return 0 < (hi - lo) / (float(info.max) - float(info.min)) < 1.2e-38


def dequantize_rows(rng):
    rows, flipped = [], 0
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for t in TYPES:
            for narrow in (0, 1) if mode == "SCALED" else (0,):
                for dtype in ("f32", "bf16") if mode == "MIN_COMBINED" else ("f32",):
                    for lo, hi in RANGES:
                        if not is_denormal_step(lo, hi, t):
                            flipped += dequantize_row(rows, rng, (10,), F32(lo), F32(hi), t, mode, narrow, -1, dtype)
                    if mode == "MIN_FIRST":
                        continue
                    for axis in (0, 1, 2):
                        for per_slice in AXES:
                            shape = [2, 2, 2]
                            shape[axis] = len(per_slice)
                            lo, hi = (np.array(v, F32) for v in zip(*per_slice))
                            flipped += dequantize_row(rows, rng, tuple(shape), lo, hi, t, mode, narrow, axis, dtype)
    return rows, flipped


def main():
    rng = np.random.default_rng(7)
    q, saturated = quantize_rows(rng)
    d, flipped = dequantize_rows(rng)
    with open(sys.argv[1], "w") as f:
        f.write('{"origin": "TensorFlow %s, portable CPU kernels", "saturated": %d, "flipped": %d,\n'
                % (tf.__version__, saturated, flipped))  # fmt: skip
        for key, rows, end in (("quantize", q, ",\n"), ("dequantize", d, "}\n")):
            lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
            f.write('"%s": [\n%s\n]%s' % (key, lines, end))
    print("%d vectors of QuantizeV2 (%d elements saturated), %d of Dequantize (%d elements flipped)"
          % (len(q), saturated, len(d), flipped))  # fmt: skip


if __name__ == "__main__":
    main()
