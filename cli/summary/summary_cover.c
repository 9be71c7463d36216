/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_parts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/ops.h"
#include "common/text.h"

/*
 * A call of the kind READ or WRITE is one system call. A call of another kind is any number of
 * system calls (query/named/coverage.sql).
 */
enum cover_kind { KIND_READ, KIND_WRITE, KIND_STDIO, KIND_AIO, KINDS, KIND_NONE };

struct hr_cover_cell {
	/* system calls that the kernel saw during operations of the shim */
	uint64_t under, under_bytes;
	/* operations that probes recorded; rollups contain them, too */
	uint64_t bpf, bpf_bytes;
	uint64_t recorded, recorded_bytes;
};

/* Returns the cell of a process and kind. All unknown processes share a cell. NULL: no memory. */
static struct hr_cover_cell *cell_of(struct hr_covers *c, const struct hr_stream *stream,
				     uint64_t proc, enum cover_kind kind)
{
	const struct hr_process *process = hr_stream_process(stream, proc);
	size_t row = process ? (size_t)(process - stream->processes) : stream->n_processes;

	if (!c->cells)
		c->cells = calloc(((size_t)stream->n_processes + 1) * KINDS, sizeof(*c->cells));
	return c->cells ? &c->cells[row * KINDS + kind] : NULL;
}

static enum cover_kind summary_cover_kind_of(uint16_t op)
{
	const struct hr_op_info *info = hr_op_info(op);

	if (op < HR_OP_FIRST) /* the operation of the copy counts already */
		return hr_side_single(op) ? KIND_STDIO : KIND_NONE;
	if (info->api == HR_API_STDIO)
		return KIND_STDIO;
	if (info->api == HR_API_AIO)
		return KIND_AIO;
	if (info->class == HR_CLASS_READ || hr_op_copies(op))
		return KIND_READ;
	return info->class == HR_CLASS_WRITE ? KIND_WRITE : KIND_NONE;
}

int hr_covers_rollup(struct hr_covers *c, const struct hr_stream *stream,
		     const Headrace__Rollup *row)
{
	enum cover_kind kind = summary_cover_kind_of((uint16_t)row->op);
	struct hr_cover_cell *cell;

	if (kind == KIND_NONE || row->scope != 0)
		return 0;
	cell = cell_of(c, stream, row->proc, kind);
	if (!cell)
		return -ENOMEM;
	cell->recorded += row->count;
	cell->recorded_bytes += row->bytes;
	return 0;
}

/* Returns whether the row counts: reads and writes of data files, and pages of mappings. */
static bool is_compared(const struct hr_stream *stream, const Headrace__KernelRecord *row)
{
	unsigned class = hr_op_info((uint16_t)row->op)->class;
	struct hr_file_info info;

	if (row->cause >= HR_CAUSE_END || row->cause == HR_CAUSE_FETCH ||
	    row->cause == HR_CAUSE_EXCLUDED)
		return false;
	if (class != HR_CLASS_READ && class != HR_CLASS_WRITE && row->cause != HR_CAUSE_FILL)
		return false;
	/* A row without a file: the first call of a thread, or pages of a program. */
	if (row->file == 0)
		return row->cause != HR_CAUSE_SHIM && row->cause != HR_CAUSE_FILL;
	return hr_stream_file(stream, row->file, false, &info) < 0 || info.scope == 0;
}

int hr_covers_kernel(struct hr_covers *c, const struct hr_stream *stream,
		     const Headrace__KernelRecord *row, struct hr_summary_cover *sum)
{
	enum cover_kind kind = row->cause == HR_CAUSE_STDIO ? KIND_STDIO
			       : row->cause == HR_CAUSE_AIO
				   ? KIND_AIO
				   : summary_cover_kind_of((uint16_t)row->op);
	struct hr_cover_cell *cell;

	c->probed = true;
	if (!is_compared(stream, row))
		return 0;
	sum->count += row->count;
	sum->bytes += row->bytes;
	sum->by_cause[row->cause] += row->count;
	if (row->cause == HR_CAUSE_LOST) {
		sum->missing_count += row->count;
		sum->missing_bytes += row->bytes;
		return 0;
	}
	if (row->cause == HR_CAUSE_FILL) {
		sum->bpf_count += row->count;
		sum->bpf_bytes += row->bytes;
		return 0;
	}
	cell = cell_of(c, stream, row->proc, kind);
	if (!cell)
		return -ENOMEM;
	*(row->cause < HR_CAUSE_SYSCALL ? &cell->under : &cell->bpf) += row->count;
	*(row->cause < HR_CAUSE_SYSCALL ? &cell->under_bytes : &cell->bpf_bytes) += row->bytes;
	return 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t summary_cover_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void hr_covers_take(struct hr_covers *c, const struct hr_stream *stream,
		    struct hr_summary_cover *sum)
{
	size_t n = c->probed && c->cells ? ((size_t)stream->n_processes + 1) * KINDS : 0;

	for (size_t i = 0; i < n; i++) {
		const struct hr_cover_cell *cell = &c->cells[i];
		uint64_t probed = summary_cover_least(cell->bpf, cell->recorded);
		uint64_t probed_bytes = summary_cover_least(cell->bpf_bytes, cell->recorded_bytes);
		uint64_t lack = less(cell->under, cell->recorded - probed) + cell->bpf - probed;

		sum->bpf_count += probed;
		sum->bpf_bytes += probed_bytes;
		if (i % KINDS >= KIND_STDIO && cell->recorded > 0)
			/* stdio and aio: the kernel sees other calls than the program makes */
			continue;
		sum->missing_count += lack;
		sum->missing_bytes += less(cell->under_bytes, cell->recorded_bytes - probed_bytes) +
				      cell->bpf_bytes - probed_bytes;
	}
	hr_covers_done(c);
}

void hr_covers_done(struct hr_covers *c)
{
	free(c->cells);
	*c = (struct hr_covers){0};
}

/* Prints the recorded share. It is rounded down, so it is never 100 % if something is missing. */
static void print_share(uint64_t missing, uint64_t whole, FILE *out)
{
	double tenths;

	if (missing == 0) {
		fputs("100 %", out);
		return;
	}
	tenths = whole > 0 ? 1000.0 * (double)less(whole, missing) / (double)whole : 0;
	fprintf(out, "%u.%u %%", tenths < 999 ? (unsigned)tenths / 10 : 99,
		tenths < 999 ? (unsigned)tenths % 10 : 9);
}

static void print_causes(const struct hr_summary_cover *cover, enum hr_cause first,
			 enum hr_cause last, FILE *out)
{
	const char *before = " (";

	for (unsigned cause = first; cause <= last; cause++) {
		if (cover->by_cause[cause] == 0)
			continue;
		fprintf(out, "%s%s %s", before, hr_cause_name(cause),
			hr_text_count(cover->by_cause[cause]).s);
		before = ", ";
	}
	fputc(')', out);
}

static void print_recorders(const struct hr_summary_cover *cover, FILE *out)
{
	fprintf(out, "; the shim recorded %s, probes %s",
		hr_text_size(less(cover->bytes, cover->bpf_bytes + cover->missing_bytes)).s,
		hr_text_size(cover->bpf_bytes).s);
	print_causes(cover, HR_CAUSE_SYSCALL, HR_CAUSE_FILL, out);
}

static void print_missing(const struct hr_summary_cover *cover, FILE *out)
{
	fprintf(out, "; not recorded: %s operation%s, %s", hr_text_count(cover->missing_count).s,
		cover->missing_count == 1 ? "" : "s", hr_text_size(cover->missing_bytes).s);
	if (cover->by_cause[HR_CAUSE_LOST] > 0)
		fprintf(out, " (%s of them because the probes' buffer was full)",
			hr_text_count(cover->by_cause[HR_CAUSE_LOST]).s);
}

static void print_text(const struct hr_summary_cover *cover, const char *store, FILE *out)
{
	bool missing = cover->missing_count > 0 || cover->missing_bytes > 0;

	print_share(cover->missing_bytes, cover->bytes, out);
	fprintf(out, " of %s", hr_text_size(cover->bytes).s);
	if (missing) {
		fputs(", ", out);
		print_share(cover->missing_count, cover->count, out);
		fprintf(out, " of %s operation%s", hr_text_count(cover->count).s,
			cover->count == 1 ? "" : "s");
	}
	fputs(" that the kernel saw", out);
	if (cover->bpf_count > 0)
		print_recorders(cover, out);
	if (missing)
		print_missing(cover, out);
	if (missing || cover->bpf_count > 0)
		fprintf(out, ": headrace query %s coverage", store);
}

void hr_cover_print(const struct hr_summary_cover *cover, const char *store, struct hr_sheet *sheet)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = cover->count > 0 ? open_memstream(&text, &bytes) : NULL;

	if (out == NULL)
		return;
	print_text(cover, store, out);
	if (fclose(out) == 0)
		hr__summary_say(sheet, HR_STYLE_PLAIN, "  coverage", "%s", text);
	free(text);
}
