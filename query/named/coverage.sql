-- Reads and writes that the kernel saw, compared with those that the shim recorded and probes added (run --probes)
-- arg by file|process|job file: one row per file, process or job
-- arg scope data|runtime|all data: runtime is I/O on Python's own files
-- arg top COUNT 50: maximum number of rows
-- note: SELECT format(E'probes did not run for {}{}, or saw no I/O on files: coverage there is unknown\nhint: record with headrace run --probes', array_to_string(list(t ORDER BY t)[1:8], ', '), CASE WHEN count(*) > 8 THEN format(' and {} more', count(*) - 8) ELSE '' END) FROM (SELECT DISTINCT format('job {} on {}', job, node) AS t FROM nodes ANTI JOIN kernel_records USING (cluster, job, attempt, node)) HAVING count(*) > 0
-- note: SELECT format('job {} loaded {}: the numbers lack the data that such a library moves, because it does not go through files', job, string_agg(DISTINCT name, ', ' ORDER BY name)) FROM (SELECT job, regexp_extract(path, '[^/]*$') AS name FROM files) WHERE regexp_matches(name, '^lib(aws-cpp-sdk-|aws-c-s3|google_cloud_cpp_storage|azure-storage|daos|dfs).*\.so') GROUP BY job ORDER BY job
-- shown: path rank pid node recorded_percent missing_bytes missing_count kernel_bytes share_percent causes
-- column path: the path as opened; NULL: the kernel did not know it, or rows are not by file
-- column kernel_count, kernel_bytes: reads and writes that the kernel saw, and pages of mappings that page faults fetched; without excluded files
-- column shim_count, shim_bytes: those of them that the shim recorded. Calls of stdio and POSIX aio are not system calls. So if the shim
-- recorded one of a process on a file, all that the kernel saw of this process on this file counts
-- column bpf_count, bpf_bytes: those that probes recorded
-- column missing_count, missing_bytes: those that are not recorded
-- column extra_count: operations that the shim recorded, but that the kernel did not see, or saw without their file: those before probes
-- were loaded, the first operation of a thread, the target of a copy
-- column recorded_percent: share that shim or probes recorded: the smaller one of the shares of count and bytes, rounded down
-- column share_percent: share that the shim recorded, computed in the same way
-- column causes: why the shim did not record, with the calls (docs/probes.md); `unrecorded`: seen by the kernel, not recorded
-- column rank, pid, node: NULL unless rows are by process
-- column job, attempt: job of the row
WITH kernel AS (
    SELECT cluster, job, attempt, node, proc, pid, rank, coalesce(file_id, 0) AS file, path, scope, cause, op, count, bytes,
           CASE WHEN cause IN ('stdio', 'aio') THEN cause ELSE api END AS how,
           CASE WHEN cause IN ('stdio', 'aio') THEN '' WHEN hr_is_copy(op) THEN 'read'
                ELSE class END AS what
    FROM hr_kernel_records()
    WHERE class IN ('read', 'write') AND cause <> 'fetch' OR cause = 'fill' AND file_id IS NOT NULL),
recorded AS (
    SELECT f.*, coalesce(file_id, 0) AS file
    FROM hr_file_records() f SEMI JOIN kernel_records USING (cluster, job, attempt, node)),
parts AS (
    SELECT cluster, job, attempt, node, proc, pid, rank, file, path, scope, how, what, cause, count, bytes
    FROM kernel WHERE cause <> 'excluded'
    UNION ALL
    SELECT cluster, job, attempt, node, proc, pid, rank, file, path, scope, api, 'read', 'recorded', reads, bytes_read
    FROM recorded WHERE api NOT IN ('stdio', 'aio') AND reads > 0
    UNION ALL
    SELECT cluster, job, attempt, node, proc, pid, rank, file, path, scope, api, 'write', 'recorded', writes, bytes_written
    FROM recorded WHERE api NOT IN ('stdio', 'aio') AND writes > 0
    UNION ALL
    SELECT cluster, job, attempt, node, proc, pid, rank, file, path, scope, api, '', 'recorded',
           opens + reads + writes + seeks + stats + syncs + meta_ops, 0
    FROM recorded WHERE api IN ('stdio', 'aio')),
sums AS (
    SELECT cluster, job, attempt, node, proc, file, how, what, coalesce(any_value(scope), 'data') AS scope,
           any_value(pid) AS pid, any_value(rank) AS rank, any_value(path) AS path,
           coalesce(sum(count) FILTER (cause IN ('shim', 'stdio', 'aio')), 0) AS under,
           coalesce(sum(bytes) FILTER (cause IN ('shim', 'stdio', 'aio')), 0) AS under_bytes,
           coalesce(sum(count) FILTER (cause IN ('syscall', 'unattached', 'uring')), 0) AS bpf,
           coalesce(sum(bytes) FILTER (cause IN ('syscall', 'unattached', 'uring')), 0) AS bpf_bytes,
           coalesce(sum(count) FILTER (cause = 'fill'), 0) AS fill,
           coalesce(sum(bytes) FILTER (cause = 'fill'), 0) AS fill_bytes,
           coalesce(sum(count) FILTER (cause = 'lost'), 0) AS lost,
           coalesce(sum(bytes) FILTER (cause = 'lost'), 0) AS lost_bytes,
           coalesce(sum(count) FILTER (cause = 'recorded'), 0) AS recorded,
           coalesce(sum(bytes) FILTER (cause = 'recorded'), 0) AS recorded_bytes
    FROM parts GROUP BY cluster, job, attempt, node, proc, file, how, what),
-- The kernel counts a call with file 0 if the shim had not named the file of the thread's call, as in the first call. The shim recorded
-- the file of this call.
spare AS (
    SELECT cluster, job, attempt, node, proc, how, what,
           sum(greatest(recorded - bpf - under, 0)) FILTER (file <> 0) AS calls,
           sum(greatest(recorded_bytes - bpf_bytes - under_bytes, 0)) FILTER (file <> 0) AS bytes
    FROM sums GROUP BY cluster, job, attempt, node, proc, how, what),
loose AS (
    SELECT DISTINCT cluster, job, attempt, node, proc, true AS has_stdio FROM sums WHERE what = '' AND recorded > 0),
known AS (
    SELECT s.* REPLACE (
        CASE WHEN file = 0 AND what <> '' THEN greatest(under - CASE WHEN has_stdio THEN under ELSE coalesce(calls, 0) END, 0)
             ELSE under END AS under,
        CASE WHEN file = 0 AND what <> '' THEN greatest(under_bytes - CASE WHEN has_stdio THEN under_bytes ELSE coalesce(p.bytes, 0) END, 0)
             ELSE under_bytes END AS under_bytes,
        CASE WHEN file = 0 AND what = '' AND has_stdio THEN 1 ELSE recorded END AS recorded)
    FROM sums s LEFT JOIN spare p USING (cluster, job, attempt, node, proc, how, what)
    LEFT JOIN loose USING (cluster, job, attempt, node, proc)),
-- File records contain the operations that the shim or probes recorded.
shim AS (
    SELECT *, CASE $by WHEN 'file' THEN file::VARCHAR WHEN 'process' THEN format('{} {}', node, proc) ELSE '' END AS whose,
           CASE WHEN what <> '' THEN greatest(recorded - bpf, 0) WHEN recorded > 0 THEN under ELSE 0 END AS own,
           CASE WHEN what <> '' THEN greatest(recorded_bytes - bpf_bytes, 0) WHEN recorded > 0 THEN under_bytes
                ELSE 0 END AS own_bytes,
           least(bpf, recorded) AS probed, least(bpf_bytes, recorded_bytes) AS probed_bytes
    FROM known WHERE $scope = 'all' OR scope = $scope),
why AS (
    SELECT cluster, job, attempt, whose,
           string_agg(format('{} {}', cause, n::BIGINT), ', ' ORDER BY n DESC, cause) AS causes
    FROM (
        SELECT cluster, job, attempt,
               CASE $by WHEN 'file' THEN file::VARCHAR WHEN 'process' THEN format('{} {}', node, proc) ELSE '' END AS whose,
               CASE cause WHEN 'fill' THEN cause ELSE format('{} {}', cause, replace(op, 'io_uring_', '')) END AS cause,
               sum(count) AS n
        FROM kernel
        WHERE cause NOT IN ('shim', 'stdio', 'aio') AND ($scope = 'all' OR coalesce(scope, 'data') = $scope) GROUP BY ALL
        UNION ALL
        SELECT cluster, job, attempt, whose, format('unrecorded {}', CASE what WHEN '' THEN how ELSE what END),
               sum(greatest(under - own, 0) + bpf - probed) AS n
        FROM shim GROUP BY ALL HAVING n > 0)
    GROUP BY cluster, job, attempt, whose),
totals AS (
    SELECT cluster, job, attempt, whose,
           CASE WHEN $by = 'file' THEN any_value(path) END AS path,
           CASE WHEN $by = 'process' THEN any_value(rank) END AS rank,
           CASE WHEN $by = 'process' THEN any_value(pid) END AS pid,
           CASE WHEN $by = 'process' THEN any_value(node) END AS node,
           sum(under + bpf + fill + lost) AS kernel_count,
           sum(under_bytes + bpf_bytes + fill_bytes + lost_bytes) AS kernel_bytes,
           sum(own) AS shim_count, sum(own_bytes) AS shim_bytes,
           sum(probed + fill) AS bpf_count, sum(probed_bytes + fill_bytes) AS bpf_bytes,
           sum(greatest(under - own, 0) + bpf - probed + lost) AS missing_count,
           sum(greatest(under_bytes - own_bytes, 0) + bpf_bytes - probed_bytes + lost_bytes) AS missing_bytes,
           sum(greatest(own - under, 0)) AS extra_count
    FROM shim GROUP BY cluster, job, attempt, whose)
SELECT path, kernel_count, kernel_bytes, shim_count, shim_bytes, bpf_count, bpf_bytes, missing_count, missing_bytes, extra_count,
       least(10000 * (kernel_count - missing_count) // nullif(kernel_count, 0),
             coalesce(10000 * (kernel_bytes - missing_bytes) // nullif(kernel_bytes, 0), 10000)) / 100 AS recorded_percent,
       least(10000 * (kernel_count - bpf_count - missing_count) // nullif(kernel_count, 0),
             coalesce(10000 * (kernel_bytes - bpf_bytes - missing_bytes) // nullif(kernel_bytes, 0), 10000)) / 100
           AS share_percent,
       causes, rank, pid, node, job, attempt
FROM totals LEFT JOIN why USING (cluster, job, attempt, whose)
WHERE kernel_count > 0 OR extra_count > 0
ORDER BY recorded_percent NULLS LAST, share_percent NULLS LAST, kernel_bytes DESC, path, job, attempt, cluster, node, pid
LIMIT $top
