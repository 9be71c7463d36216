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
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/ops.h"
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

static void send_job(struct node *n, bool ended)
{
	static const struct {
		char *user, *account;
		uint32_t uid;
	} users[] = {{"ada", "physics", 1001},
		     {"bob", "physics", 1002},
		     {"eve", "bio", 1003},
		     {"", "", 1004}};
	unsigned u = n->job->number % 4;

	build_job(&n->stream.b, (Headrace__JobEvent){.state = !ended	       ? "running"
							      : n->job->failed ? "failed"
									       : "ended",
						     .uid = users[u].uid,
						     .user = users[u].user,
						     .account = users[u].account,
						     .partition = "gpu",
						     .name = "train.py",
						     .start_ns = n->job->begin_ns,
						     .end_ns = ended ? n->job->end_ns : 0,
						     .ranks_expected = n->job->nodes * RANKS,
						     .nodes_expected = n->job->nodes});
}

/* Ranks are the processes 1 to RANKS, their workers the others. */
static void send_processes(struct node *n)
{
	Headrace__Process rows[PROCS];

	for (uint32_t t = 0; t < PROCS; t++) {
		uint32_t rank = n->number * RANKS + t % RANKS;

		rows[t] = hr_gen_process(t, rank, t < RANKS ? -1 : 0, RANKS, n->job->nodes * RANKS,
					 "python3 train.py");
		rows[t].start_ns = n->job->begin_ns + SECOND_NS;
		rows[t].end_ns = n->job->ended ? n->job->end_ns : 0;
		rows[t].uid = 1001 + n->job->number % 4;
	}
	build_processes(&n->stream.b, rows, PROCS);
}

static void send_mounts(struct node *n)
{
	static const struct hr_gen_mount mounts[MOUNTS] = {
	    {"/data", "lustre"}, {"/home", "nfs4"}, {"/", "ext4"}};
	struct hr_gen_mount list[MOUNTS];

	for (unsigned i = 0; i < MOUNTS; i++) {
		unsigned place = (i + n->number + n->job->number) % MOUNTS;

		list[place] = mounts[i];
		n->mount[i] = place + 1;
	}
	hr_gen_send_mounts(&n->stream, list, MOUNTS);
}

static void fill_file(const void *node, uint32_t id, Headrace__Path *row,
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
}

/* ---- sums ---- */

static Headrace__Rollup sums(struct node *n, uint64_t proc, uint32_t op, unsigned mount,
			     uint64_t most, uint64_t bytes, uint64_t ns)
{
	uint64_t count = 1 + random_up_to(n, most);

	return (Headrace__Rollup){.proc = proc,
				  .op = op,
				  .mount = op < HR_OP_FIRST ? 0 : n->mount[mount],
				  .scope = mount == MOUNT_ROOT,
				  .count = count,
				  .bytes = count * bytes,
				  .errors = op == HR_OP_open64 ? count / 10 : 0,
				  .dur_ns = count * ns,
				  .max_dur_ns = 3 * ns};
}

/* The operations of all processes in a window, and what is no operation: sides. */
static void send_rollups(struct node *n, uint64_t window_ns)
{
	static const struct {
		uint32_t op;
		unsigned mount;
		uint64_t most, bytes, ns;
	} table[] = {
	    {HR_OP_open64, MOUNT_DATA, 30, 0, 90000},
	    {HR_OP_fstat64, MOUNT_DATA, 20, 0, 4000},
	    {HR_OP_pread64, MOUNT_DATA, 100, 65536, 250000},
	    {HR_OP_lseek64, MOUNT_DATA, 50, 0, 500},
	    {HR_OP_close, MOUNT_DATA, 30, 0, 2000},
	    {HR_OP_write, MOUNT_HOME, 10, 4096, 30000},
	    {HR_OP_rename, MOUNT_HOME, 3, 0, 70000},
	    {HR_OP_fsync, MOUNT_HOME, 3, 0, 4000000},
	    {HR_OP_read, MOUNT_ROOT, 40, 1000, 9000},
	    {HR_OP_readdir64, MOUNT_ROOT, 40, 0, 900},
	    {HR_OP_mmap, MOUNT_ROOT, 5, 0, 6000},
	    {HR_OP_copy_file_range, MOUNT_DATA, 2, 1000000, 600000},
	    {HR_SIDE_COPY_READ, MOUNT_DATA, 0, 1000000, 0},
	    {HR_SIDE_COPY_WRITE, MOUNT_DATA, 0, 1000000, 0},
	    {HR_SIDE_SINGLE_READ, MOUNT_DATA, 500, 1, 20},
	};
	Headrace__Rollup rows[ROWS_MAX], sides[ROWS_MAX];
	size_t n_rows = 0, n_sides = 0;

	for (uint64_t proc = 1; proc <= PROCS; proc++)
		for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
			bool slow = n->number == 2 && table[i].op == HR_OP_pread64;
			Headrace__Rollup row =
			    sums(n, proc, table[i].op, table[i].mount, table[i].most,
				 table[i].bytes, table[i].ns * (slow ? SLOWER : 1));

			if (row.op < HR_OP_FIRST)
				sides[n_sides++] = row;
			else
				rows[n_rows++] = row;
		}
	build_rollups(&n->stream.b, window_ns, rows, n_rows, sides, n_sides);
}

static void send_file_records(struct node *n)
{
	Headrace__FileRecord rows[PROCS * FILES];

	for (uint32_t i = 0; i < PROCS * FILES; i++) {
		Headrace__FileRecord *r = &rows[i];

		*r = (Headrace__FileRecord){
		    .proc = 1 + i / FILES, .file = 1 + i % FILES, .api = HR_API_POSIX};
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
	build_file_records(&n->stream.b, rows, PROCS * FILES);
}

/* ---- regions ---- */

static void add_region(struct node *n, uint64_t proc, uint32_t kind, uint64_t from, uint64_t ns,
		       uint64_t step, uint64_t count)
{
	const char *args =
	    step % 3 == 0 ? "{\"loader\":0,\"hidden\":true}" : "{\"loader\":0,\"hidden\":false}";

	build_region(
	    &n->stream.b,
	    (struct hr_region){.proc = proc,
			       .tid = 10 + (uint32_t)proc,
			       .kind = kind,
			       .count = count,
			       .start_ns = from,
			       .dur_ns = ns,
			       .step = step,
			       .epoch = HR_REGION_UNKNOWN},
	    (struct build_texts){.domain = "torch",
				 .args = kind == HR_REGION_INPUT_WAIT && count == 1 ? args : NULL});
}

/* Steps of a second, which begin with a wait; a sum of five short waits; a checkpoint at the end. */
static void add_training(struct node *n, uint64_t proc)
{
	uint64_t from = n->job->begin_ns + 5 * SECOND_NS;

	for (uint64_t step = 0; step < STEPS; step++) {
		uint64_t wait = SECOND_NS / 100 + random_up_to(n, SECOND_NS / 2);

		add_region(n, proc, HR_REGION_INPUT_WAIT, from, wait, step, 1);
		add_region(n, proc, HR_REGION_OPTIMIZER, from + wait, 1000, step, 1);
		add_region(n, proc, HR_REGION_STEP, from, SECOND_NS, step, 1);
		from += SECOND_NS;
	}
	add_region(n, proc, HR_REGION_INPUT_WAIT, from, 50000000, HR_REGION_UNKNOWN, 5);
	add_region(n, proc, HR_REGION_CHECKPOINT, from + SECOND_NS, SECOND_NS, HR_REGION_UNKNOWN,
		   1);
}

static void send_regions(struct node *n)
{
	for (uint64_t proc = 1; proc <= RANKS; proc++)
		add_training(n, proc);
	add_region(n, RANKS + 1, HR_REGION_INPUT_WAIT, n->job->begin_ns, SECOND_NS,
		   HR_REGION_UNKNOWN, 1);
	build_regions(&n->stream.b);
}

/* ---- streams ---- */

static void send_all(struct node *n)
{
	send_job(n, false);
	send_processes(n);
	send_mounts(n);
	hr_gen_send_paths(&n->stream, 1, FILES, fill_file, n);
	for (unsigned w = 0; w < 2 * WINDOWS; w++) {
		n->stream.b.now_ns += WINDOW_NS / 2;
		send_rollups(n, n->job->begin_ns + w / 2 * WINDOW_NS);
	}
	for (unsigned i = 0; i < 2; i++)
		send_file_records(n);
	if (n->job->number % JOBS != 1)
		send_regions(n);
	if (!n->job->ended)
		return;
	n->stream.b.now_ns = n->job->end_ns;
	send_job(n, true);
	build_end(&n->stream.b, n->killed ? "killed" : n->job->failed ? "failed" : "ended");
}

static void write_node(const char *store, const struct job *job, uint32_t number, bool second)
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
			 .state = id.instance};

	snprintf(name, sizeof(name), "n%u", number);
	hr_gen_open(&n.stream, store, &id, 0);
	n.stream.b.now_ns = job->begin_ns;
	send_all(&n);
	hr_gen_close(&n.stream);
}

/* `age`: in days */
static void write_job(const char *store, uint32_t i, uint32_t attempt, uint64_t now_ns,
		      uint64_t age)
{
	struct job job = {.number = i,
			  .attempt = attempt,
			  .nodes = 2 + i % 3,
			  .ended = i != 3,
			  .failed = i == 4,
			  .begin_ns = now_ns - age * DAY_NS};

	job.end_ns = job.begin_ns + (70 + 10 * i) * 60 * SECOND_NS;
	snprintf(job.name, sizeof(job.name), "%u", 100 + i);
	for (uint32_t node = 0; node < job.nodes; node++)
		write_node(store, &job, node, false);
	if (i == 6)
		write_node(store, &job, 0, true);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
	uint64_t now_ns = seconds * SECOND_NS - HR_GEN_REAL_NS + HR_GEN_BOOT_NS;

	if (argc < 2) {
		fputs("usage: fleet_jobs STORE [SECONDS]\n", stderr);
		return 2;
	}
	for (uint32_t i = 0; i < JOBS; i++) {
		write_job(argv[1], i, 0, now_ns, 1 + (JOBS - 1 - i) * 3);
		if (i == 5)
			write_job(argv[1], i, 1, now_ns, (JOBS - 1 - i) * 3);
	}
	return 0;
}
