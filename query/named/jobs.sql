-- The jobs in the store
-- shown: job state start seconds nodes ranks_seen name user ranks_expected
-- column job, state: state is running, silent (its nodes send nothing to the collector), ended, failed or killed
-- column start, seconds: begin (UTC) and duration. The duration of a running job is until now; that of a silent or killed job is until
-- the last message, which may be up to 10 s before its end
-- column nodes, ranks_seen, ranks_expected: NULL: the expected number is unknown
-- column name, user, labels, attempt, cluster: program, owner, labels of --label, number of requeues (from 0), cluster
WITH lives AS (
    SELECT cluster, job, attempt, max(ns) AS last_ns
    FROM (SELECT cluster, job, attempt, coalesce(end_ns, start_ns) AS ns FROM processes
          UNION ALL SELECT cluster, job, attempt, window_start_ns FROM rollups)
    GROUP BY ALL)
SELECT j.job, j.state, make_timestamp_ns(j.start_ns) AS "start",
       (coalesce(j.end_ns, CASE j.state WHEN 'running' THEN epoch_ns(now()) ELSE l.last_ns END) - j.start_ns) / 1e9
           AS seconds,
       j.nodes, j.ranks_seen, j.ranks_expected, j.name, j.user,
       (SELECT string_agg(b.key || '=' || b.value, ' ' ORDER BY b.key) FROM labels b
        WHERE b.job = j.job AND b.cluster = j.cluster AND b.attempt = j.attempt) AS labels, j.attempt, j.cluster
FROM jobs j LEFT JOIN lives l USING (cluster, job, attempt)
ORDER BY j.start_ns, j.job, j.attempt, j.cluster
