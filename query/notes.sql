-- What an answer lacks: one row with a line of text for each case
-- Names each table only once, because each use of a table reads frames of every stream.
WITH every_job AS MATERIALIZED (SELECT cluster, job, attempt, nodes, ranks_expected, nodes_expected FROM hr_jobs()),
every_node AS MATERIALIZED (
    SELECT cluster, job, attempt, node, boot, state, heard_ns, closed_ns, silent_ns, clock_offset_ns, clock_error_ns FROM hr_nodes()),
counted AS MATERIALIZED (SELECT job, node, start_ns, end_ns FROM levels WHERE level = 'counters'),
-- A journal in memory is lost if headraced is killed. This loss counts like that of a damaged journal.
lost AS MATERIALIZED (
    SELECT job, CASE reason WHEN 'journal_memory' THEN 'journal_damaged' ELSE reason END AS why, sum(count) AS count,
           sum(bytes) AS bytes
    FROM losses WHERE reason <> 'journal_memory' OR job IN (SELECT job FROM every_node WHERE state = 'killed')
    GROUP BY job, why),
seen AS (SELECT DISTINCT cluster, job, attempt, rank FROM processes WHERE rank IS NOT NULL),
-- The number of ranks comes from an environment variable, which may be wrong. So this lists at most 17 more ranks than were seen.
some_ranks AS (
    SELECT *, unnest(range(least(ranks_expected, n_seen + 17))) AS rank
    FROM (SELECT cluster, job, attempt, any_value(ranks_expected) AS ranks_expected,
                 count(*) FILTER (s.rank < ranks_expected) AS n_seen
          FROM every_job LEFT JOIN seen s USING (cluster, job, attempt)
          WHERE ranks_expected IS NOT NULL GROUP BY cluster, job, attempt)),
-- Notes about single nodes. `kind` is the same for notes that differ in times only; the largest `weight` of a kind is the most important one.
of_node AS (
    SELECT 2 AS part, job, node, 'counters' AS kind, coalesce(end_ns - start_ns, 0) AS weight,
           format('only counters were recorded {}: rollups and file_records have these operations, but events and the queries io-time, slow and file lack them; --level trace records them',
                  CASE WHEN end_ns IS NULL OR end_ns <= start_ns THEN 'from some point on'
                  ELSE format('for {:.1f} s', (end_ns - start_ns) / 1e9) END) AS text
    FROM counted
    UNION ALL
    SELECT 3, job, node, concat_ws(' ', state, boot = 'imported'), 0, CASE
        WHEN boot = 'imported' AND state = 'running' THEN 'headrace import still writes it: the answer is incomplete'
        WHEN boot = 'imported' THEN 'headrace import was killed while it wrote it: most of it is missing; remove its folder below jobs/, and import again'
        WHEN state = 'running' THEN 'still running, or being recovered: the answer contains events until about 1 s ago, and totals until about 10 s ago'
        ELSE 'the recording was cut short (headraced was killed or stopped): later operations are missing' END
    FROM every_node WHERE state NOT IN ('ended', 'silent') AND closed_ns IS NULL
    UNION ALL
    SELECT 3, job, node, 'closed', closed_ns, format('an operator closed it on {} UTC, its last message came on {} UTC: later data is missing',
                          strftime(make_timestamp_ns(closed_ns), '%Y-%m-%d %H:%M'),
                          coalesce(strftime(make_timestamp_ns(heard_ns), '%Y-%m-%d %H:%M'), '?'))
    FROM every_node WHERE state = 'killed' AND closed_ns IS NOT NULL
    UNION ALL
    SELECT 3, job, node, 'silent', silent_ns, format('no message since {} UTC ({} s): later data is missing here, but may be in the spool of that node; totals (ranks, workers, files, summary) lack some time before it, too',
                          CASE WHEN heard_ns IS NULL THEN 'its start,'
                          WHEN silent_ns < 43200000000000 THEN strftime(make_timestamp_ns(heard_ns), '%H:%M:%S')
                          ELSE strftime(make_timestamp_ns(heard_ns), '%Y-%m-%d %H:%M:%S') END,
                          silent_ns // 1000000000)
    FROM every_node WHERE state = 'silent'),
of_nodes AS (SELECT *, count(*) OVER (PARTITION BY part, job, kind) AS n FROM of_node),
notes AS (
    SELECT part, job, format('job {}, node {}: {}', job, node, text) AS note FROM of_nodes WHERE n <= 3
    UNION ALL -- more nodes share a line
    SELECT part, job, CASE WHEN count(DISTINCT text) = 1
                      THEN format('job {}, {} nodes ({}, ...): {}', job, n, array_to_string(list(node ORDER BY node)[1:3], ', '), any_value(text))
                      ELSE format('job {}, node {}: {}. The same, with other times, on {} more nodes',
                                  job, arg_max(node, (weight, node)), arg_max(text, (weight, node)), n - 1) END
    FROM of_nodes WHERE n > 3 GROUP BY part, job, kind, n
    UNION ALL
    SELECT 3, job, format('job {}: the clocks of node {} and {} differ by {}', job, low, high,
                          CASE WHEN apart_ns < 1e9 THEN format('{:.1f} ms', apart_ns / 1e6) ELSE format('{:.1f} s', apart_ns / 1e9) END)
    FROM (SELECT job, arg_min(node, (clock_offset_ns + clock_error_ns, node)) AS low,
                 arg_max(node, (clock_offset_ns - clock_error_ns, node)) AS high,
                 arg_max(clock_offset_ns, clock_offset_ns - clock_error_ns)
                 - arg_min(clock_offset_ns, clock_offset_ns + clock_error_ns) AS apart_ns
          FROM every_node WHERE clock_offset_ns IS NOT NULL
          GROUP BY cluster, job, attempt
          HAVING max(clock_offset_ns - clock_error_ns) - min(clock_offset_ns + clock_error_ns) > 1000000)
    UNION ALL
    SELECT 4, job, format('job {}: {} of {} expected ranks were not seen: {}{}', job, ranks_expected - n_seen,
                          ranks_expected, array_to_string(list(rank ORDER BY rank)[1:16], ', '),
                          CASE WHEN ranks_expected - n_seen > 16 THEN ', ...' ELSE '' END)
    FROM some_ranks ANTI JOIN seen USING (cluster, job, attempt, rank)
    GROUP BY cluster, job, attempt, ranks_expected, n_seen
    UNION ALL
    SELECT 4, job, format('job {}: no data of {} of its {} nodes', job, nodes_expected - nodes, nodes_expected)
    FROM every_job WHERE nodes_expected > nodes
    UNION ALL
    SELECT 5, job, format('job {}: {} processes are not recorded: --ranks or --local-ranks excludes their ranks',
                          job, count(*))
    FROM hr_processes() WHERE deselected <> 0 GROUP BY job)
-- query/notes.c makes a sentence (common/loss.h) of the columns from `why` to `unsure`. `rest` becomes a second line.
SELECT note, why, count, bytes, unsure, rest FROM (
    SELECT part, job, note, '' AS why, '' AS count, '' AS bytes, '' AS unsure, '' AS rest FROM notes
    UNION ALL
    SELECT 1, job, format('job {}: missing ', job), why, count::VARCHAR, bytes::VARCHAR,
           CASE WHEN job IN (SELECT job FROM counted) OR job IN (SELECT job FROM lost WHERE why = 'rollups_full')
                THEN 'unsure' ELSE '' END,
           CASE WHEN hr_loss_is_programs(why)
                THEN format('hint: list the programs: SELECT exe FROM losses JOIN processes USING (job, node, proc) WHERE reason = ''{}''', why)
                ELSE '' END
    FROM lost)
ORDER BY part, job, note, why
