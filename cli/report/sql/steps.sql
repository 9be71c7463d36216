-- Mean time of the training processes for a step, by what it was spent on; at most 120 groups of steps
WITH numbered AS (
    SELECT step, grp, ns, at_ns FROM grouped WHERE step IS NOT NULL AND phase = 'train'),
plan AS (SELECT min(step) AS first, max(step) AS last, greatest(1, ceil((max(step) - min(step) + 1) / 120.0))::BIGINT AS width FROM numbered),
counted AS (SELECT count(DISTINCT (node, proc)) AS procs FROM grouped)
SELECT first + (step - first) // width * width AS step, grp AS part,
       (sum(ns) / (procs * least(width, last + 1 - (first + (step - first) // width * width))))::BIGINT AS ns, min(at_ns) AS at_ns
FROM numbered, plan, counted
GROUP BY first + (step - first) // width * width, grp, procs, width, last
ORDER BY 1, 2
