-- The tables that people query, made of those of tables.def. schema.c prints a statement for each view: `-- view NAME: MEANING` begins one.
--   $rows(T)       the valid rows of the table T: those of superseded generations are left out (sink.h)
--   $columns(T)    the columns of T: names for ids, and NULL for -1
--   $latest(T)     the same columns, of the last row of each process, and NULL for unknown times
--   $op, $api, $class   the texts for the column `op_id`
--   $bytes         the bytes that an operation moved (hr_bytes_moved of common/ops.h)
--   $common        the common columns that people need; WHERE day >= ... reads only such partitions
--   $none          the number for "unknown" where -1 is a value
-- On a cluster, a view reads one shard, and a table over all shards has its name.

-- view generation_ends: the number of the frame from which on rows of a generation are not valid. Two streams can have the same generation number
SELECT bitXor(stream, generation) AS stream_generation, end_seq
FROM (SELECT stream, arrayMap(x -> x.1, list) AS generations,
             arrayMap(i -> arrayReduce('min', arrayMap(x -> x.2, arraySlice(list, i + 1))), arrayEnumerate(list)) AS ends
      FROM (SELECT stream, arraySort(groupArray((generation, seq))) AS list FROM $db.generations_rows GROUP BY stream HAVING length(list) > 1))
ARRAY JOIN generations AS generation, ends AS end_seq
WHERE end_seq > 0
UNION ALL SELECT toUInt64(0), toUInt64(0)

-- view generations: which collector took which frames of a stream
SELECT $common, generation, seq AS first_seq, boot_id, instance, nullIf(r.uid, -1) AS uid, peer, opened_ns FROM $db.generations_rows AS r

-- view frames: frames as they came; `headrace query` reads them
SELECT $common, generation, seq, kind_id, stored_ns, frame FROM $rows(frames)

-- view events: an operation
SELECT $common, proc, tid, $op AS op, $api AS api, $class AS class, if(bitAnd(r.bits, 1) > 0, 'runtime', 'data') AS scope,
       file, file2, nullIf(r.fd, -1) AS fd, nullIf(r.file_offset, $none) AS file_offset,
       nullIf(r.asked, toUInt64(18446744073709551615)) AS asked, $bytes AS bytes,
       nullIf(if(r.result < 0 AND r.result > $none, toInt64(-1), r.result), $none) AS ret,
       nullIf(if(r.result < 0 AND r.result > -4096, -r.result, toInt64(0)), toInt64(0)) AS errno, flags, start_ns, start_ns + toInt64(dur_ns) AS end_ns, dur_ns,
       if(bitAnd(r.bits, 256) > 0, 'bpf', 'shim') AS source
FROM $rows(events)

-- view rollups: sums for each window, process, operation, mount and scope; sum up rows with the same key
SELECT $common, $columns(rollups), $api AS api, if(r.side_id > 0, if(r.side_id IN (1, 3), 'read', 'write'), $class) AS class
FROM $rows(rollups)

-- view file_records: sums for each process, file and API; sum up rows with the same key
SELECT $common, $columns(file_records) FROM $rows(file_records)

-- view kernel_records: operations that probes counted in the kernel; sum up rows with the same key
SELECT $common, $columns(kernel_records), $api AS api, $class AS class FROM $rows(kernel_records)

-- view regions: steps, epochs, waits, checkpoints and ranges of programs
SELECT $common, $columns(regions) FROM $rows(regions)

-- view files: the files of a stream
SELECT day, cluster, job, attempt, node, stream, file, any(hash) AS file_id, max(r.path) AS path, max(r.mount) AS mount,
       if(max(r.scope_id) > 0, 'runtime', 'data') AS scope
FROM $rows(paths)
GROUP BY day, cluster, job, attempt, node, stream, file

-- view mounts: the mounts of a stream
SELECT day, cluster, job, attempt, node, stream, mount, max(r.path) AS path, max(r.fs_type) AS fs_type
FROM $rows(mounts)
GROUP BY day, cluster, job, attempt, node, stream, mount

-- view processes: the processes of a stream
SELECT day, cluster, job, attempt, node, stream, proc, $latest(processes)
FROM $rows(processes)
GROUP BY day, cluster, job, attempt, node, stream, proc

-- view job_events: what each node reported about its job
SELECT $common, seq, nullIf(r.uid, -1) AS uid, $columns(job_events) FROM $rows(job_events)

-- view labels: the labels of jobs
SELECT DISTINCT day, cluster, job, attempt, node, key, value FROM $rows(labels)

-- view levels: what was recorded when
SELECT $common, $columns(levels) FROM $rows(levels)

-- view losses: what was not recorded; sum up rows with the same key
SELECT $common, $columns(losses) FROM $rows(losses)
