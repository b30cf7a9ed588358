#!/bin/sh
# The README's C program is the example that the tests run, and the files that pages mention exist. usage: readme.sh SOURCE_DIR
set -eu
cd "$1"
bad=0
program=$(awk '/^```/ { inside = /^```c$/; next } inside' README.md)
if [ "$program" != "$(cat doc/examples/quick_start.c)" ]; then
    echo "the program in README.md is not doc/examples/quick_start.c"
    bad=1
fi

# `words/with/slashes.ext` in backquotes, from the root or from a room of the backend; <family> and * stand for anything
mentioned=$(grep -oh '`[A-Za-z0-9_./<>*-]*/[A-Za-z0-9_./<>*-]*`' README.md doc/*.md | tr -d '\140' | sort -u)
[ -n "$mentioned" ] || { echo "no files are mentioned: is this test still looking at the right thing?"; exit 1; }
for word in $mentioned; do
    glob=$(printf '%s' "$word" | sed 's/<[a-z]*>/*/g')
    found=no
    for path in $glob backend/$glob; do
        [ -e "$path" ] && found=yes
    done
    case $word in build/*) found=yes ;; esac # made by the build
    [ $found = yes ] || { echo "mentioned, but not there: $word"; bad=1; }
done
exit $bad
