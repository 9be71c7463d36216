-- Files by the time spent on them: bytes read and written, number of processes
-- arg top COUNT 20: maximum number of files
-- arg by time|bytes|ops time: the order
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- arg pattern VARCHAR NULL: only files with this pattern: base name without digits, as in the query patterns
-- arg rank BIGINT NULL: only this rank
-- known pattern: SELECT pattern FROM hr_file_records() WHERE $scope IN ('all', scope) GROUP BY ALL ORDER BY count(*) DESC, pattern
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- shown: path io_s ops bytes_read bytes_written bytes_mapped procs ranks
-- fold: io_s
-- column path: the path as opened
-- column ops: all calls on it, including single characters (getc, putc)
-- column bytes_read, bytes_written: bytes that calls transferred
-- column bytes_mapped: bytes that page faults of its mappings fetched; NULL: none, or no probes (headrace run --probes)
-- column io_s, read_s, write_s, meta_s: time in all calls, in reads, in writes, and in other calls
-- column procs, ranks: processes and ranks that used it, in all jobs; if each rank has its own share of the data, ranks is 1
WITH per_file AS (
    SELECT file_id, any_value(path) AS path, sum(opens + reads + writes + seeks + stats + syncs + meta_ops) AS ops,
           sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written,
           sum(read_ns) / 1e9 AS read_s, sum(write_ns) / 1e9 AS write_s, sum(meta_ns) / 1e9 AS meta_s,
           count(DISTINCT (cluster, job, attempt, node, proc)) AS procs,
           count(DISTINCT (cluster, job, attempt, rank)) FILTER (rank IS NOT NULL) AS ranks
    FROM hr_file_records()
    WHERE ($scope = 'all' OR scope = $scope) AND ($pattern IS NULL OR pattern = $pattern)
      AND ($rank IS NULL OR rank = $rank)
    GROUP BY file_id),
mapped AS (
    SELECT file_id, sum(bytes) AS bytes_mapped
    FROM hr_kernel_records()
    WHERE cause = 'fill' AND ($rank IS NULL OR rank = $rank)
    GROUP BY file_id)
SELECT path, ops, bytes_read, bytes_written, bytes_mapped, read_s + write_s + meta_s AS io_s, read_s, write_s, meta_s, procs, ranks
FROM per_file LEFT JOIN mapped USING (file_id)
ORDER BY CASE $by WHEN 'bytes' THEN bytes_read + bytes_written + coalesce(bytes_mapped, 0) WHEN 'ops' THEN ops
         ELSE read_s + write_s + meta_s END DESC, path
LIMIT $top
