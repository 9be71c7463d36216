-- Kinds of files: base names without digits, so that layer-1.pt and layer-2.pt count together
-- arg top COUNT 20: maximum number of kinds
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- arg rank BIGINT NULL: only this rank
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- shown: pattern files time_s bytes_read bytes_written opens reads writes
-- column pattern: the base name without [0-9-]+
-- column files: distinct files
-- column opens, reads, writes: calls
-- column bytes_read, bytes_written: bytes transferred
-- column time_s: sum of the durations of all calls
SELECT pattern, count(DISTINCT file_id) AS files, sum(opens) AS opens, sum(reads) AS reads,
       sum(writes) AS writes, sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written,
       sum(read_ns + write_ns + meta_ns) / 1e9 AS time_s
FROM hr_file_records()
WHERE ($scope = 'all' OR scope = $scope) AND ($rank IS NULL OR rank = $rank)
GROUP BY pattern
ORDER BY sum(bytes_read + bytes_written) DESC, pattern
LIMIT $top
