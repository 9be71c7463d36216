-- What the steps spent their time on
WITH whole AS (
    SELECT job, attempt, count(*) AS n, sum(steps) AS steps, sum(dur_s) AS dur_s, any_value(median_s) AS median_s, max(max_s) AS max_s,
           [(sum(input_wait_s), 'waiting for data'), (sum(compute_s), 'computing'), (sum(checkpoint_s), 'in checkpoints'), (sum(optimizer_s), 'in optimizers'),
            (sum(own_io_s), 'using files'), (sum(validation_s), 'in validation'), (sum(stall_s), 'waiting for other ranks')] AS spent,
           100.0 * sum(input_wait_s) / nullif(sum(dur_s), 0) AS percent
    FROM answer GROUP BY job, attempt),
shares AS (
    SELECT job, attempt, string_agg(format('{} {}', hr_percent(100.0 * s / dur_s), what), ', ' ORDER BY s DESC, what) AS text
    FROM (SELECT job, attempt, dur_s, unnest(spent) AS one, one[1] AS s, one[2] AS what FROM whole)
    WHERE s >= 0.01 * dur_s GROUP BY job, attempt)
SELECT line, percent FROM (
    SELECT job, attempt, 0 AS place, percent,
           format('{}: {} took {}{}: {}', hr_whose(job, attempt), hr_number_of(steps, 'step'), hr_duration(1e9 * dur_s),
                  CASE WHEN n = 1 AND median_s IS NOT NULL THEN format(' (median {}, longest {})', hr_duration(1e9 * median_s), hr_duration(1e9 * max_s))
                       WHEN max_s IS NOT NULL THEN format(' (summed over ranks; longest {})', hr_duration(1e9 * max_s)) ELSE '' END, text) AS line
    FROM whole JOIN shares USING (job, attempt)
    UNION ALL
    SELECT job, attempt, row_number() OVER (), NULL, line FROM hr_because('all') SEMI JOIN whole USING (job, attempt) WHERE $rank IS NULL)
ORDER BY job, attempt, place
