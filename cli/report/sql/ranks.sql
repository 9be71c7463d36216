-- Time of each training process from start to end, by what it was spent on; more than 64 ranks share a row, which is their mean
WITH rows AS (SELECT rank // ranks * ranks AS rank, node, proc, grp, ns FROM grouped, rows_of)
SELECT rank, grp AS part, (sum(ns) / any_value(procs))::BIGINT AS ns, any_value(procs) AS processes
FROM rows JOIN (SELECT rank AS first, count(DISTINCT (node, proc)) AS procs FROM rows GROUP BY rank) n ON n.first IS NOT DISTINCT FROM rank
GROUP BY rank, grp ORDER BY ALL
