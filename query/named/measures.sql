-- What a job took, as numbers that `headrace compare` and `headrace model` read: seconds, counts and sizes, one row each
-- column measure: `processes`, `steps`, `epochs`, `wall_s` and `part_s`: of training processes; `job_s`: of the job; `setting`: of its DataLoader, and ranks and nodes; `label`: labels that are numbers; `state`: of the job; `opens`, `reads`, `bytes_read`, `read_s`,
-- `writes`, `bytes_written`, `write_s`, `meta_ops`, `meta_s`, `files`: of a kind of files; `read_cached`, `read_cached_s`: the reads that the
-- page cache served; `fetches`, `fetch_s`, `fetch_cpu_s`, `fetch_storage_bytes`: of batches; `checkpoints`, `checkpoint_bytes`; `regions`, `region_s`
-- column rank: NULL: processes without a rank, or all ranks
-- column phase, name: of a part, as in the table parts; else the name of a setting, region or state of the job, or a kind of files: folder and base name, with * for numbers, hashes and random names
-- column mount: mount of the files
-- column piece: the training steps of a process are divided into ten pieces, from 0; NULL: outside of steps, or not divided
-- column value: seconds, number or bytes
-- column job, attempt: job of the row
WITH spent AS MATERIALIZED (
    SELECT cluster, job, attempt, rank, node, proc, phase, part, ns, step, epoch, start_ns,
           CASE WHEN phase = 'train' AND step IS NOT NULL THEN dense_rank() OVER (PARTITION BY cluster, job, attempt, node, proc, phase, step IS NULL ORDER BY start_ns) END AS nth
    FROM parts),
pieces AS MATERIALIZED (
    SELECT * EXCLUDE (start_ns, step, epoch), (nth - 1) * 10 // max(nth) OVER (PARTITION BY cluster, job, attempt, node, proc) AS piece FROM spent),
-- Kinds of files that matter; the others are one kind without a name.
by_file AS MATERIALIZED (
    SELECT cluster, job, attempt, rank, mount, file_id, regexp_replace(regexp_extract(any_value(path), '([^/]*/)?[^/]*$'), '[0-9a-f]{16,}|\btmp[.A-Za-z0-9_]{8,11}\b|[0-9]+', '*', 'g') AS name, sum(opens) AS opens, sum(reads) AS reads,
           sum(bytes_read) AS bytes_read, sum(read_ns) AS read_ns, sum(writes) AS writes, sum(bytes_written) AS bytes_written, sum(write_ns) AS write_ns,
           sum(meta_ops + stats + syncs + seeks) AS meta, sum(meta_ns) AS meta_ns, sum(read_ns + write_ns + meta_ns) AS ns
    FROM hr_file_records() WHERE scope = 'data' GROUP BY cluster, job, attempt, rank, mount, file_id),
much AS MATERIALIZED (
    SELECT cluster, job, attempt, mount, name
    FROM (SELECT cluster, job, attempt, mount, name, sum(ns) / sum(sum(ns)) OVER whole AS time, sum(bytes_read + bytes_written) / sum(sum(bytes_read + bytes_written)) OVER whole AS bytes,
                 sum(opens) / sum(sum(opens)) OVER whole AS opens
          FROM by_file GROUP BY cluster, job, attempt, mount, name WINDOW whole AS (PARTITION BY cluster, job, attempt))
    WHERE greatest(time, bytes, opens) >= 0.005),
kinds AS MATERIALIZED (
    SELECT f.cluster, f.job, f.attempt, rank, m.mount, m.name, count(DISTINCT file_id) AS files, sum(opens) AS opens, sum(reads) AS reads, sum(bytes_read) AS bytes_read, sum(read_ns) / 1e9 AS read_s,
           sum(writes) AS writes, sum(bytes_written) AS bytes_written, sum(write_ns) / 1e9 AS write_s, sum(meta) AS meta_ops, sum(meta_ns) / 1e9 AS meta_s
    FROM by_file f LEFT JOIN much m ON f.cluster = m.cluster AND f.job = m.job AND f.attempt = m.attempt AND f.mount IS NOT DISTINCT FROM m.mount AND f.name = m.name
    GROUP BY ALL),
cached AS MATERIALIZED (
    SELECT cluster, job, attempt, mount, name, sum(n) AS n, sum(s) AS s
    FROM (SELECT cluster, job, attempt, file_id, count(*) AS n, sum(dur_ns) / 1e9 AS s
          FROM hr_events() WHERE class = 'read' AND scope = 'data' AND (dur_ns < 30000 OR bytes > dur_ns // 2) GROUP BY cluster, job, attempt, file_id)
         JOIN (SELECT DISTINCT cluster, job, attempt, mount, name, file_id FROM by_file SEMI JOIN much USING (cluster, job, attempt, mount, name)) USING (cluster, job, attempt, file_id)
    GROUP BY cluster, job, attempt, mount, name),
loaders AS (
    SELECT cluster, job, attempt, unnest([{name: 'num_workers', value: json_extract(args, '$.workers')}, {name: 'prefetch_factor', value: json_extract(args, '$.prefetch')},
                                          {name: 'persistent_workers', value: CASE WHEN json_extract(args, '$.workers')::INT > 0 THEN to_json((json_extract(args, '$.persistent') IS NOT NULL)::INT) END},
                                          {name: 'batch_size', value: json_extract(args, '$.batch_size')}], recursive := true)
    FROM (SELECT cluster, job, attempt, args FROM regions WHERE kind IN ('input_wait', 'range') AND hr_of_loader(args))),
-- Without workers, the waits of the training thread contain the fetches. A loader's wait within another wait is a range.
fetches AS (
    SELECT cluster, job, attempt, rank, count(*) AS n, sum(dur_ns) / 1e9 AS s, sum(try_cast(json_extract(args, '$.cpu_ns') AS BIGINT)) / 1e9 AS cpu_s,
           sum(try_cast(json_extract(args, '$.storage_bytes') AS BIGINT)) AS storage_bytes
    FROM regions WHERE kind = 'fetch' OR (kind IN ('input_wait', 'range') AND hr_of_loader(args) AND json_extract(args, '$.workers') = '0')
    GROUP BY ALL),
named AS (
    SELECT cluster, job, attempt, rank, coalesce(domain || '.', '') || name AS name, sum(count) AS n, sum(dur_ns) / 1e9 AS s
    FROM regions WHERE kind <> 'step' GROUP BY ALL),
saved AS (
    SELECT cluster, job, attempt, rank, count(*) AS n, sum(bytes_written) AS bytes
    FROM hr_during(kind := 'checkpoint') WHERE depth = 0 GROUP BY ALL),
measured AS (
    SELECT cluster, job, attempt, 'wall_s' AS measure, rank, NULL AS phase, NULL AS name, NULL AS mount, NULL AS piece, sum(ns) / 1e9 AS value FROM pieces GROUP BY ALL
    UNION ALL
    SELECT cluster, job, attempt, 'processes', rank, NULL, NULL, NULL, NULL, count(DISTINCT (node, proc)) FROM pieces GROUP BY ALL
    UNION ALL
    SELECT cluster, job, attempt, 'job_s', NULL, NULL, NULL, NULL, NULL, (end_ns - start_ns) / 1e9 FROM jobs WHERE end_ns IS NOT NULL
    UNION ALL
    SELECT cluster, job, attempt, 'steps', rank, NULL, NULL, NULL, NULL, count(DISTINCT (node, proc, epoch, step)) FROM spent WHERE nth IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT cluster, job, attempt, 'epochs', rank, NULL, NULL, NULL, NULL, count(DISTINCT (node, proc, epoch)) FROM spent WHERE phase = 'train' AND epoch IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT cluster, job, attempt, 'part_s', rank, phase, part, NULL, piece, sum(ns) / 1e9 FROM pieces GROUP BY ALL
    UNION ALL
    SELECT cluster, job, attempt, 'setting', NULL, NULL, name, NULL, NULL, mode(value::DOUBLE) FROM loaders WHERE value IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT cluster, job, attempt, 'setting', NULL, NULL, unnest(['ranks', 'nodes']), NULL, NULL, unnest([coalesce(ranks_expected, nullif(ranks_seen, 0), 1), nodes]) FROM jobs
    UNION ALL
    SELECT cluster, job, attempt, 'state', NULL, NULL, state, NULL, NULL, 1 FROM jobs
    UNION ALL
    SELECT cluster, job, attempt, 'label', NULL, NULL, key, NULL, NULL, max(try_cast(value AS DOUBLE)) FROM labels WHERE isfinite(try_cast(value AS DOUBLE)) GROUP BY ALL
    UNION ALL
    SELECT cluster, job, attempt, measure, rank, NULL, name, mount, NULL, value
    FROM (SELECT cluster, job, attempt, rank, mount, name,
                 unnest([{measure: 'files', value: files}, {measure: 'opens', value: opens}, {measure: 'reads', value: reads}, {measure: 'bytes_read', value: bytes_read}, {measure: 'read_s', value: read_s},
                         {measure: 'writes', value: writes}, {measure: 'bytes_written', value: bytes_written}, {measure: 'write_s', value: write_s},
                         {measure: 'meta_ops', value: meta_ops}, {measure: 'meta_s', value: meta_s}], recursive := true) FROM kinds)
    WHERE value <> 0
    UNION ALL
    SELECT cluster, job, attempt, measure, NULL, NULL, name, mount, NULL, value
    FROM (SELECT cluster, job, attempt, mount, name, unnest([{measure: 'read_cached', value: n}, {measure: 'read_cached_s', value: s}], recursive := true) FROM cached)
    UNION ALL
    SELECT cluster, job, attempt, measure, rank, NULL, NULL, NULL, NULL, value
    FROM (SELECT cluster, job, attempt, rank, unnest([{measure: 'checkpoints', value: n}, {measure: 'checkpoint_bytes', value: bytes}], recursive := true) FROM saved)
    WHERE value IS NOT NULL
    UNION ALL
    SELECT cluster, job, attempt, measure, rank, NULL, NULL, NULL, NULL, value
    FROM (SELECT cluster, job, attempt, rank, unnest([{measure: 'fetches', value: n}, {measure: 'fetch_s', value: s}, {measure: 'fetch_cpu_s', value: cpu_s},
                                                      {measure: 'fetch_storage_bytes', value: storage_bytes}], recursive := true) FROM fetches)
    WHERE value IS NOT NULL
    UNION ALL
    SELECT cluster, job, attempt, measure, rank, NULL, name, NULL, NULL, sum(value)
    FROM (SELECT cluster, job, attempt, rank, name, unnest([{measure: 'regions', value: n}, {measure: 'region_s', value: s}], recursive := true) FROM named)
    GROUP BY ALL)
SELECT measure, rank, phase, name, mount, piece, value, job, attempt
FROM measured
ORDER BY job, attempt, cluster, measure, rank, phase, name, mount, piece
