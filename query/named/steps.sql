-- Steps of the training loop: how their time was spent, and their I/O
-- arg by rank|step rank: one row per rank, or per step of each rank
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT * FROM hr_unrecorded('step', 'steps', 'headrace_step() of headrace.h (NVTX ranges are regions, but not steps)')
-- note: SELECT format('job {}: no steps of rank {}', job, string_agg(rank::VARCHAR, ', ' ORDER BY rank)) FROM (SELECT DISTINCT cluster, job, attempt, rank FROM processes WHERE rank IS NOT NULL AND ($rank IS NULL OR rank = $rank)) ANTI JOIN (SELECT DISTINCT cluster, job, attempt, rank FROM regions WHERE kind = 'step') USING (cluster, job, attempt, rank) SEMI JOIN (SELECT DISTINCT cluster, job, attempt FROM regions WHERE kind = 'step') USING (cluster, job, attempt) GROUP BY cluster, job, attempt ORDER BY job
-- note: SELECT format('job {}: {} short steps were added up: their I/O is unknown', job, sum(count)) FROM regions WHERE kind = 'step' AND count > 1 GROUP BY job ORDER BY job
-- shown: rank step steps dur_s input_wait_s compute_s checkpoint_s stall_s median_s max_s
-- column rank: NULL: processes without a rank
-- column step: its number; NULL with by=rank, and if the program gave none
-- column steps: number of steps; with by=step, more than 1 if short steps were added up
-- column time_s: begin of the (first) step, since the start of the job
-- column dur_s: duration; with by=rank, the sum over all steps
-- column input_wait_s, checkpoint_s, optimizer_s: part of dur_s in waits, checkpoints and steps of optimizers, as in the table parts
-- column own_io_s: part of dur_s in which the training thread itself used files, outside waits and checkpoints
-- column validation_s: part of dur_s in validation: loops over loaders whose batches no optimizer uses, with their waits
-- column stall_s: part of dur_s in waits for other ranks
-- column compute_s: the rest of dur_s
-- column unoverlapped_io_s: I/O that stops the training thread, outside checkpoints: the sum of own_io_s and of the waits in which the
-- worker of the batch used files
-- column median_s, p95_s, max_s: durations of ended steps of the rank; steps that were added up count with their mean
-- column io_s: time during which a process of the rank, or one of its workers, had an operation in flight
-- column ops, bytes_read, bytes_written, op_s: operations of the rank that began in the step, and the sum of their durations
-- column open: steps that had not ended when the process or the recording ended
-- column epoch: number of the epoch; NULL with by=rank
-- column job, attempt: job of the row
WITH steps AS MATERIALIZED (
    SELECT *, start_ns + dur_ns AS end_ns, row_number() OVER () AS n
    FROM hr_during(kind := 'step', scope := $scope, rank := $rank)),
spent AS (
    SELECT n, sum(ns) FILTER (phase = 'validation') AS validation_ns,
           sum(ns) FILTER (phase <> 'validation' AND starts_with(part, 'wait_')) AS wait_ns,
           sum(ns) FILTER (phase <> 'validation' AND part = 'checkpoint') AS checkpoint_ns,
           sum(ns) FILTER (phase <> 'validation' AND part = 'optimizer') AS optimizer_ns,
           sum(ns) FILTER (phase <> 'validation' AND NOT starts_with(part, 'wait_') AND hr_is_io(part, $scope)) AS own_ns,
           sum(ns) FILTER (part = 'stall') AS stall_ns,
           sum(ns) FILTER (hr_is_io(part, $scope)) AS unoverlapped_ns
    FROM parts p ASOF JOIN steps s
      ON p.cluster = s.cluster AND p.job = s.job AND p.attempt = s.attempt AND p.node = s.node AND p.proc = s.proc AND p.start_ns >= s.start_ns
    WHERE p.start_ns < s.end_ns
    GROUP BY n),
whole AS (
    SELECT * EXCLUDE (validation_ns, wait_ns, checkpoint_ns, optimizer_ns, own_ns, stall_ns, unoverlapped_ns),
           coalesce(validation_ns, 0) AS validation_ns, coalesce(wait_ns, 0) AS wait_ns, coalesce(checkpoint_ns, 0) AS checkpoint_ns,
           coalesce(optimizer_ns, 0) AS optimizer_ns, coalesce(own_ns, 0) AS own_ns, coalesce(stall_ns, 0) AS stall_ns,
           CASE count WHEN 1 THEN coalesce(unoverlapped_ns, 0) END AS unoverlapped_ns, dur_ns / count AS each_ns,
           sum(CASE open WHEN 0 THEN count ELSE 0 END)
               OVER (PARTITION BY cluster, job, attempt, rank ORDER BY dur_ns / count ROWS UNBOUNDED PRECEDING) AS so_many,
           sum(CASE open WHEN 0 THEN count ELSE 0 END) OVER (PARTITION BY cluster, job, attempt, rank) AS of_many
    FROM steps LEFT JOIN spent USING (n)),
rows AS (
    SELECT cluster, job, attempt, rank, CASE $by WHEN 'step' THEN n END AS n,
           CASE $by WHEN 'step' THEN any_value(step) END AS step, CASE $by WHEN 'step' THEN any_value(epoch) END AS epoch,
           sum(count) AS steps, min(start_ns) AS start_ns, sum(dur_ns) AS dur_ns, sum(wait_ns) AS wait_ns,
           sum(checkpoint_ns) AS checkpoint_ns, sum(optimizer_ns) AS optimizer_ns, sum(own_ns) AS own_ns, sum(stall_ns) AS stall_ns, sum(validation_ns) AS validation_ns,
           sum(unoverlapped_ns) AS unoverlapped_ns, sum(busy_ns) AS busy_ns, sum(ops) AS ops, sum(bytes_read) AS bytes_read,
           sum(bytes_written) AS bytes_written, sum(io_ns) AS io_ns, sum(open) AS open,
           min(each_ns) FILTER (open = 0 AND so_many >= 0.5 * of_many) AS median_ns,
           min(each_ns) FILTER (open = 0 AND so_many >= 0.95 * of_many) AS p95_ns, max(each_ns) FILTER (open = 0) AS max_ns
    FROM whole GROUP BY ALL)
SELECT rank, step, steps, ((r.start_ns - j.start_ns) / 1e9)::DECIMAL(19, 6) AS time_s, dur_ns / 1e9 AS dur_s,
       wait_ns / 1e9 AS input_wait_s, checkpoint_ns / 1e9 AS checkpoint_s, optimizer_ns / 1e9 AS optimizer_s, own_ns / 1e9 AS own_io_s,
       validation_ns / 1e9 AS validation_s,
       stall_ns / 1e9 AS stall_s, greatest(0, dur_ns - wait_ns - checkpoint_ns - optimizer_ns - own_ns - validation_ns - stall_ns) / 1e9 AS compute_s,
       unoverlapped_ns / 1e9 AS unoverlapped_io_s,
       CASE $by WHEN 'rank' THEN median_ns END / 1e9 AS median_s, CASE $by WHEN 'rank' THEN p95_ns END / 1e9 AS p95_s,
       CASE $by WHEN 'rank' THEN max_ns END / 1e9 AS max_s, busy_ns / 1e9 AS io_s, ops, bytes_read, bytes_written,
       io_ns / 1e9 AS op_s, open, epoch, job, attempt
FROM rows r LEFT JOIN (SELECT cluster, job, attempt, start_ns FROM jobs) j USING (cluster, job, attempt)
ORDER BY job, attempt, cluster, rank NULLS LAST, r.start_ns
