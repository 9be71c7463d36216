    loops AS (
        SELECT cluster, job, attempt, toInt64(sumIf(dur_ns, kind = 'input_wait')) AS proc_wait_ns,
               greatest(max(start_ns + toInt64(dur_ns)) - min(start_ns), proc_wait_ns) AS proc_loop_ns
        FROM regions
        WHERE day >= today() - toUInt32($days) - 1 AND kind IN ('input_wait', 'step')
          AND (stream, proc) GLOBAL NOT IN (SELECT stream, proc FROM processes WHERE day >= today() - toUInt32($days) - 1 AND worker IS NOT NULL)
        GROUP BY cluster, job, attempt, stream, proc
        HAVING proc_wait_ns > 0),
    waits AS (
        SELECT cluster, job, attempt, sum(proc_wait_ns) AS wait_ns, sum(proc_loop_ns) AS loop_ns
        FROM loops
        GROUP BY cluster, job, attempt),
