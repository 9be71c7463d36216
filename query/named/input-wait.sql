-- Waits for input: how much of each rank's time, and whether more workers, bigger reads or another mount would help
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- arg by rank|loader rank: one row per rank, or per DataLoader of each rank, if waits and fetches have a loader
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT format('no waits for input were recorded of job {}: PyTorch reports them under headrace run; other programs can mark them with HEADRACE_INPUT_WAIT of headrace.h', string_agg(DISTINCT job, ', ' ORDER BY job)) FROM jobs ANTI JOIN (SELECT DISTINCT cluster, job, attempt FROM regions WHERE kind = 'input_wait') USING (cluster, job, attempt) HAVING count(*) > 0
-- column rank: NULL: processes without a rank
-- column wait_s, wait_percent: time in the outermost waits, and its share of span_s
-- column loader: by loader: its number, in the order in which its process created them; NULL: unknown, or by rank
-- column waits: number of waits; without those that got no batch because none was left, which are in wait_s
-- column median_s, p95_s, max_s: durations of ended waits; waits that were added up count with their mean
-- column advice: mapped files, more workers, more cores, bigger reads, another mount: the change that would help according to these
-- numbers; none: waits are less than 5 % of the time; not known: the numbers do not show it
-- column io_percent: share of the wait time during which a process of the rank had an operation in flight
-- column workers: worker slots that made batches; by rank, if several loaders have workers: the mean number in use at a time;
-- without recorded fetches, those of the rank
-- column cores: cores on which its training processes may run, shared among ranks that may run on the same ones; NULL: unknown
-- column busy_percent: time of fetches as a share of workers * span_s; by rank, if several loaders have workers: of workers * time in use
-- of each loader; NULL: no fetches were recorded
-- column fetch_io_percent: time during which workers had an operation in flight, as a share of the time of fetches, at most 100
-- column fetch_cpu_percent: CPU time of fetches as a share of their time, including I/O; NULL: unknown
-- column core_wait_percent: time during which workers could run but had no core, as a share of the time of fetches, at most 100; NULL: unknown
-- column major_faults: how often fetches waited until a page of a mapped file (or of swap) was read; NULL: unknown
-- column fetches, fetch_s: batches that workers made, and the time for them
-- column reads, mean_read_bytes: read calls and their mean size: of the workers of the rank, or without workers of the rank
-- column mount, mount_bytes_per_s: mount on which these took most time, and bytes that a reader got from it per second of its reads
-- column best_mount, best_bytes_per_s: the fastest other mount from which this job read at least a megabyte
-- column span_s: time from the first to the last step, epoch or wait of a process, added up over the training processes of the rank; by
-- loader: time in use, from the first to the last wait of each pass, without passes of other loaders between two waits
-- column why: explains the advice
-- column job, attempt: job of the row
WITH marked AS MATERIALIZED (
    SELECT *, coalesce(CASE $by WHEN 'loader' THEN loader END, -1) AS feed
    FROM (SELECT * EXCLUDE args, coalesce(rank, -1) AS who, try_cast(args[1] AS BIGINT) AS loader, try_cast(args[2] AS BIGINT) AS batch,
                 try_cast(args[3] AS BIGINT) AS has_workers, coalesce(args[4] = 'true', false) AS ends,
                 try_cast(args[5] AS BIGINT) AS cpu_ns, try_cast(args[6] AS BIGINT) AS faults, try_cast(args[7] AS BIGINT) AS core_wait_ns
          FROM (SELECT cluster, job, attempt, node, proc, rank, worker, tid, kind, depth, count, start_ns, dur_ns,
                       json_extract_string(try_cast(args AS JSON), ['$.loader', '$.batch', '$.workers', '$.end', '$.cpu_ns', '$.major_faults', '$.core_wait_ns']) AS args
                FROM regions WHERE kind IN ('input_wait', 'fetch') AND ($rank IS NULL OR rank = $rank)))),
loop_regions AS MATERIALIZED (
    SELECT *, start_ns + dur_ns AS end_ns, coalesce(rank, -1) AS who
    FROM hr_during(kind := 'step, epoch, input_wait', scope := $scope, rank := $rank)),
waited AS MATERIALIZED (
    SELECT s.*, coalesce(t.feed, -1) AS feed, coalesce(t.loader, -1) AS loader, t.batch, t.has_workers, coalesce(t.ends, false) AS ends
    FROM loop_regions s LEFT JOIN (SELECT cluster, job, attempt, node, proc, tid, depth, start_ns, dur_ns, any_value(feed) AS feed, any_value(loader) AS loader,
                                  any_value(batch) AS batch, any_value(has_workers) AS has_workers, any_value(ends) AS ends
                           FROM marked WHERE kind = 'input_wait' GROUP BY ALL) t
         USING (cluster, job, attempt, node, proc, tid, depth, start_ns, dur_ns)
    WHERE kind = 'input_wait'),
-- A pass over a loader begins with its batch 0.
paced AS MATERIALIZED (
    SELECT *, sum(CASE batch WHEN 0 THEN 1 ELSE 0 END) OVER (PARTITION BY cluster, job, attempt, node, proc, loader ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS pass
    FROM waited),
passes AS MATERIALIZED (
    SELECT cluster, job, attempt, who, node, proc, feed, loader, pass, min(start_ns) AS first_ns, max(end_ns) AS last_ns
    FROM paced GROUP BY cluster, job, attempt, who, node, proc, feed, loader, pass),
-- A pass of another loader between two waits of a pass: validation within an epoch. The outer pass is then idle.
between_waits AS (
    SELECT cluster, job, attempt, node, proc, loader, pass, sum(b_last_ns - b_first_ns) AS ns
    FROM (SELECT w.cluster, w.job, w.attempt, w.node, w.proc, w.loader, w.pass, w.end_ns AS before_ns, b.first_ns AS b_first_ns, b.last_ns AS b_last_ns
          FROM (SELECT p.cluster, p.job, p.attempt, p.node, p.proc, o.loader, p.first_ns, p.last_ns
                FROM passes p JOIN (SELECT DISTINCT cluster, job, attempt, node, proc, loader FROM passes) o USING (cluster, job, attempt, node, proc)
                WHERE o.loader <> p.loader) b
               ASOF JOIN paced w
            ON w.cluster = b.cluster AND w.job = b.job AND w.attempt = b.attempt AND w.node = b.node AND w.proc = b.proc AND w.loader = b.loader AND w.start_ns < b.last_ns)
         JOIN passes USING (cluster, job, attempt, node, proc, loader, pass)
    WHERE before_ns <= b_first_ns AND last_ns > b_last_ns
    GROUP BY cluster, job, attempt, node, proc, loader, pass),
used AS MATERIALIZED (
    SELECT p.*, last_ns - first_ns - coalesce(ns, 0) AS ns
    FROM passes p LEFT JOIN between_waits USING (cluster, job, attempt, node, proc, loader, pass)),
spans AS (
    SELECT cluster, job, attempt, who, feed, sum(ns) AS span_ns
    FROM (SELECT cluster, job, attempt, who, -1 AS feed, max(end_ns) - min(start_ns) AS ns FROM loop_regions
          WHERE $by = 'rank' GROUP BY cluster, job, attempt, who, node, proc
          UNION ALL
          SELECT cluster, job, attempt, who, feed, ns FROM used WHERE $by = 'loader')
    GROUP BY cluster, job, attempt, who, feed),
-- The time that the waits of a thread cover, each moment once, as in steps.
outermost AS (
    SELECT *, dur_ns / count AS each_ns, CASE WHEN open = 0 AND NOT ends THEN count ELSE 0 END AS ended,
           greatest(start_ns, coalesce(reached_ns, start_ns)) AS from_ns, (end_ns - from_ns) / greatest(dur_ns, 1) AS part
    FROM (SELECT *, max(CASE count WHEN 1 THEN end_ns ELSE start_ns END)
                        OVER (PARTITION BY cluster, job, attempt, node, proc, tid ORDER BY start_ns, dur_ns DESC
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
          FROM waited)
    WHERE from_ns = start_ns OR (count = 1 AND from_ns < end_ns)),
sorted AS (
    SELECT *, sum(ended) OVER (PARTITION BY cluster, job, attempt, who, feed ORDER BY each_ns ROWS UNBOUNDED PRECEDING) AS so_many,
           sum(ended) OVER (PARTITION BY cluster, job, attempt, who, feed) AS of_many
    FROM outermost),
waits AS (
    SELECT cluster, job, attempt, who, feed, coalesce(sum(count) FILTER (NOT ends), 0) AS waits, sum(end_ns - from_ns) AS wait_ns,
           sum(end_ns - from_ns) FILTER (count = 1) AS placed_ns, sum(busy_ns * part)::BIGINT AS wait_io_ns,
           min(each_ns) FILTER (ended > 0 AND so_many >= 0.5 * of_many) AS median_ns,
           min(each_ns) FILTER (ended > 0 AND so_many >= 0.95 * of_many) AS p95_ns, max(each_ns) FILTER (ended > 0) AS max_ns,
           CASE $by WHEN 'loader' THEN max(has_workers) END AS has_workers
    FROM sorted GROUP BY cluster, job, attempt, who, feed),
slots AS (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, count(DISTINCT (node, worker)) AS slots
    FROM processes WHERE worker IS NOT NULL GROUP BY ALL),
made AS (
    SELECT cluster, job, attempt, who, feed, count(DISTINCT (node, worker)) AS makers, sum(count) AS fetches, sum(dur_ns) AS fetch_ns,
           sum(cpu_ns) AS cpu_ns, sum(dur_ns) FILTER (cpu_ns IS NOT NULL) AS cpu_of_ns,
           sum(core_wait_ns) AS core_wait_ns, coalesce(sum(faults), CASE WHEN count(cpu_ns) > 0 THEN 0 END) AS faults
    FROM marked WHERE kind = 'fetch' AND worker IS NOT NULL GROUP BY cluster, job, attempt, who, feed),
-- If several loaders have workers, those of unused loaders are idle.
crews AS (
    SELECT cluster, job, attempt, who, loader, makers, sum(ns) AS ns
    FROM (SELECT cluster, job, attempt, who, coalesce(loader, -1) AS loader, count(DISTINCT (node, worker)) AS makers
          FROM marked WHERE kind = 'fetch' AND worker IS NOT NULL GROUP BY cluster, job, attempt, who, coalesce(loader, -1))
         LEFT JOIN used USING (cluster, job, attempt, who, loader)
    GROUP BY cluster, job, attempt, who, loader, makers),
covered AS (
    SELECT cluster, job, attempt, who, sum(greatest(0, last_ns - greatest(first_ns, reached_ns))) AS ns
    FROM (SELECT *, coalesce(max(last_ns) OVER (PARTITION BY cluster, job, attempt, who, node, proc ORDER BY first_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), first_ns) AS reached_ns
          FROM passes SEMI JOIN crews USING (cluster, job, attempt, who, loader))
    GROUP BY cluster, job, attempt, who),
crewed AS (
    SELECT cluster, job, attempt, who, sum(makers * c.ns) AS capacity_ns, ceil(sum(makers * c.ns) / nullif(any_value(v.ns), 0))::BIGINT AS at_a_time
    FROM crews c JOIN covered v USING (cluster, job, attempt, who)
    WHERE $by = 'rank' GROUP BY cluster, job, attempt, who HAVING count(*) > 1 AND count(c.ns) = count(*)),
-- Two ranks with the same number of processors and the same first one probably share them.
cores AS (
    SELECT cluster, job, attempt, who, sum(cores) AS cores
    FROM (SELECT cluster, job, attempt, who, cpus / count(*) OVER (PARTITION BY cluster, job, attempt, node, cpus, first_cpu) AS cores
          FROM (SELECT cluster, job, attempt, node, coalesce(rank, -1) AS who, max(cpus) AS cpus, arg_max(first_cpu, cpus) AS first_cpu
                FROM hr_processes() SEMI JOIN (SELECT DISTINCT cluster, job, attempt, node, proc FROM regions
                                               WHERE kind IN ('step', 'epoch', 'input_wait') AND worker IS NULL) USING (cluster, job, attempt, node, proc)
                GROUP BY ALL))
    GROUP BY cluster, job, attempt, who),
busy AS (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, coalesce(feed, -1) AS feed, sum(busy_ns) AS worker_io_ns
    FROM hr_busy(by := 'node, proc, rank, worker', scope := $scope, rank := $rank) LEFT JOIN (
         SELECT cluster, job, attempt, node, proc, min(feed) AS feed FROM marked WHERE kind = 'fetch' GROUP BY ALL)
         USING (cluster, job, attempt, node, proc)
    WHERE worker IS NOT NULL GROUP BY cluster, job, attempt, coalesce(rank, -1), coalesce(feed, -1)),
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
    SELECT *, coalesce(at_a_time, makers, has_workers, slots, 0) AS workers, 100.0 * wait_ns / nullif(span_ns, 0) AS wait_percent,
           100.0 * wait_io_ns / nullif(placed_ns, 0) AS io_percent,
           100.0 * fetch_ns / nullif(coalesce(capacity_ns, makers * span_ns), 0) AS busy_percent,
           CASE WHEN fetch_ns > 0 THEN least(100.0, 100.0 * coalesce(worker_io_ns, 0) / fetch_ns) END AS fetch_io_percent,
           100.0 * cpu_ns / nullif(cpu_of_ns, 0) AS cpu_percent,
           CASE WHEN fetch_ns > 0 AND core_wait_ns IS NOT NULL THEN least(100.0, 100.0 * core_wait_ns / fetch_ns) END AS core_percent
    FROM waits LEFT JOIN spans USING (cluster, job, attempt, who, feed) LEFT JOIN slots USING (cluster, job, attempt, who)
         LEFT JOIN cores USING (cluster, job, attempt, who)
         LEFT JOIN made USING (cluster, job, attempt, who, feed) LEFT JOIN crewed USING (cluster, job, attempt, who) LEFT JOIN busy USING (cluster, job, attempt, who, feed)
         LEFT JOIN most USING (cluster, job, attempt, who) LEFT JOIN others USING (cluster, job, attempt, who)
         LEFT JOIN sizes USING (cluster, job, attempt, who)),
-- Shares of the fetches' time: computing is the processor time (which includes that of I/O), but at most the time without I/O.
shares AS (
    SELECT *, 100 - fetch_io_percent - compute_percent AS rest_percent
    FROM (SELECT *, CASE WHEN cpu_percent IS NOT NULL THEN least(cpu_percent, 100 - fetch_io_percent) END AS compute_percent FROM numbers)),
-- Assumes that a major fault takes at most 20 ms.
faulted AS (
    SELECT *, rest_percent >= 50 AS stalled, faults > 0 AND faults * 20e6 >= rest_percent / 100 * fetch_ns AS faulty,
           core_percent >= 50 OR (rest_percent >= 50 AND core_percent >= rest_percent / 2) AS coreless,
           coalesce(fetch_io_percent, io_percent) >= 50 AS io_bound
    FROM shares),
judged AS (
    SELECT *, wait_percent >= 5 AS matters, matters AND coalesce(stalled AND faulty, false) AND coreless IS NOT TRUE AS mapped,
           matters AND (coreless IS TRUE OR coalesce(stalled AND NOT faulty, false)) AS waiting,
           waiting AND coreless IS FALSE AS asleep,
           NOT io_bound AND NOT waiting AND NOT coalesce(fetch_io_percent + rest_percent >= 50 AND (stalled OR faulty), false) AS cleared,
           matters AND (workers = 0 OR busy_percent >= 80) AS too_slow,
           waiting OR (NOT io_bound AND NOT mapped AND cores <= greatest(workers, 1)) AS no_core,
           too_slow AND no_core IS NOT TRUE AS more_workers, too_slow AND no_core IS TRUE AND NOT asleep AS more_cores, matters AND io_bound AND coreless IS NOT TRUE AND read_bytes < 65536 AS bigger_reads,
           matters AND io_bound AND coreless IS NOT TRUE AND best_rate >= 2 * rate AS another_mount,
           format('workers: {}, making batches {:.0f} % of the time{}: ', workers, busy_percent, coalesce(format(', cores: {:.4g}', cores), '')) AS so_busy
    FROM faulted)
SELECT CASE WHEN who >= 0 THEN who END AS rank, CASE WHEN feed >= 0 THEN feed END AS loader, wait_ns / 1e9 AS wait_s, wait_percent, waits, median_ns / 1e9 AS median_s,
       p95_ns / 1e9 AS p95_s, max_ns / 1e9 AS max_s,
       CASE WHEN NOT matters THEN 'none'
            ELSE coalesce(nullif(concat_ws(', ', CASE WHEN mapped THEN 'mapped files' END,
                                           CASE WHEN more_workers THEN 'more workers' END,
                                           CASE WHEN more_cores THEN 'more cores' END,
                                           CASE WHEN bigger_reads THEN 'bigger reads' END,
                                           CASE WHEN another_mount THEN 'another mount' END), ''), 'not known') END AS advice,
       io_percent, workers, cores, busy_percent, fetch_io_percent, cpu_percent AS fetch_cpu_percent, core_percent AS core_wait_percent, faults AS major_faults,
       coalesce(fetches, 0) AS fetches, coalesce(fetch_ns, 0) / 1e9 AS fetch_s,
       coalesce(reads, 0) AS reads, read_bytes AS mean_read_bytes, mount, rate AS mount_bytes_per_s, best_mount, best_rate AS best_bytes_per_s,
       span_ns / 1e9 AS span_s,
       concat_ws('; ', format('waits are {:.1f} % of {:.1f} s', wait_percent, span_ns / 1e9),
           CASE WHEN NOT matters THEN 'less than 5 %: there is little to gain'
                WHEN workers = 0 AND more_cores THEN 'no workers, and one core, which a worker would take from the training process'
                WHEN workers = 0 THEN 'no workers: the training process makes its batches itself, while nothing is computed'
                WHEN busy_percent IS NULL THEN 'no fetches were recorded: it is unknown how busy the workers were'
                WHEN too_slow AND asleep THEN so_busy || 'they wait, and for no core: more of them help if they wait for the network'
                WHEN more_cores AND waiting AND coreless THEN so_busy || 'they wait for cores, and more of them would, too'
                WHEN more_cores AND waiting THEN so_busy || 'they wait more than they read or compute, and more of them would, too'
                WHEN more_cores THEN so_busy || 'more workers would wait for a core'
                WHEN busy_percent >= 80 AND cores IS NOT NULL THEN so_busy || 'more workers would make more batches, unless storage limits them'
                WHEN busy_percent >= 80 THEN so_busy || 'more workers would make more batches, unless cores or storage limit them'
                WHEN busy_percent < 50 THEN format('workers: {}, making batches {:.0f} % of the time only: more of them would wait, too; first batches, single slow ones or a small prefetch_factor may be the cause', workers, busy_percent)
                ELSE format('workers: {}, making batches {:.0f} % of the time: it is unclear whether more workers would help', workers, busy_percent) END,
           CASE WHEN matters AND rest_percent IS NOT NULL
                    THEN format('of that {:.0f} % is I/O, {:.0f} % computing, {:.0f} % neither', fetch_io_percent, compute_percent, rest_percent)
                         || CASE WHEN rest_percent < 0.5 THEN ''
                                 WHEN coreless THEN ' (waiting for a core)'
                                 WHEN core_percent IS NOT NULL AND faulty THEN format(' (waiting for page faults: {:,} of mapped files)', faults)
                                 WHEN core_percent IS NOT NULL THEN ' (waiting for a lock or the network, or asleep)'
                                 WHEN faults > 0 THEN format(' (waiting for a core, or for page faults: {:,} of mapped files)', faults)
                                 ELSE ' (waiting for a core, a lock or the network, or asleep)' END
                         || coalesce(format(', and {:.0f} % waiting for a core, in I/O or not', CASE WHEN core_percent >= 1 THEN core_percent END), '')
                WHEN matters AND fetch_io_percent IS NOT NULL THEN format('{:.0f} % of that is I/O', fetch_io_percent)
                WHEN matters AND io_percent IS NOT NULL THEN format('I/O was in flight during {:.0f} % of the waits', io_percent) END,
           CASE WHEN mapped THEN 'mapped files are read page by page: read() them, or announce the next pages (MADV_WILLNEED)' END,
           CASE WHEN matters AND cleared THEN 'the cause is not reads or mounts, but the processing of the data'
                WHEN matters AND io_bound AND read_bytes IS NOT NULL THEN format('the mean read is {}', format_bytes(read_bytes::BIGINT)) END,
           CASE WHEN matters AND io_bound AND best_rate IS NOT NULL
                    THEN format('{} gives a reader {}/s, {} {}/s', mount, format_bytes(rate::BIGINT), best_mount, format_bytes(best_rate::BIGINT))
                WHEN matters AND io_bound AND rate IS NOT NULL
                    THEN format('{} gives a reader {}/s, and there is no other mount to compare it with', mount, format_bytes(rate::BIGINT)) END)
           AS why,
       job, attempt
FROM judged
ORDER BY job, attempt, cluster, rank NULLS LAST, loader NULLS LAST
