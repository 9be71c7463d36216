-- Bytes that each rank and its workers read and wrote over time. With more than 64 ranks, a row is the sum of several ranks
SELECT rank // ranks * ranks AS rank, bin, sum(bytes_read)::BIGINT AS bytes_read, sum(bytes_written)::BIGINT AS bytes_written
FROM (SELECT rank, (e.start_ns - c.start_ns) // bin_ns AS bin, sum(bytes) FILTER (class = 'read') AS bytes_read, sum(bytes) FILTER (class = 'write') AS bytes_written
      FROM events e JOIN chosen c USING (cluster, job, attempt)
      WHERE (SELECT single FROM detail) AND scope = 'data' GROUP BY 1, 2
      UNION ALL
      SELECT rank, (window_start_ns + 5000000000 - c.start_ns) // bin_ns, sum(bytes) FILTER (class = 'read'), sum(bytes) FILTER (class = 'write')
      FROM rollups r JOIN chosen c USING (cluster, job, attempt)
      WHERE NOT (SELECT single FROM detail) AND scope = 'data' GROUP BY 1, 2), rows_of
GROUP BY 1, 2 HAVING sum(bytes_read) > 0 OR sum(bytes_written) > 0
ORDER BY 1, 2
