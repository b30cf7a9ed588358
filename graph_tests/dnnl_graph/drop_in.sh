#!/bin/sh
# A program of oneDNN's prints the same on libdnnl alone, linked with the library ahead of libdnnl, and with it preloaded; in the
# last two cases it is the library that computes. usage: drop_in.sh PROGRAM_ALONE PROGRAM_LINKED LIBRARY
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$1" >alone || { cat alone; echo "on libdnnl alone: failed"; exit 1; }
"$2" >linked || { cat linked; echo "linked: failed"; exit 1; }
LD_PRELOAD="$3" "$1" >preloaded || { cat preloaded; echo "preloaded: failed"; exit 1; }
[ -s alone ] || { echo "it prints nothing"; exit 1; }
diff alone linked || { echo "linked: not what libdnnl alone prints"; exit 1; }
diff alone preloaded || { echo "preloaded: not what libdnnl alone prints"; exit 1; }

export ONEDNN_VERBOSE=profile_exec
"$1" | grep -q '^onednn_verbose,v1,graph,exec,.*,dnnl_backend,' || { echo "alone: libdnnl ran nothing"; exit 1; }
for how in linked preloaded; do
    if [ "$how" = linked ]; then "$2" >lines; else LD_PRELOAD="$3" "$1" >lines; fi
    grep -q '^onednn_verbose,v1,graph,exec,.*,qdq_backend,' lines || { echo "$how: the library ran nothing"; exit 1; }
    if grep -q ',dnnl_backend,' lines; then echo "$how: libdnnl ran a partition"; exit 1; fi
done
echo "$(wc -l <alone) lines, three times the same"
