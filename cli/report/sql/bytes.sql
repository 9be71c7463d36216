-- Bytes that each rank and its workers read and wrote over time. With more than 64 ranks, a row is the sum of several ranks
SELECT rank // ranks * ranks AS rank, bin, sum(bytes_read)::BIGINT AS bytes_read, sum(bytes_written)::BIGINT AS bytes_written
FROM moved, rows_of
GROUP BY 1, 2 HAVING sum(bytes_read) > 0 OR sum(bytes_written) > 0
ORDER BY 1, 2
