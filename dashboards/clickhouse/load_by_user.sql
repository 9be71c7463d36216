-- How much processes do in a second: at each time, the ten users with the most
-- arg of bytes|metadata bytes: bytes read and written, or operations that open, close, examine, list, create, rename or remove files
WITH
    sums AS (
        SELECT cluster, job, attempt, intDiv(window_start_ns, toInt64($__interval_s) * 1000000000) AS slot,
               sum(if($of = 'bytes', if(class IN ('read', 'write'), bytes, 0), if(class IN ('open', 'close', 'stat', 'dir', 'meta'), count, 0))) AS amount
        FROM rollups
        WHERE day >= toDate($__fromTime) - 31 AND side = '' AND window_start_ns >= toInt64(toUnixTimestamp($__fromTime)) * 1000000000
          AND window_start_ns < toInt64(toUnixTimestamp($__toTime)) * 1000000000
        GROUP BY cluster, job, attempt, slot
        HAVING amount > 0),
    owners AS (
        SELECT cluster, job, attempt, if(max(user) != '', max(user), toString(max(ifNull(uid, toInt64(-1))))) AS owner
        FROM job_events
        WHERE day >= toDate($__fromTime) - 31
        GROUP BY cluster, job, attempt)
SELECT toDateTime(slot * $__interval_s, 'UTC') AS time, owner AS user, sum(amount) / $__interval_s AS a_second
FROM sums INNER JOIN owners USING (cluster, job, attempt)
GROUP BY slot, owner
ORDER BY slot, a_second DESC, owner
LIMIT 10 BY slot
