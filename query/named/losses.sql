-- What was not recorded, and why
-- column reason: ring_full detached torn hostile store_full spool_full max_size ...
-- column op: the call; NULL: any
-- column ops, bytes, time_s: how many, what they moved, how long they took; 0 where that is not known
-- column rank, pid, node, job, attempt: whose
SELECT reason, op, sum(count) AS ops, sum(bytes) AS bytes, sum(dur_ns) / 1e9 AS time_s, rank, pid, node, job,
       attempt
FROM losses
GROUP BY cluster, job, attempt, node, rank, pid, reason, op
ORDER BY ops DESC, job, attempt, cluster, node, rank, reason, op
