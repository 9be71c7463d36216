-- What was not recorded, and why
-- shown: reason op ops bytes time_s rank pid
-- column reason: docs/daemon.md lists all reasons
-- column op: the call; NULL: any call
-- column ops: number of lost operations or, for some reasons, of lost processes, regions...
-- column bytes, time_s: bytes that the lost operations moved, and their duration; 0: unknown
-- column rank, pid, node, job, attempt: process that lost them
SELECT reason, op, sum(count) AS ops, sum(bytes) AS bytes, sum(dur_ns) / 1e9 AS time_s, rank, pid, node, job,
       attempt
FROM losses
GROUP BY cluster, job, attempt, node, rank, pid, reason, op
ORDER BY ops DESC, job, attempt, cluster, node, rank, reason, op
