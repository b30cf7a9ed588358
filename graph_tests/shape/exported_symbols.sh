#!/bin/sh
# The shared library exports what the public header declares, all of it and nothing else.
# usage: exported_symbols.sh LIBRARY HEADER
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$work/exported"
# A declaration starts with QDQ_API; the name is the first qdq_ word that an opening bracket follows.
sed -n '/^QDQ_API/{ :more; /;/!{ N; b more }; s/\n/ /g; p; }' "$2" |
    grep -o 'qdq_[a-z0-9_]*(' | tr -d '(' | sort -u >"$work/declared"

bad=0
foreign=$(grep -v '^qdq_' "$work/exported" || true)
[ -z "$foreign" ] || { echo "exported without the prefix:" $foreign; bad=1; }
undeclared=$(comm -23 "$work/exported" "$work/declared")
[ -z "$undeclared" ] || { echo "exported but not in the header:" $undeclared; bad=1; }
undefined=$(comm -13 "$work/exported" "$work/declared")
[ -z "$undefined" ] || { echo "in the header but not exported:" $undefined; bad=1; }
[ -s "$work/declared" ] || { echo "the header declares nothing"; bad=1; }
echo "$(wc -l <"$work/exported") symbols"
exit $bad
