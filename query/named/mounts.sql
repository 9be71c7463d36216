-- File systems: bytes and time by mount point
-- arg scope data|runtime|all data: Python's own files are runtime
-- column mount, fs_type: of the opened file's device in the process's own view
-- column ops, errors: calls, and those that failed; single characters (getc, putc), whose mount is not kept, are in none
-- column bytes_read, bytes_written: transferred; a copy between files counts once, where its source lies
-- column time_s: sum of the durations of all calls
-- column slowest_proc_s: the same of the one process that spent most, which the others may have waited for
WITH per_proc AS (
    SELECT mount, fs_type, cluster, job, attempt, node, proc, sum(count) AS ops, sum(errors) AS errors,
           sum(bytes) FILTER (class = 'read') AS bytes_read,
           sum(bytes) FILTER (class = 'write') AS bytes_written, sum(dur_ns) AS dur_ns
    FROM rollups
    WHERE $scope = 'all' OR scope = $scope
    GROUP BY mount, fs_type, cluster, job, attempt, node, proc)
SELECT mount, fs_type, sum(ops) AS ops, sum(errors) AS errors,
       coalesce(sum(bytes_read), 0) AS bytes_read, coalesce(sum(bytes_written), 0) AS bytes_written,
       sum(dur_ns) / 1e9 AS time_s, max(dur_ns) / 1e9 AS slowest_proc_s
FROM per_proc
GROUP BY mount, fs_type
ORDER BY time_s DESC, mount
