#!/bin/sh
# qdq explain, draw and patterns: what they print, and that the pages made from them are fresh.
# usage: explain_test.sh PROGRAM SOURCE_DIR [SHARED_DIR]
set -u
qdq=$1
source=$2
shared=${3:-}
cases=$source/graph_tests/cases
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0
n=0

complain() {
    echo "FAILED: $*"
    bad=$((bad + 1))
}

# expect CODE TEXT ARGS…: TEXT must be in stdout (code 0) or stderr
expect() {
    code=$1 text=$2
    shift 2
    n=$((n + 1))
    timeout 300 "$qdq" "$@" >"$tmp/out" 2>"$tmp/err"
    found=$?
    where="$tmp/err"
    [ "$code" = 0 ] && where="$tmp/out"
    [ "$found" = "$code" ] || complain "qdq $*: exit code $found, expected $code: $(head -c 300 "$tmp/err")"
    [ -z "$text" ] || grep -qF -- "$text" "$where" || complain "qdq $*: no \"$text\" in: $(head -c 600 "$where")"
    if [ "$code" = 1 ]; then
        [ "$(wc -l <"$tmp/err")" = 1 ] || complain "qdq $*: more than one line: $(head -c 500 "$tmp/err")"
        grep -q '^qdq: ' "$tmp/err" || complain "qdq $*: the line does not start with \"qdq: \""
    fi
}

has() { grep -qF -- "$1" "$tmp/out" || complain "no \"$1\" in: $(head -c 900 "$tmp/out")"; }

# ---- usage ----
expect 0 "--format text|json" explain --help
expect 2 "no model or case is given" explain
expect 2 "--format is text or json, not xml" explain a.onnx --format=xml
expect 2 "two files: b.onnx" explain a.onnx b.onnx
expect 2 "unknown option --fast" explain a.onnx --fast
expect 2 "--dim N is not NAME=SIZE" explain a.onnx --dim N
expect 2 "--shape 0:1xx2 is not" explain a.json --shape=0:1xx2
expect 2 "--shape needs a value" explain a.json --shape
expect 2 "--words takes no file" explain a.onnx --words
expect 1 "No such file" explain "$tmp/none.onnx"
expect 1 "No such file" explain "$tmp/none.json"
expect 1 "a case has no dimension \"N\"" explain "$cases/pattern_matmul_u8s8u8.json" --dim N=2
printf '{"graph": [' >"$tmp/cut.json"
expect 1 "cut.json" explain "$tmp/cut.json"
expect 0 "-o FILE" draw --help
expect 2 "no model or case is given" draw
expect 2 "no output is given" draw a.onnx
expect 2 "-o needs a value" draw a.onnx -o
expect 2 "does not end in .dot" draw a.onnx -o x.jpg

# ---- a fused case, a residual, a Dequantize in two partitions ----
expect 0 "1 partitions: 1 fused, 0 alone" explain "$cases/pattern_matmul_u8s8u8_bias_relu.json"
has "fused   "
has "MatMul 1 of 1"
has "x8_matmul_post_ops, fused by recipe matmul: op"
has "constant  s8"
has "    steps     "
expect 0 "2 partitions: 2 fused, 0 alone" explain "$cases/pattern_shared_dequantize_u8s8u8.json"
has "Dequantize 3 of 3"
expect 0 " 3x16 " explain "$cases/pattern_shared_dequantize_u8s8u8.json" --shape 0:3x16
expect 0 "policy: every op was to be kept on its own (x8_conv_post_ops, 6 ops matched)" explain "$cases/pattern_conv_u8s8u8_zp.json" --single
has "Convolution 0 of 1"
has "Convolution 1: policy 1"
has "Quantize 1: policy 1"
expect 0 "reference" explain "$cases/pattern_conv_u8s8u8_zp.json" --reference
# control characters of a name do not break the line
expect 0 'café "quoted" \ ? line' explain "$cases/model_unknown_shapes_f32.json"

# ---- a model ----
expect 0 "fused   Convolution 1 of 1" explain "$cases/onnx/tiny.onnx" --dim N=3
has "3x2x5x5"
for model in "$cases"/onnx/ops_*.onnx; do
    expect 0 "partitions" explain "$model"
done
for model in "$cases"/onnx/bad_*.onnx; do
    expect 1 "$model" explain "$model"
done

# ---- JSON is JSON, for all cases, with names of any kind ----
if command -v python3 >/dev/null; then
    cat >"$tmp/check.py" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
words = set(l.split()[0] for l in open(sys.argv[2]))
ops, parts = d["ops"], d["parts"]
seen = set()
for p in parts:
    assert p["ops"] and p["root"] in p["ops"], p
    assert all(0 <= i < len(ops) for i in p["ops"])
    seen.update(p["ops"])
    assert d["compile_error"] or p["how"] in ("folded", "view") or p["steps"] or p["how"] == "fused", p
for i, o in enumerate(ops):
    assert (i in seen) == (o["part"] is not None), o
    assert o["reasons"] or o["how"] in ("fused", "folded"), ("no reason", o)
    assert not (o["reasons"] and o["how"] == "fused"), o
    for t in o["inputs"] + o["outputs"]:
        assert t is None or t["dtype"] != "undef", t
for x in ops + parts:
    for r in x["reasons"]:
        assert r["word"] in words and r["text"].startswith(r["word"] + ": "), r
        assert "guard" not in r or r["guard"] in words, r
        assert r["op"] is None or r["op"] < len(ops)
for k in d["kinds"]:
    assert k["n"] == k["fused"] + k["alone"] + k["view"] + k["folded"], k
assert sum(k["n"] for k in d["kinds"]) == len(ops)
PY
    "$qdq" explain --words >"$tmp/words"
    for file in "$cases"/*.json "$cases"/onnx/ops_*.onnx "$cases"/onnx/tiny.onnx; do
        expect 0 "\"parts\": [" explain "$file" --format=json
        python3 "$tmp/check.py" "$tmp/out" "$tmp/words" 2>"$tmp/why" || complain "$file: $(tail -1 "$tmp/why")"
    done
else
    echo "no python3: the JSON is not parsed"
fi

# ---- drawing ----
expect 0 "" draw "$cases/pattern_shared_dequantize_u8s8u8.json" -o "$tmp/two.dot"
cp "$tmp/two.dot" "$tmp/out"
has "subgraph cluster_1"
has "u8 6x16"
has "p1_o"
has "Dequantize"
[ "$(grep -c 'label="output' "$tmp/two.dot")" = 2 ] || complain "two.dot does not have two outputs"
expect 0 "" draw "$cases/model_unknown_shapes_f32.json" --output="$tmp/odd name.dot"
expect 1 "cannot be written" draw "$cases/pattern_matmul_u8s8u8.json" -o "$tmp/none/x.dot"
expect 1 "cannot be written" draw "$cases/pattern_matmul_u8s8u8.json" -o "$tmp/none/x.svg"
n=$((n + 1))
PATH=/nowhere "$qdq" draw "$cases/pattern_matmul_u8s8u8.json" -o "$tmp/x.svg" 2>"$tmp/err"
[ $? = 1 ] || complain "draw without Graphviz: exit code is not 1"
[ ! -e "$tmp/x.svg" ] || complain "draw without Graphviz leaves a file"
grep -q 'install Graphviz' "$tmp/err" || complain "draw without Graphviz: $(cat "$tmp/err")"
# a program that fails is told in one line
mkdir "$tmp/bin" && printf '#!/bin/sh\nexit 3\n' >"$tmp/bin/dot" && chmod +x "$tmp/bin/dot"
n=$((n + 1))
PATH=$tmp/bin:$PATH "$qdq" draw "$cases/pattern_matmul_u8s8u8.json" -o "$tmp/x.svg" 2>"$tmp/err"
[ $? = 1 ] && grep -q 'failed with exit code 3' "$tmp/err" || complain "a failing dot: $(cat "$tmp/err")"
if command -v dot >/dev/null; then
    for file in pattern_shared_dequantize_u8s8u8 model_unknown_shapes_f32 model_three_convs_u8; do
        expect 0 "" draw "$cases/$file.json" -o "$tmp/it's.svg"
        grep -q '</svg>' "$tmp/it's.svg" || complain "$file: no picture"
        rm -f "$tmp/it's.svg"
    done
else
    echo "no Graphviz: nothing is rendered"
fi

# ---- pages printed by the program ----
expect 0 "## conv" patterns --markdown
cmp -s "$tmp/out" "$source/doc/patterns.md" || complain "doc/patterns.md is not the output of: qdq patterns --markdown"
expect 0 "| \`kind\` |" explain --words --markdown
sed -n '/^| match | |$/,$p' "$source/doc/explain.md" >"$tmp/page"
cmp -s "$tmp/out" "$tmp/page" || complain "the vocabulary in doc/explain.md is not the output of: qdq explain --words --markdown"

# ---- real models: a conv net is fused but for its ends ----
for model in "$shared"/models/*/model.onnx; do
    [ -n "$shared" ] && [ -f "$model" ] || continue
    case $model in *ppocr*) set -- --shape x:1x3x48x192 ;; *) set -- ;; esac
    expect 0 "partitions, in the order" explain "$model" "$@"
    case $model in
    *resnet50*) has "Convolution 53 of 53, Add 16 of 16" ;;
    *mobilenet*) has "Convolution 15 of 15, Add 3 of 3" ;;
    *squeezenet*) has "Convolution 26 of 26, Concat 8 of 8" ;;
    esac
done

echo "$n runs of the program, $bad wrong"
[ "$bad" = 0 ] && [ "$n" -gt 50 ]
