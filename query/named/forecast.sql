-- How long each job would take with other settings: as text, for `headrace what-if`
-- text: each row is a line
-- arg workers BIGINT[0,1024] NULL: num_workers of the DataLoader
-- arg prefetch BIGINT[1,1024] NULL: prefetch_factor
-- arg persistent true|false NULL: persistent_workers
-- arg cores DOUBLE[1,65536] NULL: processors of each rank
-- arg io DOUBLE[0,1000000] NULL: factor for the I/O time of workers, for example 0.5 for storage that is twice as fast, or 0 for files in memory
-- arg mount PAIR NULL: the files of one mount lie on another one, for example /data=/scratch
-- arg cached SIZE NULL: so much memory keeps what was read, for example 64GiB
-- arg reads SIZE NULL: workers read blocks of this size, for example 1MiB
-- arg batch BIGINT[1,1000000000] NULL: samples of a batch
-- arg checkpoint recorded|async recorded: with async, the training continues while a checkpoint is written
-- arg best true|false false: with true, tries all settings that are not given, and chooses the fewest workers that are within 3 % of the fastest setting
-- note: SELECT format(E'job {}: no training loop was recorded\nhint: PyTorch reports it under headrace run; other programs can mark it with headrace.h', string_agg(DISTINCT job, ', ' ORDER BY job)) FROM jobs ANTI JOIN (SELECT DISTINCT cluster, job, attempt FROM regions WHERE kind IN ('step', 'epoch', 'input_wait', 'optimizer')) USING (cluster, job, attempt) HAVING count(*) > 0
-- column line: text
-- Numbers are means over the ranks, as in the table findings. Ranks that wait for each other take as long as the slowest rank,
-- without its waits for other ranks.
WITH tried AS MATERIALIZED (
    SELECT cluster, job, attempt, setting, count(*) AS ranks, max(workers) AS workers, max(prefetch) AS prefetch, max(persistent) AS persistent,
           avg(loops) AS loops, avg(recorded_ns) AS recorded_ns, avg(replayed_ns) AS replayed_ns,
           sum(stall_ns) > 0 AS stalls, CASE WHEN stalls THEN max(low_ns - stall_ns) ELSE avg(low_ns) END AS low_ns,
           CASE WHEN stalls THEN max(high_ns - stall_ns) ELSE avg(high_ns) END AS high_ns,
           CASE WHEN stalls THEN max(predicted_ns - stall_ns) ELSE avg(predicted_ns) END AS predicted_ns, max(doubt) AS doubt, max(refusal) AS refusal, avg(wall_ns) AS wall_ns, avg(checkpoint_ns) AS checkpoint_ns
    FROM hr_replays(workers := $workers, prefetch := $prefetch, persistent := $persistent, cores := $cores, io := $io, mount := $mount, cached := $cached, reads := $reads,
                    batch := $batch, search := $best)
    GROUP BY cluster, job, attempt, setting),
predicted AS (
    SELECT *, coalesce(predicted_ns, (low_ns + high_ns) / 2) AS mid_ns, wall_ns - recorded_ns + low_ns - hr_checkpoint_saving(checkpoint_ns, $checkpoint, 1.0) AS job_low_ns,
           wall_ns - recorded_ns + high_ns - hr_checkpoint_saving(checkpoint_ns, $checkpoint, 0.5) AS job_high_ns,
           wall_ns - recorded_ns + predicted_ns - hr_checkpoint_saving(checkpoint_ns, $checkpoint, 0.75) AS job_ns,
           CASE workers WHEN 0 THEN 'num_workers=0'
                ELSE format('num_workers={} prefetch_factor={}{}', workers, prefetch, CASE persistent WHEN 1 THEN ' persistent_workers=True' ELSE '' END)
                END AS name
    FROM tried
    WHERE refusal IS NULL),
near AS (
    SELECT *, row_number() OVER (PARTITION BY cluster, job, attempt, workers ORDER BY prefetch, persistent, setting) AS nth
    FROM (SELECT *, min(mid_ns) OVER (PARTITION BY cluster, job, attempt, workers) AS least_ns FROM predicted WHERE setting > 0)
    WHERE mid_ns <= 1.03 * least_ns),
-- The cheapest setting for each number of workers. Place 1 has the fewest workers among those at most 3 % slower than the fastest.
kept AS (
    SELECT *, row_number() OVER (PARTITION BY cluster, job, attempt ORDER BY mid_ns > 1.03 * best_ns, workers) AS place
    FROM (SELECT *, min(mid_ns) OVER (PARTITION BY cluster, job, attempt) AS best_ns FROM near)
    WHERE nth = 1),
chosen AS (
    SELECT p.*, format('job {}{}', job, CASE WHEN attempt > 0 THEN format(', attempt {}', attempt) ELSE '' END) AS whose
    FROM predicted p
    WHERE setting = CASE $best WHEN 'true' THEN (SELECT setting FROM kept k WHERE k.cluster = p.cluster AND k.job = p.job AND k.attempt = p.attempt AND place = 1)
                         ELSE 0 END),
texts AS (
    SELECT cluster, job, attempt, 0 AS place, list_concat([
        format('{}: predicted {} instead of {}', whose, hr_prediction(job_ns, job_low_ns, job_high_ns), hr_duration(wall_ns)),
        format('   with:        {}', concat_ws(' ', name, format('batch_size={}', $batch), format('cores={:g}', $cores), format('io={:g}', $io),
               format('mount:{}', $mount), format('cached={}', $cached), format('reads={}', $reads),
               CASE $checkpoint WHEN 'async' THEN 'checkpoint=async' END)),
        format('   loops:       {} instead of {} (the replay of the recorded settings takes {})', hr_prediction(predicted_ns, low_ns, high_ns), hr_duration(recorded_ns),
               hr_duration(replayed_ns))],
        CASE WHEN loops > 1 THEN [format('   each loop:   {} instead of {}, mean of {:.0f} loops', hr_prediction(predicted_ns / loops, low_ns / loops, high_ns / loops), hr_duration(recorded_ns / loops), loops)] ELSE [] END,
        CASE WHEN doubt IS NOT NULL THEN [format('   not known:   {}', doubt)] ELSE [] END,
        CASE WHEN $checkpoint = 'async' AND checkpoint_ns > 0 THEN [format('   checkpoints: at most {} instead of {}', hr_duration(checkpoint_ns / 2), hr_duration(checkpoint_ns))] ELSE [] END,
        CASE WHEN ranks > 1 AND stalls THEN [format('   ranks:       {}, which wait for each other: of the slowest one', ranks)]
             WHEN ranks > 1 THEN [format('   ranks:       the mean of {}', ranks)] ELSE [] END,
        CASE $best WHEN 'true' THEN ['   tried:'] ELSE [] END) AS lines
    FROM chosen
    UNION ALL
    SELECT cluster, job, attempt, workers + 1, [format('      {:56s} loops {}', name, hr_prediction(predicted_ns, low_ns, high_ns))]
    FROM kept WHERE $best = 'true' AND mid_ns <= 1.5 * best_ns
    UNION ALL
    SELECT cluster, job, attempt, 0, [format('job {}: no prediction: {}', job, max(refusal))]
    FROM tried WHERE refusal IS NOT NULL GROUP BY cluster, job, attempt)
SELECT lines[i] AS line
FROM texts, LATERAL (SELECT unnest(range(1, len(lines) + 1)) AS i)
ORDER BY cluster, job, attempt, place, i
