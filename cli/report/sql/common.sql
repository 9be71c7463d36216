-- Tables that all queries of the page share: the newest job, the bins of its time, and the groups of parts in the pictures.
chosen AS MATERIALIZED (
    SELECT cluster, job, attempt, name, "user", state, start_ns, coalesce(end_ns, epoch_ns(now())) AS end_ns, nodes, ranks_seen,
           greatest((coalesce(end_ns, epoch_ns(now())) - start_ns) // 120, 1) AS bin_ns
    FROM jobs ORDER BY start_ns DESC NULLS LAST, attempt DESC LIMIT 1),
-- Whether to read single operations, which show short times. Large jobs and the level `counters` use totals of 10 s.
detail AS MATERIALIZED (
    SELECT (SELECT sum(events) FROM nodes SEMI JOIN chosen USING (cluster, job, attempt)) BETWEEN 1 AND 20000000
           AND NOT EXISTS (FROM levels SEMI JOIN chosen USING (cluster, job, attempt) WHERE level <> 'trace') AS single),
-- Operations over time, by rank and mount. The time of a total of 10 s is its middle.
moved AS MATERIALIZED (
    SELECT rank, mount, fs_type, (e.start_ns - c.start_ns) // bin_ns AS bin, count(*) AS ops, sum(bytes) FILTER (class = 'read') AS bytes_read,
           sum(bytes) FILTER (class = 'write') AS bytes_written, sum(dur_ns) AS dur_ns
    FROM events e JOIN chosen c USING (cluster, job, attempt)
    WHERE (SELECT single FROM detail) AND scope = 'data' GROUP BY ALL
    UNION ALL
    SELECT rank, mount, fs_type, (window_start_ns + 5000000000 - c.start_ns) // bin_ns, sum(count), sum(bytes) FILTER (class = 'read'),
           sum(bytes) FILTER (class = 'write'), sum(dur_ns)
    FROM rollups r JOIN chosen c USING (cluster, job, attempt)
    WHERE NOT (SELECT single FROM detail) AND scope = 'data' GROUP BY ALL),
-- Times of parts by step, for all processes together; where `step` is NULL, by process and bin
placed AS MATERIALIZED (
    SELECT node, proc, rank, phase, step, hr_part_group(part) AS grp,
           starts_with(grp, 'wait') AS waiting, p.start_ns - c.start_ns AS at_ns, at_ns // bin_ns AS bin, ns
    FROM hr_part_sums(pieces := '120') p JOIN chosen c USING (cluster, job, attempt)),
by_process AS MATERIALIZED (SELECT node, proc, rank, grp, sum(ns)::BIGINT AS ns FROM placed WHERE step IS NULL GROUP BY ALL),
found AS MATERIALIZED (FROM findings SEMI JOIN chosen USING (cluster, job, attempt)),
-- A picture has at most 64 rows of ranks. This is the number of ranks that share a row.
rows_of AS MATERIALIZED (
    SELECT greatest(1, ceil((max(rank) + 1) / 64.0))::BIGINT AS ranks FROM processes SEMI JOIN chosen USING (cluster, job, attempt))
