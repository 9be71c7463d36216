-- Epochs of each rank: duration, share of waits for input, bytes read
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT format('no epochs were recorded of job {}: PyTorch reports them under headrace run; other programs can mark them with headrace_epoch() of headrace.h (NVTX ranges are regions, but not epochs)', string_agg(DISTINCT job, ', ' ORDER BY job)) FROM jobs ANTI JOIN (SELECT DISTINCT cluster, job, attempt FROM regions WHERE kind = 'epoch') USING (cluster, job, attempt) HAVING count(*) > 0
-- column rank: NULL: processes without a rank
-- column epoch: its number; NULL: the program gave none
-- column time_s: begin, since the start of the job
-- column dur_s: duration
-- column steps: number of steps that began in it
-- column input_wait_s, input_wait_percent: time in waits for input that began in it, and its share of dur_s
-- column unoverlapped_io_s: I/O that does not overlap with compute, as in steps
-- column io_s: time during which a process of the rank, or one of its workers, had an operation in flight
-- column ops, bytes_read, bytes_written: operations of the rank that began in it
-- column open: 1: it had not ended when the process or the recording ended
-- column job, attempt: job of the row
WITH marked AS MATERIALIZED (
    SELECT *, start_ns + dur_ns AS end_ns
    FROM hr_during(kind := 'epoch, step, input_wait', scope := $scope, rank := $rank)),
epochs AS MATERIALIZED (
    SELECT *, row_number() OVER () AS n FROM marked WHERE kind = 'epoch'),
inner_ones AS (
    SELECT process, kind, count, end_ns, wait_ns, CASE kind WHEN 'step' THEN start_ns ELSE greatest(start_ns, coalesce(reached_ns, start_ns)) END AS from_ns,
           (end_ns - from_ns) / greatest(dur_ns, 1) AS part
    FROM (SELECT process, kind, start_ns, dur_ns, end_ns, count, busy_ns - train_busy_ns AS wait_ns,
                 max(CASE WHEN kind = 'input_wait' AND count = 1 THEN end_ns END)
                        OVER (PARTITION BY process, tid ORDER BY start_ns, dur_ns DESC
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
          FROM marked WHERE kind <> 'epoch')
    WHERE from_ns = start_ns OR (count = 1 AND from_ns < end_ns)),
parts AS (
    SELECT e.n, coalesce(sum(i.count) FILTER (i.kind = 'step'), 0) AS steps,
           coalesce(sum(least(i.end_ns, e.end_ns) - i.from_ns) FILTER (i.kind = 'input_wait'), 0) AS wait_ns,
           coalesce(sum(i.wait_ns * part) FILTER (i.kind = 'input_wait'), 0)::BIGINT AS waited_ns
    FROM inner_ones i ASOF JOIN epochs e
      ON i.process = e.process AND i.from_ns >= e.start_ns
    WHERE i.from_ns < e.end_ns
    GROUP BY e.n)
SELECT rank, epoch, ((e.start_ns - j.start_ns) / 1e9)::DECIMAL(19, 6) AS time_s, dur_ns / 1e9 AS dur_s,
       coalesce(steps, 0) AS steps, coalesce(wait_ns, 0) / 1e9 AS input_wait_s,
       100.0 * coalesce(wait_ns, 0) / nullif(dur_ns, 0) AS input_wait_percent,
       (train_busy_ns + coalesce(waited_ns, 0)) / 1e9 AS unoverlapped_io_s, busy_ns / 1e9 AS io_s, ops, bytes_read,
       bytes_written, open, job, attempt
FROM epochs e LEFT JOIN parts USING (n) LEFT JOIN (SELECT cluster, job, attempt, start_ns FROM jobs) j USING (cluster, job, attempt)
ORDER BY job, attempt, cluster, rank NULLS LAST, e.start_ns
