    node_list AS (
        SELECT cluster, job, attempt, node, max(user) AS node_user, max(ifNull(uid, toInt64(-1))) AS node_uid,
               max(account) AS node_account, max(finish != '') AS finished,
               minIf(start_ns, start_ns > 0) AS node_began_ns, max(end_ns) AS node_ended_ns
        FROM job_events
        WHERE day >= today() - toUInt32($days) - 1
        GROUP BY cluster, job, attempt, node),
    job_list AS (
        SELECT cluster, job, attempt, if(max(node_user) != '', max(node_user), toString(max(node_uid))) AS owner,
               max(node_account) AS account, count() AS nodes,
               minIf(node_began_ns, node_began_ns > 0) AS began_ns, if(min(finished) > 0, max(node_ended_ns), toInt64(0)) AS ended_ns
        FROM node_list
        GROUP BY cluster, job, attempt
        HAVING began_ns >= (toInt64(toUnixTimestamp(now())) - toInt64($days) * 86400) * 1000000000),
