-- Time in which a rank had at least one operation under way: intervals that overlap count once
-- arg scope data|runtime|all data: Python's own files are runtime
-- column rank: workers included in their rank; NULL: processes without one
-- column io_s: the union of the intervals of its operations
-- column sum_s: the sum of their durations, which may exceed the wall clock
-- column span_s: from the first to the last
-- column ops: operations
-- column job, attempt: whose
WITH e AS (
    SELECT cluster, job, attempt, rank, start_ns, end_ns,
           max(end_ns) OVER (PARTITION BY cluster, job, attempt, rank ORDER BY start_ns
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
    FROM events
    WHERE $scope = 'all' OR scope = $scope)
SELECT rank, sum(greatest(0, end_ns - greatest(start_ns, coalesce(reached_ns, start_ns)))) / 1e9 AS io_s,
       sum(end_ns - start_ns) / 1e9 AS sum_s, (max(end_ns) - min(start_ns)) / 1e9 AS span_s, count(*) AS ops, job,
       attempt
FROM e
GROUP BY cluster, job, attempt, rank
ORDER BY job, attempt, cluster, rank NULLS LAST
