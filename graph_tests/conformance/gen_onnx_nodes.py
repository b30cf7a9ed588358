#!/usr/bin/env python3
"""Write the node tests of the installed onnx package for the quantization ops, in the layout of its test data.

    gen_onnx_nodes.py OUT_DIR      OUT_DIR/<test>/model.onnx, OUT_DIR/<test>/test_data_set_0/{input,output}_<i>.pb

Exit code 77 without the package: there is nothing to test then.
"""
import importlib
import pathlib
import sys

MODULES = (
    "quantizelinear", "dequantizelinear", "dynamicquantizelinear", "qlinearconv", "qlinearmatmul", "convinteger",
    "matmulinteger",
)  # fmt: skip


def main():
    try:
        from onnx import TensorProto, numpy_helper
        from onnx.backend.test.case import node
    except ImportError as missing:
        print("skipped: %s" % missing)
        return 77
    for name in MODULES:  # a module adds its tests when it is imported
        importlib.import_module("onnx.backend.test.case.node." + name)
    out = pathlib.Path(sys.argv[1])
    n = 0
    for case in node._NodeTestCases:
        for i, (inputs, outputs) in enumerate(case.data_sets):
            folder = out / case.name / ("test_data_set_%d" % i)
            folder.mkdir(parents=True, exist_ok=True)
            (out / case.name / "model.onnx").write_bytes(case.model.SerializeToString())
            for kind, values, ports in (
                ("input", inputs, case.model.graph.input),
                ("output", outputs, case.model.graph.output),
            ):
                for k, value in enumerate(values):
                    if not isinstance(value, TensorProto):
                        value = numpy_helper.from_array(value, ports[k].name)
                    (folder / ("%s_%d.pb" % (kind, k))).write_bytes(value.SerializeToString())
        n += 1
    print("%d node tests" % n)
    return 0 if n else 1


if __name__ == "__main__":
    sys.exit(main())
