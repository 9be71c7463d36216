-- Waits for input: how long each rank waited, and what the workers that made its batches did meanwhile
-- arg rank BIGINT NULL: only this rank
-- arg by rank|loader rank: one row per rank, or per DataLoader of each rank, if waits have a loader
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT * FROM hr_unrecorded('input_wait', 'waits for input', 'HEADRACE_INPUT_WAIT of headrace.h')
-- shown: rank loader wait_s wait_percent mostly waits median_s p95_s max_s loop_s
-- column rank: NULL: processes without a rank
-- column loader: number of the DataLoader, in the order in which its process created them; NULL: unknown, or by=rank
-- column wait_s, wait_percent: time in waits (the sum of the columns read_s to hidden_s), and its share of loop_s
-- column mostly: the largest of the columns read_s to hidden_s
-- column waits: number of waits; without those that got no batch because none was left (end_s)
-- column median_s, p95_s, max_s: durations of ended waits; waits that were added up count with their mean
-- column read_s, metadata_s, write_s: waits while the worker of the batch read a file; opened, examined or listed files; wrote a file
-- column runtime_s: waits while this worker used files of the Python installation
-- column cpu_s, core_s: waits while the worker computed; while it could run, but had no core
-- column fault_s: waits while the worker waited for pages of mapped files
-- column sleep_s, network_s, lock_s: waits while the worker slept; while it waited for a socket; while it waited for a lock
-- column asleep_s: waits while the worker did none of these
-- column unknown_s: waits for a worker that is unknown, or that reported no CPU time
-- column worker_start_s, prefetch_s: waits while the worker started; waits before an idle worker began the batch
-- column handover_s, end_s: waits for a finished batch; waits at the end of a loop, without a batch
-- column hidden_s: waits, or first parts of them, in which the accelerator still worked, so that they cost no time
-- column workers: the largest num_workers of its loaders; NULL: unknown
-- column loop_s: time in loops over loaders, training and validation, and in steps
-- column job, attempt: job of the row
WITH marked AS (
    SELECT cluster, job, attempt, node, proc, tid, coalesce(rank, -1) AS who, count, start_ns, dur_ns, start_ns + dur_ns AS end_ns,
           coalesce(CASE $by WHEN 'loader' THEN try_cast(args[1] AS BIGINT) END, -1) AS feed, try_cast(args[2] AS BIGINT) AS workers,
           CASE WHEN args[3] = 'true' THEN 0 ELSE count END AS waits, CASE WHEN open = 0 THEN waits ELSE 0 END AS ended
    FROM (SELECT * EXCLUDE args, json_extract_string(try_cast(args AS JSON), ['$.loader', '$.workers', '$.end']) AS args
          FROM regions WHERE kind = 'input_wait' AND worker IS NULL AND ($rank IS NULL OR rank = $rank))),
outermost AS (
    SELECT *, dur_ns / count AS each_ns
    FROM (SELECT *, max(CASE count WHEN 1 THEN end_ns ELSE start_ns END)
                        OVER (PARTITION BY cluster, job, attempt, node, proc, tid ORDER BY start_ns, dur_ns DESC
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
          FROM marked)
    WHERE reached_ns IS NULL OR start_ns >= reached_ns OR (count = 1 AND end_ns > reached_ns)),
sorted AS (
    SELECT *, sum(ended) OVER (PARTITION BY cluster, job, attempt, who, feed ORDER BY each_ns ROWS UNBOUNDED PRECEDING) AS so_many,
           sum(ended) OVER (PARTITION BY cluster, job, attempt, who, feed) AS of_many
    FROM outermost),
lengths AS (
    SELECT cluster, job, attempt, who, feed, sum(waits) AS waits, max(workers) AS workers,
           min(each_ns) FILTER (ended > 0 AND so_many >= 0.5 * of_many) AS median_ns,
           min(each_ns) FILTER (ended > 0 AND so_many >= 0.95 * of_many) AS p95_ns, max(each_ns) FILTER (ended > 0) AS max_ns
    FROM sorted GROUP BY cluster, job, attempt, who, feed),
by_part AS (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, coalesce(CASE $by WHEN 'loader' THEN loop_loader END, -1) AS feed, part,
           starts_with(part, 'wait_') AS waiting, sum(ns) AS ns, sum(ns) FILTER (phase IN ('train', 'validation')) AS loop_ns
    FROM parts GROUP BY ALL),
spent AS (
    SELECT cluster, job, attempt, who, feed, sum(loop_ns) AS loop_ns, coalesce(sum(ns) FILTER (waiting), 0) AS wait_ns,
           arg_max(substr(part, 6), (ns, part)) FILTER (waiting) AS mostly, map_from_entries(list((substr(part, 6), ns)) FILTER (waiting)) AS ns
    FROM by_part GROUP BY cluster, job, attempt, who, feed)
SELECT nullif(who, -1) AS rank, nullif(feed, -1) AS loader, wait_ns / 1e9 AS wait_s, 100.0 * wait_ns / nullif(loop_ns, 0) AS wait_percent,
       mostly, waits, median_ns / 1e9 AS median_s, p95_ns / 1e9 AS p95_s, max_ns / 1e9 AS max_s,
       coalesce(ns['read'], 0) / 1e9 AS read_s, coalesce(ns['metadata'], 0) / 1e9 AS metadata_s,
       coalesce(ns['write'], 0) / 1e9 AS write_s, coalesce(ns['runtime'], 0) / 1e9 AS runtime_s,
       coalesce(ns['cpu'], 0) / 1e9 AS cpu_s, coalesce(ns['core'], 0) / 1e9 AS core_s,
       coalesce(ns['fault'], 0) / 1e9 AS fault_s, coalesce(ns['sleep'], 0) / 1e9 AS sleep_s,
       coalesce(ns['network'], 0) / 1e9 AS network_s, coalesce(ns['lock'], 0) / 1e9 AS lock_s, coalesce(ns['asleep'], 0) / 1e9 AS asleep_s,
       coalesce(ns['unknown'], 0) / 1e9 AS unknown_s, coalesce(ns['worker_start'], 0) / 1e9 AS worker_start_s,
       coalesce(ns['prefetch'], 0) / 1e9 AS prefetch_s, coalesce(ns['handover'], 0) / 1e9 AS handover_s,
       coalesce(ns['end'], 0) / 1e9 AS end_s, coalesce(ns['hidden'], 0) / 1e9 AS hidden_s, workers, loop_ns / 1e9 AS loop_s, job, attempt
FROM lengths LEFT JOIN spent USING (cluster, job, attempt, who, feed)
ORDER BY job, attempt, cluster, who = -1, who, feed = -1, feed
