-- How long the epochs took, and how much of it the training waited
WITH whole AS (
    SELECT job, attempt, count(*) AS n, count(DISTINCT rank) AS ranks, min(dur_s) AS low_s, max(dur_s) AS high_s,
           arg_max(concat_ws(' of ', coalesce('epoch ' || epoch, 'one without a number'), 'rank ' || rank), (dur_s, -hr_row)) AS longest,
           sum(input_wait_s) AS wait_s, sum(dur_s) AS dur_s, 100.0 * sum(input_wait_s) / nullif(sum(dur_s), 0) AS percent
    FROM answer GROUP BY job, attempt)
SELECT line, percent FROM (
    SELECT job, attempt, 0 AS place, percent,
           format('{}: {}{} took {}{}: {} waiting for data ({} of {})', hr_whose(job, attempt), hr_number_of(n, 'epoch'),
                  CASE WHEN ranks > 1 THEN format(' of {} ranks', ranks) ELSE '' END, hr_durations(1e9 * low_s, 1e9 * high_s),
                  CASE WHEN n = 1 THEN '' WHEN hr_duration(1e9 * low_s) = hr_duration(1e9 * high_s) THEN ' each' ELSE format(' each (longest: {})', longest) END,
                  hr_percent(percent), hr_duration(1e9 * wait_s), hr_duration(1e9 * dur_s)) AS line
    FROM whole WHERE dur_s > 0
    UNION ALL
    SELECT job, attempt, row_number() OVER (), NULL, line FROM hr_because('all') SEMI JOIN whole USING (job, attempt) WHERE $rank IS NULL)
ORDER BY job, attempt, place
