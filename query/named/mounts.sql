-- File systems: bytes and time by mount point
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- shown: mount fs_type time_s slowest_proc_s ops bytes_read bytes_written errors
-- column mount, fs_type: mount of the opened file, as the process sees it
-- column ops, errors: calls, and failed ones; without single characters (getc, putc), whose mount is not recorded
-- column bytes_read, bytes_written: bytes transferred; a copy between files counts once, for the mount of its source
-- column time_s: sum of the durations of all calls
-- column slowest_proc_s: time_s of the process with the largest time, for which the others may have waited
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
