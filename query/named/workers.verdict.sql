-- Whether the workers differ
WITH workers AS (
    SELECT job, attempt, rank, worker, node, sum(io_s) AS io_s, sum(bytes_read) AS bytes_read
    FROM answer WHERE worker IS NOT NULL GROUP BY ALL),
whole AS (
    SELECT job, attempt, count(*) AS n, count(DISTINCT rank) AS ranks, min(io_s) AS low_s, max(io_s) AS high_s, median(io_s) AS median_s,
           min(bytes_read) AS low, max(bytes_read) AS high, arg_max(concat_ws(', ', 'rank ' || rank, 'worker ' || worker), (io_s, -rank, -worker)) AS slowest
    FROM workers GROUP BY job, attempt)
SELECT CASE WHEN w.n IS NULL THEN format('{}: no DataLoader worker used files', hr_whose(a.job, a.attempt))
            ELSE format('{}: {}{} read {}{}; I/O took {}{}', hr_whose(a.job, a.attempt), hr_number_of(n, 'worker'),
                        CASE WHEN ranks > 1 THEN format(' of {} ranks', ranks) ELSE '' END, hr_sizes(low, high), CASE WHEN n > 1 THEN ' each' ELSE '' END,
                        hr_durations(1e9 * low_s, 1e9 * high_s),
                        CASE WHEN n > 1 AND high_s > 1.5 * median_s
                             THEN format(', longest in {}', slowest) ELSE '' END) END AS line,
       0::DOUBLE AS share
FROM (SELECT DISTINCT job, attempt FROM answer) a LEFT JOIN whole w ON a.job = w.job AND a.attempt = w.attempt
ORDER BY a.job, a.attempt
