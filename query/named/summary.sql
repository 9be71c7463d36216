-- The totals that `headrace run` prints at its end, of each job
-- shown: what time_s ops bytes io_bytes_per_s run_bytes_per_s small_percent errors
-- column what: all, and its parts read, write, other (a copy between files is one call, one read and one write); in addition runtime,
-- Python's own files, and input_wait, if the application marks waits for input (ops: number of waits)
-- column time_s: sum of the durations of all calls of all processes, which overlap
-- column ops: calls
-- column bytes: read or written
-- column io_bytes_per_s, run_bytes_per_s: bytes per second of I/O time, and per second of the job
-- column small_percent: share of read calls that moved less than 64 KiB
-- column errors: failed calls
-- column state, job, attempt: state is running (totals until now), silent (totals until the last message), ended, failed or killed
WITH life AS (
    SELECT cluster, job, attempt,
           (coalesce(any_value(j.end_ns), CASE any_value(j.state) WHEN 'running' THEN epoch_ns(now()) END,
                     max(coalesce(p.end_ns, p.start_ns)))
            - coalesce(any_value(j.start_ns), min(p.start_ns))) / 1e9 AS run_s
    FROM jobs j LEFT JOIN processes p USING (cluster, job, attempt) GROUP BY cluster, job, attempt),
-- hr_rollups() contains, unlike the table rollups, both sides of copies, and reads and writes of single characters.
calls AS (
    SELECT cluster, job, attempt, scope, side,
           hr_what(op, class, side) AS what,
           sum(count) AS ops, sum(errors) AS errors, sum(dur_ns) AS dur_ns, sum(bytes) AS bytes,
           sum(list_sum(size_hist[1:16])) AS small
    FROM hr_rollups() GROUP BY cluster, job, attempt, scope, side, what),
parts AS (
    SELECT cluster, job, attempt, what, ops, errors, dur_ns, bytes, small
    FROM calls WHERE scope = 'data' AND what <> 'copy'
    UNION ALL
    SELECT cluster, job, attempt, CASE scope WHEN 'data' THEN 'all' ELSE scope END,
           CASE WHEN side IS DISTINCT FROM 'copy' THEN ops END, errors, CASE WHEN side IS NULL THEN dur_ns END,
           CASE WHEN what IN ('read', 'write') THEN bytes END, NULL
    FROM calls
    UNION ALL
    SELECT DISTINCT cluster, job, attempt, unnest(['all', 'read', 'write', 'other']), 0, 0, 0, 0, 0 FROM calls),
lines AS (
    SELECT cluster, job, attempt, what, sum(ops) AS ops, sum(errors) AS errors, sum(dur_ns) / 1e9 AS time_s,
           CASE WHEN what <> 'other' THEN sum(bytes) END AS bytes, sum(small) AS small
    FROM parts GROUP BY cluster, job, attempt, what
    UNION ALL
    SELECT cluster, job, attempt, 'input_wait', sum(count), NULL, sum(start_ns + dur_ns - greatest(start_ns, coalesce(reached_ns, start_ns))) / 1e9, NULL, NULL
    FROM (SELECT *, max(start_ns + CASE count WHEN 1 THEN dur_ns ELSE 0 END)
                        OVER (PARTITION BY cluster, job, attempt, node, proc, tid ORDER BY start_ns, dur_ns DESC
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
          FROM regions WHERE kind = 'input_wait')
    WHERE reached_ns IS NULL OR start_ns >= reached_ns OR (count = 1 AND start_ns + dur_ns > reached_ns)
    GROUP BY cluster, job, attempt)
SELECT what, time_s, ops, bytes, round(bytes / nullif(time_s, 0)) AS io_bytes_per_s,
       CASE WHEN what <> 'runtime' THEN round(bytes / nullif(run_s, 0)) END AS run_bytes_per_s,
       CASE WHEN what = 'read' THEN 100.0 * small / nullif(ops, 0) END AS small_percent, errors, state, job,
       attempt
FROM lines JOIN jobs USING (cluster, job, attempt) LEFT JOIN life USING (cluster, job, attempt)
ORDER BY job, attempt, cluster, list_position(['all', 'read', 'write', 'other', 'runtime', 'input_wait'], what)
