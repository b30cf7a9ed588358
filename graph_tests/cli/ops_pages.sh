#!/bin/sh
# The pages in doc/ops are what the op tables say now. usage: ops_pages.sh PROGRAM SOURCE_DIR
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$1" ops --pages "$tmp"
[ -s "$tmp/QuantizeLinear.md" ] || { echo "qdq wrote no pages"; exit 1; }
diff -r "$2/doc/ops" "$tmp" || { echo "doc/ops is stale: qdq ops --pages doc/ops, and remove pages of ops that are gone"; exit 1; }
