/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_jobs.c - fleet_jobs STORE [SECONDS]: a store with jobs of a cluster that never ran
 *
 * The jobs "100" to "111" of four users ran on the nodes n0 to n3, one each three days; the last
 * one began a day before SECONDS (since 1970; default: now). They have all that questions about
 * many jobs meet:
 *
 *      - each window, process and file has two rows, which are partial sums
 *      - copies and single characters, which are rows of `side`
 *      - files of Python (scope runtime), files that many jobs use, mounts whose numbers differ
 *      - job 101: no waits; job 102: killed on a node; job 103: still running; job 104: failed
 *      - job 105: two attempts; job 106: headraced was restarted on n0, so that n0 has two streams
 *      - reads from /data take SLOWER times as long on n2 as on other nodes
 *      - DataLoader workers, one of which waits for input itself; an accelerator hides each third wait
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/ops.h"
#include "common/region.h"
#include "tests/bench/generate_random.h"
#include "tests/bench/generate_stream.h"

#define JOBS	  12u
#define DAY_NS	  UINT64_C(86400000000000)
#define SECOND_NS UINT64_C(1000000000)
#define WINDOW_NS (10 * SECOND_NS)
#define WINDOWS	  6u
#define RANKS	  2u /* of a node; each has a worker */
#define PROCS	  (2 * RANKS)
#define STEPS	  20u
#define SLOWER	  5u
#define FILES	  6u
#define ROWS_MAX  (PROCS * 16u)

enum { MOUNT_DATA, MOUNT_HOME, MOUNT_ROOT, MOUNTS };

struct job {
	char name[16];
	uint32_t number, attempt, nodes;
	uint64_t begin_ns, end_ns; /* CLOCK_BOOTTIME */
	bool ended, failed;
};

struct node {
	const struct job *job;
	uint32_t number;
	bool killed, second; /* second: the second stream of the node */
	uint64_t state;	     /* of the random numbers */
	struct hr_gen_stream stream;
	uint32_t mount[MOUNTS]; /* their ids */
};

static uint64_t random_up_to(struct node *n, uint64_t most)
{
	n->state = hr_gen_mix(n->state + 1);
	return n->state % (most + 1);
}

/* ---- job, processes, names ---- */

static int send_job(struct node *n, bool ended)
{
	static const struct {
		char *user, *account;
		uint32_t uid;
	} users[] = {{"ada", "physics", 1001},
		     {"bob", "physics", 1002},
		     {"eve", "bio", 1003},
		     {"", "", 1004}};
	Headrace__JobEvent job = HEADRACE__JOB_EVENT__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	unsigned u = n->job->number % 4;

	job.state = !ended ? "running" : n->job->failed ? "failed" : "ended";
	job.uid = users[u].uid;
	job.user = users[u].user;
	job.account = users[u].account;
	job.partition = "gpu";
	job.name = "train.py";
	job.start_ns = n->job->begin_ns;
	job.end_ns = ended ? n->job->end_ns : 0;
	job.ranks_expected = n->job->nodes * RANKS;
	job.nodes_expected = n->job->nodes;
	frame.body_case = HEADRACE__FRAME__BODY_JOB;
	frame.job = &job;
	return hr_gen_send(&n->stream, &frame, 1);
}

static int send_end(struct node *n)
{
	Headrace__StreamEnd end = HEADRACE__STREAM_END__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	end.state = n->killed ? "killed" : n->job->failed ? "failed" : "ended";
	frame.body_case = HEADRACE__FRAME__BODY_STREAM_END;
	frame.stream_end = &end;
	return hr_gen_send(&n->stream, &frame, 0);
}

/* Ranks are the processes 1 to RANKS, their workers the others. */
static int send_processes(struct node *n)
{
	static char command[] = "python3 train.py";
	Headrace__Process rows[PROCS];

	for (uint32_t t = 0; t < PROCS; t++) {
		uint32_t rank = n->number * RANKS + t % RANKS;

		hr_gen_process(t, rank, t < RANKS ? -1 : 0, RANKS, n->job->nodes * RANKS, command,
			       &rows[t]);
		rows[t].start_ns = n->job->begin_ns + SECOND_NS;
		rows[t].end_ns = n->job->ended ? n->job->end_ns : 0;
		rows[t].uid = 1001 + n->job->number % 4;
	}
	return hr_gen_send_processes(&n->stream, rows, PROCS);
}

static int send_mounts(struct node *n)
{
	static const struct hr_gen_mount mounts[MOUNTS] = {
	    {"/data", "lustre"}, {"/home", "nfs4"}, {"/", "ext4"}};
	struct hr_gen_mount list[MOUNTS];

	for (unsigned i = 0; i < MOUNTS; i++) {
		unsigned place = (i + n->number + n->job->number) % MOUNTS;

		list[place] = mounts[i];
		n->mount[i] = place + 1;
	}
	return hr_gen_send_mounts(&n->stream, list, MOUNTS);
}

static size_t fill_file(const void *node, uint32_t id, Headrace__Path *row,
			char text[HR_GEN_PATH_BYTES])
{
	const struct node *n = node;
	int bytes;

	if (id < FILES - 1)
		bytes = snprintf(text, HR_GEN_PATH_BYTES, "/data/set/part%u/f%u", id % 2, id);
	else if (id == FILES - 1)
		bytes = snprintf(text, HR_GEN_PATH_BYTES, "/home/u/job%s/log'%u", n->job->name,
				 n->number);
	else
		bytes = snprintf(text, HR_GEN_PATH_BYTES, "/usr/lib/python3/os.py");
	row->hash = 8;
	for (int i = 0; i < bytes; i++)
		row->hash = hr_gen_mix(row->hash + (uint8_t)text[i]);
	row->mount = n->mount[id < FILES - 1	? MOUNT_DATA
			      : id == FILES - 1 ? MOUNT_HOME
						: MOUNT_ROOT];
	row->scope = id == FILES;
	return (size_t)bytes;
}

/* ---- sums ---- */

static void add_row(struct node *n, Headrace__Rollup *row, uint64_t proc, uint32_t op,
		    unsigned mount, uint64_t most, uint64_t bytes, uint64_t ns)
{
	headrace__rollup__init(row);
	row->proc = proc;
	row->op = op;
	row->mount = op < HR_OP_FIRST ? 0 : n->mount[mount];
	row->scope = mount == MOUNT_ROOT;
	row->count = 1 + random_up_to(n, most);
	row->bytes = row->count * bytes;
	row->errors = op == HR_OP_open64 ? row->count / 10 : 0;
	row->dur_ns = row->count * ns;
	row->max_dur_ns = 3 * ns;
}

/* The operations of a process in a window: rows, and rows of sides. */
static size_t fill_rows(struct node *n, uint64_t proc, Headrace__Rollup *rows, size_t *ret_sides)
{
	uint64_t slow = n->number == 2 ? SLOWER : 1;
	size_t i = 0;

	add_row(n, &rows[i++], proc, HR_OP_open64, MOUNT_DATA, 30, 0, 90000);
	add_row(n, &rows[i++], proc, HR_OP_fstat64, MOUNT_DATA, 20, 0, 4000);
	add_row(n, &rows[i++], proc, HR_OP_pread64, MOUNT_DATA, 100, 65536, 250000 * slow);
	add_row(n, &rows[i++], proc, HR_OP_lseek64, MOUNT_DATA, 50, 0, 500);
	add_row(n, &rows[i++], proc, HR_OP_close, MOUNT_DATA, 30, 0, 2000);
	add_row(n, &rows[i++], proc, HR_OP_write, MOUNT_HOME, 10, 4096, 30000);
	add_row(n, &rows[i++], proc, HR_OP_rename, MOUNT_HOME, 3, 0, 70000);
	add_row(n, &rows[i++], proc, HR_OP_fsync, MOUNT_HOME, 3, 0, 4000000);
	add_row(n, &rows[i++], proc, HR_OP_read, MOUNT_ROOT, 40, 1000, 9000);
	add_row(n, &rows[i++], proc, HR_OP_readdir64, MOUNT_ROOT, 40, 0, 900);
	add_row(n, &rows[i++], proc, HR_OP_mmap, MOUNT_ROOT, 5, 0, 6000);
	add_row(n, &rows[i++], proc, HR_OP_copy_file_range, MOUNT_DATA, 2, 1000000, 600000);
	*ret_sides = 3;
	add_row(n, &rows[i++], proc, HR_SIDE_COPY_READ, MOUNT_DATA, 0, 1000000, 0);
	add_row(n, &rows[i++], proc, HR_SIDE_COPY_WRITE, MOUNT_DATA, 0, 1000000, 0);
	add_row(n, &rows[i++], proc, HR_SIDE_SINGLE_READ, MOUNT_DATA, 500, 1, 20);
	return i;
}

static int send_rollups(struct node *n, uint64_t window_ns)
{
	Headrace__Rollup rows[ROWS_MAX], *list[ROWS_MAX], *sides[ROWS_MAX];
	Headrace__RollupBatch batch = HEADRACE__ROLLUP_BATCH__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	size_t at = 0;

	for (uint64_t proc = 1; proc <= PROCS; proc++) {
		size_t n_sides, all = fill_rows(n, proc, &rows[at], &n_sides);

		for (size_t i = 0; i < all; i++) {
			if (i < all - n_sides)
				list[batch.n_rows++] = &rows[at + i];
			else
				sides[batch.n_sides++] = &rows[at + i];
		}
		at += all;
	}
	batch.window_start_ns = window_ns;
	batch.window_ns = WINDOW_NS;
	batch.rows = list;
	batch.sides = sides;
	frame.body_case = HEADRACE__FRAME__BODY_ROLLUPS;
	frame.rollups = &batch;
	return hr_gen_send(&n->stream, &frame, 1);
}

static int send_file_records(struct node *n)
{
	Headrace__FileRecord rows[PROCS * FILES], *list[PROCS * FILES];
	Headrace__FileRecords records = HEADRACE__FILE_RECORDS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	for (uint32_t i = 0; i < PROCS * FILES; i++) {
		Headrace__FileRecord *r = list[i] = &rows[i];

		headrace__file_record__init(r);
		r->proc = 1 + i / FILES;
		r->file = 1 + i % FILES;
		r->api = HR_API_POSIX;
		r->opens = 1 + random_up_to(n, 9);
		r->reads = random_up_to(n, 1000);
		r->writes = random_up_to(n, 5);
		r->seeks = random_up_to(n, 3);
		r->stats = random_up_to(n, 9);
		r->syncs = random_up_to(n, 1);
		r->meta_ops = random_up_to(n, 9);
		r->bytes_read = r->reads * 4096;
		r->bytes_written = r->writes * 100;
		r->read_ns = r->reads * 1000;
		r->write_ns = r->writes * 2000;
		r->meta_ns = r->meta_ops * 3000;
		r->first_ns = n->job->begin_ns + SECOND_NS;
		r->last_ns = n->job->end_ns;
	}
	records.n_rows = PROCS * FILES;
	records.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_FILE_RECORDS;
	frame.file_records = &records;
	return hr_gen_send(&n->stream, &frame, 1);
}

/* ---- regions ---- */

static int add_region(struct hr_regions *r, uint64_t proc, uint32_t kind, uint64_t from,
		      uint64_t ns, uint64_t step, uint64_t count)
{
	struct hr_region region = {.proc = proc,
				   .tid = 10 + (uint32_t)proc,
				   .kind = kind,
				   .count = count,
				   .start_ns = from,
				   .dur_ns = ns,
				   .step = step,
				   .epoch = HR_REGION_UNKNOWN};
	const char *args =
	    step % 3 == 0 ? "{\"loader\":0,\"hidden\":true}" : "{\"loader\":0,\"hidden\":false}";
	int error = hr_regions_text(r, "torch", 5, &region.domain);

	if (error == 0 && kind == HR_REGION_INPUT_WAIT && count == 1)
		error = hr_regions_text(r, args, strlen(args), &region.args);
	return error < 0 ? error : hr_regions_add(r, &region);
}

/* Steps of a second, which begin with a wait; a sum of five short waits; a checkpoint at the end. */
static int add_training(struct node *n, struct hr_regions *r, uint64_t proc)
{
	uint64_t from = n->job->begin_ns + 5 * SECOND_NS, wait = 0;
	int error = 0;

	for (uint64_t step = 0; step < STEPS && error == 0; step++) {
		wait = SECOND_NS / 100 + random_up_to(n, SECOND_NS / 2);
		error = add_region(r, proc, HR_REGION_INPUT_WAIT, from, wait, step, 1);
		if (error == 0)
			error =
			    add_region(r, proc, HR_REGION_OPTIMIZER, from + wait, 1000, step, 1);
		if (error == 0)
			error = add_region(r, proc, HR_REGION_STEP, from, SECOND_NS, step, 1);
		from += SECOND_NS;
	}
	if (error == 0)
		error =
		    add_region(r, proc, HR_REGION_INPUT_WAIT, from, 50000000, HR_REGION_UNKNOWN, 5);
	return error < 0 ? error
			 : add_region(r, proc, HR_REGION_CHECKPOINT, from + SECOND_NS, SECOND_NS,
				      HR_REGION_UNKNOWN, 1);
}

static int send_regions(struct node *n)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	struct hr_regions *r;
	int error = hr_regions_new(&r);

	if (error < 0)
		return error;
	for (uint64_t proc = 1; proc <= RANKS && error == 0; proc++)
		error = add_training(n, r, proc);
	if (error == 0)
		error = add_region(r, RANKS + 1, HR_REGION_INPUT_WAIT, n->job->begin_ns, SECOND_NS,
				   HR_REGION_UNKNOWN, 1);
	frame.body_case = HEADRACE__FRAME__BODY_REGIONS;
	frame.regions = (Headrace__Regions *)hr_regions_message(r);
	if (error == 0)
		error = hr_gen_send(&n->stream, &frame, 1);
	hr_regions_free(r);
	return error;
}

/* ---- streams ---- */

static int send_all(struct node *n)
{
	int r = send_job(n, false);

	if (r == 0)
		r = send_processes(n);
	if (r == 0)
		r = send_mounts(n);
	if (r == 0)
		r = hr_gen_send_paths(&n->stream, 1, FILES, fill_file, n);
	for (unsigned w = 0; r == 0 && w < 2 * WINDOWS; w++) {
		n->stream.now_ns += WINDOW_NS / 2;
		r = send_rollups(n, n->job->begin_ns + w / 2 * WINDOW_NS);
	}
	for (unsigned i = 0; r == 0 && i < 2; i++)
		r = send_file_records(n);
	if (r == 0 && n->job->number % JOBS != 1)
		r = send_regions(n);
	if (r < 0 || !n->job->ended)
		return r;
	n->stream.now_ns = n->job->end_ns;
	r = send_job(n, true);
	return r < 0 ? r : send_end(n);
}

static int write_node(const char *store, const struct job *job, uint32_t number, bool second)
{
	char name[16];
	struct hr_stream_id id = {.cluster = "lab",
				  .job = job->name,
				  .attempt = job->attempt,
				  .node = name,
				  .boot_id = "boot",
				  .instance = (uint64_t)(100 + job->number) << 16 |
					      job->attempt << 8 | number << 1 | second};
	struct node n = {.job = job,
			 .number = number,
			 .second = second,
			 .killed = job->number % JOBS == 2 && number == 1,
			 .state = id.instance,
			 .stream.now_ns = job->begin_ns};
	int r, closed;

	snprintf(name, sizeof(name), "n%u", number);
	r = hr_writer_open(store, &id, &n.stream.writer, NULL);
	if (r < 0)
		return r;
	r = send_all(&n);
	closed = hr_writer_close(n.stream.writer);
	return r < 0 ? r : closed;
}

/* `age`: in days */
static int write_job(const char *store, uint32_t i, uint32_t attempt, uint64_t now_ns, uint64_t age)
{
	struct job job = {.number = i,
			  .attempt = attempt,
			  .nodes = 2 + i % 3,
			  .ended = i != 3,
			  .failed = i == 4,
			  .begin_ns = now_ns - age * DAY_NS};
	int r = 0;

	job.end_ns = job.begin_ns + (70 + 10 * i) * 60 * SECOND_NS;
	snprintf(job.name, sizeof(job.name), "%u", 100 + i);
	for (uint32_t node = 0; node < job.nodes && r == 0; node++)
		r = write_node(store, &job, node, false);
	return r < 0 || i != 6 ? r : write_node(store, &job, 0, true);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
	uint64_t now_ns = seconds * SECOND_NS - HR_GEN_REAL_NS + HR_GEN_BOOT_NS;
	int r = 0;

	if (argc < 2) {
		fputs("usage: fleet_jobs STORE [SECONDS]\n", stderr);
		return 2;
	}
	for (uint32_t i = 0; i < JOBS && r == 0; i++) {
		r = write_job(argv[1], i, 0, now_ns, 1 + (JOBS - 1 - i) * 3);
		if (r == 0 && i == 5)
			r = write_job(argv[1], i, 1, now_ns, (JOBS - 1 - i) * 3);
	}
	if (r < 0)
		fprintf(stderr, "fleet_jobs: %s: %s\n", argv[1], strerror(-r));
	return r < 0;
}
