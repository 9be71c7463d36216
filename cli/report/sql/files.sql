-- The 300 files on which operations took the most time; further files are summed up by folder
WITH used AS (
    SELECT path, sum(read_ns + write_ns + meta_ns)::BIGINT AS ns, sum(bytes_read)::BIGINT AS bytes_read, sum(bytes_written)::BIGINT AS bytes_written,
           sum(opens)::BIGINT AS opens, sum(reads + writes + seeks + stats + syncs + meta_ops + opens)::BIGINT AS ops
    FROM hr_file_records() SEMI JOIN chosen USING (cluster, job, attempt) WHERE scope = 'data' GROUP BY path),
ranked AS (SELECT *, row_number() OVER (ORDER BY ns DESC, path) AS place FROM used)
SELECT path, 1 AS files, ns, bytes_read, bytes_written, opens, ops FROM ranked WHERE place <= 300
UNION ALL
(SELECT regexp_extract(path, '^(.*)/[^/]*$', 1) || '/*', count(*), sum(ns)::BIGINT, sum(bytes_read)::BIGINT, sum(bytes_written)::BIGINT, sum(opens)::BIGINT, sum(ops)::BIGINT
 FROM ranked WHERE place > 300 GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT 200)
ORDER BY ns DESC, path
