-- The streams in the store: one for each daemon of each job
-- column node, state: running, ended, or killed: it stopped without a word
-- column ranks, procs: seen there
-- column events, stored_bytes: single operations, and what all its data takes on disk
-- column clock_error_us: how far its clock sample may be off
-- column job: whose
SELECT n.node, n.state, p.ranks, p.procs, n.events, n.stored_bytes, n.clock_error_ns / 1e3 AS clock_error_us, n.job
FROM nodes n
LEFT JOIN (SELECT cluster, job, attempt, node, count(DISTINCT rank) AS ranks, count(*) AS procs
           FROM processes GROUP BY cluster, job, attempt, node) p
  ON p.job = n.job AND p.node = n.node AND p.cluster = n.cluster AND p.attempt = n.attempt
ORDER BY n.job, n.node
