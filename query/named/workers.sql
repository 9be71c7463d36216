-- DataLoader workers: the I/O of each worker of each rank
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- shown: rank worker io_s read_s meta_s opens ops bytes_read
-- column rank, worker: number of the worker in its rank; NULL: the process of the rank itself, and its children that are not workers
-- column loader, loader_worker: numbers of torch for the DataLoader and its worker; NULL: unknown
-- column ops, opens, bytes_read, bytes_written: calls, opens that succeeded, and what was transferred (a copy reads and writes)
-- column io_s, read_s, write_s, meta_s: time in all calls, in reads, in writes, and in other calls
-- column errors: failed calls
-- column procs: processes that had this number, one after another
-- column node, job, attempt: node and job of the worker
SELECT rank, worker, loader, loader_worker,
       sum(count) FILTER (side IS DISTINCT FROM 'copy') AS ops,
       coalesce(sum(count - errors) FILTER (class = 'open'), 0) AS opens,
       coalesce(sum(bytes) FILTER (what = 'read'), 0) AS bytes_read,
       coalesce(sum(bytes) FILTER (what = 'write'), 0) AS bytes_written,
       coalesce(sum(dur_ns) FILTER (what <> 'copy'), 0) / 1e9 AS io_s,
       coalesce(sum(dur_ns) FILTER (what = 'read'), 0) / 1e9 AS read_s,
       coalesce(sum(dur_ns) FILTER (what = 'write'), 0) / 1e9 AS write_s,
       coalesce(sum(dur_ns) FILTER (what = 'other'), 0) / 1e9 AS meta_s,
       sum(errors) AS errors, count(DISTINCT proc) AS procs, node, job, attempt
FROM (SELECT *, hr_what(op, class, side) AS what FROM hr_rollups())
WHERE ($scope = 'all' OR scope = $scope) AND ($rank IS NULL OR rank = $rank)
GROUP BY cluster, job, attempt, node, rank, worker, loader, loader_worker
ORDER BY job, attempt, cluster, rank NULLS LAST, node, worker NULLS FIRST, loader
