-- Jobs by the time that their training waited for input while no accelerator is known to have worked
-- arg days COUNT 30: only jobs that began in the last so many days
-- arg top COUNT 20: maximum number of jobs
-- shown: job user wait_hours hidden_hours wait_percent worst_percent procs loop_hours start
-- column job, user: number of the user, if the name is unknown
-- column wait_hours: time that training processes waited for input, summed over processes. One process per GPU is usual:
-- these are GPU-hours only if each process uses one GPU, and if the GPU idles meanwhile
-- column hidden_hours: the part of wait_hours in which accelerators still worked, as far as PyTorch with CUDA reports it; it costs nothing, and does not count for the order
-- column loop_hours, wait_percent: time in training loops, the time from the first to the last step or wait of each such process; and the share of wait_hours in it
-- column worst_percent: this share in the process with the largest one
-- column procs: training processes that reported waits (PyTorch does this automatically)
-- column start: begin of the job (UTC)
-- column attempt, cluster: number of requeues (from 0), cluster
WITH
    $(owners)
    loops AS (
        SELECT cluster, job, attempt, toInt64(sumIf(dur_ns, kind = 'input_wait')) AS proc_wait_ns,
               toInt64(sumIf(dur_ns, kind = 'input_wait' AND visitParamExtractBool(args, 'hidden') = 1)) AS proc_hidden_ns,
               greatest(max(start_ns + toInt64(dur_ns)) - min(start_ns), proc_wait_ns) AS proc_loop_ns
        FROM regions
        WHERE day >= today() - toUInt32($days) - 1 AND kind IN ('input_wait', 'step')
          AND (stream, proc) GLOBAL NOT IN (SELECT stream, proc FROM processes WHERE day >= today() - toUInt32($days) - 1 AND worker IS NOT NULL)
        GROUP BY cluster, job, attempt, stream, proc
        HAVING proc_wait_ns > 0),
    waits AS (
        SELECT cluster, job, attempt, sum(proc_wait_ns) AS wait_ns, sum(proc_hidden_ns) AS hidden_ns, sum(proc_loop_ns) AS loop_ns, count() AS procs,
               max(100 * proc_wait_ns / proc_loop_ns) AS worst
        FROM loops
        GROUP BY cluster, job, attempt)
SELECT job, owner AS user, wait_ns / 3.6e12 AS wait_hours, hidden_ns / 3.6e12 AS hidden_hours, 100 * wait_ns / loop_ns AS wait_percent, worst AS worst_percent, procs,
       loop_ns / 3.6e12 AS loop_hours, toDateTime(intDiv(began_ns, 1000000000), 'UTC') AS start, attempt, cluster
FROM waits INNER JOIN job_list USING (cluster, job, attempt)
ORDER BY wait_ns - hidden_ns DESC, job, attempt, cluster
LIMIT $top
