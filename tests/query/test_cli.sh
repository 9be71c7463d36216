#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_cli.sh HEADRACE MAKE_STORE - `headrace query` from outside: exit statuses, formats, messages
#
# Ends with 77 (skipped) where there is no DuckDB.
set -u
headrace=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp" "$store"' EXIT
store=$("$2") || exit 1
failed=0

# expect STATUS WHAT: compares the status of the command that just ran ($?, output in $tmp/out and $tmp/err)
check() {
	local status=$1 wanted=$2 what=$3
	if [ "$status" != "$wanted" ]; then
		echo "FAIL: $what: exit status $status, not $wanted"
		sed 's/^/    /' "$tmp/out" "$tmp/err" | head -5
		failed=1
	fi
}

says() {
	if ! grep -q -- "$2" "$tmp/$1"; then
		echo "FAIL: $3: $1 does not say '$2':"
		sed 's/^/    /' "$tmp/$1" | head -5
		failed=1
	fi
}

query() {
	"$headrace" query "$@" >"$tmp/out" 2>"$tmp/err"
}

query "$store" 'SELECT 1 AS n'
[ $? = 69 ] && {
	echo "skipped: $(cat "$tmp/err")"
	exit 77
}

query "$store" --format json 'SELECT count(*) AS n FROM events'
check $? 0 "SQL"
says out '"n": 15' "SQL"
says err 'missing 11 operations (110 B): .* (ring_full)' "notes"
says err 'the recording was cut short' "notes"


query --format csv "$store" --job 7 ops top=1
check $? 2 "an argument that ops does not have"
query --format csv "$store" --job 7 ops mount=/data
check $? 0 "options before and after the store"
says out '^read,7,0.00000105,0.00000015,0.0000008,800,2,read,posix' "named query"
query "$store" --job 8 --format csv 'SELECT count(*) AS n FROM events'
says out '^0' "--job"
query "$store" "$store/../$(basename "$store")" 'SELECT count(*) FROM nodes'
check $? 0 "the same store twice"
says out '3' "a stream counts once"

query "$store" --job nojob summary
check $? 66 "a job that is not there"
says err "no job 'nojob' in $store; it contains: 7, 8" "a job that is not there"
query "$store" typo-of-a-store summary
check $? 66 "the second store is mistyped"
says err "no store 'typo-of-a-store'" "the second store is mistyped"
query "$store" typo-of-a-store
check $? 2 "neither a store nor a query"
says err "no query or store 'typo-of-a-store'; named queries: blame, checkpoints, coverage, diagnose" "neither a store nor a query"
query "${store%?}" summary
check $? 66 "a mistyped store"
says err "no store '${store%?}'; did you mean '$store'?" "a mistyped store"
query "$store" sumary
check $? 2 "a mistyped query"
says err "no query or store 'sumary'; did you mean 'summary'?" "a mistyped query"
query ops --format csv "$store"
check $? 0 "the store after the query"
says out '^read,' "the store after the query"
# What ./headrace-* matches in addition to stores: a summary, a folder of something else.
mkdir "$tmp/glob" "$tmp/glob/headrace-sources"
echo '{}' | tee "$tmp/glob/headrace-a.json" >"$tmp/glob/headrace-sources/file"
ln -s "$store" "$tmp/glob/headrace-store"
query "$tmp"/glob/headrace-* --format csv 'SELECT count(*) FROM events'
check $? 0 "a pattern that matches more than stores"
says out '^15' "a pattern that matches more than stores"
says err "note: skipping '$tmp/glob/headrace-a.json', '$tmp/glob/headrace-sources': not headrace stores" "a pattern that matches more than stores"
query "$tmp"/glob/headrace-* "$tmp/nowhere" summary
check $? 66 "a path that does not exist beside a pattern"
says err "no store '$tmp/nowhere'" "a path that does not exist beside a pattern"
(cd "$tmp/glob" && exec "$headrace" query ops --format csv) >"$tmp/out" 2>"$tmp/err"
check $? 0 "the store of this folder"
says out '^read,' "the store of this folder"
says err '^headrace: store: ./headrace-store$' "the store of this folder"
(cd "$store" && exec "$headrace" query ops --format csv) >"$tmp/out" 2>"$tmp/err"
check $? 0 "this folder is the store"
says err '^headrace: store: .$' "this folder is the store"
(cd "$tmp/glob/headrace-sources" && exec "$headrace" query ops) >"$tmp/out" 2>"$tmp/err"
check $? 66 "no store in this folder"
says err 'no store given, and this folder contains none of yours' "no store in this folder"
query "$store" "$tmp/glob/headrace-a.json" summary
check $? 0 "a file after the store"
query "$tmp/glob/headrace-a.json" "$tmp/glob/headrace-sources" summary
check $? 66 "no store at all"
says err 'headrace-a.json: not a headrace store: a store is a folder' "no store at all"
mkdir "$tmp/damaged" && echo "what" >"$tmp/damaged/headrace.store"
query "$store" "$tmp/damaged" summary
check $? 66 "a damaged store is not skipped"

query "$store" slow rank=77
check $? 0 "a rank that is not there"
says err 'note: no rank 77; the store has: 0, 2' "a rank that is not there"
says out '^(no rows)$' "a rank that is not there"
query "$store" files by=size
check $? 2 "an argument of a word that is none"
says err 'by must be one of time|bytes|ops' "an argument of a word that is none"
mkdir -p "$tmp/empty" && echo "headrace store 1" >"$tmp/empty/headrace.store"
query "$tmp/empty" summary
check $? 0 "an empty store"
says err 'no jobs yet in' "an empty store"
query --list
check $? 0 "--list"
says out '^io-time ' "--list"
query --list --json
check $? 0 "--list --json"
says out '"name": "io-time"' "--list --json"
query --explain slow
check $? 0 "--explain"
says out 'ORDER BY dur_ns DESC' "--explain"
query --explain nosuch
check $? 2 "--explain of an unknown name"
query --help
check $? 0 "--help"
query "$store" nosuch
check $? 2 "an unknown name"
says err "no query or store 'nosuch'" "an unknown name"
query "$store"
check $? 2 "no question"
says err "no query given" "no question"
query "$store" 'SELECT 1' extra
check $? 2 "words behind SQL"
query "$store" --format xml 'SELECT 1'
check $? 2 "an unknown format"
query tcp://127.0.0.1:1 summary
check $? 69 "no collector there"
says err "check that headrace-collector runs there" "no collector there"

query "$tmp/nowhere" summary
check $? 66 "no such store"
mkdir "$tmp/other" && touch "$tmp/other/file"
query "$tmp/other" summary
check $? 66 "a folder that is no store"

query "$store" 'SELECT nosuch FROM events'
check $? 1 "bad SQL"
says err 'nosuch' "bad SQL"
query "$store" "SELECT * FROM read_text('/etc/passwd')"
check $? 1 "a file outside"
for writes in 'DROP VIEW events' 'INSERT INTO events VALUES (1)' "/* no */ UPDATE events SET op = 'x'"; do
	query "$store" "$writes"
	check $? 1 "a statement that writes: $writes"
	says err 'only SELECT' "a statement that writes: $writes"
done
query --format csv "$store" "$("$headrace" query --explain ops)" mount=/data
check $? 0 "what --explain prints is SQL with arguments"
says out '^read,7' "what --explain prints is SQL with arguments"

query "$store" -o "$tmp/a.csv" --format csv 'SELECT 7 AS n'
check $? 0 "-o"
[ "$(tr -d '\r' <"$tmp/a.csv")" = $'n\n7' ] || {
	echo "FAIL: -o wrote $(cat "$tmp/a.csv")"
	failed=1
}
query "$store" -o "$tmp/b.csv" --format csv 'SELECT nosuch'
check $? 1 "-o of a query that fails"
[ -z "$(ls "$tmp"/b.csv* 2>/dev/null)" ] || {
	echo "FAIL: a failed query left a file"
	failed=1
}
query "$store" --format parquet 'SELECT 1 AS n'
check $? 2 "parquet without -o"
query "$store" -o "$tmp/a.parquet" --format parquet 'SELECT op, count(*) AS n FROM events GROUP BY op;'
check $? 0 "parquet"
[ "$(head -c 4 "$tmp/a.parquet")" = PAR1 ] || {
	echo "FAIL: no Parquet file"
	failed=1
}
query "$store" -o "$tmp/a.parquet" --format parquet 'SELECT 2 AS n'
check $? 0 "parquet over a file that is there"
query "$store" -o "$tmp/no/folder.csv" 'SELECT 1'
check $? 1 "-o into a folder that is not there"

"$headrace" query "$store" 'SELECT * FROM range(3000000)' 2>"$tmp/err" | head -1 >/dev/null
check "${PIPESTATUS[0]}" 0 "a reader that has seen enough"
[ ! -s "$tmp/err" ] || ! grep -qi pipe "$tmp/err" || {
	echo "FAIL: a broken pipe is not quiet: $(cat "$tmp/err")"
	failed=1
}

endless='SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range * b.range % 7 = 3'
"$headrace" query "$store" --progress "$endless" >"$tmp/out" 2>"$tmp/err" &
pid=$!
for _ in $(seq 3000); do # until the query runs
	grep -q ' s$' "$tmp/err" && break
	sleep 0.1
done
kill -INT $pid
wait $pid
check $? 130 "Ctrl-C"
says err 'interrupted' "Ctrl-C"

query "$store" --time 4s --progress "$endless"
check $? 1 "--time"
says err 'the query reached its time limit (--time)' "--time"
says err 'headrace: .*, [1-4] s$' "--progress"
query "$store" --time 0 'SELECT 1'
check $? 2 "--time without time"
if command -v script >/dev/null; then
	script -qec "$headrace query $store --time 4s '$endless' >$tmp/out" "$tmp/typescript" >/dev/null
	says typescript $'working, [1-4] s\r*\r\e\\[K' "progress on a terminal is taken away"
fi

# Nobody looks for the interrupt while the answer waits for a reader: the second one ends it.
mkfifo "$tmp/fifo"
exec 9<>"$tmp/fifo"
"$headrace" query "$store" --format csv -o "$tmp/fifo" 'SELECT * FROM range(100000000)' 2>"$tmp/err" &
pid=$!
for _ in $(seq 3000); do # until the pipe is full
	grep -qs pipe_write /proc/$pid/task/*/wchan && break
	sleep 0.1
done
kill -INT $pid
kill -TERM $pid # taken after the first one, also if both wait
wait $pid
check $? 143 "a second Ctrl-C"
exec 9>&-

# What does not fit into memory goes to a folder of the user's own, with a name that cannot be foreseen, and is removed.
mkdir "$tmp/spill"
spilling='SELECT sum(r) FROM (SELECT r, row_number() OVER (ORDER BY hash(r)) AS n FROM range(8000000) t(r)) WHERE n % 7 = 0'
TMPDIR=$tmp/spill "$headrace" query "$store" --memory 60M "$spilling" >"$tmp/out" 2>"$tmp/err" &
pid=$!
seen=
for _ in $(seq 3000); do
	kill -0 $pid 2>/dev/null || break
	seen=$(find "$tmp/spill" -mindepth 2 -type f -printf '%h\n' 2>/dev/null | head -1)
	[ -n "$seen" ] && break
	sleep 0.05
done
mode=$(stat -c %a "$seen" 2>/dev/null)
wait $pid
check $? 0 "a query that spills"
case "$(basename "$seen") $mode" in
headrace-query-$pid*) echo "FAIL: the spill folder is named after the process" && failed=1 ;;
headrace-query-??????" 700") ;;
*) echo "FAIL: the spill folder is '$seen' with mode '$mode'" && failed=1 ;;
esac
[ -z "$(ls "$tmp/spill")" ] || {
	echo "FAIL: a query left $(ls "$tmp/spill")"
	failed=1
}
TMPDIR=$tmp/nowhere query "$store" 'SELECT 1 AS n'
check $? 0 "TMPDIR is not there"
says err "cannot create a folder for temporary files in $tmp/nowhere: No such file" "TMPDIR is not there"

HEADRACE_DUCKDB=/nowhere/libduckdb.so query "$store" summary
check $? 69 "DuckDB absent"
says err '/nowhere/libduckdb.so' "DuckDB absent"
HEADRACE_DUCKDB=$tmp query "$store" summary
check $? 69 "DuckDB's folder is empty"
says err 'a folder without libduckdb.so' "DuckDB's folder is empty"
HEADRACE_DUCKDB=$(dirname "$HEADRACE_DUCKDB") query "$store" 'SELECT 1 AS n'
check $? 0 "DuckDB named by its folder"
HEADRACE_DUCKDB=/usr/lib/x86_64-linux-gnu/libm.so.6 query "$store" summary
check $? 69 "not DuckDB"

exit $failed
