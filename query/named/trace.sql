-- Regions and long operations as Chrome trace events: with --format json for Perfetto or chrome://tracing
-- json: members that are NULL are left out
-- arg longer SECONDS 0.001: minimum duration of operations, which are shown in addition to all regions
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- column name: name of the region or operation
-- column cat: kind of the region; io for operations
-- column ph: X: a slice of its thread; b, e: begin and end of a slice in a line of its own; i: a moment, or short regions that were added up;
-- M: name of a process or thread
-- column ts, dur: begin in microseconds since the first job began, and duration of X
-- column pid: a number per process of all nodes, as the format requires
-- column tid: thread
-- column id2: for b and e: the line of the process in which they are drawn
-- column args: JSON: what the application reported, step, epoch, domain; count, sum_us of short regions that were added up; path, bytes of operations; open: the region had not ended
WITH slices AS MATERIALIZED (
    SELECT *, row_number() OVER () AS slice FROM (
        SELECT cluster, job, attempt, node, proc, tid, coalesce(name, kind) AS name, coalesce(kind, 'region') AS cat, start_ns, dur_ns,
               -- Of short regions that were added up, only the start of the first one is known.
               count > 1 OR kind IS NOT DISTINCT FROM 'mark' AS moment,
               CASE WHEN kind IN ('step', 'epoch', 'span') THEN kind ELSE '' END AS line,
               -- The empty object removes members that are null. The application's args keep theirs.
               json_merge_patch(
                   json_merge_patch('{}', json_object(
                       'step', step, 'epoch', epoch, 'domain', domain, 'category', category,
                       'count', CASE WHEN count > 1 THEN count END, 'sum_us', CASE WHEN count > 1 THEN dur_ns / 1e3 END,
                       'open', CASE open WHEN 1 THEN true END)),
                   CASE WHEN json_type(TRY_CAST(args AS JSON)) = 'OBJECT' THEN args ELSE '{}' END) AS args
        FROM regions WHERE $rank IS NULL OR rank = $rank
        UNION ALL
        -- An asynchronous operation lasts until the kernel completes it, which is longer than a call of the thread.
        SELECT cluster, job, attempt, node, proc, tid, op, 'io', start_ns, dur_ns, false, CASE WHEN api IN ('aio', 'uring') THEN api ELSE '' END,
               json_merge_patch('{}', json_object('path', path, 'bytes', bytes, 'errno', errno))
        FROM events
        WHERE dur_ns > $longer * 1e9 AND ($scope = 'all' OR scope = $scope) AND ($rank IS NULL OR rank = $rank))),
known AS (
    SELECT cluster, job, attempt, node, proc, pid, exe, rank, worker, row_number() OVER (ORDER BY job, attempt, cluster, rank NULLS LAST, worker NULLS FIRST, node, proc) AS n
    FROM processes p SEMI JOIN slices USING (cluster, job, attempt, node, proc)),
-- The begin and the end of each slice, sorted like brackets. At the same moment, ends come first (the innermost slice first), then begins
-- (the longest slice first), then slices without duration.
ends AS MATERIALIZED (
    SELECT s.*, n, last, s.start_ns + CASE WHEN last THEN dur_ns ELSE 0 END AS ns,
           CASE WHEN moment OR dur_ns = 0 THEN 2 WHEN last THEN 0 ELSE 1 END AS turn,
           CASE WHEN moment THEN 0 WHEN last THEN dur_ns ELSE -dur_ns END AS inner_first,
           CASE WHEN last AND dur_ns > 0 THEN -slice ELSE slice END AS tie,
           CASE WHEN last THEN -1 ELSE 1 END * hash(slice)::HUGEINT AS weight
    FROM slices s JOIN known k USING (cluster, job, attempt, node, proc) CROSS JOIN (VALUES (false), (true)) AS v(last)
    WHERE NOT (moment AND last)),
-- Finds slices that begin within another slice and end after it, because viewers would drop them. Each slice has a weight: positive at
-- its begin, negative at its end. Within a slice that crosses no other slice, the weights add up to zero.
crossing AS (
    SELECT slice FROM (
        SELECT slice, last, weight, sum(weight) OVER (
                   PARTITION BY n, tid, line ORDER BY ns, turn, inner_first, tie, last ROWS UNBOUNDED PRECEDING) AS level
        FROM ends WHERE NOT moment)
    GROUP BY slice HAVING sum(CASE WHEN last THEN level ELSE weight - level END) <> 0),
-- A thread has one row of slices for its calls, one for steps, one for epochs and one for each kind of asynchronous operation. Each span
-- has a row of its own, and so has each slice that crosses another slice.
drawn AS (
    SELECT e.*, CASE WHEN moment THEN NULL
                     WHEN c.slice IS NOT NULL OR line = 'span' THEN concat_ws(' ', tid, nullif(line, ''), e.slice)
                     WHEN line <> '' THEN concat_ws(' ', tid, line) END AS apart
    FROM ends e LEFT JOIN crossing c USING (slice)),
rows AS (
    SELECT name, cat, CASE WHEN moment THEN 'i' WHEN apart IS NULL THEN 'X' WHEN last THEN 'e' ELSE 'b' END AS ph,
           (ns - (SELECT min(start_ns) FROM jobs)) / 1e3 AS ts, CASE WHEN apart IS NULL AND NOT moment THEN dur_ns / 1e3 END AS dur,
           n AS pid, tid, CASE WHEN apart IS NOT NULL THEN json_object('local', apart) END AS id2,
           CASE WHEN last THEN '{}'::JSON ELSE args END AS args, ns, turn, inner_first, tie, last
    FROM drawn WHERE apart IS NOT NULL OR NOT last
    UNION ALL
    SELECT 'process_name', '__metadata', 'M', 0, NULL, n, pid, NULL,
           json_object('name', concat_ws(' ', 'rank ' || rank, CASE WHEN rank IS NULL THEN parse_filename(exe) END, 'worker ' || worker,
                                         '(' || pid || ')', CASE WHEN (SELECT count(DISTINCT node) FROM known) > 1 THEN 'on ' || node END)),
           NULL, -2, 0, 0, false
    FROM known
    UNION ALL
    SELECT DISTINCT 'thread_name', '__metadata', 'M', 0, NULL, n, tid, NULL,
           json_object('name', CASE WHEN tid = pid THEN 'main' ELSE 'thread' END), NULL, -1, 0, 0, false
    FROM slices s JOIN known k USING (cluster, job, attempt, node, proc))
SELECT name, cat, ph, ts, dur, pid, tid, id2, args FROM rows
ORDER BY ns NULLS FIRST, turn, inner_first, tie, last, pid, tid
