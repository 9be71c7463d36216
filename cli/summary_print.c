/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary as people read it: what is missing, totals, ranks and workers, folders, files, how to
 * ask on.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/summary.h"
#include "common/text.h"

#define WHO_LINES  12u
#define PATH_WIDTH 60

static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	return ns > 0 ? (uint64_t)((double)bytes * 1e9 / (double)ns) : 0;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void print_missing(const struct hr_summary *s, FILE *out)
{
	if (s->ranks_missing != NULL)
		fprintf(out, "  missing   ranks %s of %u were not seen\n", s->ranks_missing,
			s->ranks_expected);
	for (size_t i = 0; i < s->n_losses; i++)
		fprintf(out, "  missing   %s operation%s lost (%s), %s\n",
			hr_text_count(s->losses[i].count).s, plural(s->losses[i].count),
			s->losses[i].reason, hr_text_size(s->losses[i].bytes).s);
	if (s->counters_only)
		fprintf(
		    out,
		    "  missing   only counters were kept for a part or all of the job: totals are "
		    "complete, events are not\n");
	if (strcmp(s->state, "unfinished") == 0)
		fprintf(
		    out,
		    "  missing   a stream ended without a word: `headrace query` recovers what its "
		    "journal holds\n");
	for (size_t i = 0; i < s->n_problems && i < 3; i++)
		fprintf(out, "  damaged   %s\n", s->problems[i]);
	if (s->n_problems > 3)
		fprintf(out, "  damaged   and %zu more\n", s->n_problems - 3);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void print_head(const struct hr_summary *s, FILE *out)
{
	fprintf(out, "headrace: %s %s, %s", s->job, s->state, hr_text_duration(s->span_ns).s);
	fprintf(out, "; %u process%s", s->processes, s->processes == 1 ? "" : "es");
	if (s->ranks > 0)
		fprintf(out, ", %u rank%s", s->ranks, plural(s->ranks));
	if (s->workers > 0)
		fprintf(out, ", %u worker%s", s->workers, plural(s->workers));
	if (s->nodes > 1)
		fprintf(out, ", %u nodes", s->nodes);
	fputc('\n', out);
}

static void print_transfer(const char *what, uint64_t bytes, uint64_t ops, uint64_t ns,
			   uint64_t span_ns, FILE *out)
{
	fprintf(out, "  %-9s %10s in %s operation%s, %s; %s/s over the job, %s/s while at it", what,
		hr_text_size(bytes).s, hr_text_count(ops).s, plural(ops), hr_text_duration(ns).s,
		hr_text_size(per_second(bytes, span_ns)).s, hr_text_size(per_second(bytes, ns)).s);
}

static void print_totals(const struct hr_summary *s, FILE *out)
{
	const struct hr_totals *d = &s->data;

	fprintf(out, "  I/O time  %10s summed over threads: read %s, write %s, other %s\n",
		hr_text_duration(d->io_ns).s, hr_text_duration(d->read_ns).s,
		hr_text_duration(d->write_ns).s, hr_text_duration(d->meta_ns).s);
	print_transfer("read", d->read_bytes, d->reads, d->read_ns, s->span_ns, out);
	if (d->reads > 0)
		fprintf(out, "; %s of reads under %s", hr_text_percent(d->small_reads, d->reads).s,
			hr_text_size(HR_SUMMARY_SMALL_BYTES).s);
	fputc('\n', out);
	print_transfer("written", d->written_bytes, d->writes, d->write_ns, s->span_ns, out);
	fputc('\n', out);
	fprintf(out,
		"  runtime   %10s in Python's own files: %s operation%s, %s read (not in the lines "
		"above)\n",
		hr_text_duration(s->runtime.io_ns).s, hr_text_count(s->runtime.ops).s,
		plural(s->runtime.ops), hr_text_size(s->runtime.read_bytes).s);
	fprintf(out, "  events    %10s recorded, %s lost", hr_text_count(s->events).s,
		hr_text_count(s->lost).s);
	if (s->data.errors > 0)
		fprintf(out, "; %s operation%s failed", hr_text_count(s->data.errors).s,
			plural(s->data.errors));
	if (s->processes_open > 0)
		fprintf(out, "; %u process%s still open", s->processes_open,
			s->processes_open == 1 ? "" : "es");
	fputc('\n', out);
}

/* ---- ranks and workers ----------------------------------------------------------------------- */

static void name_who(const struct hr_summary_who *who, char *out, size_t bytes)
{
	char rank[24] = "no rank", worker[24] = "";

	if (who->rank >= 0)
		snprintf(rank, sizeof(rank), "rank %d", who->rank);
	if (who->worker >= 0)
		snprintf(worker, sizeof(worker), ", worker %d", who->worker);
	snprintf(out, bytes, "%s%s", rank, worker);
}

static void print_who(const struct hr_summary *s, FILE *out)
{
	size_t printed = 0, skipped = 0;

	for (size_t i = 0; i < s->n_who; i++) {
		const struct hr_summary_who *who = &s->who[i];
		char name[64];

		if (who->data.ops == 0)
			continue;
		if (printed == WHO_LINES) {
			skipped++;
			continue;
		}
		if (printed++ == 0)
			fprintf(out, "  %-20s %10s %12s %12s %10s\n", "", "I/O time", "read",
				"written", "opens");
		name_who(who, name, sizeof(name));
		fprintf(out, "  %-20s %10s %12s %12s %10s\n", name,
			hr_text_duration(who->data.io_ns).s, hr_text_size(who->data.read_bytes).s,
			hr_text_size(who->data.written_bytes).s, hr_text_count(who->data.opens).s);
	}
	if (skipped > 0)
		fprintf(out, "  ... and %zu more: headrace query %s workers\n", skipped, s->store);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* The end of a long path says more than its beginning. */
static void print_path(const struct hr_summary_path *row, bool folder, FILE *out)
{
	size_t n = strlen(row->path), width = PATH_WIDTH - folder;
	const char *shown = row->path;

	if (n > width) {
		shown += n - width + 3;
		while (((uint8_t)*shown & 0xc0) == 0x80)
			shown++; /* not in the middle of a character */
	}
	fprintf(out, "  %10s %12s %12s  %s%s%s", hr_text_duration(row->io_ns).s,
		hr_text_size(row->read_bytes).s, hr_text_size(row->written_bytes).s,
		n > width ? "..." : "", shown, folder && strcmp(row->path, "/") != 0 ? "/" : "");
	if (folder)
		fprintf(out, "  (%s file%s)", hr_text_count(row->files).s, plural(row->files));
	fputc('\n', out);
}

static void print_paths(const struct hr_summary *s, FILE *out)
{
	if (s->n_folders + s->n_files == 0)
		return;
	fprintf(out, "  %10s %12s %12s  top folders and files by I/O time\n", "I/O time", "read",
		"written");
	for (size_t i = 0; i < s->n_folders; i++)
		print_path(&s->folders[i], true, out);
	for (size_t i = 0; i < s->n_files && i < 3; i++)
		print_path(&s->files[i], false, out);
}

void hr_summary_print(const struct hr_summary *s, FILE *out)
{
	print_head(s, out);
	print_missing(s, out);
	print_totals(s, out);
	print_who(s, out);
	print_paths(s, out);
	fprintf(out, "  store     %s (%s); ask it: headrace query %s io-time\n", s->store,
		hr_text_size(s->stored_bytes).s, s->store);
	fflush(out);
}
