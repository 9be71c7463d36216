-- For each short interval, the share of its time in which a rank waited for batches or for other ranks. If several ranks share a row, it shows the one that waited most
WITH started AS (
    SELECT rank, bin, coalesce(sum(ns) FILTER (waiting), 0) / greatest(sum(ns), 1) AS share, sum(ns) AS ns FROM placed WHERE step IS NULL GROUP BY rank, bin),
-- The parts of a step are stored at its start. Therefore their share applies until the next step begins.
filled AS (
    SELECT rank, share, unnest(range(bin, coalesce(lead(bin) OVER (PARTITION BY rank ORDER BY bin), bin + 1 + (ns / bin_ns)::BIGINT))) AS bin
    FROM started, chosen)
SELECT rank // ranks * ranks AS rank, bin, round(max(share), 4) AS share
FROM filled, rows_of WHERE bin <= 120
GROUP BY 1, 2 ORDER BY 1, 2
