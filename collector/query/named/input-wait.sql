-- Waits for input: how much of each rank's time, and whether more workers, bigger reads or another mount would help
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: I/O on Python's own files is runtime
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT format('no waits for input were recorded of job {}: PyTorch says them under headrace run, and any program may, by ranges of the kind HEADRACE_INPUT_WAIT of headrace.h', string_agg(DISTINCT job, ', ' ORDER BY job)) FROM jobs ANTI JOIN (SELECT DISTINCT cluster, job, attempt FROM regions WHERE kind = 'input_wait') USING (cluster, job, attempt) HAVING count(*) > 0
-- column rank: NULL: processes without one
-- column wait_s, wait_percent: in waits, the outermost ones; of span_s
-- column waits: how many
-- column median_s, p95_s, max_s: of the waits that ended; of waits that were added up, their mean
-- column advice: more workers, more cores, bigger reads, another mount: what would help by these numbers; none: waits are less
-- than 5 % of the time; not known: these numbers do not say
-- column io_percent: of the wait time, that in which some process of the rank had an operation under way
-- column workers: worker slots that made batches; without recorded fetches, those of the rank
-- column cores: that its training processes may run on; shared by ranks that may run on the same ones; NULL: not known
-- column busy_percent: time of fetches, of workers * span_s; NULL: no fetches were recorded
-- column fetch_io_percent: time in which workers had an operation under way, of the time of fetches, 100 at most
-- column fetches, fetch_s: of workers: batches made, and in how much time
-- column reads, read_bytes: calls that read, and their mean size: of the workers, or, where there are none, of the rank
-- column mount, mount_bytes_per_s: where these took most time, and what a reader got from it per second of its reads
-- column best_mount, best_bytes_per_s: the fastest other one from which this job read a megabyte or more
-- column span_s: from the first to the last step, epoch or wait of a process, added up over the rank's processes that train
-- column why: the advice in words
-- column job, attempt: whose
WITH said AS MATERIALIZED (
    SELECT *, start_ns + dur_ns AS end_ns, coalesce(rank, -1) AS who
    FROM hr_during(kind := 'step, epoch, input_wait', scope := $scope, rank := $rank)),
spans AS (
    SELECT cluster, job, attempt, who, sum(ns) AS span_ns
    FROM (SELECT cluster, job, attempt, who, max(end_ns) - min(start_ns) AS ns FROM said
          GROUP BY cluster, job, attempt, who, node, proc)
    GROUP BY cluster, job, attempt, who),
-- What the waits of a thread cover, each moment once, as in steps.
outermost AS (
    SELECT *, dur_ns / count AS each_ns, CASE open WHEN 0 THEN count ELSE 0 END AS ended,
           greatest(start_ns, coalesce(reached_ns, start_ns)) AS from_ns, (end_ns - from_ns) / greatest(dur_ns, 1) AS part
    FROM (SELECT *, max(CASE count WHEN 1 THEN end_ns ELSE start_ns END)
                        OVER (PARTITION BY cluster, job, attempt, node, proc, tid ORDER BY start_ns, dur_ns DESC
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
          FROM said WHERE kind = 'input_wait')
    WHERE from_ns = start_ns OR (count = 1 AND from_ns < end_ns)),
sorted AS (
    SELECT *, sum(ended) OVER (PARTITION BY cluster, job, attempt, who ORDER BY each_ns ROWS UNBOUNDED PRECEDING) AS so_many,
           sum(ended) OVER (PARTITION BY cluster, job, attempt, who) AS of_many
    FROM outermost),
waits AS (
    SELECT cluster, job, attempt, who, sum(count) AS waits, sum(end_ns - from_ns) AS wait_ns,
           sum(end_ns - from_ns) FILTER (count = 1) AS placed_ns, sum(busy_ns * part)::BIGINT AS wait_io_ns,
           min(each_ns) FILTER (open = 0 AND so_many >= 0.5 * of_many) AS median_ns,
           min(each_ns) FILTER (open = 0 AND so_many >= 0.95 * of_many) AS p95_ns, max(each_ns) FILTER (open = 0) AS max_ns
    FROM sorted GROUP BY cluster, job, attempt, who),
slots AS (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, count(DISTINCT (node, worker)) AS slots
    FROM processes WHERE worker IS NOT NULL GROUP BY ALL),
made AS (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, count(DISTINCT (node, worker)) AS makers, sum(count) AS fetches,
           sum(dur_ns) AS fetch_ns
    FROM regions WHERE kind = 'fetch' AND worker IS NOT NULL GROUP BY ALL),
-- Two ranks with as many processors and the same first one are taken for sharing them.
cores AS (
    SELECT cluster, job, attempt, who, sum(cores) AS cores
    FROM (SELECT cluster, job, attempt, who, cpus / count(*) OVER (PARTITION BY cluster, job, attempt, node, cpus, first_cpu) AS cores
          FROM (SELECT cluster, job, attempt, node, coalesce(rank, -1) AS who, max(cpus) AS cpus, arg_max(first_cpu, cpus) AS first_cpu
                FROM hr_processes() SEMI JOIN (SELECT DISTINCT cluster, job, attempt, node, proc FROM regions
                                               WHERE kind IN ('step', 'epoch', 'input_wait') AND worker IS NULL) USING (cluster, job, attempt, node, proc)
                GROUP BY ALL))
    GROUP BY cluster, job, attempt, who),
busy AS (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, sum(busy_ns) AS worker_io_ns
    FROM hr_busy(by := 'node, rank, worker', scope := $scope, rank := $rank) WHERE worker IS NOT NULL GROUP BY ALL),
reads AS (
    SELECT cluster, job, attempt, who, mount, sum(count) AS reads, sum(bytes) AS bytes, sum(dur_ns) AS read_ns
    FROM (SELECT *, coalesce(rank, -1) AS who FROM rollups WHERE class = 'read' AND ($scope = 'all' OR scope = $scope)) r
         LEFT JOIN slots USING (cluster, job, attempt, who)
    WHERE worker IS NOT NULL OR slots IS NULL
    GROUP BY cluster, job, attempt, who, mount),
mounts AS (
    SELECT cluster, job, attempt, mount, sum(bytes) / (sum(read_ns) / 1e9) AS rate
    FROM reads WHERE mount IS NOT NULL GROUP BY cluster, job, attempt, mount
    HAVING sum(bytes) >= 1000000 AND sum(read_ns) > 0),
most AS (
    SELECT cluster, job, attempt, who, arg_max(mount, read_ns) AS mount, arg_max(bytes / (read_ns / 1e9), read_ns) AS rate
    FROM reads WHERE mount IS NOT NULL AND read_ns > 0 GROUP BY cluster, job, attempt, who),
others AS (
    SELECT cluster, job, attempt, who, arg_max(m.mount, m.rate) AS best_mount, max(m.rate) AS best_rate
    FROM most JOIN mounts m USING (cluster, job, attempt) WHERE m.mount <> most.mount
    GROUP BY cluster, job, attempt, who),
sizes AS (
    SELECT cluster, job, attempt, who, sum(reads) AS reads, sum(bytes) / nullif(sum(reads), 0) AS read_bytes
    FROM reads GROUP BY cluster, job, attempt, who),
numbers AS (
    SELECT *, coalesce(makers, slots, 0) AS workers, 100.0 * wait_ns / nullif(span_ns, 0) AS wait_percent,
           100.0 * wait_io_ns / nullif(placed_ns, 0) AS io_percent,
           100.0 * fetch_ns / nullif(makers * span_ns, 0) AS busy_percent,
           CASE WHEN fetch_ns > 0 THEN least(100.0, 100.0 * coalesce(worker_io_ns, 0) / fetch_ns) END AS fetch_io_percent
    FROM waits LEFT JOIN spans USING (cluster, job, attempt, who) LEFT JOIN slots USING (cluster, job, attempt, who)
         LEFT JOIN cores USING (cluster, job, attempt, who)
         LEFT JOIN made USING (cluster, job, attempt, who) LEFT JOIN busy USING (cluster, job, attempt, who)
         LEFT JOIN most USING (cluster, job, attempt, who) LEFT JOIN others USING (cluster, job, attempt, who)
         LEFT JOIN sizes USING (cluster, job, attempt, who)),
judged AS (
    SELECT *, wait_percent >= 5 AS matters, coalesce(fetch_io_percent, io_percent) >= 50 AS io_bound,
           matters AND (workers = 0 OR busy_percent >= 80) AS too_slow, NOT io_bound AND cores <= greatest(workers, 1) AS no_core,
           too_slow AND no_core IS NOT TRUE AS more_workers, too_slow AND no_core IS TRUE AS more_cores, matters AND io_bound AND read_bytes < 65536 AS bigger_reads,
           matters AND io_bound AND best_rate >= 2 * rate AS another_mount
    FROM numbers)
SELECT CASE WHEN who >= 0 THEN who END AS rank, wait_ns / 1e9 AS wait_s, wait_percent, waits, median_ns / 1e9 AS median_s,
       p95_ns / 1e9 AS p95_s, max_ns / 1e9 AS max_s,
       CASE WHEN NOT matters THEN 'none'
            ELSE coalesce(nullif(concat_ws(', ', CASE WHEN more_workers THEN 'more workers' END,
                                           CASE WHEN more_cores THEN 'more cores' END,
                                           CASE WHEN bigger_reads THEN 'bigger reads' END,
                                           CASE WHEN another_mount THEN 'another mount' END), ''), 'not known') END AS advice,
       io_percent, workers, cores, busy_percent, fetch_io_percent, coalesce(fetches, 0) AS fetches, coalesce(fetch_ns, 0) / 1e9 AS fetch_s,
       coalesce(reads, 0) AS reads, read_bytes, mount, rate AS mount_bytes_per_s, best_mount, best_rate AS best_bytes_per_s,
       span_ns / 1e9 AS span_s,
       concat_ws('; ', format('waits are {:.1f} % of {:.1f} s', wait_percent, span_ns / 1e9),
           CASE WHEN NOT matters THEN 'less than 5 %: there is little to win'
                WHEN workers = 0 AND more_cores THEN 'no workers, and one core, which a worker would take from the training process'
                WHEN workers = 0 THEN 'no workers: the training process makes its batches itself, while nothing is computed'
                WHEN busy_percent IS NULL THEN 'no fetches were recorded: how busy the workers were is not known'
                WHEN more_cores THEN format('workers: {}, making batches {:.0f} % of the time, cores: {:.4g}: more workers would wait for a core', workers, busy_percent, cores)
                WHEN busy_percent >= 80 AND cores IS NOT NULL THEN format('workers: {}, making batches {:.0f} % of the time, cores: {:.4g}: more would make more, as far as storage goes', workers, busy_percent, cores)
                WHEN busy_percent >= 80 THEN format('workers: {}, making batches {:.0f} % of the time: more would make more, as far as cores and storage go', workers, busy_percent)
                WHEN busy_percent < 50 THEN format('workers: {}, making batches {:.0f} % of the time only: more of them would wait, too; first batches, single slow ones or a small prefetch_factor may be the cause', workers, busy_percent)
                ELSE format('workers: {}, making batches {:.0f} % of the time: whether more would help does not show', workers, busy_percent) END,
           CASE WHEN matters AND fetch_io_percent IS NOT NULL THEN format('{:.0f} % of that is I/O', fetch_io_percent)
                WHEN matters AND io_percent IS NOT NULL THEN format('during {:.0f} % of the waits I/O was under way', io_percent) END,
           CASE WHEN matters AND NOT io_bound THEN 'neither reads nor mounts are the cause, but what is done with the data'
                WHEN matters AND io_bound AND read_bytes IS NOT NULL THEN format('reads have {} in the mean', format_bytes(read_bytes::BIGINT)) END,
           CASE WHEN matters AND io_bound AND best_rate IS NOT NULL
                    THEN format('{} gives a reader {}/s, {} {}/s', mount, format_bytes(rate::BIGINT), best_mount, format_bytes(best_rate::BIGINT))
                WHEN matters AND io_bound AND rate IS NOT NULL
                    THEN format('{} gives a reader {}/s, and there is no other mount to compare it with', mount, format_bytes(rate::BIGINT)) END)
           AS why,
       job, attempt
FROM judged
ORDER BY job, attempt, cluster, rank NULLS LAST
