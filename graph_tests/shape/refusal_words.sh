#!/bin/sh
# The vocabulary of refusals: every word that lowering gives is a row of why.def, every row is given somewhere, none is there
# twice. usage: refusal_words.sh SOURCE_DIR
set -eu
cd "$1"
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

sed -n 's/^WHY(\([a-z0-9_]*\), ".*")$/\1/p' backend/lower/why.def | sort >"$work/rows"
[ "$(grep -c '^WHY' backend/lower/why.def)" = "$(wc -l <"$work/rows")" ] || { echo "why.def: a row is not WHY(word, \"sentence\")"; bad=1; }
twice=$(uniq -d "$work/rows")
[ -z "$twice" ] || { echo "why.def: twice:" $twice; bad=1; }

# A word is the last argument of a call, or what a function that looks for a reason returns or sets.
for file in backend/lower/*.c backend/native/*.c; do
    tr '\n' ' ' <"$file" | grep -oE '(qdqi_refuse|note_refusal|qdqi_native_refuse)\([^;]*;' | grep -oE '"[a-z0-9_]+"( :|\))' || true
    grep -oE '(return|why = ) ?"[a-z0-9_]+"' "$file" || true
done | grep -oE '"[^"]*"' | tr -d '"' | grep -vx unknown | sort -u >"$work/given"
missing=$(comm -23 "$work/given" "$work/rows")
[ -z "$missing" ] || { echo "given as a reason, but no row of backend/lower/why.def:" $missing; bad=1; }
unused=$(comm -13 "$work/given" "$work/rows")
[ -z "$unused" ] || { echo "why.def: given nowhere:" $unused; bad=1; }
# A refusal that is logged only would be missing from explanations.
silent=$(grep -ln 'QDQI_LOG_REFUSE' backend/*/*.c patterns/*.c | grep -vx -e backend/lower/lower.c -e backend/base/log.c || true)
[ -z "$silent" ] || { echo "refusals that are logged and not noted, in" $silent; bad=1; }

echo "$(wc -l <"$work/rows") words"
[ "$(wc -l <"$work/rows")" -gt 50 ] || { echo "too few: is this test still looking at the right thing?"; bad=1; }
exit $bad
