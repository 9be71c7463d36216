#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_query_cli.sh HEADRACE MAKE_STORE QUERY_SERVER MAKE_CA COLLECTOR - `headrace query` of a collector: the same answers as of the store's folder,
# and what is said when there is none
#
# Ends with 77 (skipped) where there is no DuckDB.
set -u
headrace=$1
server=$3
make_ca=$4
collector=$5
tmp=$(mktemp -d)
trap 'exec 8>&-; rm -rf "$tmp" "$store"' EXIT
store=$("$2") || exit 1
failed=0

fail() {
	echo "FAIL: $*"
	failed=1
}

# begin [KEY=VALUE...]: a server at $socket; end: ends it
begin() {
	rm -f "$tmp/in" "$tmp/socket" "$tmp/ready"
	mkfifo "$tmp/in"
	"$server" "$store" "$socket" spill="$tmp/spill" "$@" <"$tmp/in" >"$tmp/ready" &
	server_pid=$!
	exec 8>"$tmp/in"
	until grep -q listening "$tmp/ready" 2>/dev/null; do sleep 0.05; done
}

end() {
	exec 8>&-
	wait "$server_pid" || fail "the server ended with $?"
}

mkdir "$tmp/spill"
socket=$tmp/socket
at=unix://$socket

"$headrace" query "$store" 'SELECT 1 AS n' >/dev/null 2>"$tmp/err"
[ $? = 69 ] && {
	echo "skipped: $(cat "$tmp/err")"
	exit 77
}

# Somebody who takes connections and says nothing: looked at when its 10 s are over.
"$collector" --store "$tmp/silent" --listen "unix://$tmp/silent.socket" 2>"$tmp/silent.log" &
silent_pid=$!
until grep -q listening "$tmp/silent.log"; do sleep 0.05; done
kill -STOP $silent_pid
"$headrace" query "unix://$tmp/silent.socket" jobs >"$tmp/silent.out" 2>"$tmp/silent.err" &
waiting_pid=$!

# ---- the same answer, the same notes, the same status -------------------------------------------------

# same ARGUMENT...: asks folder and collector. One thread: rows that sort alike come in any order else.
same() {
	"$headrace" query "$store" --threads 1 "$@" >"$tmp/folder.out" 2>"$tmp/folder.err"
	local folder=$?
	"$headrace" query "$at" --threads 1 "$@" >"$tmp/remote.out" 2>"$tmp/remote.err"
	local remote=$?
	[ $folder = $remote ] || fail "$*: exit status $remote, of the folder $folder: $(head -1 "$tmp/remote.err")"
	cmp -s "$tmp/folder.out" "$tmp/remote.out" || fail "$*: another answer: $(diff "$tmp/folder.out" "$tmp/remote.out" | head -5)"
	cmp -s "$tmp/folder.err" "$tmp/remote.err" || fail "$*: other notes: $(diff "$tmp/folder.err" "$tmp/remote.err" | head -5)"
}

# compare FORMAT: every named query and every table
compare() {
	local format=$1
	for name in $("$headrace" query --list | cut -d' ' -f1); do
		case $name in
		file) same --format "$format" file /data/train/img-001.jpg ;;
		*) same --format "$format" "$name" ;;
		esac
	done
	while read -r sql; do
		same --format "$format" "$sql"
	done <<-'SQL'
		SELECT * FROM events ORDER BY ALL
		SELECT * FROM hr_events() ORDER BY ALL
		SELECT * FROM rollups ORDER BY ALL
		SELECT * FROM file_records ORDER BY ALL
		SELECT * FROM processes ORDER BY ALL
		SELECT * FROM files ORDER BY ALL
		SELECT * FROM jobs ORDER BY ALL
		SELECT * FROM nodes ORDER BY ALL
		SELECT * FROM losses ORDER BY ALL
		SELECT * FROM labels ORDER BY ALL
		SELECT * FROM levels ORDER BY ALL
		DESCRIBE events
		SHOW TABLES
		SELECT range AS n, 'text ' || range AS t FROM range(100000) ORDER BY n
		SELECT nosuch FROM events
		SELEC 1
		DROP VIEW events
		SELECT * FROM read_text('/etc/passwd')
		SELECT 1; SELECT 2
		SELECT NULL AS n, '' AS t WHERE false
	SQL
}

begin
compare table
for format in json csv list; do
	same --format $format summary
	same --format $format 'SELECT * FROM processes ORDER BY ALL'
	same --format $format "SELECT NULL AS n, '' AS t WHERE false"
	same --format $format 'SELECT nosuch FROM events'
done
same --job 7 summary
same --raw --all-columns summary
script -qec "stty cols 60; TERM=xterm $headrace query $store --threads 1 workers" "$tmp/typescript" >"$tmp/folder.out"
script -qec "stty cols 60; TERM=xterm $headrace query $at --threads 1 workers" "$tmp/typescript" >"$tmp/remote.out"
# On a busy machine, the answer may take long enough for a progress line.
sed -i $'s/headrace: working[^\r\e]*\r*\e\\[K//g; s/^\r*//' "$tmp/folder.out" "$tmp/remote.out"
cmp -s "$tmp/folder.out" "$tmp/remote.out" || fail "another table on a terminal: $(diff "$tmp/folder.out" "$tmp/remote.out")"
grep -q '1mjob 7' "$tmp/remote.out" || fail "no sentence on a terminal: $(head -3 "$tmp/remote.out")"
same slow rank=77
same ops 3 4 5 6 7 8
same --format csv "$("$headrace" query --explain ops)" mount=/data
cd /data 2>/dev/null || cd /
same file data/train/img-001.jpg
cd "$tmp" || exit 1
same --format csv -o out.csv 'SELECT 7 AS n'
printf 'n\r\n7\r\n' | cmp -s - out.csv || fail "-o wrote $(cat out.csv)"
"$headrace" query "$store" --format parquet -o folder.parquet --threads 1 'SELECT * FROM files ORDER BY ALL' 2>/dev/null
"$headrace" query "$at" --format parquet -o remote.parquet --threads 1 'SELECT * FROM files ORDER BY ALL' 2>/dev/null ||
	fail "parquet"
cmp -s folder.parquet remote.parquet || fail "the Parquet files differ"
"$headrace" query "$at" -o bad.csv --format csv 'SELECT nosuch' 2>/dev/null && fail "-o of a query that fails: status 0"
[ -z "$(ls bad.csv* 2>/dev/null)" ] || fail "a failed query left a file"

# ---- what is refused, what ends early ------------------------------------------------------------------

# says STATUS PATTERN ARGUMENT...
says() {
	local wanted=$1 pattern=$2
	shift 2
	timeout 300 "$headrace" query "$@" >"$tmp/out" 2>"$tmp/err"
	local status=$?
	[ $status = "$wanted" ] || fail "$*: exit status $status, not $wanted"
	grep -q -- "$pattern" "$tmp/err" || fail "$*: does not say '$pattern' but $(head -3 "$tmp/err")"
}

endless='SELECT count(*) FROM range(100000000000000) t WHERE range % 7 = 8'
says 66 "no job 'nojob' in this collector's store; it contains: 7, 8" "$at" --job nojob summary
says 2 "cannot query a collector together" "$at" "$store" summary
says 2 "cannot query a collector together" "$store" "$at" summary
says 2 "no query 'nosuch'; named queries: " "$at" nosuch
says 2 "not an address of a collector" tcp://:x summary
says 69 "check that headrace-collector runs there" "unix://$tmp/nowhere" summary
says 69 "check that headrace-collector runs there" tcp://127.0.0.1:1 summary
says 2 "port 0 is not valid" tcp://127.0.0.1:0 summary
says 1 "reached its time limit of 1.00 s" "$at" --time 1s "$endless"
says 1 "working, 1 s" "$at" --time 2s --progress "$endless"
if command -v script >/dev/null; then
	script -qec "$headrace query $at --time 1500ms '$endless' >$tmp/out" "$tmp/typescript" >/dev/null
	grep -q $'working, 1 s\r*\r\e\\[K' "$tmp/typescript" || fail "progress on a terminal is not taken away"
fi

"$headrace" query "$at" 'SELECT * FROM range(3000000)' 2>"$tmp/err" | head -1 >/dev/null
[ "${PIPESTATUS[0]}" = 0 ] || fail "a reader that has seen enough"

"$headrace" query "$at" "$endless" >"$tmp/out" 2>"$tmp/err" &
pid=$!
sleep 0.7
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "Ctrl-C"
grep -q interrupted "$tmp/err" || fail "Ctrl-C says $(cat "$tmp/err")"
for _ in $(seq 50); do
	pgrep -P "$server_pid" >/dev/null || break
	sleep 0.1
done
pgrep -P "$server_pid" >/dev/null && fail "Ctrl-C leaves the query running on the server"

# Nobody reads the answer: the second one ends it.
mkfifo "$tmp/fifo"
exec 9<>"$tmp/fifo"
"$headrace" query "$at" --format csv -o "$tmp/fifo" 'SELECT * FROM range(100000000)' 2>"$tmp/err" &
pid=$!
for _ in $(seq 100); do # until the pipe is full
	grep -qs pipe_write /proc/$pid/task/*/wchan && break
	sleep 0.1
done
kill -INT $pid
sleep 0.5
kill -TERM $pid
wait $pid
[ $? = 143 ] || fail "a second Ctrl-C"
exec 9>&-

# The server goes in the middle.
"$headrace" query "$at" -o "$tmp/gone.csv" --format csv "$endless" 2>"$tmp/err" &
pid=$!
sleep 0.7
kill -KILL "$server_pid"
wait $pid
[ $? = 1 ] || fail "a server that goes"
grep -q "the answer is incomplete" "$tmp/err" || fail "a server that goes: $(cat "$tmp/err")"
[ -z "$(ls "$tmp"/gone.csv* 2>/dev/null)" ] || fail "a server that goes leaves half an answer"
wait "$server_pid" 2>/dev/null
exec 8>&-

# ---- a whole headrace-collector, over TCP; its store's folder may still be asked ------------------------

"$collector" --store "$store" --listen tcp://127.0.0.1:0 --query-spill "$tmp/spill" 2>"$tmp/collector.log" &
collector_pid=$!
until at=$(grep -o 'tcp://127.0.0.1:[0-9]*' "$tmp/collector.log"); do sleep 0.05; done
compare csv
says 1 "reached its time limit of 1.00 s" "$at" --time 1s "$endless"
kill "$collector_pid"
wait "$collector_pid" || fail "the collector ended with $?"

wait $waiting_pid
[ $? = 69 ] || fail "a silent collector"
grep -q "the other side does not answer as a collector; check that headrace-collector runs there" "$tmp/silent.err" ||
	fail "of a silent collector it says $(cat "$tmp/silent.err")"
kill -KILL $silent_pid
wait $silent_pid 2>/dev/null

# ---- TLS: who asks is what the certificate says ----------------------------------------------------------

"$make_ca" "$tmp/ca" --collector localhost,127.0.0.1 --collector elsewhere --user alice >"$tmp/out" 2>&1 || fail "make-ca: $(cat "$tmp/out")"
socket=$((20000 + $$ % 10000))
at=tcp://127.0.0.1:$socket
begin tls="$tmp/ca"
export HEADRACE_TLS_CERT=$tmp/ca/user/alice.pem HEADRACE_TLS_KEY=$tmp/ca/user/alice.key HEADRACE_TLS_CA=$tmp/ca/ca.pem
says 0 "missing .* (ring_full)" "$at" --format csv 'SELECT job FROM jobs'
printf 'job\r\n7\r\n' | cmp -s - "$tmp/out" || fail "alice sees $(cat "$tmp/out")"
says 0 "" "tcp://localhost:$socket" 'SELECT repeat(range::VARCHAR, 100) FROM range(100000)'
HEADRACE_TLS_KEY='' says 1 "HEADRACE_TLS_KEY\|key" "$at" jobs
unset HEADRACE_TLS_CA
says 1 "found HEADRACE_TLS_KEY, but not HEADRACE_TLS_CA" "$at" jobs
unset HEADRACE_TLS_CERT HEADRACE_TLS_KEY
mkdir -p "$tmp/config/headrace/tls"
cp "$tmp/ca/user/alice.pem" "$tmp/config/headrace/tls/cert.pem"
cp -p "$tmp/ca/user/alice.key" "$tmp/config/headrace/tls/key.pem"
cp "$tmp/ca/ca.pem" "$tmp/config/headrace/tls/ca.pem"
XDG_CONFIG_HOME=$tmp/config says 0 "ring_full" "$at" jobs
HEADRACE_TLS_CERT='' XDG_CONFIG_HOME=$tmp/config says 69 "TLS" "$at" jobs
end

# ---- MUNGE: a credential of whoever runs this, made when the collector asks for one ------------------------

munged=$(PATH=$PATH:/usr/sbin command -v munged)
if [ -z "$munged" ]; then
	echo "SKIPPED MUNGE: no munged here"
	exit $failed
fi
chmod 0755 "$tmp"
head -c 128 /dev/urandom >"$tmp/munge.key"
chmod 0600 "$tmp/munge.key"
"$munged" --foreground --force --key-file="$tmp/munge.key" --pid-file="$tmp/munge.pid" --log-file="$tmp/munge.log" \
	--seed-file="$tmp/munge.seed" --socket="$tmp/munge" >/dev/null 2>&1 &
munged_pid=$!
for _ in $(seq 100); do
	[ -S "$tmp/munge" ] && break
	sleep 0.1
done
socket=$tmp/socket
at=unix://$socket
begin munge="$tmp/munge"
HEADRACE_MUNGE_SOCKET=$tmp/munge says 0 "no job of yours yet in this collector's store" "$at" jobs
HEADRACE_MUNGE_SOCKET=$tmp/nowhere says 1 "cannot identify you" "$at" jobs
end
kill "$munged_pid"
wait "$munged_pid"
exit $failed
