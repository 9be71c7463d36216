#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Forks among threads, daemonisers, and children of a stopped daemon: life.sh LIBHEADRACE FAKE_HEADRACED LIFE
set -u
lib=$(realpath "$1") daemon=$(realpath "$2") life=$(realpath "$3")
dir=$(mktemp -d /tmp/shim_life.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
echo hello >a
failed=0

start() { # OPTIONS...: a daemon whose report goes to ./report
	rm -f in report said sock
	mkfifo in
	"$daemon" "$dir/sock" "$@" <in >report &
	pid=$!
	exec 9>in
	until grep -q ready report; do sleep 0.01; done
}

finish() {
	exec 9>&-
	wait "$pid"
}

traced() {
	HEADRACE_ON_FULL=wait:60000 HEADRACE_SOCKET=$dir/sock LD_PRELOAD=$lib timeout 300 "$life" "$@" 9>&-
}

expect() { # FILE LINE
	grep -qxF -- "$2" "$1" && return
	echo "no line '$2' in $1:"
	cat "$1"
	failed=1
}

# All its descriptors are its own, and what it does afterwards is recorded.
for how in close_range loop proc; do
	start
	traced daemon $how
	until grep -q own said 2>/dev/null; do sleep 0.01; done
	finish
	expect said "left 0"
	expect said "own 0 1 2 of 3"
	expect report "op read 5 lost 0"
	grep -q '^sessions [23] torn 0 bad 0$' report || { echo "$how:" && cat report; failed=1; }
done

n=1500
start --discard
traced storm $n
finish
expect said "preads $(awk '$2 == "pread" || $2 == "pread64" {print $3}' report) failed 0"
reads=$(awk '$1 == "op" && $2 == "read" {print $3}' report)
if [ "$reads" != $n ]; then
	echo "storm: $reads reads"
	failed=1
fi
grep -q 'torn 0 bad 0$' report || { cat report; failed=1; }

# No program of a chain waits for a stopped daemon, where each may wait a minute for room.
start
kill -STOP $pid
begin=$SECONDS
HEADRACE_ATTACH_FAILED=00000000000000000000 traced chain 20
took=$((SECONDS - begin))
kill -CONT $pid
finish
[ $took -lt 60 ] || { echo "chain: $took s"; failed=1; }
exit $failed
