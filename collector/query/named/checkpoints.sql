-- Checkpoints, rank by rank: when, how long, and what was written meanwhile, by mount
-- arg name VARCHAR NULL: only regions of this name; NULL: the outermost of kind checkpoint
-- arg gap SECONDS 1: of a job without such regions: writes of a rank begin another checkpoint when this long passed without one
-- arg least BIGINT 1048576: of such a job: bytes that a rank writes in a checkpoint at least
-- known name: SELECT DISTINCT name FROM regions WHERE name IS NOT NULL ORDER BY name
-- column checkpoint: its number in the rank, from 1
-- column rank: workers included in their rank; NULL: processes without one
-- column time_s: when it began, since the job did
-- column dur_s: how long it took
-- column mount: where it was written; a row for each
-- column bytes_written, writes: what the rank wrote there meanwhile, workers included; no events, no bytes. Where checkpoints
-- overlap, writes are of the one that began last: of their own process's, of other processes of the rank's any one's
-- column write_s: sum of the durations of these writes
-- column source: regions: the application said that it was a checkpoint; writes: a burst of writes looks like one
-- column job, attempt: whose
WITH named AS (
    SELECT cluster, job, attempt, node, proc, rank, start_ns, start_ns + dur_ns AS end_ns,
           max(start_ns + dur_ns) OVER (PARTITION BY cluster, job, attempt, rank, CASE WHEN rank IS NULL THEN (node, proc) END
                                        ORDER BY start_ns, dur_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
    FROM regions WHERE CASE WHEN $name IS NULL THEN kind = 'checkpoint' ELSE name = $name END),
writes AS MATERIALIZED (
    SELECT cluster, job, attempt, node, proc, rank, coalesce(rank, -1) AS who, mount, start_ns, end_ns, dur_ns, bytes
    FROM events WHERE class = 'write' AND scope = 'data'),
apart AS (
    SELECT *, coalesce(start_ns - max(end_ns) OVER (PARTITION BY cluster, job, attempt, who ORDER BY start_ns
                                                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                       > $gap * 1e9, true) AS begins
    FROM writes ANTI JOIN named USING (cluster, job, attempt)
    WHERE $name IS NULL),
counted AS (
    SELECT *, count(*) FILTER (begins) OVER (PARTITION BY cluster, job, attempt, who ORDER BY start_ns
                                             ROWS UNBOUNDED PRECEDING) AS burst
    FROM apart),
spans AS (
    SELECT 'regions' AS source, cluster, job, attempt, rank, node, proc, start_ns, end_ns
    FROM named WHERE reached_ns IS NULL OR end_ns > reached_ns
    UNION ALL
    SELECT 'writes', cluster, job, attempt, rank, NULL, NULL, min(start_ns), max(end_ns)
    FROM counted GROUP BY cluster, job, attempt, rank, burst HAVING sum(bytes) >= $least),
numbered AS (
    SELECT *, coalesce(rank, -1) AS who,
           row_number() OVER (PARTITION BY cluster, job, attempt, rank ORDER BY start_ns) AS checkpoint
    FROM spans),
own AS (
    SELECT w.*, n.checkpoint, n.end_ns AS until_ns
    FROM writes w ASOF JOIN numbered n
      ON w.cluster = n.cluster AND w.job = n.job AND w.attempt = n.attempt AND w.who = n.who AND w.node = n.node
         AND w.proc = n.proc AND w.start_ns >= n.start_ns
    UNION ALL
    SELECT w.*, n.checkpoint, n.end_ns
    FROM (FROM writes ANTI JOIN numbered USING (cluster, job, attempt, node, proc)) w ASOF JOIN numbered n
      ON w.cluster = n.cluster AND w.job = n.job AND w.attempt = n.attempt AND w.who = n.who AND w.start_ns >= n.start_ns),
within AS (
    SELECT cluster, job, attempt, who, checkpoint, mount, count(*) AS writes, sum(bytes) AS bytes, sum(dur_ns) AS dur_ns
    FROM own WHERE start_ns < until_ns GROUP BY ALL)
SELECT checkpoint, rank, ((n.start_ns - j.start_ns) / 1e9)::DECIMAL(19, 6) AS time_s, (end_ns - n.start_ns) / 1e9 AS dur_s,
       mount, coalesce(bytes, 0) AS bytes_written, coalesce(writes, 0) AS writes, coalesce(dur_ns, 0) / 1e9 AS write_s,
       source, job, attempt
FROM numbered n LEFT JOIN within USING (cluster, job, attempt, who, checkpoint)
     LEFT JOIN (SELECT cluster, job, attempt, start_ns FROM jobs) j USING (cluster, job, attempt)
ORDER BY job, attempt, cluster, checkpoint, rank NULLS LAST, mount
