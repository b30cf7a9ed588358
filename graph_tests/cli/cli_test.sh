#!/bin/sh
# The program qdq: what it prints, and how it refuses. usage: cli_test.sh PROGRAM CASES_DIR
#
# A refusal is exit code 1 and exactly one line on stderr that starts with "qdq: "; wrong usage is exit code 2.
set -u
qdq=$1
cases=$2
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
    timeout 120 "$qdq" "$@" >"$tmp/out" 2>"$tmp/err"
    found=$?
    where="$tmp/err"
    [ "$code" = 0 ] && where="$tmp/out"
    [ "$found" = "$code" ] || complain "qdq $*: exit code $found, expected $code: $(head -c 300 "$tmp/err")"
    grep -qF -- "$text" "$where" || complain "qdq $*: no \"$text\" in: $(head -c 300 "$where")"
    if [ "$code" = 1 ]; then
        [ "$(wc -l <"$tmp/err")" = 1 ] || complain "qdq $*: more than one line: $(head -c 500 "$tmp/err")"
        grep -q '^qdq: ' "$tmp/err" || complain "qdq $*: the line does not start with \"qdq: \""
    fi
}

# ---- help, lists, usage ----
expect 0 "usage: qdq COMMAND" --help
expect 0 "--output-dir" run --help
expect 0 "libqdq " version
expect 0 "libqdq " --version
expect 0 "QuantizeLinear" ops
expect 0 "| \`Convolution\` | oneDNN Graph |" ops --markdown
expect 0 "pages in $tmp" ops --pages "$tmp"
grep -qF "| \`scales\` | f32[] | required |" "$tmp/Quantize.md" || complain "no scales in the page of Quantize"
expect 1 "nowhere/README.md: No such file" ops --pages "$tmp/nowhere"
expect 2 "--pages needs a value" ops --pages
expect 0 "matmul" patterns
expect 0 "### 1. " patterns --markdown
expect 2 "usage: qdq COMMAND"
expect 2 "there is no command \"jump\"" jump
expect 2 "unexpected argument" ops --sideways
expect 2 "no model is given" run
expect 2 "unknown option --fast" run --fast m.onnx
expect 2 "two models" run a.onnx b.onnx
expect 2 "--repeat needs a value" run m.onnx --repeat
expect 2 "--repeat none is not a number" run m.onnx --repeat none
expect 2 "--threads 0 is not a number" run m.onnx --threads=0
expect 2 "--dim N is not NAME=SIZE" run m.onnx --dim N
expect 2 "--dim N=-1 is not NAME=SIZE" run m.onnx --dim N=-1
expect 2 "--shape x is not" run m.onnx --shape x
expect 2 "--shape x:1xx3 is not" run m.onnx --shape x:1xx3

# ---- running ----
tiny=$cases/tiny.onnx
expect 0 "random values" run "$tiny"
expect 0 "output y  f32 3x4x5x5" run "$tiny" --dim N=3
expect 0 "output y  f32 3x4x5x5" run "$tiny" --shape x:3x2x5x5
expect 0 "partitions " run "$tiny" --repeat 3 --threads 1 --verbose
expect 0 "of 3 runs after one to warm up" run "$tiny" --repeat=3
expect 0 "0 fused with 0 ops" run "$tiny" --single
# a file binds the symbolic dimension; its name may be given; Fortran order is read too; all three ways agree
expect 0 "output y  f32 2x4x5x5" run "$tiny" --input "$cases/tiny_x.npy" --output-dir "$tmp/a"
expect 0 "output y  f32 2x4x5x5" run "$tiny" --input "x=$cases/tiny_x.npy" --output-dir "$tmp/b/"
expect 0 "output y  f32 2x4x5x5" run "$tiny" --input "$cases/tiny_x_fortran.npy" --output-dir "$tmp/a_fortran" --reference
cmp -s "$tmp/a/output_0.npy" "$tmp/b/output_0.npy" || complain "an input by name gives another result"
cmp -s "$tmp/a/output_0.npy" "$tmp/a_fortran/output_0.npy" || complain "the reference, and Fortran order, give another result"
# what the program wrote, it reads: types and shapes
expect 0 "output y  f64 2 " run "$cases/double.onnx" --output-dir "$tmp/d"
expect 0 "f64 2  $tmp/d/output_0.npy" run "$cases/double.onnx" --input "$tmp/d/output_0.npy"
expect 0 "output Shape_23  s64 3 " run "$cases/ops_shape_13.onnx" --output-dir "$tmp/s"

# ---- refusals: models ----
for model in "$cases"/bad_*.onnx; do
    expect 1 "$model" run "$model"
done
expect 1 "No such file" run "$tmp/nothing.onnx"
expect 1 "is a directory" run "$cases"
printf 'this is no model at all' >"$tmp/garbage.onnx"
expect 1 "not an ONNX model" run "$tmp/garbage.onnx"
: >"$tmp/empty.onnx"
expect 1 "$tmp/empty.onnx" run "$tmp/empty.onnx"
size=$(wc -c <"$tiny")
for part in 10 40 70 95; do
    head -c $((size * part / 100)) "$tiny" >"$tmp/cut.onnx"
    expect 1 "$tmp/cut.onnx" run "$tmp/cut.onnx"
done

# ---- refusals: npy files ----
expect 1 "tiny_x_f64.npy: data type f64, input \"x\" expects f32" run "$tiny" --input "$cases/tiny_x_f64.npy"
expect 1 "input \"x\": dimension 2 is 4, the model expects 5" run "$tiny" --input "$cases/tiny_x_wrong.npy"
expect 1 "no input called \"z\"" run "$tiny" --input "z=$cases/tiny_x.npy"
expect 1 "2 inputs are given, the model has 1" run "$tiny" --input "$cases/tiny_x.npy" --input "$cases/tiny_x.npy"
expect 1 "No such file" run "$tiny" --input "$tmp/nothing.npy"
expect 1 "is a directory" run "$tiny" --input "$tmp"
expect 1 "wrong magic" run "$tiny" --input "$tiny"
for bytes in 0 5 9 20 100 128 400; do
    head -c $bytes "$cases/tiny_x.npy" >"$tmp/cut.npy"
    expect 1 "$tmp/cut.npy" run "$tiny" --input "$tmp/cut.npy"
done
# npy HEADER DATA: version 1, the header as given
npy() {
    length=$(printf '%s' "$1" | wc -c)
    printf '\223NUMPY\001\000' >"$tmp/made.npy"
    printf "$(printf '\\%03o\\%03o' $((length % 256)) $((length / 256)))" >>"$tmp/made.npy"
    printf '%s%s' "$1" "$2" >>"$tmp/made.npy"
}
npy "{'descr': '>f4', 'fortran_order': False, 'shape': (1, 2, 5, 5), }" ""
expect 1 "data type '>f4' is not supported" run "$tiny" --input "$tmp/made.npy"
npy "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }" "12345678"
expect 1 "data type '<c8' is not supported" run "$tiny" --input "$tmp/made.npy"
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }" ""
expect 1 "no legal shape" run "$tiny" --input "$tmp/made.npy"
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2), }" ""
expect 1 "no legal shape" run "$tiny" --input "$tmp/made.npy"
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904), }" ""
expect 1 "overflows" run "$tiny" --input "$tmp/made.npy"
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 2, 5, 5), }" "abcd"
expect 1 "found 4 bytes of data" run "$tiny" --input "$tmp/made.npy"
npy "{'descr': '<f4', 'shape': (1,), }" "abcd"
expect 1 "lacks descr or fortran_order" run "$tiny" --input "$tmp/made.npy"
npy "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }" "abcd"
expect 1 "fortran_order is not True or False" run "$tiny" --input "$tmp/made.npy"
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 5" ""
expect 1 "no legal shape" run "$tiny" --input "$tmp/made.npy"

# ---- refusals: dims that do not fit, outputs that cannot be written ----
expect 1 "overflow" run "$tiny" --dim N=9000000000000000000
expect 1 "cannot be made" run "$tiny" --output-dir "$tiny/sub"
: >"$tmp/file"
expect 1 "$tmp/file" run "$tiny" --output-dir "$tmp/file"
if [ -w /dev/full ]; then
    n=$((n + 1))
    "$qdq" ops >/dev/full 2>"$tmp/err"
    [ $? = 1 ] || complain "a full standard output is not noticed"
fi

echo "$n runs of the program, $bad wrong"
[ "$bad" = 0 ] && [ "$n" -gt 50 ]
