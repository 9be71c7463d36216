-- Sizes and durations of operations: the number of operations for each power of two
WITH used AS (
    SELECT 'bytes' AS what, class, size_hist AS hist FROM rollups SEMI JOIN chosen USING (cluster, job, attempt) WHERE scope = 'data' AND class IN ('read', 'write')
    UNION ALL
    SELECT 'ns', CASE WHEN class IN ('read', 'write') THEN class ELSE 'other' END, dur_hist FROM rollups SEMI JOIN chosen USING (cluster, job, attempt) WHERE scope = 'data'),
bins AS (SELECT what, class, unnest(range(64)) AS bin, unnest(hist::UBIGINT[]) AS n FROM used)
SELECT what, class, bin, sum(n)::BIGINT AS ops FROM bins WHERE n > 0 GROUP BY what, class, bin ORDER BY ALL
