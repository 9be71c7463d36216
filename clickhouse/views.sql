-- The tables that people query, made of those of tables.def. schema.c prints a statement for each view: `-- view NAME: MEANING` begins one.
--   $rows(T)       the valid rows of the table T: those of superseded generations are left out (sink.h)
--   $op, $api and $class   the texts for the column `op_id`
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
SELECT $common, proc, $op AS op, $api AS api, if(r.side_id > 0, if(r.side_id IN (1, 3), 'read', 'write'), $class) AS class,
       multiIf(r.side_id = 0, '', r.side_id < 3, 'single', 'copy') AS side, if(r.scope_id > 0, 'runtime', 'data') AS scope, mount, window_start_ns,
       count, bytes, errors, dur_ns, max_dur_ns, size_hist, dur_hist
FROM $rows(rollups)

-- view file_records: sums for each process, file and API; sum up rows with the same key
SELECT $common, proc, file, arrayElement(['', 'posix', 'stdio', 'aio', 'mmap', 'uring'], r.api_id + 1) AS api, opens, reads, writes, seeks, stats, syncs,
       meta_ops, bytes_read, bytes_written, read_ns, write_ns, meta_ns, max_read_ns, max_write_ns, first_ns, last_ns, seq_reads, consec_reads,
       seq_writes, consec_writes, rw_switches, unaligned, read_size_hist, write_size_hist
FROM $rows(file_records)

-- view kernel_records: operations that probes counted in the kernel; sum up rows with the same key
SELECT $common, proc, file, $op AS op, $api AS api, $class AS class, $cause AS cause, count, bytes, errors, dur_ns FROM $rows(kernel_records)

-- view regions: steps, epochs, waits, checkpoints and ranges of programs
SELECT $common, proc, tid, $kind AS kind, domain, category, name, args, depth, open, count, start_ns, dur_ns, nullIf(r.step, -1) AS step,
       nullIf(r.epoch, -1) AS epoch
FROM $rows(regions)

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
SELECT day, cluster, job, attempt, node, stream, proc, argMax(r.pid, seq) AS pid, argMax(r.ppid, seq) AS ppid, argMax(r.exe, seq) AS exe,
       argMax(r.cmdline, seq) AS cmdline, argMax(r.start_ns, seq) AS start_ns, nullIf(argMax(r.end_ns, seq), toInt64(0)) AS end_ns,
       argMax(r.exit, seq) AS exit, nullIf(max(r.rank), -1) AS rank, nullIf(max(r.local_rank), -1) AS local_rank, nullIf(max(r.worker), -1) AS worker,
       nullIf(max(r.loader), -1) AS loader, nullIf(max(r.loader_worker), -1) AS loader_worker, nullIf(max(r.restart), -1) AS restart,
       max(r.world_size) AS world_size, max(r.cpu_quota_milli) AS cpu_quota_milli, argMax(r.process_uid, seq) AS uid
FROM $rows(processes)
GROUP BY day, cluster, job, attempt, node, stream, proc

-- view job_events: what each node reported about its job
SELECT $common, seq, state, finish, nullIf(r.uid, -1) AS uid, user, account, partition, name, array_job, array_task, start_ns, end_ns, ranks_expected,
       nodes_expected
FROM $rows(job_events)

-- view labels: the labels of jobs
SELECT DISTINCT day, cluster, job, attempt, node, key, value FROM $rows(labels)

-- view levels: what was recorded when
SELECT $common, level, start_ns, end_ns FROM $rows(levels)

-- view losses: what was not recorded; sum up rows with the same key
SELECT $common, proc, reason, $op AS op, count, bytes, dur_ns FROM $rows(losses)
