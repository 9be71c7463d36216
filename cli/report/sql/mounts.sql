-- Bytes, operations and their durations over time, for the eight mounts with the longest durations
SELECT mount, fs_type, bin, sum(ops)::BIGINT AS ops, coalesce(sum(bytes_read), 0)::BIGINT AS bytes_read,
       coalesce(sum(bytes_written), 0)::BIGINT AS bytes_written, sum(dur_ns)::BIGINT AS dur_ns
FROM moved JOIN (SELECT mount FROM moved WHERE mount IS NOT NULL GROUP BY mount ORDER BY sum(dur_ns) DESC, mount LIMIT 8) USING (mount)
GROUP BY mount, fs_type, bin
ORDER BY mount, bin
