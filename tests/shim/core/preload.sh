#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The preloaded library in real programs: preload.sh LIBHEADRACE FAKE_HEADRACED
set -u
lib=$(realpath "$1") daemon=$(realpath "$2")
dir=$(mktemp -d /tmp/shim_preload.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
echo hello >a
failed=0

# traced NAME COMMAND...: runs it under the shim and a daemon; what the daemon saw is in ./NAME
traced() {
	local name=$1
	shift
	mkfifo "$name.in"
	"$daemon" "$dir/sock" --records <"$name.in" >"$name" 2>"$name.err" &
	exec 9>"$name.in"
	until grep -q ready "$name" 2>/dev/null; do sleep 0.01; done
	HEADRACE_ON_FULL=wait:60000 HEADRACE_SOCKET=$dir/sock LD_PRELOAD=$lib timeout 300 "$@" 9>&- >"$name.out" 2>&1
	echo $? >"$name.rc"
	exec 9>&-
	wait
}

expect() { # NAME FILE PATTERN COUNT
	local n
	n=$(grep -cE -- "$3" "$2")
	if [ "$n" != "$4" ]; then
		echo "$1: $n lines of '$3', expected $4"
		cat "$2"
		failed=1
	fi
}

traced cat cat a
expect cat cat.out '^hello$' 1
expect cat cat ' open ret [0-9]+ .*/a$' 1
expect cat cat ' close ret 0 .*/a$' 1
expect cat cat 'torn 0 bad 0' 1

# No descriptor of ours is left, in a shell and in its child.
# shellcheck disable=SC2016 # expanded by the inner shell
traced fds bash -c 'echo /proc/$$/fd/*; read -r x <a; echo /proc/$$/fd/*'
[ "$(sort -u fds.out | wc -l)" = 1 ] || { echo "fds: a descriptor is left"; cat fds.out; failed=1; }
expect fds fds ' read ret 6 .*/a$' 1

# Children: forked, vforked and exec'ed ones, each with its own operations.
traced children bash -c '(read -r x <a); cat a; cat a'
expect children children.out '^hello$' 2
expect children children ' open ret [0-9]+ .*/a$' 3

traced off env HEADRACE=off cat a
expect off off.out '^hello$' 1
expect off off ' open ' 0

traced excluded env "HEADRACE_EXCLUDE=$dir/a" cat a
expect excluded excluded ' open ' 0

# Copies of which one half is excluded, or a pipe; operations on no file.
cat >copies.py <<-'EOF'
	import ctypes, os
	a, b = os.open("a", os.O_RDONLY), os.open("b", os.O_RDWR | os.O_CREAT)
	hidden = os.open("hidden", os.O_RDWR | os.O_CREAT)
	r, w = os.pipe()
	os.copy_file_range(a, b, 3, 0, 0)
	os.copy_file_range(a, hidden, 4, 0, 0)
	os.copy_file_range(hidden, b, 3, 0, 0)
	os.sendfile(b, hidden, 0, 4)
	os.sendfile(hidden, hidden, 0, 1)
	os.splice(a, w, 2, 0)
	os.splice(r, b, 2)
	os.sync()
	ctypes.CDLL(None).fflush(None)
EOF
traced copies env "HEADRACE_EXCLUDE=$dir/hidden,*.py" /usr/bin/python3 -S -E copies.py
expect copies copies ' copy_file_range ret 3 fd [0-9]+ .*/a to fd [0-9]+ .*/b$' 1
expect copies copies ' copy_file_range ret 4 fd [0-9]+ .*/a to fd -1 [?]$' 1
expect copies copies ' copy_file_range ret 3 fd -1 .* [?] to fd [0-9]+ .*/b$' 1
expect copies copies ' sendfile(64)? ret ' 1
expect copies copies ' sendfile(64)? ret 4 fd -1 .* [?] to fd [0-9]+ .*/b$' 1
expect copies copies ' splice ret 2 fd [0-9]+ .*/a to fd -1 [?]$' 1
expect copies copies ' splice ret 2 fd -1 .* [?] to fd [0-9]+ .*/b$' 1
expect copies copies ' sync ret 0 fd -1 flags 0 bits 0 [?]$' 1
expect copies copies ' fflush ret 0 fd -1 flags 0 bits 0 [?]$' 1

# Without a daemon everything works, and nothing waits: a wait would last a minute.
start=$SECONDS
[ "$(HEADRACE_ON_FULL=wait:60000 HEADRACE_SOCKET=/nonexistent LD_PRELOAD=$lib cat a)" = hello ] || failed=1
[ $((SECONDS - start)) -lt 60 ] || { echo "absent daemon: slow"; failed=1; }

if command -v musl-gcc >/dev/null; then
	cat >m.c <<-'EOF'
		#include <fcntl.h>
		#include <unistd.h>
		int main(void)
		{
			char b[9];
			int fd = open("a", O_RDONLY);
			return read(fd, b, 9) == 6 && close(fd) == 0 ? 0 : 1;
		}
	EOF
	musl-gcc -O1 -o m m.c && traced musl ./m
	expect musl musl.rc '^0$' 1
	expect musl musl ' read ret 6 .*/a$' 1
fi
exit $failed
