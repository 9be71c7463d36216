-- The nodes of each job
-- column node, state: running, ended, or killed: the recording there was cut short, its daemon killed or told to stop
-- column ranks, procs: seen there
-- column events, stored_bytes: single operations, and what all its data takes on disk
-- column clock_error_s: how far its clock sample may be off
-- column streams: daemons of the job there, one after another
-- column job, attempt, cluster: whose
WITH p AS (
    SELECT cluster, job, attempt, node, count(DISTINCT rank) AS ranks, count(*) AS procs
    FROM processes GROUP BY cluster, job, attempt, node),
n AS (
    SELECT cluster, job, attempt, node, sum(events) AS events, sum(stored_bytes) AS stored_bytes,
           max(clock_error_ns) / 1e9 AS clock_error_s, count(*) AS streams,
           arg_min(state, list_position(['running', 'killed', 'ended'], state)) AS state
    FROM nodes GROUP BY cluster, job, attempt, node)
SELECT node, state, ranks, procs, events, stored_bytes, clock_error_s, streams, job, attempt, cluster
FROM n LEFT JOIN p USING (cluster, job, attempt, node)
ORDER BY job, attempt, cluster, node
