#!/bin/sh
# Headers compile alone. usage: headers_alone.sh SOURCE_DIR CC CXX GENERATED_DIR
# The public one as C17 and as C++17, with nothing but its own include directory; each header of a room as C17.
set -eu
cd "$1"
cc=$2
cxx=$3
generated=$4 # of protoc-c
bad=0

printf '#include <qdq/qdq.h>\n' | "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I backend/include -x c - ||
    { echo "qdq/qdq.h does not compile alone as C17"; bad=1; }
printf '#include <qdq/qdq.h>\n' | "$cxx" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I backend/include -x c++ - ||
    { echo "qdq/qdq.h does not compile alone as C++17"; bad=1; }

# The SIMD helpers, and the bodies that several levels share, exist only under the ISA flags of the kernel that includes them.
n=2
for header in $(find backend patterns kernels -name '*.h' ! -path 'backend/include/*' ! -path 'kernels/simd/*' ! -name '*_body.h' ! -name '*_loops.h' | sort); do
    printf '#include "%s"\n' "$header" | "$cc" -std=c17 -D_DEFAULT_SOURCE -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
        -I . -I backend -I backend/include -isystem "$generated" -x c - || { echo "$header does not compile alone"; bad=1; }
    n=$((n + 1))
done
echo "$n compilations"
exit $bad
