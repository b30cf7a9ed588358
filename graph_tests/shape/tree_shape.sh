#!/bin/sh
# The shape of the tree. usage: tree_shape.sh SOURCE_DIR
set -eu
cd "$1"
bad=0
complain() { echo "$*"; bad=1; }

# Top-level folders are fixed; tool files may lie beside them.
for folder in */; do
    case ${folder%/} in
    backend | patterns | kernels | graph_tests | doc) ;;
    build* | out) ;; # not in the tree
    *) complain "top-level folder $folder is not one of backend patterns kernels graph_tests doc" ;;
    esac
done

sources=$(find backend patterns kernels graph_tests doc -name '*.[ch]' -o -name '*.cc' -o -name '*.def' -o -name '*.cpp' \
    -o -name '*.cxx' -o -name '*.hpp' | sort)
[ -n "$sources" ] || complain "no sources found"

# A file name says where in the tree it is, in any log.
twice=$(printf '%s\n' "$sources" | sed 's,.*/,,' | sort | uniq -d)
for name in $twice; do
    complain "file name used twice: $(printf '%s\n' "$sources" | grep "/$name\$" | tr '\n' ' ')"
done

# C++ is for the tests, and for an example of oneDNN's C++ interface.
for file in $(printf '%s\n' "$sources" | grep -E '\.(cc|cpp|cxx|hpp)$' |
    grep -v -e '^graph_tests/.*\.cc$' -e '^doc/examples/dnnl_graph/.*\.cpp$'); do
    complain "C++ outside of the tests: $file"
done

# Long files: a warning from 800 lines, an error from 1000.
for file in $sources; do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt 1000 ]; then
        complain "$file has $lines lines: split it"
    elif [ "$lines" -gt 800 ]; then
        echo "warning: $file has $lines lines (aim for 800 at most)"
    fi
done

# A host may have set a locale whose decimal point is a comma: base/number.h reads numbers.
for line in $(grep -nEo '\<(strto[dfl]d?|atof|[fs]?scanf)\(' -r backend patterns kernels --include='*.[ch]' |
    grep -v -e '^backend/cli/' -e ':strtol($' | tr ' ' '_'); do
    complain "depends on the locale: $line"
done

echo "$(printf '%s\n' "$sources" | wc -l) files"
exit $bad
