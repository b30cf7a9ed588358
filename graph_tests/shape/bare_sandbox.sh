#!/bin/sh
# A machine that tells nothing of itself: without /proc, without /sys, without both. usage: bare_sandbox.sh TEST_PROGRAM
#
# Without /proc/cpuinfo the host has the level ref alone and the usual cache sizes; without /sys nothing changes. Nothing is
# ever printed on stderr. Skipped (77) where mount namespaces are not allowed.
set -u
program=$1
err=$(mktemp) || exit 1
trap 'rm -f "$err"' EXIT
bad=0
unshare -rm true 2>/dev/null || { echo "mount namespaces are not allowed"; exit 77; }

# run WHAT FILTER FOLDER...: the tests of FILTER where the folders are empty
run() {
    what=$1 filter=$2
    shift 2
    hidden=$(for folder; do printf 'mount -t tmpfs none %s && ' "$folder"; done)
    unshare -rm sh -c "$hidden exec \"\$0\" --gtest_brief=1 --gtest_filter=\"\$1\"" "$program" "$filter" 2>"$err" ||
        { echo "FAILED: $what"; bad=1; }
    [ ! -s "$err" ] || { echo "FAILED: $what: on stderr: $(head -c 300 "$err")"; bad=1; }
}
export QDQ_TEST_BARE=1
run "no /proc" "Isa.*" /proc
run "neither" "Isa.*" /proc /sys
unset QDQ_TEST_BARE
run "no /sys" "Isa.*" /sys
exit $bad
