/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of I/O: rows for all files, folders, files, ranks and workers. */
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "cli/summary/summary_parts.h"
#include "common/text.h"

#define FILE_LINES 3u
/* A row with a smaller share of the time and of the bytes is left out. */
#define PATH_SHARE  0.05
#define PART_SHARE  0.01
#define NAME_COLUMN 49u /* column of names */
#define NAME_LEAST  20u

struct io_row {
	uint64_t read_bytes, written_bytes, opens, io_ns;
	uint64_t batch_bytes, batch_extent_bytes;
};

static struct io_row row_of(const struct hr_totals *t)
{
	return (struct io_row){.read_bytes = t->read_bytes,
			       .written_bytes = t->written_bytes,
			       .opens = t->opens,
			       .io_ns = t->io_ns};
}

/* Returns whether the row has at least this share of the time or of the bytes of the job. */
static bool is_worth(const struct hr_summary *s, const struct io_row *r, double share)
{
	uint64_t bytes = r->read_bytes + r->written_bytes;

	return (double)r->io_ns >= share * (double)s->data.io_ns ||
	       (bytes > 0 &&
		(double)bytes >= share * (double)(s->data.read_bytes + s->data.written_bytes));
}

static bool has_batches(const struct hr_summary *s)
{
	for (size_t i = 0; i < s->n_folders; i++)
		if (s->folders[i].batch_extent_bytes > 0)
			return true;
	for (size_t i = 0; i < s->n_files && i < FILE_LINES; i++)
		if (s->files[i].batch_extent_bytes > 0)
			return true;
	return false;
}

/* Returns how many times the data was read: "2.0x", "258x". */
static struct hr_human times_read(const struct io_row *r)
{
	struct hr_human t = {""};
	double times;

	if (r->batch_extent_bytes == 0)
		return t;
	times = (double)r->batch_bytes / (double)r->batch_extent_bytes;
	snprintf(t.s, sizeof(t.s), "%.*fx", times < 9.95 ? 1 : 0, times);
	return t;
}

static void put_numbers(const struct hr_summary *s, struct hr_sheet *sheet, const struct io_row *r)
{
	hr_sheet_put(sheet, HR_STYLE_PLAIN, " %8s %8s %9s ", hr_text_size(r->read_bytes).s,
		     hr_text_size(r->written_bytes).s, hr_text_count(r->opens).s);
	if (has_batches(s))
		hr_sheet_put(sheet, HR_STYLE_PLAIN, "%7s ", times_read(r).s);
	hr_sheet_put(sheet, HR_STYLE_PLAIN, "%10s  ", hr_text_duration(r->io_ns).s);
}

__attribute__((format(printf, 4, 5))) static void print_row(const struct hr_summary *s,
							    struct hr_sheet *sheet,
							    const struct io_row *r,
							    const char *format, ...)
{
	va_list args;

	put_numbers(s, sheet, r);
	va_start(args, format);
	hr_sheet_vput(sheet, HR_STYLE_PLAIN, format, args);
	va_end(args);
	hr_sheet_end(sheet);
}

static void print_titles(const struct hr_summary *s, struct hr_sheet *sheet)
{
	hr_sheet_put(sheet, HR_STYLE_PLAIN, " %8s %8s %9s ", "read", "written", "opens");
	if (has_batches(s))
		hr_sheet_put(sheet, HR_STYLE_PLAIN, "%7s ", "re-read");
	hr_sheet_line(sheet, HR_STYLE_PLAIN, "%10s  where the I/O went", "I/O time");
}

/* Returns whether a folder with a row contains the file, and has at least twice its I/O. */
static bool is_in_folder(const struct hr_summary *s, const struct hr_summary_path *file)
{
	for (size_t i = 0; i < s->n_folders; i++) {
		const struct hr_summary_path *folder = &s->folders[i];
		size_t n = strlen(folder->path);

		if (strncmp(file->path, folder->path, n) == 0 && file->path[n] == '/' &&
		    2 * file->sums.io_ns < folder->sums.io_ns &&
		    2 * (file->sums.read_bytes + file->sums.written_bytes) <=
			folder->sums.read_bytes + folder->sums.written_bytes)
			return true;
	}
	return false;
}

static void print_path(const struct hr_summary *s, struct hr_sheet *sheet,
		       const struct hr_summary_path *path, bool folder)
{
	struct io_row r = {path->sums.read_bytes, path->sums.written_bytes,
			   path->sums.opens,	  path->sums.io_ns,
			   path->batch_bytes,	  path->batch_extent_bytes};
	unsigned used = has_batches(s) ? NAME_COLUMN : NAME_COLUMN - 8;
	char text[4 * PATH_MAX + 1], files[48] = "";
	size_t cells;

	/* The row "in memory" contains these files. */
	if (folder && strcmp(path->path, "/dev/shm") == 0)
		return;
	if (!is_worth(s, &r, PATH_SHARE) || (!folder && is_in_folder(s, path)))
		return;
	if (folder)
		snprintf(files, sizeof(files), "/ (%s file%s)", hr_text_count(path->sums.files).s,
			 hr_plural(path->sums.files));
	cells = hr_sheet_width(sheet) - used;
	cells = cells > NAME_LEAST + strlen(files) ? cells - strlen(files) : NAME_LEAST;
	hr_sheet_path(sheet, text, sizeof(text), path->path, cells);
	print_row(s, sheet, &r, "%s%s", text, files);
}

static void print_special(const struct hr_summary *s, struct hr_sheet *sheet)
{
	struct io_row memory = {
	    s->memory.read_bytes, s->memory.written_bytes, s->memory.opens, s->memory.io_ns, 0, 0};
	struct io_row own = row_of(&s->runtime);

	if (s->memory.files > 0 && is_worth(s, &memory, PART_SHARE))
		print_row(s, sheet, &memory, "in memory (%s file%s)",
			  hr_text_count(s->memory.files).s, hr_plural(s->memory.files));
	if (own.io_ns * 10 >= s->data.io_ns && own.io_ns > 0)
		print_row(s, sheet, &own, "Python itself, not in `all`");
}

/* Sets the name of a rank or worker, such as "rank 1 worker 0", or "main" without ranks. */
static void name_who(const struct hr_summary *s, const struct hr_summary_who *who, char *out,
		     size_t bytes)
{
	char rank[24] = "no rank";

	if (who->rank >= 0)
		snprintf(rank, sizeof(rank), "rank %d", who->rank);
	if (s->ranks == 0 && who->worker < 0)
		snprintf(out, bytes, "main%s", who->processes > 1 ? " and its children" : "");
	else if (s->ranks == 0)
		snprintf(out, bytes, "worker %d", who->worker);
	else if (who->worker < 0)
		snprintf(out, bytes, "%s", rank);
	else
		snprintf(out, bytes, "%s worker %d", rank, who->worker);
}

/* The table has a row for each of these groups of processes. */
enum kind { KIND_MAIN, KIND_WORKER, KIND_OTHER, KINDS };

static enum kind kind_of(const struct hr_summary *s, const struct hr_summary_who *who)
{
	if (who->worker >= 0)
		return KIND_WORKER;
	return s->ranks > 0 && who->rank < 0 ? KIND_OTHER : KIND_MAIN;
}

struct group {
	struct io_row all;
	size_t n;
	const struct hr_summary_who *first, *most; /* `most` has most I/O time */
};

static struct group sum_group(const struct hr_summary *s, enum kind kind)
{
	struct group g = {0};

	for (size_t i = 0; i < s->n_who; i++) {
		const struct hr_summary_who *who = &s->who[i];

		if (who->data.ops == 0 || kind_of(s, who) != kind)
			continue;
		g.first = g.n++ == 0 ? who : g.first;
		g.most = g.most == NULL || who->data.io_ns > g.most->data.io_ns ? who : g.most;
		g.all.read_bytes += who->data.read_bytes;
		g.all.written_bytes += who->data.written_bytes;
		g.all.opens += who->data.opens;
		g.all.io_ns += who->data.io_ns;
	}
	return g;
}

/* Prints the rank or worker with most I/O time, if it has twice the mean of the others. */
static void print_straggler(const struct hr_summary *s, struct hr_sheet *sheet,
			    const struct group *g)
{
	const struct hr_totals *d = &g->most->data;
	double others = (double)(g->all.io_ns - d->io_ns) / (double)(g->n - 1);
	struct io_row r = row_of(d);
	char name[64];

	if ((double)d->io_ns < 2 * others || d->io_ns * 20 < s->data.io_ns)
		return;
	name_who(s, g->most, name, sizeof(name));
	if (others > 0)
		print_row(s, sheet, &r, "%s, %.*fx the others' mean", name,
			  (double)d->io_ns < 9.95 * others ? 1 : 0, (double)d->io_ns / others);
	else
		print_row(s, sheet, &r, "%s alone", name);
}

static void print_who(const struct hr_summary *s, struct hr_sheet *sheet)
{
	static const char *const names[KINDS] = {"ranks, without workers", "workers", "no rank"};
	size_t active = 0;

	for (size_t i = 0; i < s->n_who; i++)
		active += s->who[i].data.ops > 0;
	if (active < 2) /* the row would equal the one of all files */
		return;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		struct group g = sum_group(s, kind);
		char name[64];

		if (g.n == 0 || !is_worth(s, &g.all, PART_SHARE))
			continue;
		name_who(s, g.first, name, sizeof(name));
		if (g.n == 1) {
			print_row(s, sheet, &g.all, "%s", name);
			continue;
		}
		print_row(s, sheet, &g.all, "%zu %s", g.n, names[kind]);
		print_straggler(s, sheet, &g);
	}
}

static void print_counts(const struct hr_summary *s, struct hr_sheet *sheet)
{
	const struct hr_totals *d = &s->data;
	char failed[48] = "", reads[128] = "";

	if (d->errors > 0)
		snprintf(failed, sizeof(failed), " (%s failed)", hr_text_count(d->errors).s);
	if (d->reads > 0)
		snprintf(reads, sizeof(reads), "; %s read%s, %s under %u KiB",
			 hr_text_count(d->reads).s, hr_plural(d->reads),
			 hr_text_percent(d->small_reads, d->reads).s,
			 HR_SUMMARY_SMALL_BYTES / 1024);
	hr__summary_say(sheet, HR_STYLE_PLAIN, "  counts", "%s operation%s%s%s",
			hr_text_count(d->ops).s, hr_plural(d->ops), failed, reads);
}

/* Prints how many files on disk were mapped. The totals lack what page faults read from them. */
static void print_mapped(const struct hr_summary *s, struct hr_sheet *sheet)
{
	uint64_t files = s->mapped.files - s->mapped.files_in_memory;

	if (files > 0)
		hr__summary_say(sheet, HR_STYLE_PLAIN, "  mapped",
				"%s file%s; the totals do not include bytes that page faults read",
				hr_text_count(files).s, hr_plural(files));
}

void hr__summary_print_table(const struct hr_summary *s, struct hr_sheet *sheet)
{
	struct io_row all = row_of(&s->data);

	if (s->processes > 0 && s->data.ops > 0) {
		hr_sheet_end(sheet);
		print_titles(s, sheet);
		print_row(s, sheet, &all, "all, summed over threads");
		for (size_t i = 0; i < s->n_folders; i++)
			print_path(s, sheet, &s->folders[i], true);
		for (size_t i = 0; i < s->n_files && i < FILE_LINES; i++)
			print_path(s, sheet, &s->files[i], false);
		print_special(s, sheet);
		print_who(s, sheet);
		print_counts(s, sheet);
	}
	print_mapped(s, sheet);
}
