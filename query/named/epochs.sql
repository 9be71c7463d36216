-- Epochs of each rank: duration, share of waits for input, bytes read
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT * FROM hr_unrecorded('epoch', 'epochs', 'headrace_epoch() of headrace.h (NVTX ranges are regions, but not epochs)')
-- shown: rank epoch time_s dur_s steps input_wait_s input_wait_percent bytes_read
-- column rank: NULL: processes without a rank
-- column epoch: its number; NULL: the program gave none
-- column time_s: begin, since the start of the job
-- column dur_s: duration
-- column steps: number of steps that began in the epoch
-- column input_wait_s, input_wait_percent: part of dur_s in which training loops waited for input (see the table parts), and its share of dur_s
-- column validation_s: part of dur_s in validation: loops over loaders whose batches no optimizer uses, with their waits
-- column unoverlapped_io_s: I/O that stops the training thread, as in the query steps
-- column io_s: time during which a process of the rank, or one of its workers, had an operation in flight
-- column ops, bytes_read, bytes_written: operations of the rank that began in the epoch
-- column open: 1: the epoch had not ended when the process or the recording ended
-- column job, attempt: job of the row
WITH epochs AS MATERIALIZED (
    SELECT *, start_ns + dur_ns AS end_ns, row_number() OVER () AS n
    FROM hr_during(kind := 'epoch', scope := $scope, rank := $rank)),
spent AS (
    SELECT n, sum(ns) FILTER (phase = 'validation') AS validation_ns,
           sum(ns) FILTER (phase <> 'validation' AND starts_with(part, 'wait_')) AS wait_ns,
           sum(ns) FILTER (hr_is_io(part, $scope)) AS unoverlapped_ns
    FROM parts p ASOF JOIN epochs e
      ON p.cluster = e.cluster AND p.job = e.job AND p.attempt = e.attempt AND p.node = e.node AND p.proc = e.proc AND p.start_ns >= e.start_ns
    WHERE p.start_ns < e.end_ns
    GROUP BY n),
counted AS (
    SELECT n, sum(s.count) AS steps
    FROM (FROM regions WHERE kind = 'step') s ASOF JOIN epochs e
      ON s.cluster = e.cluster AND s.job = e.job AND s.attempt = e.attempt AND s.node = e.node AND s.proc = e.proc AND s.start_ns >= e.start_ns
    WHERE s.start_ns < e.end_ns
    GROUP BY n)
SELECT rank, epoch, ((e.start_ns - j.start_ns) / 1e9)::DECIMAL(19, 6) AS time_s, dur_ns / 1e9 AS dur_s,
       coalesce(steps, 0) AS steps, coalesce(wait_ns, 0) / 1e9 AS input_wait_s,
       100.0 * coalesce(wait_ns, 0) / nullif(dur_ns, 0) AS input_wait_percent, coalesce(validation_ns, 0) / 1e9 AS validation_s,
       coalesce(unoverlapped_ns, 0) / 1e9 AS unoverlapped_io_s, busy_ns / 1e9 AS io_s, ops, bytes_read,
       bytes_written, open, job, attempt
FROM epochs e LEFT JOIN spent USING (n) LEFT JOIN counted USING (n)
     LEFT JOIN (SELECT cluster, job, attempt, start_ns FROM jobs) j USING (cluster, job, attempt)
ORDER BY job, attempt, cluster, rank NULLS LAST, e.start_ns
