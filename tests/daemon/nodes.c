/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/batch.h"
#include "daemon/attach/attach.h"
#include "daemon/control/control.h"
#include "daemon/node/node.h"

void nodes_init(struct nodes *n, uint64_t half_bytes)
{
	memset(n, 0, sizeof(*n));
	snprintf(n->folder, sizeof(n->folder), "/tmp/headrace-test-XXXXXX");
	if (!mkdtemp(n->folder))
		abort();
	snprintf(n->store, sizeof(n->store), "%s/store", n->folder);
	snprintf(n->socket, sizeof(n->socket), "%s/shim.sock", n->folder);
	n->instance = 0x1234;
	n->half_bytes = half_bytes;
	n->level = 2;
	n->control[0] = n->control[1] = -1;
	hr_attach_pending_ns = UINT64_C(600000000000);
}

void nodes_done(struct nodes *n)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", n->folder);
	if (system(command) != 0)
		abort();
	if (n->control[0] >= 0) {
		close(n->control[0]);
		close(n->control[1]);
		close(n->flushed[0]);
		close(n->flushed[1]);
	}
}

static int disk_full;

/* In place of libc's: a disk without room for a journal. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
	struct statfs fs;

	if (disk_full && fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC)
		return ENOSPC;
	return fallocate(fd, 0, offset, len) < 0 ? errno : 0;
}

/* In place of libc's: a disk without room for what a thread appends, after the main thread has begun the stream. */
ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
	if (disk_full == NODES_FULL_AT_ONCE && gettid() != getpid()) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, buf, n, offset);
}

static int daemon_main(struct nodes *n, int ready)
{
	struct hr_node_config config = {
	    .store = n->store,
	    .shim_socket = n->socket,
	    .id = {.cluster = "",
		   .job = "job",
		   .node = "node",
		   .boot_id = "boot",
		   .instance = n->instance},
	    .uid = geteuid(),
	    .level = n->level,
	    .ranks = n->ranks,
	    .journal_dir = n->journal_dir,
	    .max_bytes = n->max_bytes,
	    .max_sessions = n->max_sessions,
	    .journal_half_bytes = n->half_bytes,
	};
	struct hr_node *node;
	char *error = NULL, byte = 0;
	int r;

	disk_full = n->full;
	r = hr_control_listen(n->socket, &config.shim_fd);
	if (!r && chmod(n->socket, 0666) < 0)
		r = -errno;
	if (!r)
		r = hr_node_new(&config, &node, &error);
	if (!r)
		r = hr_node_start(node);
	if (r) {
		fprintf(stderr, "daemon: %s (%d)\n", error ? error : "cannot start", r);
		return 1;
	}
	if (write(ready, "r", 1) != 1)
		return 1;
	while (read(n->control[0], &byte, 1) == 1 && byte != 's') {
		if (byte == 't')
			hr_node_set_level(node, HR_LEVEL_TRACE);
		hr_node_flush(node);
		if (write(n->flushed[1], "f", 1) != 1)
			return 1;
	}
	r = hr_node_stop(node, &(struct hr_job_end){.state = "ended"});
	hr_node_free(node);
	return r ? 2 : 0;
}

pid_t nodes_start(struct nodes *n)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (n->control[0] < 0 && (pipe(n->control) < 0 || pipe(n->flushed) < 0))
		abort();
	if (pipe(ready) < 0)
		abort();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		_exit(daemon_main(n, ready[1]));
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		abort();
	close(ready[0]);
	return pid;
}

void nodes_pause(pid_t daemon)
{
	int status;

	kill(daemon, SIGSTOP);
	if (waitpid(daemon, &status, WUNTRACED) != daemon || !WIFSTOPPED(status))
		abort();
}

void nodes_kill(pid_t daemon)
{
	kill(daemon, SIGKILL);
	waitpid(daemon, NULL, 0);
}

static void flush_after(struct nodes *n, const char *request)
{
	char byte;

	if (write(n->control[1], request, 1) != 1 || read(n->flushed[0], &byte, 1) != 1)
		abort();
}

void nodes_flush(struct nodes *n)
{
	flush_after(n, "f");
}

void nodes_trace(struct nodes *n)
{
	flush_after(n, "t");
	nodes_flush(n); /* the first flush can overtake the request, the second cannot */
}

void nodes_reap(pid_t child)
{
	waitpid(child, NULL, 0);
}

int nodes_stop(struct nodes *n, pid_t daemon)
{
	int status;

	if (write(n->control[1], "s", 1) != 1)
		abort();
	waitpid(daemon, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- reading --------------------------------------------------------------------------------------- */

static void read_events(const Headrace__EventBatch *m, struct hr_decoder *d, uint8_t *seen,
			size_t n_seen, struct nodes_sums *sums)
{
	struct hr_columns c;

	if (hr_batch_decode(d, m, HR_COL_ALL, &c))
		abort();
	sums->events += c.count;
	for (uint32_t i = 0; i < c.count; i++)
		if (c.offset[i] >= 0 && (uint64_t)c.offset[i] < n_seen)
			seen[c.offset[i]]++;
}

static void read_losses(const Headrace__Loss *m, struct nodes_sums *sums)
{
	for (size_t i = 0; i < m->n_rows; i++) {
		const Headrace__LossRow *row = m->rows[i];

		if (strcmp(row->reason, "journal_damaged") == 0) {
			sums->journal_damaged++;
			sums->damaged_operations += row->count;
		}
		sums->journal_memory += strcmp(row->reason, "journal_memory") == 0;
		sums->max_size += strcmp(row->reason, "max_size") == 0;
		if (strcmp(row->reason, "ring_full") == 0)
			sums->lost += row->count;
		else if (strcmp(row->reason, "torn") == 0)
			sums->torn += row->count;
		else if (strcmp(row->reason, "hostile") == 0)
			sums->hostile += row->count;
		else if (strcmp(row->reason, "limit") == 0)
			sums->limit += row->count;
		else
			sums->other_loss += row->count;
	}
}

static void read_frame(const Headrace__Frame *f, struct hr_decoder *d, uint8_t *seen, size_t n_seen,
		       struct nodes_sums *sums)
{
	switch (f->body_case) {
	case HEADRACE__FRAME__BODY_EVENTS:
		read_events(f->events, d, seen, n_seen, sums);
		break;
	case HEADRACE__FRAME__BODY_ROLLUPS:
		for (size_t i = 0; i < f->rollups->n_rows; i++) {
			sums->rollup_count += f->rollups->rows[i]->count;
			sums->rollup_bytes += f->rollups->rows[i]->bytes;
		}
		break;
	case HEADRACE__FRAME__BODY_FILE_RECORDS:
		for (size_t i = 0; i < f->file_records->n_rows; i++)
			sums->file_reads += f->file_records->rows[i]->reads;
		break;
	case HEADRACE__FRAME__BODY_LEVELS:
		sums->counters_levels += strcmp(f->levels->level, "counters") == 0;
		break;
	case HEADRACE__FRAME__BODY_LOSS:
		read_losses(f->loss, sums);
		break;
	default:
		break;
	}
}

void nodes_read(const struct nodes *n, uint8_t *seen, size_t n_seen, struct nodes_sums *ret)
{
	const char *store = n->store;
	const struct hr_stream *streams;
	const struct hr_problem *problems;
	struct hr_catalog *c;
	struct hr_decoder *d;
	char *error = NULL;

	memset(ret, 0, sizeof(*ret));
	if (hr_catalog_open(&store, 1, NULL, &c, &error) || hr_decoder_new(&d)) {
		fprintf(stderr, "catalog: %s\n", error ? error : "?");
		abort();
	}
	ret->problems = hr_catalog_problems(c, &problems);
	for (size_t i = 0; i < ret->problems; i++)
		fprintf(stderr, "problem: %s\n", problems[i].text);
	for (size_t s = 0, count = hr_catalog_streams(c, &streams); s < count; s++) {
		ret->stream_ended = streams[s].ended;
		ret->processes += streams[s].n_processes;
		for (uint32_t i = 0; i < streams[s].n_processes; i++) {
			ret->ended_processes += streams[s].processes[i].msg->end_ns != 0;
			ret->child_processes += streams[s].processes[i].msg->parent_proc != 0;
			ret->deselected += streams[s].processes[i].msg->deselected;
			for (size_t k = 0; k < streams[s].processes[i].msg->n_excluded; k++)
				ret->excluded += streams[s].processes[i].msg->excluded[k]->opens;
		}
		for (uint32_t i = 0; i < streams[s].n_frames; i++) {
			Headrace__Frame *f;

			if (hr_stream_read(&streams[s], i, &f))
				abort();
			read_frame(f, d, seen, n_seen, ret);
			headrace__frame__free_unpacked(f, NULL);
		}
	}
	hr_decoder_free(d);
	hr_catalog_free(c);
}
