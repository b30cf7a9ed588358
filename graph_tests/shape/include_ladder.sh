#!/bin/sh
# Who may include whom. usage: include_ladder.sh SOURCE_DIR
#
# Reads every #include of the library's rooms and checks it against the tables below. A quoted include must exist, and
# must lie in the includer's own room, in a room (or single file) that its row allows, or be the public header. An
# angled include must be a C or POSIX header, or an outside package in the rooms that own that package.
set -eu
cd "$1"
export LC_ALL=C

# The tables: "ROOM: what it may include". A word is a room, or one file; <family> means kernels/X/X.h for any X.
# Each kernel family is a room of its own.
ladder='
base:
ir:        base
ref:       ir base
runtime:   base
onednn:    base backend/runtime/plan.h
kernels:   kernels/isa kernels/simd
native:    base runtime backend/onednn/onednn.h backend/onednn/prim.h <family> kernels/isa
lower:     ir ref base runtime onednn backend/native/native.h <family> kernels/isa
patterns:  ir base backend/lower/recipe.h
api:       base ir ref runtime onednn lower patterns <family> kernels/isa
frontends: base
dnnl_graph:
cli:       base
'
packages='
dnnl.h:                 onednn
dnnl_types.h:           onednn
dnnl_version.h:         onednn
oneapi/dnnl/dnnl.h:     dnnl_graph
oneapi/dnnl/dnnl_graph.h: dnnl_graph
oneapi/dnnl/dnnl_graph_sycl.h: dnnl_graph
jansson.h:              frontends cli
protobuf-c/protobuf-c.h: frontends
onnx.pb-c.h:            frontends
xxhash.h:               base runtime onednn lower dnnl_graph
cpuinfo.h:              kernels/isa
immintrin.h:            kernels
arm_neon.h:             kernels
omp.h:                  base runtime kernels ref lower api dnnl_graph
'
c_headers='assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
cpuid dirent dlfcn fcntl link pthread sched spawn strings unistd sys/mman sys/stat sys/time sys/types sys/wait sys/auxv'

find backend patterns kernels \( -name '*.c' -o -name '*.h' -o -name '*.def' \) 2>/dev/null | sort | xargs -r \
    awk -v ladder="$ladder" -v packages="$packages" -v c_headers="$c_headers" '
function room_of(path,    part) {
    split(path, part, "/")
    if (path ~ /^backend\/include\//) return "public"
    if (path ~ /^backend\/frontends\/dnnl_graph\//) return "dnnl_graph" # a library of its own, on the public header
    if (part[1] == "backend") return part[2]
    if (part[1] == "kernels") return "kernels/" part[2]
    return part[1]
}
function exists(path,    line, ok) {
    if (path in known) return known[path]
    ok = (getline line < path) >= 0
    close(path)
    return known[path] = ok
}
function tidy(path) { # a/b/../c -> a/c
    while (match(path, /[^\/.]+\/\.\.\//)) path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
    gsub(/\/\.\//, "/", path)
    return path
}
function resolve(name, from,    dir, i, n, root) {
    dir = from
    sub(/[^\/]*$/, "", dir)
    n = split(dir " backend/include/ backend/ ./", root, " ")
    for (i = 1; i <= n; i++)
        if (exists(tidy(root[i] name))) {
            name = tidy(root[i] name)
            sub(/^\.\//, "", name)
            return name
        }
    return ""
}
function is_family(path,    part) {
    return split(path, part, "/") == 3 && part[1] == "kernels" && part[3] == part[2] ".h"
}
function allowed(row, target, path,    i, n, word) {
    n = split(row, word, " ")
    for (i = 1; i <= n; i++)
        if (word[i] == target || word[i] == path || (word[i] == "<family>" && is_family(path))) return 1
    return 0
}
function complain(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    bad++
}
function read_table(text, table,    i, n, line, at) {
    n = split(text, line, "\n")
    for (i = 1; i <= n; i++)
        if ((at = index(line[i], ":")) > 0) table[substr(line[i], 1, at - 1)] = substr(line[i], at + 1)
}
BEGIN {
    read_table(ladder, may)
    read_table(packages, owners)
    n = split(c_headers, word, /[ \n]+/)
    for (i = 1; i <= n; i++) standard[word[i] ".h"] = 1
}
FNR == 1 {
    room = room_of(FILENAME)
    row = room ~ /^kernels\// ? "kernels" : room
    files++
    if (room != "public" && !(row in may)) complain("no row for the room " room)
}
/^[ \t]*#[ \t]*include/ {
    includes++
    if (match($0, /"[^"]+"/)) {
        name = substr($0, RSTART + 1, RLENGTH - 2)
        if (name in owners) {
            if (!allowed(owners[name], room) && !allowed(owners[name], row)) complain(room " may not include " name)
            next
        }
        path = resolve(name, FILENAME)
        if (path == "") { complain("\"" name "\" is not in the tree"); next }
        target = room_of(path)
        if (target == room || target == "public") next
        if (!allowed(may[row], target, path)) complain(room " may not include " path " (may:" may[row] ")")
    } else if (match($0, /<[^>]+>/)) {
        name = substr($0, RSTART + 1, RLENGTH - 2)
        if (name in standard || name == "qdq/qdq.h") next
        if (!(name in owners)) complain("<" name "> is in no table of this test")
        else if (!allowed(owners[name], room) && !allowed(owners[name], row)) complain(room " may not include <" name ">")
    } else if (room !~ /^kernels\//) complain("an include that cannot be read: " $0)
}
END {
    printf "%d includes of %d files, %d wrong\n", includes, files, bad
    exit bad > 0 || files == 0
}'
