-- What is not in the recording
SELECT reason, hr_loss_meaning(reason) AS meaning, sum(count)::BIGINT AS count, sum(bytes)::BIGINT AS bytes, count(DISTINCT (node, proc)) AS processes
FROM losses SEMI JOIN chosen USING (cluster, job, attempt)
GROUP BY reason ORDER BY count DESC, reason
