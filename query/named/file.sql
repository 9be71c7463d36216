-- One file, operation by operation, in the order of time (renames and links are listed under their old path)
-- arg path PATH REQUIRED: the file, as it was opened and as the query files shows it; a relative path starts at the current folder
-- arg top COUNT 1000: maximum number of rows
-- known path: SELECT path FROM files GROUP BY path ORDER BY parse_filename(path) <> parse_filename($path), parse_dirpath(path) <> parse_dirpath($path), path
-- shown: time_s op file_offset bytes dur_s errno rank worker
-- column time_s: begin of the operation, since the start of its job
-- column op, file_offset, asked, bytes, errno: the operation
-- column dur_s: duration
-- column rank, worker, pid, tid, node, job, attempt: thread that did it
SELECT ((e.start_ns - j.start_ns) / 1e9)::DECIMAL(19, 9) AS time_s, op, file_offset, asked, bytes, errno,
       dur_ns / 1e9 AS dur_s, rank, worker, pid, tid, e.node, job, attempt
FROM (SELECT * FROM events WHERE path = $path) e LEFT JOIN jobs j USING (cluster, job, attempt)
ORDER BY e.start_ns, e.node, pid, tid
LIMIT $top
