-- File systems: operations, bytes and time by mount point, and the job with the most of it
-- arg days COUNT 30: only jobs that began in the last so many days
-- arg top COUNT 20: maximum number of mount points
-- arg scope data|runtime|all all: runtime is I/O on Python's own files
-- shown: mount fs_type time_s ops metadata_ops bytes_read bytes_written jobs top_job top_user top_percent
-- column mount, fs_type: mount of the opened file, as the process sees it. Empty: unknown. On each node, another local file system
-- can have the same mount point
-- column time_s: durations of all operations, summed over processes
-- column ops, errors: operations, and failed ones; without single characters (getc, putc), whose mount is not recorded
-- column metadata_ops: operations that open, close, examine, list, create, rename or remove files
-- column bytes_read, bytes_written: bytes transferred; a copy between files counts once, for the mount of its source
-- column jobs: jobs that used it
-- column top_job, top_user, top_percent: the job with the largest time, its user, and its share of time_s
WITH
    $(owners)
    $(mount_names)
    sums AS (
        SELECT cluster, job, attempt, stream, mount, sum(count) AS part_n,
               sumIf(count, class IN ('open', 'close', 'stat', 'dir', 'meta')) AS part_metadata, sumIf(bytes, class = 'read') AS part_read,
               sumIf(bytes, class = 'write') AS part_written, sum(errors) AS part_errors, sum(dur_ns) AS part_ns
        FROM rollups
        WHERE day >= today() - toUInt32($days) - 1 AND side = '' AND ($scope = 'all' OR scope = $scope)
        GROUP BY cluster, job, attempt, stream, mount),
    used AS (
        SELECT cluster, job, attempt, mount_path, mount_type, sum(part_n) AS n, sum(part_metadata) AS n_metadata, sum(part_read) AS n_read,
               sum(part_written) AS n_written, sum(part_errors) AS n_errors, sum(part_ns) AS ns
        FROM sums ANY LEFT JOIN names USING (stream, mount)
        GROUP BY cluster, job, attempt, mount_path, mount_type)
SELECT mount_path AS mount, mount_type AS fs_type, sum(ns) / 1e9 AS time_s, sum(n) AS ops, sum(n_metadata) AS metadata_ops,
       sum(n_read) AS bytes_read, sum(n_written) AS bytes_written, count() AS jobs, argMax(job, ns) AS top_job, argMax(owner, ns) AS top_user,
       if(sum(ns) > 0, 100 * max(ns) / sum(ns), NULL) AS top_percent, sum(n_errors) AS errors
FROM used INNER JOIN job_list USING (cluster, job, attempt)
GROUP BY mount_path, mount_type
ORDER BY time_s DESC, mount, fs_type
LIMIT $top
