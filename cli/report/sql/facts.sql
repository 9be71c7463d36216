-- The job: its program, its time, its nodes, ranks and workers
SELECT job, attempt, name, "user", state, start_ns, end_ns - start_ns AS dur_ns, nodes, ranks_seen AS ranks,
       (SELECT count(*) FROM processes SEMI JOIN chosen USING (cluster, job, attempt)) AS processes,
       (SELECT count(DISTINCT (node, rank, worker)) FROM processes SEMI JOIN chosen USING (cluster, job, attempt) WHERE worker IS NOT NULL) AS workers,
       (SELECT arg_min(cmdline, proc) FROM processes SEMI JOIN chosen USING (cluster, job, attempt)) AS command,
       (SELECT string_agg(DISTINCT node, ' ' ORDER BY node) FROM (SELECT DISTINCT node FROM nodes SEMI JOIN chosen USING (cluster, job, attempt) ORDER BY node LIMIT 20)) AS node_names,
       (SELECT string_agg(DISTINCT level, ', ') FROM levels SEMI JOIN chosen USING (cluster, job, attempt)) AS levels,
       (SELECT string_agg(key || '=' || value, ' ' ORDER BY key) FROM labels SEMI JOIN chosen USING (cluster, job, attempt)) AS labels,
       (SELECT sum(events)::BIGINT FROM nodes SEMI JOIN chosen USING (cluster, job, attempt)) AS events,
       (SELECT count(*) FROM jobs) - 1 AS other_jobs, bin_ns
FROM chosen
