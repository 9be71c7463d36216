-- Ranks compared: reads, writes, time in I/O
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- shown: rank workers io_s read_s meta_s ops bytes_read bytes_written
-- column rank: NULL: processes without a rank
-- column workers: DataLoader workers; processes that have the same worker number one after another count once
-- column ops, opens, bytes_read, bytes_written: calls, opens that succeeded, and what was transferred (a copy reads and writes)
-- column io_s, read_s, write_s, meta_s: time in all calls, in reads, in writes, and in other calls, summed over its processes
-- column errors: failed calls
-- column procs: all processes of the rank
-- column node, job, attempt: node of the rank (the first by name), and its job
SELECT rank, count(DISTINCT (node, worker)) FILTER (worker IS NOT NULL) AS workers,
       sum(count) FILTER (side IS DISTINCT FROM 'copy') AS ops,
       coalesce(sum(count - errors) FILTER (class = 'open'), 0) AS opens,
       coalesce(sum(bytes) FILTER (what = 'read'), 0) AS bytes_read,
       coalesce(sum(bytes) FILTER (what = 'write'), 0) AS bytes_written,
       coalesce(sum(dur_ns) FILTER (what <> 'copy'), 0) / 1e9 AS io_s,
       coalesce(sum(dur_ns) FILTER (what = 'read'), 0) / 1e9 AS read_s,
       coalesce(sum(dur_ns) FILTER (what = 'write'), 0) / 1e9 AS write_s,
       coalesce(sum(dur_ns) FILTER (what = 'other'), 0) / 1e9 AS meta_s,
       sum(errors) AS errors, count(DISTINCT (node, proc)) AS procs, min(node) AS node, job,
       attempt
FROM (SELECT *, hr_what(op, class, side) AS what FROM hr_rollups())
WHERE $scope = 'all' OR scope = $scope
GROUP BY cluster, job, attempt, rank
ORDER BY job, attempt, cluster, rank NULLS LAST
