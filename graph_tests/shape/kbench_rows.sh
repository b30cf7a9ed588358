#!/bin/sh
# Every row of every kernel table can be measured: for each level of kernels/*/*.def that the machine has, qdq-kbench has a case.
# usage: kbench_rows.sh QDQ_KBENCH SOURCE_DIR
#
# `qdq-kbench --list` prints the kernels of a case (by the name of their .def, with the types where the table has rows for
# several), the level that was chosen under the cap, family and name. Rows of levels that the machine lacks are not looked for.
set -u
kbench=$1
root=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
"$kbench" --list >"$tmp/list" || { echo "FAILED: $kbench --list"; exit 1; }

# Levels: those of isa.def that a case has. A machine that has a level has a kernel on it.
cut -f2 "$tmp/list" | sort -u >"$tmp/levels"
# One kernel per line, with its level.
awk -F '\t' '{ n = split($1, kernel, ","); for (i = 1; i <= n; i++) print kernel[i] "\t" $2 }' "$tmp/list" | sort -u >"$tmp/have"

for def in "$root"/kernels/*/*.def; do
    name=$(basename "$def" .def)
    [ "$name" = isa ] || [ "$name" = cpu ] && continue
    # QK_NAME(level, types, …): a second argument in letters tells rows of one level apart.
    sed -n 's/^QK_[A-Z0-9_]*(\(.*\))$/\1/p' "$def" | tr -d ' ' | awk -F, -v name="$name" \
        '{ print ($2 ~ /^[a-z]/ ? name " " $2 : name) "\t" $1 }'
done | sort -u >"$tmp/rows"
[ "$(wc -l <"$tmp/rows")" -ge 40 ] || { echo "FAILED: only $(wc -l <"$tmp/rows") rows found in $root/kernels"; exit 1; }

awk -F '\t' -v levels="$tmp/levels" -v have="$tmp/have" '
    BEGIN { while ((getline l < levels) > 0) host[l]; while ((getline l < have) > 0) known[l] }
    !($2 in host) { next }
    { checked++ }
    !($0 in known) { print "FAILED: no case of qdq-kbench reaches the row " $1 ", " $2; bad = 1 }
    END { print checked " rows of kernels/*/*.def looked for"; exit bad || checked == 0 }' "$tmp/rows"
