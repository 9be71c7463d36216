-- How much of each moment the training processes waited for batches or for other ranks; of ranks that share a row, the one that waited most
WITH covered AS (
    SELECT rank, share, unnest(range(at_ns // bin_ns, (at_ns + greatest(total_ns, 1) - 1) // bin_ns + 1)) AS bin
    FROM (SELECT rank, node, proc, phase, step, min(at_ns) AS at_ns, sum(ns)::BIGINT AS total_ns,
                 coalesce(sum(ns) FILTER (starts_with(grp, 'wait')), 0) / greatest(sum(ns), 1) AS share
          FROM grouped GROUP BY ALL), chosen)
SELECT rank // ranks * ranks AS rank, bin, round(max(share), 4) AS share
FROM (SELECT rank, bin, avg(share) AS share FROM covered GROUP BY ALL), rows_of
GROUP BY 1, 2 ORDER BY 1, 2
