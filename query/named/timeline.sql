-- The job over time: operations and bytes per time step, from the start of the job
-- arg step SECONDS NULL: length of a time step; NULL: divides the job into 20 to 50 steps; at most 100,000 steps
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- shown: time_s ops bytes_read bytes_written read_s write_s meta_s errors
-- column time_s: begin of the time step, since the start of the job
-- column ops, bytes_read, bytes_written: operations that began in the time step, without single characters (getc, putc); a copy
-- between files counts once
-- column read_s, write_s, meta_s: time in reads, writes, and other calls, summed over all processes
-- column errors: failed calls
-- column job, attempt: job of the row
-- Time steps under 10 s are sums of events. Longer time steps, and all time steps of a job that ran at level counters for some time, are
-- sums of the recorded windows of 10 s. A window belongs to the time step that contains its middle.
WITH windows AS (
    SELECT cluster, job, attempt, min(window_start_ns) AS first_ns, max(window_start_ns) AS last_ns
    FROM rollups GROUP BY cluster, job, attempt),
counted AS (SELECT DISTINCT cluster, job, attempt FROM levels WHERE level <> 'trace'),
life AS (
    SELECT cluster, job, attempt, counted.job IS NULL AS traced, j.end_ns IS NULL AS runs,
           coalesce(j.start_ns, w.first_ns) AS begin_ns, coalesce(j.end_ns, w.last_ns + 10000000000) AS end_ns
    FROM jobs j LEFT JOIN windows w USING (cluster, job, attempt) LEFT JOIN counted USING (cluster, job, attempt)),
guess AS (
    SELECT *, greatest(end_ns - begin_ns, 1000) / 50.0 AS ideal_ns, 10.0 ** floor(log10(ideal_ns)) AS power_ns
    FROM life WHERE begin_ns IS NOT NULL AND end_ns IS NOT NULL),
plan AS (
    SELECT *, greatest(CASE WHEN traced THEN 1000 ELSE 10000000000 END,
                       coalesce($step * 1e9, power_ns * CASE WHEN ideal_ns <= 2 * power_ns THEN 2
                                                             WHEN ideal_ns <= 5 * power_ns THEN 5
                                                             ELSE 10 END)::BIGINT) AS step_ns
    FROM guess),
sums AS (
    SELECT cluster, job, attempt, greatest(0, (e.start_ns - begin_ns) // step_ns) AS step, class,
           count(*) AS ops, count(errno) AS errors, sum(bytes) AS bytes, sum(dur_ns) AS dur_ns
    FROM events e JOIN plan USING (cluster, job, attempt)
    WHERE step_ns < 10000000000 AND ($scope = 'all' OR scope = $scope)
    GROUP BY ALL
    UNION ALL
    SELECT cluster, job, attempt, greatest(0, (window_start_ns + 5000000000 - begin_ns) // step_ns), class,
           sum(count), sum(errors), sum(bytes), sum(dur_ns)
    FROM rollups JOIN plan USING (cluster, job, attempt)
    WHERE step_ns >= 10000000000 AND ($scope = 'all' OR scope = $scope)
    GROUP BY ALL),
used AS (SELECT cluster, job, attempt, max(step) + 1 AS n FROM sums GROUP BY cluster, job, attempt),
steps AS (
    SELECT cluster, job, attempt, step_ns,
           unnest(range(CASE WHEN many <= 100000 THEN many
                             ELSE error(format('job {}: {} steps are too many: at most 100,000', job, many))::BIGINT END))
               AS step
    FROM (SELECT *, CASE WHEN runs THEN n ELSE ceil((end_ns - begin_ns) / step_ns) END::BIGINT AS many
          FROM plan LEFT JOIN used USING (cluster, job, attempt))
    UNION
    SELECT cluster, job, attempt, step_ns, step FROM sums JOIN plan USING (cluster, job, attempt))
SELECT (step * step_ns / 1e9)::DECIMAL(19, 6) AS time_s, coalesce(sum(ops), 0) AS ops,
       coalesce(sum(bytes) FILTER (class = 'read'), 0) AS bytes_read,
       coalesce(sum(bytes) FILTER (class = 'write'), 0) AS bytes_written,
       coalesce(sum(dur_ns) FILTER (class = 'read'), 0) / 1e9 AS read_s,
       coalesce(sum(dur_ns) FILTER (class = 'write'), 0) / 1e9 AS write_s,
       coalesce(sum(dur_ns) FILTER (class NOT IN ('read', 'write')), 0) / 1e9 AS meta_s,
       coalesce(sum(errors), 0) AS errors, job, attempt
FROM steps LEFT JOIN sums USING (cluster, job, attempt, step)
GROUP BY cluster, job, attempt, step, step_ns
ORDER BY job, attempt, cluster, time_s
