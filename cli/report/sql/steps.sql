-- What a training process spent the time of a step on: means over processes, in at most 120 groups of steps
WITH each AS (SELECT step, grp, ns, at_ns FROM placed WHERE step IS NOT NULL AND phase = 'train'),
plan AS (SELECT min(step) AS low, max(step) AS high, greatest(1, ceil((max(step) - min(step) + 1) / 120.0))::BIGINT AS width FROM each),
counted AS (SELECT count(DISTINCT (node, proc)) AS procs FROM by_process),
sorted AS (SELECT low + (step - low) // width * width AS first, grp, ns, at_ns FROM each, plan)
SELECT first AS step, grp AS part, (sum(ns) / (procs * least(width, high + 1 - first)))::BIGINT AS ns, least(width, high + 1 - first) AS steps, min(at_ns) AS at_ns
FROM sorted, plan, counted
GROUP BY first, grp, procs, width, high
ORDER BY 1, 2
