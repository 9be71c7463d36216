-- Files or folders with the most operations over all jobs
-- arg days COUNT 30: only jobs that began in the last so many days
-- arg top COUNT 20: maximum number of rows
-- arg by file|folder file: a row is a file, or a folder with the files that are directly in it
-- arg order ops|bytes|time ops: most important first
-- arg scope data|runtime|all all: runtime is I/O on Python's own files
-- shown: path ops bytes_read bytes_written io_s jobs users top_job top_user top_percent
-- column path: as opened. On each node, another file can have the same path
-- column ops: all calls on it, including single characters (getc, putc); a copy between files counts for both
-- column bytes_read, bytes_written: bytes transferred
-- column io_s: durations of all operations, summed over processes
-- column jobs, users: jobs that used it, and their users
-- column top_job, top_user, top_percent: the job with the most operations, its user, and its share of ops
WITH
    $(owners)
    parts AS (
        SELECT cluster, job, attempt, stream, file, '' AS part_path, '' AS part_scope,
               opens + reads + writes + seeks + stats + syncs + meta_ops AS part_n, bytes_read AS part_read,
               bytes_written AS part_written, read_ns + write_ns + meta_ns AS part_ns
        FROM file_records
        WHERE day >= today() - toUInt32($days) - 1
        UNION ALL
        SELECT cluster, job, attempt, stream, file, path AS part_path, scope AS part_scope,
               toUInt64(0) AS part_n, toUInt64(0) AS part_read, toUInt64(0) AS part_written, toUInt64(0) AS part_ns
        FROM files
        WHERE day >= today() - toUInt32($days) - 1),
    used_files AS (
        SELECT cluster, job, attempt, stream, file, max(part_path) AS file_path, max(part_scope) AS file_scope, sum(part_n) AS file_n,
               sum(part_read) AS file_read, sum(part_written) AS file_written, sum(part_ns) AS file_ns
        FROM parts
        GROUP BY cluster, job, attempt, stream, file
        HAVING file_n > 0 AND ($scope = 'all' OR file_scope = $scope)),
    used AS (
        SELECT cluster, job, attempt, if($by = 'file', file_path, if(position(substring(file_path, 2), '/') = 0, '/',
                                     replaceRegexpOne(file_path, '/[^/]*$', ''))) AS name,
               sum(file_n) AS n, sum(file_read) AS n_read, sum(file_written) AS n_written, sum(file_ns) AS ns
        FROM used_files
        GROUP BY cluster, job, attempt, name)
SELECT name AS path, sum(n) AS ops, sum(n_read) AS bytes_read, sum(n_written) AS bytes_written, sum(ns) / 1e9 AS io_s, count() AS jobs,
       uniqExact(owner) AS users, argMax(job, n) AS top_job, argMax(owner, n) AS top_user, 100 * max(n) / sum(n) AS top_percent
FROM used INNER JOIN job_list USING (cluster, job, attempt)
GROUP BY name
ORDER BY multiIf($order = 'bytes', bytes_read + bytes_written, $order = 'time', toUInt64(sum(ns)), ops) DESC, path
LIMIT $top
SETTINGS max_bytes_before_external_group_by = 2000000000
