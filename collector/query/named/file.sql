-- One file, operation by operation, in the order of time (what renames or links to it is under its source)
-- arg path VARCHAR NULL: the file, as opened and as `files` shows it
-- arg top BIGINT 1000: at most this many
-- column time_s: since the file's first operation
-- column node, rank, worker, pid, tid: who
-- column op, file_offset, asked, bytes, errno: what
-- column dur_us: how long
SELECT round((start_ns - min(start_ns) OVER ()) / 1e9, 9) AS time_s, node, rank, worker, pid, tid, op,
       file_offset, asked, bytes, errno, dur_ns / 1e3 AS dur_us
FROM events
WHERE path = $path
ORDER BY time_s, node, pid, tid
LIMIT $top
