-- What was not recorded, and why
-- column reason: why; docs/daemon.md lists all reasons
-- column op: the call; NULL: any
-- column ops: how many, in the unit of the reason, mostly operations
-- column bytes, time_s: what they moved, how long they took; 0 where that is not known
-- column rank, pid, node, job, attempt: whose
SELECT reason, op, sum(count) AS ops, sum(bytes) AS bytes, sum(dur_ns) / 1e9 AS time_s, rank, pid, node, job,
       attempt
FROM losses
GROUP BY cluster, job, attempt, node, rank, pid, reason, op
ORDER BY ops DESC, job, attempt, cluster, node, rank, reason, op
