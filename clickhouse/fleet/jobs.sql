-- The jobs of all users, newest first
-- arg days COUNT 30: only jobs that began in the last so many days
-- arg top COUNT 20: maximum number of jobs
-- arg user VARCHAR NULL: only jobs of this user
-- shown: job user state start seconds nodes ranks bytes_read bytes_written metadata_ops wait_percent
-- column job, user: number of the user, if the name is unknown
-- column state: running (a node has not reported the end), silent (as running, but no data arrived for an hour), ended, failed or killed
-- (also if the recording of a node was cut short)
-- column start, seconds: begin (UTC), and duration; without a recorded end, until its last data arrived
-- column nodes, ranks: recorded nodes and ranks
-- column bytes_read, bytes_written: bytes transferred; a copy between files counts once, and single characters (getc, putc) do not count
-- column metadata_ops: operations that open, close, examine, list, create, rename or remove files
-- column wait_percent: time that training processes waited for input, as a share of their training loops, the time from the first to the
-- last step or wait of each such process; NULL: no waits were reported
-- column name, account, partition, attempt, cluster: program, as reported by the scheduler, number of requeues (from 0), cluster
WITH
    node_list AS (
        SELECT cluster, job, attempt, node, max(user) AS node_user, max(ifNull(uid, toInt64(-1))) AS node_uid, max(name) AS node_name,
               max(account) AS node_account, max(partition) AS node_partition, minIf(start_ns, start_ns > 0) AS node_began_ns,
               max(end_ns) AS node_ended_ns, uniqExact(stream) AS streams, uniqExactIf(stream, finish != '') AS finished,
               max(finish = 'killed') AS killed, max(finish = 'failed') AS failed
        FROM job_events
        WHERE day >= today() - toUInt32($days) - 1
        GROUP BY cluster, job, attempt, node),
    job_list AS (
        SELECT cluster, job, attempt, if(max(node_user) != '', max(node_user), toString(max(node_uid))) AS owner, max(node_name) AS name,
               max(node_account) AS account, max(node_partition) AS partition, minIf(node_began_ns, node_began_ns > 0) AS began_ns,
               max(node_ended_ns) AS ended_ns, count() AS nodes, sum(finished = 0) AS open_nodes,
               max(killed > 0 OR (finished > 0 AND finished < streams)) AS any_killed, max(failed) AS any_failed
        FROM node_list
        GROUP BY cluster, job, attempt
        HAVING began_ns >= (toInt64(toUnixTimestamp(now())) - toInt64($days) * 86400) * 1000000000 AND ($user IS NULL OR owner = $user)),
    $(arrivals)
    sums AS (
        SELECT cluster, job, attempt, sumIf(bytes, class = 'read') AS bytes_read, sumIf(bytes, class = 'write') AS bytes_written,
               sumIf(count, class IN ('open', 'close', 'stat', 'dir', 'meta')) AS metadata_ops
        FROM rollups
        WHERE day >= today() - toUInt32($days) - 1 AND side = ''
        GROUP BY cluster, job, attempt),
    rank_counts AS (
        SELECT cluster, job, attempt, toUInt64(ifNull(uniqExact(rank), 0)) AS ranks
        FROM processes
        WHERE day >= today() - toUInt32($days) - 1
        GROUP BY cluster, job, attempt),
    $(loops)
    with_arrivals AS (SELECT * FROM job_list LEFT JOIN arrivals USING (cluster, job, attempt)),
    with_sums AS (SELECT * FROM with_arrivals LEFT JOIN sums USING (cluster, job, attempt)),
    with_ranks AS (SELECT * FROM with_sums LEFT JOIN rank_counts USING (cluster, job, attempt))
SELECT job, owner AS user,
       multiIf(open_nodes > 0, if(last_ns > toInt64(toUnixTimestamp(now()) - 3600) * 1000000000, 'running', 'silent'),
               any_killed > 0, 'killed', any_failed > 0, 'failed', 'ended') AS state,
       toDateTime(intDiv(began_ns, 1000000000), 'UTC') AS start,
       (if(open_nodes = 0 AND ended_ns > 0, ended_ns, last_ns) - began_ns) / 1e9 AS seconds, nodes, ranks, bytes_read, bytes_written, metadata_ops,
       if(loop_ns > 0, 100 * wait_ns / loop_ns, NULL) AS wait_percent, name, account, partition, attempt, cluster
FROM with_ranks LEFT JOIN waits USING (cluster, job, attempt)
ORDER BY began_ns DESC, job, attempt DESC, cluster
LIMIT $top
