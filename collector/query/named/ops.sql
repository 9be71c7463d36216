-- Calls by name: how many, how long, how much
-- arg scope data|runtime|all data: Python's own files are runtime
-- arg mount VARCHAR NULL: only files below this mount point
-- known mount: SELECT DISTINCT mount FROM rollups WHERE mount IS NOT NULL ORDER BY mount
-- column op: the libc name
-- column ops: calls
-- column time_s, mean_us, max_s: durations: their sum over all processes, mean and longest
-- column bytes: transferred; NULL where the call moves none
-- column errors: calls that failed
-- column class, api: the call's family, and posix, stdio, aio or mmap
SELECT op, sum(count) AS ops, sum(dur_ns) / 1e9 AS time_s, round(sum(dur_ns) / 1e3 / sum(count), 3) AS mean_us,
       max(max_dur_ns) / 1e9 AS max_s, sum(bytes) AS bytes, sum(errors) AS errors, class, api
FROM rollups
WHERE ($scope = 'all' OR scope = $scope) AND ($mount IS NULL OR mount = $mount)
GROUP BY op, class, api
ORDER BY time_s DESC, op
