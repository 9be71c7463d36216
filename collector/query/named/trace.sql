-- Regions and long operations as Chrome trace events: with --format json for Perfetto or chrome://tracing
-- arg longer SECONDS 0.001: operations that took longer than this, beside all regions
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: operations on Python's own files are runtime
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- column name: of the region, or the operation
-- column cat: the region's kind; io
-- column ph: X: lasts dur; b, e: a step, epoch or span begins, ends; M: names a process
-- column ts, dur: microseconds, since the first job began; of short regions that were added up the mean
-- column pid: a number for each process of all nodes, as the format wants it
-- column tid: thread
-- column id: of b and e: the line that they are drawn in
-- column args: JSON: what the application said, step, epoch, domain; path, bytes of operations; open: it had not ended
WITH said AS (
    SELECT cluster, job, attempt, node, proc, tid, coalesce(name, kind) AS name, coalesce(kind, 'region') AS cat, start_ns,
           dur_ns // count AS dur_ns,
           CASE kind WHEN 'step' THEN 1 WHEN 'epoch' THEN 2 WHEN 'span' THEN 2 + row_number() OVER () END AS line,
           -- Members that are null go, and what the application said stays.
           json_merge_patch(
               json_merge_patch('{}', json_object(
                   'step', step, 'epoch', epoch, 'domain', domain, 'category', category,
                   'count', CASE WHEN count > 1 THEN count END, 'sum_us', CASE WHEN count > 1 THEN dur_ns / 1e3 END,
                   'open', CASE open WHEN 1 THEN true END)),
               CASE WHEN json_type(TRY_CAST(args AS JSON)) = 'OBJECT' THEN args ELSE '{}' END) AS args
    FROM regions WHERE $rank IS NULL OR rank = $rank
    UNION ALL
    SELECT cluster, job, attempt, node, proc, tid, op, 'io', start_ns, dur_ns, NULL,
           json_merge_patch('{}', json_object('path', path, 'bytes', bytes, 'errno', errno))
    FROM events
    WHERE dur_ns > $longer * 1e9 AND ($scope = 'all' OR scope = $scope) AND ($rank IS NULL OR rank = $rank)),
known AS (
    SELECT p.*, row_number() OVER (ORDER BY job, attempt, cluster, rank NULLS LAST, worker NULLS FIRST, node, proc) AS n
    FROM processes p SEMI JOIN said USING (cluster, job, attempt, node, proc)),
-- Each process has a line for its steps and one for its epochs, each span has its own.
numbered AS (
    SELECT s.*, CASE WHEN line <= 2 THEN 2 * (n - 1) + line ELSE 2 * (SELECT count(*) FROM known) + line - 2 END AS id,
           (s.start_ns - (SELECT min(start_ns) FROM jobs)) / 1e3 AS ts, s.dur_ns / 1e3 AS dur, n
    FROM said s JOIN known k USING (cluster, job, attempt, node, proc)),
-- Of what begins at one moment the longest comes first; an end comes before what begins then, but not before its own beginning.
rows AS (
    SELECT name, cat, CASE WHEN id IS NULL THEN 'X' ELSE 'b' END AS ph, ts, CASE WHEN id IS NULL THEN dur END AS dur, n AS pid,
           tid, id, args, CASE WHEN id IS NULL THEN 2 ELSE 1 END AS turn, dur AS lasts
    FROM numbered
    UNION ALL
    SELECT name, cat, 'e', ts + dur, NULL, n, tid, id, '{}'::JSON, CASE WHEN dur > 0 THEN 0 ELSE 1 END, -1
    FROM numbered WHERE id IS NOT NULL
    UNION ALL
    SELECT 'process_name', '__metadata', 'M', 0, NULL, n, pid, NULL,
           json_object('name', concat_ws(' ', 'rank ' || rank, CASE WHEN rank IS NULL THEN parse_filename(exe) END, 'worker ' || worker,
                                         '(' || pid || ')', CASE WHEN (SELECT count(DISTINCT node) FROM known) > 1 THEN 'on ' || node END)),
           -1, 0
    FROM known)
SELECT name, cat, ph, ts, dur, pid, tid, id, args FROM rows
ORDER BY turn = -1 DESC, ts, turn, lasts DESC, pid, tid, name
