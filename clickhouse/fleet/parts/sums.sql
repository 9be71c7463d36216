    sums AS (
        SELECT cluster, job, attempt, sumIf(bytes, class = 'read') AS job_read, sumIf(bytes, class = 'write') AS job_written,
               sumIf(count, class IN ('open', 'close', 'stat', 'dir', 'meta')) AS job_metadata, sum(dur_ns) AS job_ns
        FROM rollups
        WHERE day >= today() - toUInt32($days) - 1 AND side = ''
        GROUP BY cluster, job, attempt),
