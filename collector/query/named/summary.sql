-- What each job did, by class of operation: the table that `headrace run` prints at its end
-- arg scope VARCHAR data: data, runtime (Python's own files), or all
-- column job, state: the job, and whether it is running, ended or killed
-- column class: family of operations: open read write seek stat sync close dir meta map
-- column ops, errors: calls, and those that failed
-- column bytes: transferred; NULL where the class moves none
-- column time_s: sum of the durations of all calls of all processes, which overlap
-- column max_s: the longest call
SELECT r.job, any_value(j.state) AS state, r.class, sum(r.count) AS ops, sum(r.errors) AS errors,
       sum(r.bytes) AS bytes, sum(r.dur_ns) / 1e9 AS time_s,
       max(r.max_dur_ns) / 1e9 AS max_s
FROM rollups r
LEFT JOIN jobs j ON j.job = r.job AND j.cluster = r.cluster AND j.attempt = r.attempt
WHERE $scope = 'all' OR r.scope = $scope
GROUP BY r.cluster, r.job, r.attempt, r.class
ORDER BY r.job, time_s DESC, r.class
