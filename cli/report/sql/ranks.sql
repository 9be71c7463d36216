-- What each training process spent its time on, from start to end. With more than 64 ranks, a row is the mean of several ranks
WITH rows AS (SELECT rank // ranks * ranks AS first, node, proc, grp, ns FROM by_process, rows_of),
counted AS (SELECT first, count(DISTINCT (node, proc)) AS processes FROM rows GROUP BY first)
SELECT r.first AS rank, grp AS part, (sum(ns) / any_value(processes))::BIGINT AS ns, any_value(processes) AS processes
FROM rows r JOIN counted c ON r.first IS NOT DISTINCT FROM c.first
GROUP BY r.first, grp ORDER BY ALL
