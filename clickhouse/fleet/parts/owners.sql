    job_list AS (
        SELECT cluster, job, attempt, if(max(user) != '', max(user), toString(max(ifNull(uid, toInt64(-1))))) AS owner,
               minIf(start_ns, start_ns > 0) AS began_ns
        FROM job_events
        WHERE day >= today() - toUInt32($days) - 1
        GROUP BY cluster, job, attempt
        HAVING began_ns >= (toInt64(toUnixTimestamp(now())) - toInt64($days) * 86400) * 1000000000),
