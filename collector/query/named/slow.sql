-- The slowest single operations
-- arg top BIGINT 20: how many
-- arg class VARCHAR NULL: only this family: open read write seek stat sync close dir meta map
-- arg op VARCHAR NULL: only this call
-- arg rank BIGINT NULL: only this rank
-- arg scope VARCHAR data: data, runtime (Python's own files), or all
-- column dur_s: how long it took
-- column start: when, wall clock (UTC)
-- column job, node, rank, worker, pid, op, bytes, errno, path: who did what to which file
SELECT dur_ns / 1e9 AS dur_s, make_timestamp_ns(start_ns) AS "start", job, node, rank, worker, pid, op,
       bytes, errno, path
FROM events
WHERE ($scope = 'all' OR scope = $scope) AND ($class IS NULL OR class = $class)
  AND ($op IS NULL OR op = $op) AND ($rank IS NULL OR rank = $rank)
ORDER BY dur_ns DESC, start_ns
LIMIT $top
