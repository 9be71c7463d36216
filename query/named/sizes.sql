-- Sizes of reads and writes: number per power of two (a copy between files is one read and one write)
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- arg rank BIGINT NULL: only this rank
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- shown: class from_bytes to_bytes ops percent
-- column class: read or write
-- column from_bytes, to_bytes: calls that moved at least from_bytes, and less than to_bytes; from 0 to 2: single characters and
-- bytes, and calls that moved nothing (reads at the end of a file, failed calls)
-- column ops: number of calls
-- column percent: share of the class
WITH bins AS (
    SELECT class, unnest(range(64)) AS bin, unnest(size_hist::UBIGINT[]) AS n
    FROM hr_rollups()
    WHERE class IN ('read', 'write') AND ($scope = 'all' OR scope = $scope)
      AND ($rank IS NULL OR rank = $rank)
      AND hr_what(op, class, side) <> 'copy'),
per_bin AS (SELECT class, bin, sum(n) AS ops FROM bins GROUP BY class, bin)
SELECT class, CASE bin WHEN 0 THEN 0 ELSE (2::HUGEINT) ** bin END::UBIGINT AS from_bytes,
       ((2::HUGEINT) ** (bin + 1))::HUGEINT AS to_bytes, ops,
       round(100.0 * ops / sum(ops) OVER (PARTITION BY class), 2) AS percent
FROM per_bin
WHERE ops > 0
ORDER BY class, bin
