-- Tables that all queries of the page share: the newest job, the bins of its time, and the groups of parts in the pictures.
chosen AS MATERIALIZED (
    SELECT cluster, job, attempt, name, "user", state, start_ns, coalesce(end_ns, epoch_ns(now())) AS end_ns, nodes, ranks_seen,
           greatest((coalesce(end_ns, epoch_ns(now())) - start_ns) // 120, 1) AS bin_ns
    FROM jobs ORDER BY start_ns DESC NULLS LAST, attempt DESC LIMIT 1),
-- Whether to read single operations, which show short times. Large jobs and the level `counters` use totals of 10 s.
detail AS MATERIALIZED (
    SELECT (SELECT sum(events) FROM nodes SEMI JOIN chosen USING (cluster, job, attempt)) BETWEEN 1 AND 20000000
           AND NOT EXISTS (FROM levels SEMI JOIN chosen USING (cluster, job, attempt) WHERE level <> 'trace') AS single),
placed AS (
    SELECT node, proc, rank, phase, step, hr_part_group(part) AS grp,
           starts_with(grp, 'wait') AS waiting, p.start_ns - c.start_ns AS at_ns, at_ns // bin_ns AS bin, ns
    FROM parts p JOIN chosen c USING (cluster, job, attempt)),
-- One pass over the parts for all pictures: by process, by step, and by rank and time
summed AS MATERIALIZED (
    SELECT grouping(step) = 0 AS of_step, grouping(bin) = 0 AS of_bin, node, proc, rank, grp, phase, step, bin, waiting, min(at_ns) AS at_ns, sum(ns)::BIGINT AS ns
    FROM placed GROUP BY GROUPING SETS ((node, proc, rank, grp), (phase, step, grp), (rank, bin, waiting))),
by_process AS (SELECT node, proc, rank, grp, ns FROM summed WHERE NOT of_step AND NOT of_bin),
found AS MATERIALIZED (FROM findings SEMI JOIN chosen USING (cluster, job, attempt)),
-- A picture has at most 64 rows of ranks. This is the number of ranks that share a row.
rows_of AS MATERIALIZED (
    SELECT greatest(1, ceil((max(rank) + 1) / 64.0))::BIGINT AS ranks FROM processes SEMI JOIN chosen USING (cluster, job, attempt))
