-- Training processes that wait for input, on average: at each time, the ten users with the most. A wait counts at its begin
WITH
    waits AS (
        SELECT cluster, job, attempt, intDiv(start_ns, toInt64($__interval_s) * 1000000000) AS slot, sum(dur_ns) AS wait_ns
        FROM regions
        WHERE day >= toDate($__fromTime) - 31 AND kind = 'input_wait' AND start_ns >= toInt64(toUnixTimestamp($__fromTime)) * 1000000000
          AND start_ns < toInt64(toUnixTimestamp($__toTime)) * 1000000000
          AND (stream, proc) GLOBAL NOT IN (SELECT stream, proc FROM processes
                                            WHERE day >= toDate($__fromTime) - 31 AND worker IS NOT NULL)
        GROUP BY cluster, job, attempt, slot),
    owners AS (
        SELECT cluster, job, attempt, if(max(user) != '', max(user), toString(max(ifNull(uid, toInt64(-1))))) AS owner
        FROM job_events
        WHERE day >= toDate($__fromTime) - 31
        GROUP BY cluster, job, attempt)
SELECT toDateTime(slot * $__interval_s, 'UTC') AS time, owner AS user, sum(wait_ns) / 1e9 / $__interval_s AS waiting
FROM waits INNER JOIN owners USING (cluster, job, attempt)
GROUP BY slot, owner
ORDER BY slot, waiting DESC, owner
LIMIT 10 BY slot
