-- Where the time of each job was lost: causes, largest first, what would help and what would not
-- arg top COUNT 10: at most this many causes of each job
-- arg rank BIGINT[0,2147483647] NULL: only this rank
-- arg from DOUBLE NULL: only from this time on, in seconds since the start of the job; a negative number: before its end
-- arg to DOUBLE NULL: only until this time
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- note: SELECT format(E'job {}: no training loop was recorded\nhint: PyTorch reports it under headrace run; other programs can mark it with headrace.h', string_agg(DISTINCT job, ', ' ORDER BY job)) FROM jobs ANTI JOIN (SELECT DISTINCT cluster, job, attempt FROM regions WHERE kind IN ('step', 'epoch', 'input_wait', 'optimizer')) USING (cluster, job, attempt) HAVING count(*) > 0
-- shown: lost_s percent cause what rank object gain_low_s gain_high_s
-- column lost_s, percent: lost time of a training process (mean over those of the job), and its share of the time from start to end
-- column cause: name of the cause
-- column what: the cause as a sentence
-- column rank: the rank that caused most of the loss, by itself or because other ranks waited for it; NULL: no single rank
-- column object: file or folder
-- column evidence: numbers that show the cause
-- column action: what would help
-- column gain_low_s, gain_high_s: time that the action would save; NULL: not known
-- column avoid: what would not help
-- column job, attempt: job of the row
SELECT lost_ns / 1e9 AS lost_s, 100.0 * lost_ns / wall_ns AS percent, cause, meaning AS what, rank, object, evidence, action,
       gain_low_ns / 1e9 AS gain_low_s, gain_high_ns / 1e9 AS gain_high_s, avoid, job, attempt
FROM hr_findings(rank := $rank, from_s := $from, to_s := $to)
WHERE number <= $top
ORDER BY job, attempt, number
