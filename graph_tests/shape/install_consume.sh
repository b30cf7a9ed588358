#!/bin/sh
# Install, move the installed tree, and build a stranger's program against it in four ways.
# usage: install_consume.sh SOURCE_DIR BUILD_DIR CC
set -eu
consumer=$1/graph_tests/shape/consumer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$2" --prefix "$work/first" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/prefix" # an absolute path in the package would now point nowhere
pc=$(find "$work/prefix" -name qdq.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"

run() { # run NAME PROGRAM
    printf '%s: ' "$1"
    "$2"
}
with_cmake() { # with_cmake NAME OPTIONS...: a failure shows what CMake said
    name=$1
    shift
    { cmake -S "$consumer" -B "$work/$name" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" "$@" &&
        cmake --build "$work/$name"; } >"$work/log" 2>&1 || { echo "$name:"; cat "$work/log"; exit 1; }
    run "find_package, $name" "$work/$name/consumer"
}
cc=$3

with_cmake shared
# Who links the shared library need not have our dependencies' development files.
with_cmake shared_alone -DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON
with_cmake static -DSTATIC=ON
readelf -d "$work/static/consumer" | grep -q 'NEEDED.*libqdq' && { echo "static: linked the shared library"; exit 1; }

"$cc" -std=c17 "$consumer/consumer.c" -o "$work/pc_shared" $(pkg-config --cflags --libs qdq)
run "pkg-config, shared" "$work/pc_shared"
"$cc" -std=c17 "$consumer/consumer.c" -o "$work/pc_static" $(pkg-config --static --cflags --libs qdq |
    sed 's/-lqdq/-l:libqdq.a/g')
run "pkg-config, static" "$work/pc_static"
readelf -d "$work/pc_static" | grep -q 'NEEDED.*libqdq' && { echo "static: linked the shared library"; exit 1; }
[ -x "$work/prefix/bin/qdq" ] || { echo "the program qdq was not installed"; exit 1; }

# oneDNN's interface, from the moved tree: a program that knows of oneDNN alone.
if [ -e "$lib/libqdq_dnnl_graph.so" ]; then
    unset LD_LIBRARY_PATH # libqdq lies beside it, and is found there
    "$cc" -std=c17 "$1/doc/examples/dnnl_graph/dnnl_graph_matmul.c" -o "$work/dnnl_graph" -L"$lib" -Wl,-rpath,"$lib" \
        -Wl,--no-as-needed -lqdq_dnnl_graph -ldnnl -lm
    run "dnnl_graph, linked" "$work/dnnl_graph"
    ONEDNN_VERBOSE=1 "$work/dnnl_graph" | grep -q qdq_backend || { echo "dnnl_graph: libdnnl computed it"; exit 1; }
fi
