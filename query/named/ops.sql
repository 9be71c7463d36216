-- Calls by name: number, duration, bytes
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- arg mount VARCHAR NULL: only files below this mount point
-- arg rank BIGINT NULL: only this rank
-- known mount: SELECT DISTINCT mount FROM rollups WHERE mount IS NOT NULL ORDER BY mount
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- shown: op time_s ops mean_s max_s bytes errors class
-- fold: time_s
-- column op: the name in libc; getc and putc stand for all calls that read or write single characters (their mount and time are
-- not recorded, so the argument mount leaves them out)
-- column ops: calls
-- column time_s, mean_s, max_s: sum of the durations over all processes, mean and longest duration (NULL: not recorded)
-- column bytes: bytes transferred; NULL: the call moves none
-- column errors: failed calls
-- column class, api: class of the call, and posix, stdio, aio or mmap
WITH calls AS (
    SELECT * REPLACE (CASE WHEN side IS NULL THEN op WHEN class = 'read' THEN 'getc' ELSE 'putc' END AS op,
                      coalesce(api, 'stdio') AS api)
    FROM hr_rollups()
    WHERE side IS DISTINCT FROM 'copy' AND ($scope = 'all' OR scope = $scope) AND ($mount IS NULL OR mount = $mount)
      AND ($rank IS NULL OR rank = $rank))
SELECT op, sum(count) AS ops, sum(dur_ns) / 1e9 AS time_s, round(sum(dur_ns) / sum(count)) / 1e9 AS mean_s,
       max(max_dur_ns) FILTER (side IS NULL) / 1e9 AS max_s, sum(bytes) AS bytes, sum(errors) AS errors, class, api
FROM calls
GROUP BY op, class, api
ORDER BY time_s DESC, op
