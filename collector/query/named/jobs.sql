-- The jobs in the store
-- column job, state: state is running, ended, failed or killed
-- column start, seconds: when it began (UTC), and how long it ran
-- column nodes, ranks_seen, ranks_expected: NULL expected: nobody said
-- column name, user, labels, attempt: program and owner; labels as given with --label; requeues, from 0
SELECT j.job, j.state, make_timestamp_ns(j.start_ns) AS "start", (j.end_ns - j.start_ns) / 1e9 AS seconds,
       j.nodes, j.ranks_seen, j.ranks_expected, j.name, j.user,
       (SELECT string_agg(l.key || '=' || l.value, ' ' ORDER BY l.key) FROM labels l
        WHERE l.job = j.job AND l.cluster = j.cluster AND l.attempt = j.attempt) AS labels, j.attempt
FROM jobs j
ORDER BY j.start_ns, j.job, j.attempt
