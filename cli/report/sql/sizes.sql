-- How large and how long operations were: number of operations per power of two
WITH used AS (SELECT class, size_hist, dur_hist FROM rollups SEMI JOIN chosen USING (cluster, job, attempt) WHERE scope = 'data'),
binned AS (
    SELECT what, class, i - 1 AS bin, sum(hist[i])::BIGINT AS ops
    FROM (SELECT 'bytes' AS what, class, size_hist AS hist FROM used WHERE class IN ('read', 'write')
          UNION ALL
          SELECT 'ns', CASE WHEN class IN ('read', 'write') THEN class ELSE 'other' END, dur_hist FROM used), range(1, 65) r(i)
    GROUP BY ALL)
SELECT what, class, bin, ops FROM binned WHERE ops > 0 ORDER BY ALL
