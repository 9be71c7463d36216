-- What the main process and its workers did at the time of the longest wait for a batch
WITH longest AS MATERIALIZED (
    SELECT node, proc, rank, start_ns, dur_ns FROM hr_waits(longest := 'true') SEMI JOIN chosen USING (cluster, job, attempt)
    ORDER BY dur_ns DESC, start_ns LIMIT 1),
frame AS MATERIALIZED (
    SELECT l.node, l.proc, l.rank, l.start_ns - dur_ns // 2 AS from_ns, l.start_ns + 2 * dur_ns AS to_ns, c.start_ns AS zero_ns FROM longest l, chosen c),
family AS MATERIALIZED (
    SELECT p.node, p.proc, CASE WHEN p.worker IS NULL THEN 'training' ELSE format('worker {}', p.worker) END AS lane
    FROM processes p SEMI JOIN chosen USING (cluster, job, attempt) JOIN frame f ON p.node = f.node AND (p.proc = f.proc OR (p.worker IS NOT NULL AND p.rank IS NOT DISTINCT FROM f.rank)))
SELECT lane, what, start_ns - zero_ns AS at_ns, dur_ns, detail FROM (
    SELECT lane, kind AS what, r.start_ns, r.dur_ns, '' AS detail
    FROM hr_regions_of(what := 'longest_wait') r SEMI JOIN chosen USING (cluster, job, attempt) JOIN family USING (node, proc) JOIN frame ON r.start_ns < to_ns AND r.start_ns + r.dur_ns > from_ns
    WHERE count = 1 AND kind IN ('fetch', 'input_wait', 'optimizer', 'checkpoint')
    UNION ALL
    SELECT lane, 'I/O: ' || class, e.start_ns, e.dur_ns, concat_ws(' ', op, path)
    FROM events e SEMI JOIN chosen USING (cluster, job, attempt) JOIN family USING (node, proc) JOIN (FROM frame WHERE (SELECT single FROM detail)) ON e.start_ns < to_ns AND e.end_ns > from_ns
    WHERE e.scope = 'data'), frame
QUALIFY row_number() OVER (PARTITION BY what IN ('fetch', 'input_wait', 'optimizer', 'checkpoint') ORDER BY dur_ns DESC) <= 1500
ORDER BY lane, at_ns
