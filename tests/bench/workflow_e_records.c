/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/workflow_e_records.h"

#include <stdlib.h>

#include "common/hist.h"
#include "tests/store/build.h"

#define FILES_OPEN 2u /* at a time, by one task */

struct record {
	Headrace__FileRecord row;
	uint64_t read_end, write_end, read_at, write_at; /* of the last ones */
	uint32_t read_bins[HR_HIST_BINS], write_bins[HR_HIST_BINS];
	uint64_t read_pairs[2 * HR_HIST_BINS], write_pairs[2 * HR_HIST_BINS];
	bool open;
};

struct hr_we_records {
	size_t n_open;
	struct record *open; /* FILES_OPEN of each task */
	struct record **ended;
	Headrace__FileRecord **list;
	size_t n_ended, taken, room; /* taken: the first ones, to be freed by the next call */
};

struct hr_we_records *hr_we_records_new(size_t n_tasks)
{
	struct hr_we_records *r = build_must(calloc(1, sizeof(*r)));

	r->n_open = n_tasks * FILES_OPEN;
	r->open = build_must(calloc(r->n_open, sizeof(*r->open)));
	return r;
}

static void forget(struct hr_we_records *r)
{
	for (size_t i = 0; i < r->n_ended; i++)
		free(r->ended[i]);
	r->n_ended = r->taken = 0;
}

void hr_we_records_free(struct hr_we_records *r)
{
	forget(r);
	free(r->open);
	free(r->ended);
	free(r->list);
	free(r);
}

static struct record *find(struct hr_we_records *r, const struct hr_event *e)
{
	struct record *first = &r->open[e->task * FILES_OPEN], *unused = NULL;

	for (unsigned i = 0; i < FILES_OPEN; i++) {
		if (first[i].open && first[i].row.file == e->file)
			return &first[i];
		if (!first[i].open)
			unused = &first[i];
	}
	if (!unused)
		abort(); /* sized for what the generator does */
	*unused = (struct record){.open = true};
	headrace__file_record__init(&unused->row);
	unused->row.proc = e->task + 1;
	unused->row.file = e->file;
	unused->row.api = HR_API_POSIX;
	unused->row.first_ns = e->start_ns;
	return unused;
}

static void add_read(struct record *r, const struct hr_event *e)
{
	Headrace__FileRecord *row = &r->row;
	uint64_t bytes = (uint64_t)e->ret, at = (uint64_t)e->offset;

	row->seq_reads += row->reads > 0 && at > r->read_at;
	row->consec_reads += row->reads > 0 && at == r->read_end;
	row->reads++;
	row->bytes_read += bytes;
	row->read_ns += e->dur_ns;
	row->max_read_ns = e->dur_ns > row->max_read_ns ? e->dur_ns : row->max_read_ns;
	row->unaligned += at % 4096 != 0;
	r->read_bins[hr_log2_bin(bytes)]++;
	r->read_at = at;
	r->read_end = at + bytes;
}

static void add_write(struct record *r, const struct hr_event *e)
{
	Headrace__FileRecord *row = &r->row;
	uint64_t bytes = (uint64_t)e->ret, at = (uint64_t)e->offset;

	row->seq_writes += row->writes > 0 && at > r->write_at;
	row->consec_writes += row->writes > 0 && at == r->write_end;
	row->writes++;
	row->bytes_written += bytes;
	row->write_ns += e->dur_ns;
	row->max_write_ns = e->dur_ns > row->max_write_ns ? e->dur_ns : row->max_write_ns;
	row->unaligned += at % 4096 != 0;
	r->write_bins[hr_log2_bin(bytes)]++;
	r->write_at = at;
	r->write_end = at + bytes;
}

static void add_other(struct record *r, const struct hr_event *e)
{
	Headrace__FileRecord *row = &r->row;
	unsigned class = hr_op_info(e->op)->class;

	row->opens += class == HR_CLASS_OPEN;
	row->seeks += class == HR_CLASS_SEEK;
	row->stats += class == HR_CLASS_STAT;
	row->meta_ops += class == HR_CLASS_CLOSE;
	row->meta_ns += e->dur_ns;
}

static void end(struct hr_we_records *r, struct record *open)
{
	struct record *copy = build_must(malloc(sizeof(*copy)));

	if (r->n_ended == r->room) {
		r->room = r->room ? 2 * r->room : 256;
		r->ended = build_must(realloc(r->ended, r->room * sizeof(*r->ended)));
		r->list = build_must(realloc(r->list, r->room * sizeof(*r->list)));
	}
	*copy = *open;
	open->open = false;
	copy->row.read_size_hist = copy->read_pairs;
	copy->row.n_read_size_hist =
	    hr_hist_sparse(copy->read_bins, HR_HIST_BINS, copy->read_pairs);
	copy->row.write_size_hist = copy->write_pairs;
	copy->row.n_write_size_hist =
	    hr_hist_sparse(copy->write_bins, HR_HIST_BINS, copy->write_pairs);
	r->ended[r->n_ended] = copy;
	r->list[r->n_ended++] = &copy->row;
}

void hr_we_records_add(struct hr_we_records *r, const struct hr_event *e)
{
	struct record *open = find(r, e);
	unsigned class = hr_op_info(e->op)->class;

	if (class == HR_CLASS_READ)
		add_read(open, e);
	else if (class == HR_CLASS_WRITE)
		add_write(open, e);
	else
		add_other(open, e);
	open->row.last_ns = e->start_ns + e->dur_ns;
	if (r->taken > 0)
		forget(r);
	if (class == HR_CLASS_CLOSE)
		end(r, open);
}

Headrace__FileRecords hr_we_records_take(struct hr_we_records *r, bool all)
{
	Headrace__FileRecords ret = HEADRACE__FILE_RECORDS__INIT;

	if (r->taken > 0)
		forget(r);
	for (size_t i = 0; all && i < r->n_open; i++)
		if (r->open[i].open)
			end(r, &r->open[i]);
	ret.rows = r->list;
	ret.n_rows = r->taken = r->n_ended;
	return ret;
}
