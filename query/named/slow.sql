-- The slowest single operations
-- arg top COUNT 20: maximum number of rows
-- arg class open|read|write|seek|stat|sync|close|dir|meta|map NULL: only calls of this class
-- arg op VARCHAR NULL: only this call
-- arg rank BIGINT NULL: only this rank
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- known op: SELECT DISTINCT op FROM rollups ORDER BY op
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- shown: dur_s op bytes path time_s rank worker errno
-- column dur_s: duration
-- column time_s: begin, since the start of its job
-- column op, bytes, path: call, bytes moved, file
-- column rank, worker, errno, pid, node, job, attempt: process that did it, and the error
WITH slowest AS (
    SELECT * FROM events
    WHERE ($scope = 'all' OR scope = $scope) AND ($class IS NULL OR class = $class)
      AND ($op IS NULL OR op = $op) AND ($rank IS NULL OR rank = $rank)
    ORDER BY dur_ns DESC, start_ns, node, pid, tid
    LIMIT $top)
SELECT dur_ns / 1e9 AS dur_s, ((s.start_ns - j.start_ns) / 1e9)::DECIMAL(19, 9) AS time_s, op, bytes, path, rank,
       worker, errno, pid, s.node, job, attempt
FROM slowest s LEFT JOIN jobs j USING (cluster, job, attempt)
ORDER BY dur_ns DESC, s.start_ns, s.node, pid, tid
