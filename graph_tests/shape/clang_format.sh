#!/bin/sh
# Every C and C++ file is formatted. usage: clang_format.sh SOURCE_DIR; exit code 77: skipped
# Other major versions format differently, so only one counts.
set -eu
cd "$1"
major=14
for tool in clang-format-$major clang-format ""; do
    if [ -z "$tool" ]; then
        echo "SKIPPED: no clang-format $major here"
        exit 77
    fi
    if "$tool" --version 2>/dev/null | grep -q "version $major\."; then
        break
    fi
done
unformatted=$(find backend patterns kernels graph_tests doc -name "*.[ch]" -o -name "*.cc" -o -name "*.cpp" | sort |
    xargs "$tool" --dry-run --Werror 2>&1 | sed -n "s/^\([^ :]*\):[0-9].*/\1/p" | sort -u)
if [ -n "$unformatted" ]; then
    echo "not formatted (make format mends it):" $unformatted
    exit 1
fi
