-- How long the checkpoints took. Findings would need another scan
WITH saves AS (
    SELECT job, attempt, checkpoint, max(dur_s) AS dur_s, sum(bytes_written) AS bytes, count(DISTINCT rank) AS ranks FROM answer GROUP BY ALL),
whole AS (
    SELECT job, attempt, count(*) AS n, min(dur_s) AS low_s, max(dur_s) AS high_s, sum(dur_s) AS dur_s, min(bytes) AS low, max(bytes) AS high,
           max(ranks) AS ranks, arg_max(checkpoint, (dur_s, -checkpoint)) AS longest
    FROM saves GROUP BY job, attempt)
SELECT format('{}: {}{}{} took {}{}', hr_whose(job, attempt), hr_number_of(n, 'checkpoint'),
              CASE WHEN ranks > 1 THEN format(' of {} ranks', ranks) ELSE '' END, CASE WHEN high > 0 THEN format(' of {}', hr_sizes(low, high)) ELSE '' END,
              hr_durations(1e9 * low_s, 1e9 * high_s),
              CASE WHEN n > 1 THEN format(' each, {} in total{}', hr_duration(1e9 * dur_s),
                                            CASE WHEN hr_duration(1e9 * low_s) <> hr_duration(1e9 * high_s) THEN format(' (longest: checkpoint {})', longest) ELSE '' END) ELSE '' END) AS line,
       0::DOUBLE AS share
FROM whole
ORDER BY job, attempt
