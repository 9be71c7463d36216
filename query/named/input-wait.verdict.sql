-- How much of its time the training waited for data
WITH whole AS (
    SELECT job, attempt, count(*) AS n, sum(wait_s) AS wait_s, sum(loop_s) AS loop_s, 100.0 * sum(wait_s) / nullif(sum(loop_s), 0) AS percent,
           min(wait_percent) AS low, max(wait_percent) AS high,
           arg_max(concat_ws(', ', coalesce('rank ' || rank, 'processes without a rank'), 'loader ' || loader), (wait_percent, -hr_row)) FILTER (wait_percent IS NOT NULL) AS worst,
           sum(waits) AS waits, any_value(median_s) AS median_s, max(max_s) AS max_s
    FROM answer GROUP BY job, attempt),
sentences AS (
    SELECT job, attempt, coalesce(percent, 0) AS percent,
           format('{}: {} ({}{})', hr_whose(job, attempt),
                  CASE WHEN percent IS NULL THEN 'waits for data'
                       WHEN hr_percent(low) = hr_percent(high) THEN format('the training waited {} of its loop for data', hr_percent(percent))
                       ELSE format('the training waited {} of its loops for data, {} in {}', hr_percent(percent), hr_percent(high), worst) END,
                  hr_duration(1e9 * wait_s) || coalesce(format(' of {}', hr_duration(1e9 * loop_s)), ''),
                  CASE WHEN waits > 0 THEN format('; {}{}, longest {}', hr_number_of(waits, 'wait'),
                                                  CASE n WHEN 1 THEN format(', median {}', hr_duration(1e9 * median_s)) ELSE '' END,
                                                  hr_duration(1e9 * max_s)) ELSE '' END) AS line
    FROM whole WHERE wait_s IS NOT NULL)
SELECT line, percent FROM (
    SELECT job, attempt, 0 AS place, line, percent FROM sentences
    UNION ALL
    SELECT job, attempt, row_number() OVER (), line, NULL FROM hr_because('waits') SEMI JOIN whole USING (job, attempt) WHERE $rank IS NULL)
ORDER BY job, attempt, place
