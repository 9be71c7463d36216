-- The nodes of each job
-- shown: node state ranks procs events stored_bytes clock_offset_s streams
-- column node, state: running; silent: its headraced sends nothing to the collector; ended; killed: the recording was cut short,
-- because headraced was killed or stopped, or an operator has closed the job (headrace-collector close-job)
-- column ranks, procs: ranks and processes on the node
-- column events, stored_bytes: number of recorded events, and disk space of all data of the node
-- column clock_offset_s, clock_error_s: clock of the node minus that of the collector, and the largest error; NULL without a collector
-- column streams: number of headraced processes of the job on the node, one after another
-- column job, attempt, cluster: job of the row
WITH p AS (
    SELECT cluster, job, attempt, node, count(DISTINCT rank) AS ranks, count(*) AS procs
    FROM processes GROUP BY cluster, job, attempt, node),
n AS (
    SELECT cluster, job, attempt, node, sum(events) AS events, sum(stored_bytes) AS stored_bytes,
           arg_max(clock_offset_ns, (abs(clock_offset_ns), clock_offset_ns)) / 1e9 AS clock_offset_s,
           max(clock_error_ns) / 1e9 AS clock_error_s, count(*) AS streams,
           arg_min(state, list_position(['running', 'silent', 'killed', 'ended'], state)) AS state
    FROM nodes GROUP BY cluster, job, attempt, node)
SELECT node, state, ranks, procs, events, stored_bytes, clock_offset_s, clock_error_s, streams, job, attempt, cluster
FROM n LEFT JOIN p USING (cluster, job, attempt, node)
ORDER BY job, attempt, cluster, node
