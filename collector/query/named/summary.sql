-- The totals that `headrace run` prints at its end, of each job
-- column what: all, and of these: read, write, other; apart from them: runtime, Python's own files
-- column time_s: sum of the durations of all calls of all processes, which overlap
-- column ops: calls
-- column bytes: read or written
-- column io_bytes_per_s, run_bytes_per_s: while at it: per second of I/O time; over the run: per second from the
-- first process to the last
-- column small_percent: of the calls that read, those that moved less than 64 KiB
-- column errors: calls that failed
-- column state, job: whether the job is running, ended, failed or killed
WITH life AS (
    SELECT cluster, job, attempt, (max(coalesce(end_ns, start_ns)) - min(start_ns)) / 1e9 AS run_s
    FROM processes GROUP BY cluster, job, attempt),
calls AS (
    SELECT cluster, job, attempt,
           CASE WHEN scope = 'runtime' THEN scope WHEN class IN ('read', 'write') THEN class ELSE 'other' END AS what,
           sum(count) AS ops, sum(errors) AS errors, sum(dur_ns) / 1e9 AS time_s,
           sum(bytes) FILTER (class IN ('read', 'write')) AS bytes,
           sum(list_sum(size_hist[1:16])) FILTER (class = 'read') AS small
    FROM rollups GROUP BY cluster, job, attempt, what),
parts AS (
    SELECT * FROM calls
    UNION ALL
    SELECT cluster, job, attempt, 'all', sum(ops), sum(errors), sum(time_s), sum(bytes), NULL
    FROM calls WHERE what <> 'runtime' GROUP BY cluster, job, attempt
    UNION ALL
    SELECT cluster, job, attempt, unnest(['all', 'read', 'write', 'other']), 0, 0, 0, 0, 0
    FROM calls GROUP BY cluster, job, attempt),
lines AS (
    SELECT cluster, job, attempt, what, sum(ops) AS ops, sum(errors) AS errors, sum(time_s) AS time_s,
           CASE WHEN what <> 'other' THEN sum(bytes) END AS bytes, sum(small) AS small
    FROM parts GROUP BY cluster, job, attempt, what)
SELECT what, time_s, ops, bytes, round(bytes / nullif(time_s, 0)) AS io_bytes_per_s,
       CASE WHEN what <> 'runtime' THEN round(bytes / nullif(run_s, 0)) END AS run_bytes_per_s,
       CASE WHEN what = 'read' THEN 100.0 * small / nullif(ops, 0) END AS small_percent, errors, state, job
FROM lines JOIN jobs USING (cluster, job, attempt) LEFT JOIN life USING (cluster, job, attempt)
ORDER BY job, attempt, list_position(['all', 'read', 'write', 'other', 'runtime'], what)
