-- DataLoader workers: what each slot of each rank did
-- arg rank BIGINT NULL: only this rank
-- arg scope VARCHAR data: data, runtime (Python's own files), or all
-- column job, node, rank, worker: worker is the slot; NULL is the rank's own process
-- column procs: processes that filled the slot, one after another
-- column ops, errors: calls, and those that failed
-- column bytes_read, bytes_written: transferred
-- column read_s, write_s, meta_s: time in reads, writes, and everything else
SELECT job, node, rank, worker, count(DISTINCT proc) AS procs, sum(count) AS ops,
       sum(errors) AS errors, coalesce(sum(bytes) FILTER (class = 'read'), 0) AS bytes_read,
       coalesce(sum(bytes) FILTER (class = 'write'), 0) AS bytes_written,
       coalesce(sum(dur_ns) FILTER (class = 'read'), 0) / 1e9 AS read_s,
       coalesce(sum(dur_ns) FILTER (class = 'write'), 0) / 1e9 AS write_s,
       coalesce(sum(dur_ns) FILTER (class NOT IN ('read', 'write')), 0) / 1e9 AS meta_s
FROM rollups
WHERE ($scope = 'all' OR scope = $scope) AND ($rank IS NULL OR rank = $rank)
GROUP BY job, node, rank, worker
ORDER BY job, rank NULLS LAST, node, worker NULLS FIRST
