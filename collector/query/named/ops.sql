-- Calls by name: how many, how long, how much
-- arg scope VARCHAR data: data, runtime (Python's own files), or all
-- arg mount VARCHAR NULL: only files below this mount point
-- column op, class, api: the libc name, its family, and posix, stdio, aio or mmap
-- column ops, errors: calls, and those that failed
-- column bytes: transferred; NULL where the call moves none
-- column time_s, mean_us, max_s: durations: their sum over all processes, mean and longest
SELECT op, class, api, sum(count) AS ops, sum(errors) AS errors, sum(bytes) AS bytes,
       sum(dur_ns) / 1e9 AS time_s, round(sum(dur_ns) / 1e3 / sum(count), 3) AS mean_us,
       max(max_dur_ns) / 1e9 AS max_s
FROM rollups
WHERE ($scope = 'all' OR scope = $scope) AND ($mount IS NULL OR mount = $mount)
GROUP BY op, class, api
ORDER BY ops DESC, op
