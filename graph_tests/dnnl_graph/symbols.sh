#!/bin/sh
# The library exports every graph function of oneDNN's header and of libdnnl, and nothing else.
# usage: symbols.sh LIBRARY INCLUDE_DIR LIBDNNL
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

functions() { # those that a library has
    nm -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' | sort -u
}
functions "$1" >"$work/ours"
functions "$3" | grep '^dnnl_graph_' >"$work/upstream"
cat "$2/oneapi/dnnl/dnnl_graph.h" "$2/oneapi/dnnl/dnnl_graph_sycl.h" | grep -v '^ *///' |
    grep -o 'DNNL_API dnnl_graph_[a-z0-9_]*' | sed 's/DNNL_API //' | sort -u >"$work/header"

bad=0
for of in header upstream; do
    [ -s "$work/$of" ] || { echo "$of: no functions found"; bad=1; }
    missing=$(comm -13 "$work/ours" "$work/$of")
    [ -z "$missing" ] || { echo "of $of, but missing:" $missing; bad=1; }
done
foreign=$(sort -u "$work/header" "$work/upstream" | comm -23 "$work/ours" -)
[ -z "$foreign" ] || { echo "exported, though none of oneDNN's:" $foreign; bad=1; }
echo "$(wc -l <"$work/ours") functions"
exit $bad
