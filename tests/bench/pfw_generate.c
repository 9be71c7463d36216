/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfw_generate.c - the job of workflow E as the DLIO profiler would have written it
 *
 * Writes one .pfw.gz file per rank in dialect A (docs/import.md): 16 files, whose lines are the
 * events and regions of workflow_e.h. Prints what each file contains, as JSON, counted from the
 * generator's events and not from the lines. One process per node.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/bench/workflow_e.h"

#define BLOCK	   65536u
#define LINE	   1024u
#define EPOCH_NS   UINT64_C(1700000000000000000)
#define GEN_EVENTS 65536u

struct pfw_file {
	gzFile to;
	char block[BLOCK + LINE];
	size_t used;
	uint64_t id, events, regions, read_bytes, written_bytes, dur_us;
};

struct pfw_job {
	const char *folder;
	int level;
	uint32_t node;
	struct hr_we_node *gen;
	struct pfw_file files[HR_WE_LOCAL];
};

static void block_flush(struct pfw_file *f)
{
	if (f->used && gzwrite(f->to, f->block, (unsigned)f->used) <= 0)
		abort();
	f->used = 0;
}

static void put_text(struct pfw_file *f, const char *text, size_t n)
{
	memcpy(f->block + f->used, text, n);
	f->used += n;
}

#define put(f, text) put_text(f, text, sizeof(text) - 1)

static void put_number(struct pfw_file *f, uint64_t v)
{
	char digits[20];
	size_t n = sizeof(digits);

	do
		digits[--n] = (char)('0' + v % 10);
	while ((v /= 10) != 0);
	put_text(f, digits + n, sizeof(digits) - n);
}

static void line_begin(struct pfw_file *f, const char *name, const char *cat, uint32_t rank,
		       uint32_t tid, uint64_t start_ns, uint64_t dur_ns)
{
	if (f->used >= BLOCK)
		block_flush(f);
	put(f, "{\"id\":\"");
	put_number(f, f->id++);
	put(f, "\",\"name\":\"");
	put_text(f, name, strlen(name));
	put(f, "\",\"cat\":\"");
	put_text(f, cat, strlen(cat));
	put(f, "\",\"pid\":\"");
	put_number(f, rank);
	put(f, "\",\"tid\":\"");
	put_number(f, tid);
	put(f, "\",\"ts\":\"");
	put_number(f, start_ns / 1000);
	put(f, "\",\"dur\":\"");
	put_number(f, dur_ns / 1000);
	put(f, "\",\"ph\":\"X\",\"args\":{\"hostname\":\"");
}

static void event_write(struct pfw_job *j, const struct hr_event *e, const struct hr_task *tasks)
{
	uint32_t rank = hr_we_rank(j->gen, e->task);
	struct pfw_file *f = &j->files[rank % HR_WE_LOCAL];
	const struct hr_op_info *op = hr_op_info(e->op);
	Headrace__Path row = HEADRACE__PATH__INIT;
	char path[HR_GEN_PATH_BYTES];
	uint64_t bytes = hr_bytes_moved(op->bytes_rule, e->ret, e->asked, e->flags);

	hr_we_file(j->gen, e->file, &row, path);
	line_begin(f, op->name, "POSIX", rank, tasks[e->task].tid,
		   e->start_ns + EPOCH_NS - HR_GEN_BOOT_NS, e->dur_ns);
	put(f, "node");
	put_number(f, j->node);
	put(f, "\",\"fname\":\"");
	put_text(f, path, strlen(path));
	if (op->class == HR_CLASS_OPEN) {
		put(f, "\",\"flags\":");
		put_number(f, e->flags);
	} else {
		put(f, "\",\"fd\":");
		put_number(f, e->fd < 0 ? 0 : (uint64_t)e->fd);
	}
	put(f, ",\"ret\":");
	put_number(f, (uint64_t)e->ret);
	put(f, "}}\n");
	f->events++;
	f->dur_us += e->dur_ns / 1000;
	if (op->class == HR_CLASS_READ)
		f->read_bytes += bytes;
	else if (op->class == HR_CLASS_WRITE)
		f->written_bytes += bytes;
}

static void region_write(struct pfw_job *j, const struct hr_we_region *g)
{
	const struct hr_region *r = &g->region;
	uint32_t rank = hr_we_rank(j->gen, (uint32_t)r->proc - 1);
	struct pfw_file *f = &j->files[rank % HR_WE_LOCAL];

	line_begin(f, hr_we_names[g->name], "PYTHON", rank, r->tid,
		   r->start_ns + EPOCH_NS - HR_GEN_BOOT_NS, r->dur_ns);
	put(f, "node");
	put_number(f, j->node);
	put(f, "\",\"epoch\":");
	put_number(f, r->epoch);
	if (r->step != HR_REGION_UNKNOWN) {
		put(f, ",\"step\":");
		put_number(f, r->step);
	}
	put(f, "}}\n");
	f->regions++;
}

static int files_open(struct pfw_job *j)
{
	char path[4096], mode[8];

	snprintf(mode, sizeof(mode), "wb%d", j->level);
	for (uint32_t i = 0; i < HR_WE_LOCAL; i++) {
		snprintf(path, sizeof(path), "%s/trace-%u-of-%u.pfw.gz", j->folder,
			 j->node * HR_WE_LOCAL + i, HR_WE_RANKS);
		j->files[i].to = gzopen(path, mode);
		if (!j->files[i].to)
			return -1;
		put(&j->files[i], "[\n");
	}
	return 0;
}

static int files_close(struct pfw_job *j)
{
	int r = 0;

	for (uint32_t i = 0; i < HR_WE_LOCAL; i++) {
		struct pfw_file *f = &j->files[i];

		put(f, "]\n");
		block_flush(f);
		r |= gzclose(f->to) != Z_OK;
		printf("{\"rank\": %u, \"events\": %" PRIu64 ", \"regions\": %" PRIu64
		       ", \"bytes_read\": %" PRIu64 ", \"bytes_written\": %" PRIu64
		       ", \"dur_us\": %" PRIu64 "}\n",
		       j->node * HR_WE_LOCAL + i, f->events, f->regions, f->read_bytes,
		       f->written_bytes, f->dur_us);
	}
	return r;
}

static int node_write(const struct hr_we_config *config, struct pfw_job *j)
{
	struct hr_event *events = malloc(GEN_EVENTS * sizeof(*events));
	struct hr_we_totals totals = {0};
	const struct hr_we_region *regions;
	const struct hr_task *tasks;
	size_t n, n_regions;

	if (!events || files_open(j))
		return 1;
	j->gen = hr_we_node_new(config, j->node, &totals);
	hr_we_tasks(j->gen, &tasks);
	do {
		n = hr_we_next(j->gen, events, GEN_EVENTS);
		for (size_t i = 0; i < n; i++)
			event_write(j, &events[i], tasks);
		n_regions = hr_we_regions(j->gen, &regions);
		for (size_t i = 0; i < n_regions; i++)
			region_write(j, &regions[i]);
	} while (n > 0);
	hr_we_node_free(j->gen);
	hr_we_totals_done(&totals);
	free(events);
	return files_close(j);
}

/* Writes the files of a node in a process of its own. */
static pid_t node_start(const struct hr_we_config *config, const char *folder, int level,
			uint32_t node)
{
	pid_t pid = fork();
	struct pfw_job *j;

	if (pid != 0)
		return pid;
	j = calloc(1, sizeof(*j));
	if (!j)
		exit(1);
	j->folder = folder;
	j->level = level;
	j->node = node;
	exit(node_write(config, j));
}

int main(int argc, char **argv)
{
	struct hr_we_config config = {.job = "pfw", .events = HR_WE_EVENTS};
	int level = 6, failed = 0, c, status;

	while ((c = getopt(argc, argv, "n:z:")) != -1) {
		if (c == 'n')
			config.events = strtoull(optarg, NULL, 0);
		else if (c == 'z')
			level = atoi(optarg);
		else
			optind = argc + 1;
	}
	if (argc != optind + 1 || config.events < HR_WE_EVENTS_MIN) {
		fprintf(stderr, "usage: pfw_generate [-n EVENTS (%u or more)] [-z LEVEL] FOLDER\n",
			HR_WE_EVENTS_MIN);
		return 2;
	}
	for (uint32_t node = 0; node < HR_WE_NODES; node++)
		failed |= node_start(&config, argv[optind], level, node) < 0;
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
