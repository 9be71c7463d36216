-- Ranks side by side: who reads, who writes, who waits longest
-- arg scope VARCHAR data: data, runtime (Python's own files), or all
-- column job, rank, node: NULL rank: processes without one
-- column procs, workers: processes of the rank, and DataLoader workers among them
-- column ops, errors: calls, and those that failed
-- column bytes_read, bytes_written: transferred
-- column read_s, write_s, meta_s: time in reads, writes, and everything else, summed over its processes
SELECT job, rank, min(node) AS node, count(DISTINCT (node, proc)) AS procs,
       count(DISTINCT (node, proc)) FILTER (worker IS NOT NULL) AS workers, sum(count) AS ops,
       sum(errors) AS errors, coalesce(sum(bytes) FILTER (class = 'read'), 0) AS bytes_read,
       coalesce(sum(bytes) FILTER (class = 'write'), 0) AS bytes_written,
       coalesce(sum(dur_ns) FILTER (class = 'read'), 0) / 1e9 AS read_s,
       coalesce(sum(dur_ns) FILTER (class = 'write'), 0) / 1e9 AS write_s,
       coalesce(sum(dur_ns) FILTER (class NOT IN ('read', 'write')), 0) / 1e9 AS meta_s
FROM rollups
WHERE $scope = 'all' OR scope = $scope
GROUP BY job, rank
ORDER BY job, rank NULLS LAST
