-- Time in which a rank had at least one operation under way: intervals that overlap count once
-- arg scope data|runtime|all data: Python's own files are runtime
-- column rank: workers included in their rank; NULL: processes without one
-- column io_s: the union of the intervals of its operations
-- column sum_s: the sum of their durations, which may exceed the wall clock
-- column span_s: from the first to the last
-- column ops: operations
-- column job, attempt: whose
SELECT rank, busy_ns / 1e9 AS io_s, dur_ns / 1e9 AS sum_s, (last_ns - first_ns) / 1e9 AS span_s, count AS ops, job,
       attempt
FROM hr_busy(scope := $scope)
ORDER BY job, attempt, cluster, rank NULLS LAST
