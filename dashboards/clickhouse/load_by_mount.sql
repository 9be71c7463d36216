-- How much processes do in a second: at each time, the ten mounts with the most
-- arg of bytes|metadata bytes: bytes read and written, or operations that open, close, examine, list, create, rename or remove files
WITH
    sums AS (
        SELECT stream, mount AS number, intDiv(window_start_ns, toInt64($__interval_s) * 1000000000) AS slot,
               sum(if($of = 'bytes', if(class IN ('read', 'write'), bytes, 0), if(class IN ('open', 'close', 'stat', 'dir', 'meta'), count, 0))) AS amount
        FROM rollups
        WHERE day >= toDate($__fromTime) - 31 AND side = '' AND window_start_ns >= toInt64(toUnixTimestamp($__fromTime)) * 1000000000
          AND window_start_ns < toInt64(toUnixTimestamp($__toTime)) * 1000000000
        GROUP BY stream, number, slot
        HAVING amount > 0),
    names AS (SELECT stream, mount AS number, path AS mount_path FROM mounts WHERE day >= toDate($__fromTime) - 31)
SELECT toDateTime(slot * $__interval_s, 'UTC') AS time, mount_path AS mount, sum(amount) / $__interval_s AS a_second
FROM sums ANY LEFT JOIN names USING (stream, number)
GROUP BY slot, mount_path
ORDER BY slot, a_second DESC, mount_path
LIMIT 10 BY slot
