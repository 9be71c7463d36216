-- What the slowest waits for input were spent on: files, mounts, operations, workers, lines of Python code
-- arg by file|folder|mount|op|worker|wait|line file: one row per file, folder, ...; wait: one row per wait; line: of Python, from samples while batches were made
-- arg longer SECONDS NULL: only waits of at least this length; NULL: the longest tenth of each rank
-- arg rank BIGINT NULL: only this rank
-- arg top COUNT 50: maximum number of rows
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT * FROM hr_unrecorded('input_wait', 'waits for input', 'HEADRACE_INPUT_WAIT of headrace.h')
-- shown: what waited_s percent waits ops bytes op_s bytes_per_s
-- fold: waited_s
-- column what: path, folder, mount, operation, worker (`rank 0 worker 3`; `rank 0`: its own process) or wait (`rank 0 at 12.5 s`);
-- in parentheses: time that was no I/O of this scope, or whose line is not known. Workers have the numbers of torch if known, else headrace's; with several loaders
-- that have workers: `rank 0 loader 1 worker 3`. By line: `data.py:41 Data.__getitem__`
-- column waited_s: part of these waits that it took. As in the table waits, this includes only operations of the worker that made the
-- batch. By worker: waits for batches of this worker. By wait: its length
-- column percent: waited_s as a share of the length of all these waits
-- column waits: number of these waits in which it occurred
-- column ops, bytes: operations in flight in these waits, once per wait, and the bytes that they moved
-- column op_s: mean duration of these operations, including the parts outside of the waits
-- column bytes_per_s: bytes per second of their durations
-- column ranks: ranks that waited
WITH mine AS MATERIALIZED (
    SELECT *, coalesce(rank, -1) AS who FROM waits WHERE ($rank IS NULL OR rank = $rank) AND dur_ns > 0),
slow AS MATERIALIZED (
    SELECT cluster, job, attempt, node, proc, who, start_ns, dur_ns, row_number() OVER () AS wait
    FROM (SELECT *, quantile_disc(dur_ns, 0.9) OVER (PARTITION BY cluster, job, attempt, who) AS slow_ns
          FROM (SELECT DISTINCT cluster, job, attempt, node, proc, who, start_ns, dur_ns FROM mine))
    WHERE dur_ns >= coalesce($longer * 1e9, slow_ns)),
several AS (
    SELECT coalesce(rank, -1) AS who FROM processes WHERE worker IS NOT NULL AND loader IS NOT NULL
    GROUP BY cluster, job, attempt, rank HAVING count(DISTINCT loader) > 1),
makers AS (
    SELECT cluster, job, attempt, node, proc AS maker,
           format('{}{}{}', CASE WHEN rank IS NULL THEN 'no rank' ELSE format('rank {}', rank) END,
                  CASE WHEN loader >= 0 AND coalesce(rank, -1) IN (SELECT who FROM several) THEN format(' loader {}', loader) ELSE '' END,
                  CASE WHEN worker IS NULL THEN '' ELSE format(' worker {}', coalesce(loader_worker, worker)) END) AS name
    FROM processes),
spent AS MATERIALIZED (
    SELECT m.*, wait, hr_is_io(part, $scope) AS io,
           CASE part WHEN 'wait_cpu' THEN format('({} computed)', whose) WHEN 'wait_core' THEN format('({} had no core)', whose)
                     WHEN 'wait_fault' THEN '(pages of mapped files)' WHEN 'wait_asleep' THEN format('({} was asleep)', whose)
                     WHEN 'wait_sleep' THEN format('({} slept)', whose) WHEN 'wait_network' THEN '(the network)' WHEN 'wait_lock' THEN '(a lock)'
                     WHEN 'wait_hidden' THEN '(hidden by the accelerator)'
                     WHEN 'wait_worker_start' THEN '(the worker started)' WHEN 'wait_prefetch' THEN '(the worker had nothing to do)'
                     WHEN 'wait_handover' THEN '(the batch was on its way)' WHEN 'wait_end' THEN '(no batch was left)'
                     WHEN 'wait_runtime' THEN '(files of Python)' WHEN 'wait_unknown' THEN '(not known)' ELSE '(files)' END AS label
    FROM (SELECT *, CASE WHEN maker = proc THEN 'the training thread' ELSE 'the worker' END AS whose FROM mine) m JOIN slow USING (cluster, job, attempt, node, proc, who, start_ns, dur_ns)),
pieces AS MATERIALIZED (
    SELECT cluster, job, attempt, node, maker, who, wait, piece_ns, piece_ns + piece_dur_ns AS piece_end_ns, sum(ns) AS io_ns,
           unnest(hr_pieces(piece_ns, piece_ns + piece_dur_ns)) AS slot
    FROM spent WHERE io GROUP BY cluster, job, attempt, node, maker, who, wait, piece_ns, piece_dur_ns),
-- The parts of fetches between samples of Python's stack. Without workers, the wait is the fetch. A short fetch with a sample stands for others
-- without.
samples AS MATERIALIZED (
    SELECT cluster, job, attempt, node, maker, maker_tid, unnest(lines) AS line, start_ns + unnest(froms) AS from_ns,
           start_ns + unnest(list_append(froms[2:], dur_ns)) AS until_ns, hr_sampled(dur_ns) AS probability
    FROM (SELECT cluster, job, attempt, node, proc AS maker, tid AS maker_tid, start_ns, dur_ns, json_extract_string(args, '$.stacks[*].line') AS lines,
                 json_extract_string(args, '$.stacks[*].from_ns')::BIGINT[] AS froms
          FROM regions WHERE $by = 'line' AND kind IN ('fetch', 'input_wait') AND args LIKE '%"stacks":%')),
lines AS MATERIALIZED (
    SELECT line, label, who, wait,
           ns * (least(until_ns, piece_ns + piece_dur_ns) - greatest(from_ns, piece_ns)) / piece_dur_ns / probability AS ns
    FROM samples JOIN spent USING (cluster, job, attempt, node, maker, maker_tid)
    WHERE from_ns < piece_ns + piece_dur_ns AND until_ns > piece_ns),
-- Samples of short fetches may stand for more time than there is.
sampled AS (
    SELECT label, sum(l.ns) AS sampled_ns, least(1, any_value(whole_ns) / sum(l.ns)) AS factor
    FROM lines l JOIN (SELECT label, sum(ns) AS whole_ns FROM spent GROUP BY label) USING (label) GROUP BY label),
operations AS (
    SELECT cluster, job, attempt, node, proc AS maker, op, path, mount, bytes, start_ns, end_ns, dur_ns, hr_piece(start_ns, dur_ns) AS slot
    FROM events
    WHERE ($scope = 'all' OR scope = $scope) AND dur_ns > 0),
met AS (
    SELECT CASE $by WHEN 'file' THEN coalesce(path, '(no path)')
                    WHEN 'folder' THEN coalesce(nullif(regexp_replace(path, '/[^/]*$', ''), ''), CASE WHEN path IS NULL THEN '(no path)' ELSE '/' END)
                    WHEN 'mount' THEN coalesce(mount, '(no mount)') WHEN 'op' THEN op WHEN 'wait' THEN wait::VARCHAR
                    ELSE name END AS what,
           wait, who, maker, o.start_ns, o.dur_ns, bytes, io_ns, least(o.end_ns, piece_end_ns) - greatest(o.start_ns, piece_ns) AS both_ns,
           both_ns / sum(both_ns) OVER (PARTITION BY wait, piece_ns) * io_ns AS ns
    FROM operations o JOIN pieces p USING (cluster, job, attempt, node, maker, slot) LEFT JOIN makers USING (cluster, job, attempt, node, maker)
    WHERE o.start_ns < piece_end_ns AND o.end_ns > piece_ns),
-- An operation that overlaps with several pieces of a wait counts once.
counted AS (
    SELECT what, sum(ns) AS ns, count(DISTINCT wait) AS waits, count(*) AS ops, coalesce(sum(bytes), 0) AS bytes, sum(dur_ns) AS dur_ns,
           count(DISTINCT who) AS ranks
    FROM (SELECT what, wait, who, maker, start_ns, dur_ns, any_value(bytes) AS bytes, sum(ns) AS ns FROM met GROUP BY ALL)
    GROUP BY what),
others AS (
    SELECT CASE WHEN $by = 'worker' THEN coalesce(name, label) ELSE label END AS what,
           sum(ns) - coalesce(any_value(sampled_ns * factor), 0) AS ns, count(DISTINCT wait) AS waits, count(DISTINCT who) AS ranks
    FROM spent LEFT JOIN makers USING (cluster, job, attempt, node, maker) LEFT JOIN sampled USING (label)
    WHERE $by IN ('worker', 'line') OR ($by <> 'wait' AND NOT io)
    GROUP BY what HAVING $by <> 'line' OR ns >= 1000),
blamed AS (
    SELECT what, ns, waits, ops, bytes, dur_ns, ranks FROM counted WHERE $by NOT IN ('worker', 'wait', 'line')
    UNION ALL
    SELECT line, sum(l.ns * factor), count(DISTINCT wait), 0, 0, NULL, count(DISTINCT who) FROM lines l JOIN sampled USING (label) GROUP BY line
    UNION ALL
    SELECT what, o.ns, o.waits, coalesce(ops, 0), coalesce(bytes, 0), dur_ns, o.ranks FROM others o LEFT JOIN counted c USING (what)
    UNION ALL
    SELECT format('{} at {:.6f} s', CASE who WHEN -1 THEN 'no rank' ELSE format('rank {}', who) END, (w.start_ns - j.start_ns) / 1e9),
           w.dur_ns, 1, coalesce(ops, 0), coalesce(bytes, 0), c.dur_ns, 1
    FROM slow w LEFT JOIN counted c ON c.what = wait::VARCHAR
         LEFT JOIN (SELECT cluster, job, attempt, start_ns FROM jobs) j USING (cluster, job, attempt)
    WHERE $by = 'wait')
SELECT what, ns / 1e9 AS waited_s, 100.0 * ns / (SELECT sum(dur_ns) FROM slow) AS percent, waits, ops, bytes,
       dur_ns / nullif(ops, 0) / 1e9 AS op_s, bytes / nullif(dur_ns / 1e9, 0) AS bytes_per_s, ranks
FROM blamed
ORDER BY waited_s DESC, what
LIMIT $top
