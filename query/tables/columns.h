/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - all SQL tables and columns, as HR_COLUMNS_<TABLE>(X) with X(name, TYPE)
 *
 * TYPE is BIGINT, UBIGINT, VARCHAR or HIST (UBIGINT[64]). Users rely on names and order.
 * docs/sql.md explains units and sources. tests/query/test_contract.c compares it with this file.
 * No name is a reserved word in DuckDB or ClickHouse. A table's own columns follow those of
 * HR_COLUMNS_STREAM or HR_COLUMNS_PROCESS. HR_HIDDEN_<TABLE> has the columns of the table function
 * hr_<table>() that the view <table> leaves out.
 */
#ifndef HEADRACE_QUERY_TABLES_COLUMNS_H
#define HEADRACE_QUERY_TABLES_COLUMNS_H

/* clang-format off */
#define HR_COLUMNS_STREAM(X) \
	X(cluster, VARCHAR) X(job, VARCHAR) X(attempt, BIGINT) X(node, VARCHAR)

#define HR_COLUMNS_PROCESS(X) HR_COLUMNS_STREAM(X) \
	X(proc, UBIGINT) X(pid, BIGINT) X(rank, BIGINT) X(local_rank, BIGINT) X(worker, BIGINT) \
	X(loader, BIGINT) X(loader_worker, BIGINT)

#define HR_COLUMNS_EVENTS(X) HR_COLUMNS_PROCESS(X) \
	X(tid, BIGINT) X(op, VARCHAR) X(api, VARCHAR) X(class, VARCHAR) X(scope, VARCHAR) \
	X(path, VARCHAR) X(path2, VARCHAR) X(mount, VARCHAR) X(fs_type, VARCHAR) \
	X(base, VARCHAR) X(pattern, VARCHAR) X(fd, BIGINT) X(file_offset, BIGINT) \
	X(asked, UBIGINT) X(bytes, BIGINT) X(ret, BIGINT) X(errno, BIGINT) X(flags, BIGINT) \
	X(start_ns, BIGINT) X(end_ns, BIGINT) X(dur_ns, BIGINT) X(source, VARCHAR)
#define HR_HIDDEN_EVENTS(X) X(file_id, UBIGINT)

#define HR_COLUMNS_ROLLUPS(X) HR_COLUMNS_PROCESS(X) \
	X(op, VARCHAR) X(api, VARCHAR) X(class, VARCHAR) X(scope, VARCHAR) X(mount, VARCHAR) \
	X(fs_type, VARCHAR) X(window_start_ns, BIGINT) X(count, BIGINT) X(bytes, BIGINT) \
	X(errors, BIGINT) X(dur_ns, BIGINT) X(max_dur_ns, BIGINT) X(size_hist, HIST) \
	X(dur_hist, HIST)
#define HR_HIDDEN_ROLLUPS(X) X(side, VARCHAR)

#define HR_COLUMNS_FILE_RECORDS(X) HR_COLUMNS_PROCESS(X) \
	X(path, VARCHAR) X(api, VARCHAR) X(opens, BIGINT) X(reads, BIGINT) X(writes, BIGINT) \
	X(seeks, BIGINT) X(stats, BIGINT) X(syncs, BIGINT) X(meta_ops, BIGINT) \
	X(bytes_read, BIGINT) X(bytes_written, BIGINT) X(read_ns, BIGINT) X(write_ns, BIGINT) \
	X(meta_ns, BIGINT) X(max_read_ns, BIGINT) X(max_write_ns, BIGINT) X(first_ns, BIGINT) \
	X(last_ns, BIGINT) X(seq_reads, BIGINT) X(consec_reads, BIGINT) X(seq_writes, BIGINT) \
	X(consec_writes, BIGINT) X(rw_switches, BIGINT) X(unaligned, BIGINT) \
	X(read_size_hist, HIST) X(write_size_hist, HIST)
#define HR_HIDDEN_FILE_RECORDS(X) \
	X(file_id, UBIGINT) X(scope, VARCHAR) X(pattern, VARCHAR) X(mount, VARCHAR)

#define HR_COLUMNS_PROCESSES(X) HR_COLUMNS_PROCESS(X) \
	X(ppid, BIGINT) X(exe, VARCHAR) X(cmdline, VARCHAR) X(exec_of, UBIGINT) \
	X(start_ns, BIGINT) X(end_ns, BIGINT) X(exit, VARCHAR) X(restart, BIGINT) \
	X(cpu_quota_milli, BIGINT)
#define HR_HIDDEN_PROCESSES(X) \
	X(parent_proc, UBIGINT) X(world_size, BIGINT) X(rank_source, VARCHAR) X(uid, BIGINT) \
	X(deselected, BIGINT) X(excluded_opens, BIGINT) X(excluded, VARCHAR) \
	X(cpus, BIGINT) X(first_cpu, BIGINT)

#define HR_COLUMNS_FILES(X) HR_COLUMNS_STREAM(X) \
	X(path, VARCHAR) X(mount, VARCHAR) X(fs_type, VARCHAR) X(first_ns, BIGINT) \
	X(last_ns, BIGINT)
#define HR_HIDDEN_FILES(X) X(file_id, UBIGINT) X(scope, VARCHAR)

#define HR_COLUMNS_REGIONS(X) HR_COLUMNS_PROCESS(X) \
	X(tid, BIGINT) X(kind, VARCHAR) X(domain, VARCHAR) X(category, VARCHAR) X(name, VARCHAR) \
	X(depth, BIGINT) X(open, BIGINT) X(count, BIGINT) X(args, VARCHAR) X(start_ns, BIGINT) \
	X(dur_ns, BIGINT) X(step, BIGINT) X(epoch, BIGINT)
#define HR_HIDDEN_REGIONS(X)

#define HR_COLUMNS_LABELS(X) HR_COLUMNS_STREAM(X) X(key, VARCHAR) X(value, VARCHAR)
#define HR_HIDDEN_LABELS(X)

#define HR_COLUMNS_LEVELS(X) HR_COLUMNS_STREAM(X) \
	X(level, VARCHAR) X(start_ns, BIGINT) X(end_ns, BIGINT)
#define HR_HIDDEN_LEVELS(X)

#define HR_COLUMNS_JOBS(X) HR_COLUMNS_STREAM(X) \
	X(array_job, VARCHAR) X(array_task, VARCHAR) X(uid, BIGINT) X(user, VARCHAR) \
	X(account, VARCHAR) X(partition, VARCHAR) X(name, VARCHAR) X(state, VARCHAR) \
	X(start_ns, BIGINT) X(end_ns, BIGINT) X(nodes, BIGINT) X(ranks_seen, BIGINT) \
	X(ranks_expected, BIGINT)
#define HR_HIDDEN_JOBS(X) X(nodes_expected, BIGINT)

#define HR_COLUMNS_NODES(X) HR_COLUMNS_STREAM(X) \
	X(boot, VARCHAR) X(clock_offset_ns, BIGINT) X(clock_error_ns, BIGINT) \
	X(instance, UBIGINT) X(state, VARCHAR) X(events, BIGINT) X(stored_bytes, BIGINT)
#define HR_HIDDEN_NODES(X) X(heard_ns, BIGINT) X(silent_ns, BIGINT) X(closed_ns, BIGINT)

#define HR_COLUMNS_LOSSES(X) HR_COLUMNS_PROCESS(X) \
	X(reason, VARCHAR) X(op, VARCHAR) X(count, BIGINT) X(bytes, BIGINT) X(dur_ns, BIGINT)
#define HR_HIDDEN_LOSSES(X)

#define HR_COLUMNS_KERNEL_RECORDS(X) HR_COLUMNS_PROCESS(X) \
	X(path, VARCHAR) X(mount, VARCHAR) X(fs_type, VARCHAR) X(scope, VARCHAR) X(op, VARCHAR) \
	X(api, VARCHAR) X(class, VARCHAR) X(cause, VARCHAR) X(count, BIGINT) X(bytes, BIGINT) \
	X(errors, BIGINT) X(dur_ns, BIGINT)
#define HR_HIDDEN_KERNEL_RECORDS(X) X(file_id, UBIGINT)

#define HR_COLUMNS_PARTS(X) HR_COLUMNS_PROCESS(X) \
	X(epoch, BIGINT) X(step, BIGINT) X(loop_loader, BIGINT) X(phase, VARCHAR) X(part, VARCHAR) \
	X(start_ns, BIGINT) X(ns, BIGINT)
#define HR_HIDDEN_PARTS(X)

#define HR_COLUMNS_WAITS(X) HR_COLUMNS_PROCESS(X) \
	X(epoch, BIGINT) X(step, BIGINT) X(loop_loader, BIGINT) X(phase, VARCHAR) X(batch, BIGINT) \
	X(start_ns, BIGINT) X(dur_ns, BIGINT) X(piece_ns, BIGINT) X(piece_dur_ns, BIGINT) \
	X(maker, UBIGINT) X(maker_tid, BIGINT) X(part, VARCHAR) X(ns, BIGINT)
#define HR_HIDDEN_WAITS(X)

#define HR_COLUMNS_REPLAYS(X) HR_COLUMNS_PROCESS(X) \
	X(setting, BIGINT) X(workers, BIGINT) X(prefetch, BIGINT) X(persistent, BIGINT) \
	X(loops, BIGINT) \
	X(recorded_ns, BIGINT) X(replayed_ns, BIGINT) X(predicted_ns, BIGINT) X(low_ns, BIGINT) \
	X(high_ns, BIGINT) X(doubt, VARCHAR) X(refusal, VARCHAR) X(wall_ns, BIGINT) \
	X(checkpoint_ns, BIGINT) X(stall_ns, BIGINT)
#define HR_HIDDEN_REPLAYS(X)

#define HR_COLUMNS_FINDINGS(X) HR_COLUMNS_STREAM(X) \
	X(number, BIGINT) X(cause, VARCHAR) X(lost_ns, BIGINT) X(wall_ns, BIGINT) \
	X(meaning, VARCHAR) X(rank, BIGINT) X(whose, VARCHAR) X(worker, BIGINT) X(object, VARCHAR) \
	X(mount, VARCHAR) X(place, VARCHAR) X(evidence, VARCHAR) X(action, VARCHAR) \
	X(gain_low_ns, BIGINT) X(gain_high_ns, BIGINT) X(gain_note, VARCHAR) X(avoid, VARCHAR)
#define HR_HIDDEN_FINDINGS(X) X(is_wait, BIGINT)

/* Each table and the suffix of its column macros, from which code for all tables is made. */
#define HR_TABLES(X) \
	X(events, EVENTS) X(rollups, ROLLUPS) X(file_records, FILE_RECORDS) \
	X(processes, PROCESSES) X(files, FILES) X(regions, REGIONS) X(labels, LABELS) \
	X(levels, LEVELS) X(jobs, JOBS) X(nodes, NODES) X(losses, LOSSES) \
	X(kernel_records, KERNEL_RECORDS) X(parts, PARTS) X(replays, REPLAYS) \
	X(findings, FINDINGS) X(waits, WAITS)
/* clang-format on */

#endif
