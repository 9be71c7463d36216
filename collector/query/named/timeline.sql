-- The job over time: operations and bytes per step of time
-- arg step_s BIGINT 10: length of a step; the recorded windows are 10 s
-- arg scope VARCHAR data: data, runtime (Python's own files), or all
-- column job, time_s: start of the step, from the job's first window
-- column ops, errors: calls, and those that failed
-- column bytes_read, bytes_written: transferred
-- column read_s, write_s, meta_s: time in reads, writes, and everything else, summed over all processes
WITH w AS (
    SELECT *, min(window_start_ns) OVER (PARTITION BY job) AS first_ns
    FROM (SELECT job, window_start_ns, class, sum(count) AS count, sum(errors) AS errors,
                 sum(bytes) AS bytes, sum(dur_ns) AS dur_ns
          FROM rollups
          WHERE $scope = 'all' OR scope = $scope
          GROUP BY job, window_start_ns, class))
SELECT job, (window_start_ns - first_ns) // 1000000000 // greatest($step_s, 1) * greatest($step_s, 1) AS time_s,
       sum(count) AS ops, sum(errors) AS errors,
       coalesce(sum(bytes) FILTER (class = 'read'), 0) AS bytes_read,
       coalesce(sum(bytes) FILTER (class = 'write'), 0) AS bytes_written,
       coalesce(sum(dur_ns) FILTER (class = 'read'), 0) / 1e9 AS read_s,
       coalesce(sum(dur_ns) FILTER (class = 'write'), 0) / 1e9 AS write_s,
       coalesce(sum(dur_ns) FILTER (class NOT IN ('read', 'write')), 0) / 1e9 AS meta_s
FROM w
GROUP BY 1, 2
ORDER BY job, time_s
