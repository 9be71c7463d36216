-- The users by node-hours, with their I/O and the time that their training waited
-- arg days COUNT 30: only jobs that began in the last so many days
-- arg top COUNT 20: maximum number of users
-- shown: user jobs node_hours bytes_read bytes_written metadata_ops wait_hours wait_percent
-- column user, account: number of the user, if the name is unknown; one of the accounts
-- column jobs: number of jobs; each attempt after a requeue counts
-- column node_hours: durations of jobs times their recorded nodes. A job without a recorded end counts until its last data arrived
-- column bytes_read, bytes_written: bytes transferred; a copy between files counts once, and single characters (getc, putc) do not count
-- column metadata_ops: operations that open, close, examine, list, create, rename or remove files
-- column io_hours: time in these and all other recorded operations, summed over processes
-- column wait_hours: time that training processes waited for input, summed over processes. One process per GPU is usual:
-- these are GPU-hours only if each process uses one GPU, and if the GPU idles meanwhile
-- column wait_percent: share of wait_hours in the training loops, the time from the first to the last step or wait of each such process; NULL: no waits were reported
WITH
    $(nodes)
    $(arrivals)
    $(sums)
    $(loops)
    with_arrivals AS (SELECT * FROM job_list LEFT JOIN arrivals USING (cluster, job, attempt)),
    with_sums AS (SELECT * FROM with_arrivals LEFT JOIN sums USING (cluster, job, attempt))
SELECT owner AS user, max(account) AS account, count() AS jobs,
       sum(nodes * (if(ended_ns > 0, ended_ns, last_ns) - began_ns)) / 3.6e12 AS node_hours,
       sum(job_read) AS bytes_read, sum(job_written) AS bytes_written, sum(job_metadata) AS metadata_ops, sum(job_ns) / 3.6e12 AS io_hours,
       sum(wait_ns) / 3.6e12 AS wait_hours, if(sum(loop_ns) > 0, 100 * sum(wait_ns) / sum(loop_ns), NULL) AS wait_percent
FROM with_sums LEFT JOIN waits USING (cluster, job, attempt)
GROUP BY owner
ORDER BY node_hours DESC, user
LIMIT $top
