-- DataLoader workers: what each slot of each rank did
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: Python's own files are runtime
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- column rank, worker: worker is the slot; NULL is the rank's own process
-- column ops, bytes_read, bytes_written: calls, and what they transferred
-- column read_s, write_s, meta_s: time in reads, writes, and everything else
-- column errors: calls that failed
-- column procs: processes that filled the slot, one after another
-- column node, job: where
SELECT rank, worker, sum(count) AS ops,
       coalesce(sum(bytes) FILTER (class = 'read'), 0) AS bytes_read,
       coalesce(sum(bytes) FILTER (class = 'write'), 0) AS bytes_written,
       coalesce(sum(dur_ns) FILTER (class = 'read'), 0) / 1e9 AS read_s,
       coalesce(sum(dur_ns) FILTER (class = 'write'), 0) / 1e9 AS write_s,
       coalesce(sum(dur_ns) FILTER (class NOT IN ('read', 'write')), 0) / 1e9 AS meta_s,
       sum(errors) AS errors, count(DISTINCT proc) AS procs, node, job
FROM rollups
WHERE ($scope = 'all' OR scope = $scope) AND ($rank IS NULL OR rank = $rank)
GROUP BY job, node, rank, worker
ORDER BY job, rank NULLS LAST, node, worker NULLS FIRST
