-- Time during which a rank had at least one operation in flight: intervals that overlap count once
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- shown: rank io_s sum_s span_s ops
-- column rank: includes its workers; NULL: processes without a rank
-- column io_s: the union of the intervals of its operations
-- column sum_s: the sum of their durations, which may exceed the wall clock
-- column span_s: time from its first to its last operation
-- column ops: number of operations
-- column job, attempt: job of the row
SELECT rank, busy_ns / 1e9 AS io_s, dur_ns / 1e9 AS sum_s, (last_ns - first_ns) / 1e9 AS span_s, count AS ops, job,
       attempt
FROM hr_busy(scope := $scope)
ORDER BY job, attempt, cluster, rank NULLS LAST
