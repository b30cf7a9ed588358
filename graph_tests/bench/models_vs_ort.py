#!/usr/bin/env python3
"""Latency and accuracy of `qdq run` beside ONNX Runtime, measured in one run.

    models_vs_ort.py --qdq build/bin/qdq MODEL_DIR [MODEL_DIR ...] [--repeat N] [--threads 1 2]

A MODEL_DIR holds model.onnx, input_K.npy and, when there is a reference, output_K.npy. Needs numpy and onnxruntime (PyPI).
ONNX Runtime runs with all optimizations, once with its defaults and once with session.qdqisint8allowed=1. Rounds of the two
programs alternate, so that a noisy machine disturbs both; the least of each counts.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort


def ort_ms(model, feeds, threads, s8, repeat):
    so = ort.SessionOptions()
    so.intra_op_num_threads = threads
    so.inter_op_num_threads = 1
    so.log_severity_level = 3
    if s8:
        so.add_session_config_entry("session.qdqisint8allowed", "1")
    try:
        sess = ort.InferenceSession(model, so, providers=["CPUExecutionProvider"])
        names = [i.name for i in sess.get_inputs()]
        feed = dict(zip(names, feeds))
        sess.run(None, feed)
    except Exception as e:  # a model that the peer cannot run is a result too
        return None, str(e).splitlines()[0]
    best = float("inf")
    for _ in range(repeat):
        t = time.perf_counter()
        sess.run(None, feed)
        best = min(best, time.perf_counter() - t)
    return best * 1e3, None


def qdq_run(qdq, folder, inputs, threads, repeat, extra, out):
    cmd = [qdq, "run", os.path.join(folder, "model.onnx"), "--threads", str(threads), "--repeat", str(repeat)]
    for path in inputs:
        cmd += ["--input", path]
    cmd += ["--output-dir", out] + extra
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    p = subprocess.run(cmd, capture_output=True, text=True, env=env)
    if p.returncode != 0:
        sys.exit(f"{' '.join(cmd)}\n{p.stderr}")
    return p.stdout


def field(pattern, text):
    m = re.search(pattern, text)
    return m.group(1) if m else "?"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--qdq", required=True)
    ap.add_argument("--repeat", type=int, default=50)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    ap.add_argument("--no-reference", action="store_true")
    ap.add_argument("models", nargs="+")
    args = ap.parse_args()
    print(f"onnxruntime {ort.__version__}")
    print("| model | partitions | alone | top-1 | max diff | " +
          " | ".join(f"qdq {t}t ms | ort {t}t ms | ort s8 {t}t ms | best ort / qdq" for t in args.threads) +
          " | reference ms |")
    print("|" + "---|" * (6 + 4 * len(args.threads)))
    for folder in args.models:
        inputs = sorted(glob.glob(os.path.join(folder, "input_*.npy")))
        feeds = [np.load(p) for p in inputs]
        model = os.path.join(folder, "model.onnx")
        row = []
        with tempfile.TemporaryDirectory() as out:
            for t in args.threads:
                ours, base, s8 = [], [], []
                for _ in range(args.rounds):
                    text = qdq_run(args.qdq, folder, inputs, t, args.repeat, [], out)
                    ours.append(float(field(r"time per run: min ([0-9.]+) ms", text)))
                    base.append(ort_ms(model, feeds, t, False, args.repeat)[0])
                    s8.append(ort_ms(model, feeds, t, True, args.repeat)[0])
                peers = [x for x in base + s8 if x is not None]
                b = min(x for x in base if x is not None) if any(base) else float("nan")
                s = min(x for x in s8 if x is not None) if any(s8) else float("nan")
                best = min(peers) if peers else float("nan")
                row += [f"{min(ours):.3f}", f"{b:.3f}", f"{s:.3f}", f"{best / min(ours):.2f}"]
            diff, top = 0.0, "same"
            for k, path in enumerate(sorted(glob.glob(os.path.join(folder, "output_*.npy")))):
                want = np.load(path).astype(np.float64)
                got = np.load(os.path.join(out, f"output_{k}.npy")).astype(np.float64)
                diff = max(diff, float(np.max(np.abs(want - got))) if want.size else 0.0)
                if want.ndim and (np.argmax(want, -1) != np.argmax(got, -1)).any():
                    top = "differs"
            parts, alone = field(r"partitions (\d+):", text), field(r"(\d+) ops left alone", text)
            ref = "-" if args.no_reference else field(
                r"time per run: min ([0-9.]+) ms", qdq_run(args.qdq, folder, inputs, 1, 1, ["--reference"], out))
        print(f"| {os.path.basename(folder.rstrip('/'))} | {parts} | {alone} | {top} | {diff:.6g} | " + " | ".join(row) +
              f" | {ref} |", flush=True)


main()
