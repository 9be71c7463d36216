-- How long the training loops of each rank would take with other settings of the DataLoader or its job
-- arg workers BIGINT[0,1024] NULL: num_workers of the DataLoader
-- arg prefetch BIGINT[1,1024] NULL: prefetch_factor
-- arg persistent true|false NULL: persistent_workers
-- arg cores DOUBLE[1,65536] NULL: processors of the rank
-- arg io DOUBLE[0,1000000] NULL: factor for the I/O time of workers, for example 0.5 for storage that is twice as fast, or 0 for files in memory
-- arg rank BIGINT NULL: only this rank
-- arg mount PAIR NULL: the files of one mount lie on another one, for example /data=/scratch
-- arg cached SIZE NULL: so much memory keeps what was read, for example 64GiB
-- arg reads SIZE NULL: workers read blocks of this size, for example 1MiB
-- arg batch BIGINT[1,1000000000] NULL: samples of a batch
-- arg checkpoint recorded|async recorded: with async, the training continues while a checkpoint is written
-- arg best true|false false: with true, a row for each setting that headrace tries follows the row of the given setting
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- shown: rank workers recorded_s predicted_s low_s high_s why speedup prefetch
-- column rank: NULL: processes without a rank
-- column workers, prefetch, persistent: the setting of the row; NULL: not known, or no workers
-- column recorded_s: time of the training loops
-- column predicted_s: the most probable time; NULL: not known, see why
-- column low_s, high_s: limits of the predicted time. headrace does not know exactly what the training thread does between waits,
-- and how storage behaves under more load
-- column gain_s, speedup: recorded_s minus predicted_s, and recorded_s divided by predicted_s
-- column wall_s: from exec to exit of the process
-- column wall_low_s, wall_high_s: predicted wall_s
-- column why: why there is no prediction, or only low_s and high_s
-- column job, attempt: job of the row
SELECT rank, workers, prefetch, persistent, recorded_ns / 1e9 AS recorded_s, predicted_ns / 1e9 AS predicted_s, low_ns / 1e9 AS low_s,
       high_ns / 1e9 AS high_s, (recorded_ns - predicted_ns) / 1e9 AS gain_s,
       recorded_ns / nullif(predicted_ns, 0) AS speedup, wall_ns / 1e9 AS wall_s,
       (wall_ns - recorded_ns + low_ns - hr_checkpoint_saving(checkpoint_ns, $checkpoint, 1.0)) / 1e9 AS wall_low_s,
       (wall_ns - recorded_ns + high_ns - hr_checkpoint_saving(checkpoint_ns, $checkpoint, 0.5)) / 1e9 AS wall_high_s,
       coalesce(refusal, doubt) AS why, job, attempt
FROM hr_replays(workers := $workers, prefetch := $prefetch, persistent := $persistent, cores := $cores, io := $io, mount := $mount, cached := $cached, reads := $reads,
                    batch := $batch, search := $best)
WHERE $rank IS NULL OR rank = $rank
ORDER BY job, attempt, rank, setting
