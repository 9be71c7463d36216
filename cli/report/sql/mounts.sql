-- Bytes, operations and their durations over time, for the eight mounts with the longest durations
WITH moved AS (
    SELECT mount, fs_type, (e.start_ns - c.start_ns) // bin_ns AS bin, count(*) AS ops, sum(bytes) FILTER (class = 'read') AS bytes_read,
           sum(bytes) FILTER (class = 'write') AS bytes_written, sum(dur_ns) AS dur_ns
    FROM events e JOIN chosen c USING (cluster, job, attempt)
    WHERE (SELECT single FROM detail) AND scope = 'data' GROUP BY ALL
    UNION ALL
    SELECT mount, fs_type, (window_start_ns + 5000000000 - c.start_ns) // bin_ns, sum(count), sum(bytes) FILTER (class = 'read'),
           sum(bytes) FILTER (class = 'write'), sum(dur_ns)
    FROM rollups r JOIN chosen c USING (cluster, job, attempt)
    WHERE NOT (SELECT single FROM detail) AND scope = 'data' GROUP BY ALL)
SELECT mount, fs_type, bin, ops::BIGINT AS ops, coalesce(bytes_read, 0)::BIGINT AS bytes_read, coalesce(bytes_written, 0)::BIGINT AS bytes_written,
       dur_ns::BIGINT AS dur_ns
FROM moved JOIN (SELECT mount FROM moved WHERE mount IS NOT NULL GROUP BY mount ORDER BY sum(dur_ns) DESC, mount LIMIT 8) USING (mount)
ORDER BY mount, bin
