    arrivals AS (
        SELECT cluster, job, attempt, max(stored_ns) AS last_ns
        FROM frames
        WHERE day >= today() - toUInt32($days) - 1
        GROUP BY cluster, job, attempt),
