-- Nodes whose reads take longer than those of other nodes in the same jobs
-- arg days COUNT 30: only jobs that began in the last so many days
-- arg top COUNT 20: maximum number of rows
-- arg reads COUNT 100: ignores a node in jobs in which it has fewer reads on the mount
-- arg jobs COUNT 1: only rows that rest on at least so many jobs
-- shown: node mount ratio jobs slower_jobs read_s median_read_s reads
-- column node, mount, fs_type: node, and mount of the files. Only nodes that use a mount point in the same job are compared
-- column ratio: mean duration of the node's reads, divided by that of the job's median node (of two nodes, the faster one): the median
-- over jobs
-- column jobs, slower_jobs: jobs on which this rests, and those with a ratio above 1.2. A ratio that rests on few jobs may have other
-- causes, for example other files or a cold page cache
-- column read_s, median_read_s: mean duration of the node's reads over all these jobs; and that of the median nodes (median over jobs)
-- column reads, bytes_read: reads of the node, and their bytes
-- column cluster: cluster of the node
WITH
    $(mount_names)
    sums AS (
        SELECT cluster, job, attempt, node, stream, mount, sum(count) AS part_n, sum(dur_ns) AS part_ns, sum(bytes) AS part_bytes
        FROM rollups
        WHERE day >= today() - toUInt32($days) - 1 AND side = '' AND class = 'read' AND mount > 0
          AND (cluster, job, attempt) GLOBAL IN (
              SELECT cluster, job, attempt
              FROM job_events
              WHERE day >= today() - toUInt32($days) - 1
              GROUP BY cluster, job, attempt
              HAVING minIf(start_ns, start_ns > 0) >= (toInt64(toUnixTimestamp(now())) - toInt64($days) * 86400) * 1000000000)
        GROUP BY cluster, job, attempt, node, stream, mount),
    node_sums AS (
        SELECT cluster, job, attempt, mount_path, mount_type, node, sum(part_n) AS node_n, sum(part_ns) AS node_ns, sum(part_bytes) AS node_bytes
        FROM sums ANY LEFT JOIN names USING (stream, mount)
        GROUP BY cluster, job, attempt, mount_path, mount_type, node
        HAVING node_n >= toUInt64($reads)),
    compared AS (
        SELECT cluster, node, mount_path, mount_type, node_n, node_ns, node_bytes, node_ns / node_n AS node_mean,
               quantileExactLow(0.5)(node_ns / node_n) OVER same_mount AS median_mean, count() OVER same_mount AS of_nodes
        FROM node_sums
        WINDOW same_mount AS (PARTITION BY cluster, job, attempt, mount_path, mount_type))
SELECT node, mount_path AS mount, mount_type AS fs_type, quantileExact(0.5)(node_mean / median_mean) AS ratio, count() AS jobs,
       sum(node_mean > 1.2 * median_mean) AS slower_jobs, sum(node_ns) / sum(node_n) / 1e9 AS read_s,
       quantileExact(0.5)(median_mean) / 1e9 AS median_read_s, sum(node_n) AS reads, sum(node_bytes) AS bytes_read, cluster
FROM compared
WHERE of_nodes > 1 AND median_mean > 0
GROUP BY cluster, node, mount_path, mount_type
HAVING jobs >= toUInt64($jobs)
ORDER BY ratio DESC, node, mount, cluster
LIMIT $top
