-- Ranks side by side: who reads, who writes, who waits longest
-- arg scope data|runtime|all data: Python's own files are runtime
-- column rank: NULL: processes without one
-- column workers: DataLoader workers among its processes
-- column ops, bytes_read, bytes_written: calls, and what they transferred
-- column read_s, write_s, meta_s: time in reads, writes, and everything else, summed over its processes
-- column errors: calls that failed
-- column procs: all processes of the rank
-- column node, job: where
SELECT rank, count(DISTINCT (node, proc)) FILTER (worker IS NOT NULL) AS workers, sum(count) AS ops,
       coalesce(sum(bytes) FILTER (class = 'read'), 0) AS bytes_read,
       coalesce(sum(bytes) FILTER (class = 'write'), 0) AS bytes_written,
       coalesce(sum(dur_ns) FILTER (class = 'read'), 0) / 1e9 AS read_s,
       coalesce(sum(dur_ns) FILTER (class = 'write'), 0) / 1e9 AS write_s,
       coalesce(sum(dur_ns) FILTER (class NOT IN ('read', 'write')), 0) / 1e9 AS meta_s,
       sum(errors) AS errors, count(DISTINCT (node, proc)) AS procs, min(node) AS node, job
FROM rollups
WHERE $scope = 'all' OR scope = $scope
GROUP BY job, rank
ORDER BY job, rank NULLS LAST
