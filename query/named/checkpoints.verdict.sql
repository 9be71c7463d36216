-- How long the checkpoints took
WITH saves AS (
    SELECT job, attempt, checkpoint, max(dur_s) AS dur_s, sum(bytes_written) AS bytes, count(DISTINCT rank) AS ranks FROM answer GROUP BY ALL),
whole AS (
    SELECT job, attempt, count(*) AS n, min(dur_s) AS low_s, max(dur_s) AS high_s, sum(dur_s) AS dur_s, min(bytes) AS low, max(bytes) AS high,
           max(ranks) AS ranks, arg_max(checkpoint, dur_s) AS longest
    FROM saves GROUP BY job, attempt)
SELECT line, CASE place WHEN 0 THEN 0::DOUBLE END AS share FROM (
    SELECT job, attempt, 0 AS place,
           format('{}: {}{} of {} took {}{}', hr_whose(job, attempt), hr_number_of(n, 'checkpoint'),
                  CASE WHEN ranks > 1 THEN format(' of {} ranks', ranks) ELSE '' END, hr_sizes(low, high), hr_durations(1e9 * low_s, 1e9 * high_s),
                  CASE WHEN n > 1 THEN format(' each, {} in total (longest: checkpoint {})', hr_duration(1e9 * dur_s), longest) ELSE '' END) AS line
    FROM whole
    UNION ALL
    SELECT job, attempt, row_number() OVER (), line FROM hr_because('checkpoints') SEMI JOIN whole USING (job, attempt))
ORDER BY job, attempt, place
