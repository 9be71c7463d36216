-- What the slowest waits for input were spent on: files, mounts, operations, workers
-- arg by file|folder|mount|op|worker|wait file: one row per file, folder, ...; wait: one row per wait
-- arg longer SECONDS NULL: only waits of at least this length; NULL: the longest tenth of each rank
-- arg rank BIGINT NULL: only this rank
-- arg top COUNT 50: maximum number of rows
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT format('no waits for input were recorded of job {}: PyTorch reports them under headrace run; other programs can mark them with HEADRACE_INPUT_WAIT of headrace.h', string_agg(DISTINCT job, ', ' ORDER BY job)) FROM jobs ANTI JOIN (SELECT DISTINCT cluster, job, attempt FROM regions WHERE kind = 'input_wait') USING (cluster, job, attempt) HAVING count(*) > 0
-- column what: path, folder, mount, operation, worker (`rank 0 worker 3`; `rank 0`: its own process) or wait (`rank 0 at 12.5 s`); `(no
-- I/O: a worker made a batch)`: time without I/O of the rank; `(no I/O, no worker made a batch)`: without a fetch of a worker, too.
-- Workers have the numbers of torch if known, else slots; with several loaders that have workers: `rank 0 loader 1 worker 3`
-- column waited_s: time in these waits during which it was in flight, added up over concurrent operations. By worker: time during
-- which it made a batch or had I/O in flight. By wait: its length
-- column percent: waited_s as a share of the length of all these waits
-- column waits: number of these waits in which it was in flight
-- column ops, bytes: operations in flight in these waits, once per wait, and the bytes that they moved
-- column op_s: mean duration of these operations, including the parts outside of the waits
-- column bytes_per_s: bytes per second of their durations
-- column ranks: ranks that waited
WITH every AS MATERIALIZED (
    SELECT *, coalesce(rank, -1) AS who, start_ns + dur_ns AS end_ns
    FROM hr_during(kind := 'input_wait', scope := $scope, rank := $rank)
    WHERE count = 1 AND dur_ns > 0),
waits AS MATERIALIZED (
    SELECT cluster, job, attempt, rank, who, start_ns, end_ns, dur_ns, busy_ns, made_ns - made_busy_ns AS made_ns, row_number() OVER () AS wait
    FROM (SELECT *, quantile_disc(dur_ns, 0.9) OVER (PARTITION BY cluster, job, attempt, who) AS slow_ns FROM every)
    WHERE dur_ns >= coalesce($longer * 1e9, slow_ns)),
pieces AS MATERIALIZED (SELECT *, unnest(hr_pieces(start_ns, end_ns)) AS piece FROM waits),
operations AS (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, coalesce(loader_worker, worker) AS worker, coalesce(loader, -1) AS loader, op, path, mount, bytes, start_ns, end_ns, dur_ns,
           hr_piece(start_ns, dur_ns) AS piece
    FROM events
    WHERE ($scope = 'all' OR scope = $scope) AND dur_ns > 0),
fetches AS (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, coalesce(loader_worker, worker) AS worker, coalesce(loader, -1) AS loader, start_ns, start_ns + dur_ns AS end_ns,
           hr_piece(start_ns, dur_ns) AS piece
    FROM regions
    WHERE $by = 'worker' AND kind = 'fetch' AND worker IS NOT NULL AND count = 1 AND dur_ns > 0),
met AS (
    SELECT CASE $by WHEN 'file' THEN coalesce(path, '(no path)')
                    WHEN 'folder' THEN coalesce(nullif(regexp_replace(path, '/[^/]*$', ''), ''), CASE WHEN path IS NULL THEN '(no path)' ELSE '/' END)
                    WHEN 'mount' THEN coalesce(mount, '(no mount)') WHEN 'op' THEN op WHEN 'wait' THEN p.wait::VARCHAR END AS what,
           CASE $by WHEN 'worker' THEN coalesce(worker, -1) END AS worker, o.loader,
           p.wait, o.who, bytes, o.dur_ns, least(o.end_ns, p.end_ns) - greatest(o.start_ns, p.start_ns) AS both_ns
    FROM operations o JOIN pieces p USING (cluster, job, attempt, who, piece)
    WHERE o.start_ns < p.end_ns AND o.end_ns > p.start_ns),
made AS (
    SELECT p.wait, f.who, worker, loader, sum(least(f.end_ns, p.end_ns) - greatest(f.start_ns, p.start_ns)) AS made_ns
    FROM fetches f JOIN pieces p USING (cluster, job, attempt, who, piece)
    WHERE f.start_ns < p.end_ns AND f.end_ns > p.start_ns
    GROUP BY p.wait, f.who, worker, loader),
several AS (
    SELECT coalesce(rank, -1) AS who FROM processes WHERE worker IS NOT NULL AND loader IS NOT NULL GROUP BY cluster, job, attempt, rank HAVING count(DISTINCT loader) > 1),
-- A worker's I/O is usually part of its fetches.
by_worker AS (
    SELECT format('{}{}{}', CASE who WHEN -1 THEN 'no rank' ELSE format('rank {}', who) END,
                  CASE WHEN loader >= 0 AND who IN (SELECT who FROM several) THEN format(' loader {}', loader) ELSE '' END,
                  CASE worker WHEN -1 THEN '' ELSE format(' worker {}', worker) END) AS what,
           greatest(coalesce(io_ns, 0), coalesce(made_ns, 0)) AS both_ns, wait, who, coalesce(ops, 0) AS ops, bytes, dur_ns
    FROM (SELECT wait, who, worker, loader, sum(both_ns) AS io_ns, count(*) AS ops, sum(bytes) AS bytes, sum(dur_ns) AS dur_ns
          FROM met WHERE $by = 'worker' GROUP BY wait, who, worker, loader) FULL JOIN made USING (wait, who, worker, loader)),
blamed AS (
    SELECT what, sum(both_ns) AS both_ns, count(DISTINCT wait) AS waits, count(*) AS ops,
           coalesce(sum(bytes), 0) AS bytes, sum(dur_ns) AS dur_ns, count(DISTINCT who) AS ranks
    FROM met WHERE $by <> 'worker' GROUP BY what
    UNION ALL
    SELECT what, sum(both_ns), count(DISTINCT wait), sum(ops), coalesce(sum(bytes), 0), sum(dur_ns), count(DISTINCT who)
    FROM by_worker GROUP BY what
    UNION ALL
    SELECT '(no I/O: a worker made a batch)', sum(made_ns), count(*) FILTER (made_ns > 0), 0, 0, NULL, count(DISTINCT who) FILTER (made_ns > 0)
    FROM waits WHERE $by NOT IN ('wait', 'worker') HAVING sum(made_ns) > 0
    UNION ALL
    SELECT '(no I/O, no worker made a batch)', sum(ns), count(*) FILTER (ns > 0), 0, 0, NULL, count(DISTINCT who) FILTER (ns > 0)
    FROM (SELECT who, dur_ns - busy_ns - made_ns AS ns FROM waits WHERE $by <> 'wait') HAVING sum(ns) > 0),
named AS (
    SELECT * FROM blamed WHERE $by <> 'wait'
    UNION ALL
    SELECT format('{} at {:.6f} s', CASE w.who WHEN -1 THEN 'no rank' ELSE format('rank {}', w.who) END,
                  (w.start_ns - j.start_ns) / 1e9),
           w.dur_ns, 1, coalesce(ops, 0), coalesce(bytes, 0), b.dur_ns, 1
    FROM waits w LEFT JOIN blamed b ON b.what = w.wait::VARCHAR
         LEFT JOIN (SELECT cluster, job, attempt, start_ns FROM jobs) j USING (cluster, job, attempt)
    WHERE $by = 'wait')
SELECT what, both_ns / 1e9 AS waited_s, 100.0 * both_ns / (SELECT sum(dur_ns) FROM waits) AS percent, waits, ops, bytes,
       dur_ns / nullif(ops, 0) / 1e9 AS op_s, bytes / nullif(dur_ns / 1e9, 0) AS bytes_per_s, ranks
FROM named
ORDER BY waited_s DESC, what
LIMIT $top
