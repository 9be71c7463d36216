-- Jobs by metadata operations: how many per second, and on which file system
-- arg days COUNT 30: only jobs that began in the last so many days
-- arg top COUNT 20: maximum number of jobs
-- arg order peak|mean|ops peak: most important first
-- arg scope data|runtime|all all: runtime is I/O on Python's own files
-- shown: job user ops_peak_per_s ops_per_s metadata_ops peak mount mount_percent mostly
-- column job, user: number of the user, if the name is unknown
-- column ops_peak_per_s, peak: largest rate of all nodes together in about 10 s, and when this was (UTC). The windows of nodes begin up
-- to 10 s apart, and count as one
-- column ops_per_s: mean rate, from the begin of the job to its end, or until its last data arrived
-- column metadata_ops: operations that open, close, examine, list, create, rename or remove files
-- column mount, fs_type, mount_percent: mount with the most of them, and its share
-- column mostly, mostly_percent: class with the most of them (open, close, stat, dir: lists of folders, meta: changes of names and
-- attributes), and its share
-- column nodes: recorded nodes
-- column start: begin of the job (UTC)
-- column attempt, cluster: number of requeues (from 0), cluster
WITH
    $(nodes)
    $(arrivals)
    windows AS (
        SELECT cluster, job, attempt, intDiv(window_start_ns, 10000000000) AS number, sum(count) AS window_n,
               sumIf(count, class = 'open') AS n_open, sumIf(count, class = 'close') AS n_close, sumIf(count, class = 'stat') AS n_stat,
               sumIf(count, class = 'dir') AS n_dir, sumIf(count, class = 'meta') AS n_meta
        FROM rollups
        WHERE day >= today() - toUInt32($days) - 1 AND side = '' AND class IN ('open', 'close', 'stat', 'dir', 'meta')
          AND ($scope = 'all' OR scope = $scope)
        GROUP BY cluster, job, attempt, number),
    peaks AS (
        SELECT cluster, job, attempt, sum(window_n) AS n, max(window_n) AS peak_n, argMax(number, window_n) AS peak_number,
               arrayReduce('max', [sum(n_open), sum(n_close), sum(n_stat), sum(n_dir), sum(n_meta)]) AS class_n, 100 * class_n / n AS class_percent,
               arrayElement(['open', 'close', 'stat', 'dir', 'meta'],
                            indexOf([sum(n_open), sum(n_close), sum(n_stat), sum(n_dir), sum(n_meta)], class_n)) AS top_class
        FROM windows
        GROUP BY cluster, job, attempt),
    $(mount_names)
    stream_mounts AS (
        SELECT cluster, job, attempt, stream, mount, sum(count) AS part_n
        FROM rollups
        WHERE day >= today() - toUInt32($days) - 1 AND side = '' AND class IN ('open', 'close', 'stat', 'dir', 'meta')
          AND ($scope = 'all' OR scope = $scope)
        GROUP BY cluster, job, attempt, stream, mount),
    job_mounts AS (
        SELECT cluster, job, attempt, mount_path, mount_type, sum(part_n) AS mount_n
        FROM stream_mounts ANY LEFT JOIN names USING (stream, mount)
        GROUP BY cluster, job, attempt, mount_path, mount_type),
    top_mounts AS (
        SELECT cluster, job, attempt, argMax(mount_path, mount_n) AS top_mount, argMax(mount_type, mount_n) AS top_type,
               100 * max(mount_n) / sum(mount_n) AS top_percent
        FROM job_mounts
        GROUP BY cluster, job, attempt),
    with_jobs AS (SELECT * FROM peaks INNER JOIN job_list USING (cluster, job, attempt)),
    with_arrivals AS (SELECT *, if(ended_ns > 0, ended_ns, last_ns) AS end_ns FROM with_jobs LEFT JOIN arrivals USING (cluster, job, attempt))
SELECT job, owner AS user, peak_n / 10 AS ops_peak_per_s, if(end_ns > began_ns, 1e9 * n / (end_ns - began_ns), NULL) AS ops_per_s,
       n AS metadata_ops, toDateTime(peak_number * 10, 'UTC') AS peak, top_mount AS mount, top_type AS fs_type, top_percent AS mount_percent,
       top_class AS mostly, class_percent AS mostly_percent, nodes, toDateTime(intDiv(began_ns, 1000000000), 'UTC') AS start, attempt, cluster
FROM with_arrivals LEFT JOIN top_mounts USING (cluster, job, attempt)
ORDER BY multiIf($order = 'mean', ifNull(ops_per_s, 0), $order = 'ops', toFloat64(metadata_ops), ops_peak_per_s) DESC, job, attempt, cluster
LIMIT $top
