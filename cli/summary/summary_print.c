/* SPDX-License-Identifier: Apache-2.0 */
/* The summary for people: what is missing, totals, ranks, folders, files, further queries. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/summary/summary.h"
#include "cli/summary/summary_cover.h"
#include "cli/summary/summary_ends.h"
#include "cli/summary/summary_finding.h"
#include "cli/summary/summary_loops.h"
#include "common/loss.h"
#include "common/text.h"

#define WHO_LINES  12u
#define PATH_WIDTH 60
#define FILE_LINES 3u

static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	return ns > 0 ? (uint64_t)((double)bytes * 1e9 / (double)ns) : 0;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- losses ---- */

static const struct hr_summary_loss *find_loss(const struct hr_summary *s,
					       enum hr_loss_reason reason)
{
	for (size_t i = 0; i < s->n_losses; i++)
		if (strcmp(s->losses[i].reason, hr_loss_name(reason)) == 0)
			return &s->losses[i];
	return NULL;
}

static void print_loss(const struct hr_summary *s, const struct hr_summary_loss *loss, FILE *out)
{
	/* At level counters a full disk or spool drops rollups, because there are no events. */
	bool unsure =
	    s->counters_only || s->unreported || find_loss(s, HR_LOSS_ROLLUPS_FULL) != NULL;
	char *text = hr_loss_text(
	    &(struct hr_loss_sum){loss->reason, loss->count, loss->bytes, loss->program, unsure});

	if (text != NULL)
		hr_text_print(out, "  missing   %s\n", text);
	free(text);
}

/* Prints that --level or --max-size left out events. */
static void print_counters_only(const struct hr_summary *s, FILE *out)
{
	bool full = find_loss(s, HR_LOSS_MAX_SIZE) != NULL;

	if (s->events == 0)
		fputs("  missing   all events: ", out);
	else if (full)
		fprintf(out,
			"  missing   events from %s on: ", hr_text_duration(s->counters_from_ns).s);
	else
		fputs("  missing   events of a part of the job: ", out);
	fprintf(out, "%s; totals are not affected\n",
		full ? hr_loss_sentence(HR_LOSS_MAX_SIZE) : "headraced kept only counters");
}

static void print_left_out(const struct hr_summary *s, FILE *out)
{
	char *text = hr_left_out_text(&s->left_out, s->data.opens);

	if (s->ranks_deselected != NULL)
		fprintf(out, "  left out  ranks %s, by --ranks or --local-ranks\n",
			s->ranks_deselected);
	if (text != NULL)
		fprintf(out, "  left out  %s\n", text);
	free(text);
}

static void print_missing(const struct hr_summary *s, FILE *out)
{
	if (s->ranks_missing != NULL)
		fprintf(out, "  missing   ranks %s of %u were not seen\n", s->ranks_missing,
			s->ranks_expected);
	print_left_out(s, out);
	for (size_t i = 0; i < s->n_losses; i++)
		/* print_counters_only() prints this loss, with its time */
		if (&s->losses[i] != find_loss(s, HR_LOSS_MAX_SIZE))
			print_loss(s, &s->losses[i], out);
	if (s->counters_only)
		print_counters_only(s, out);
	if (find_loss(s, HR_LOSS_JOURNAL_MEMORY) != NULL &&
	    find_loss(s, HR_LOSS_JOURNAL_DAMAGED) == NULL)
		fprintf(out, "  note      %s\n", hr_loss_sentence(HR_LOSS_JOURNAL_MEMORY));
	if (s->cut_short > 0)
		fputs("  missing   later operations: the recording was cut short (headraced was "
		      "killed or stopped)\n",
		      out);
	if (strcmp(s->state, "unfinished") == 0)
		fprintf(
		    out,
		    "  missing   the last operations of a stream, whose headraced reported no end: "
		    "`headrace query` stores what its journal contains\n");
	for (size_t i = 0; i < s->n_problems && i < 3; i++)
		fprintf(out, "  damaged   %s\n", s->problems[i]);
	if (s->n_problems > 3)
		fprintf(out, "  damaged   and %zu more\n", s->n_problems - 3);
}

/* ---- totals ---- */

/* Prints the state of the last run, and its reason if known: "failed (exit status 3)". */
static void print_state(const struct hr_summary *s, FILE *out)
{
	char signal[16];
	bool bad = strcmp(s->run_state, "failed") == 0 || strcmp(s->run_state, "killed") == 0;

	fputs(s->run_state, out);
	if (bad && s->command >= 0 && WIFSIGNALED(s->command))
		fprintf(out, " (%s)", hr_ends_signal(WTERMSIG(s->command), signal, sizeof(signal)));
	else if (bad && s->command >= 0 && WEXITSTATUS(s->command) != 0)
		fprintf(out, " (exit status %d)", WEXITSTATUS(s->command));
	else if (strcmp(s->run_state, "failed") == 0 && s->command == 0)
		fputs(" (the CMD of another run at the same time)", out);
}

static void print_regions(const struct hr_summary *s, FILE *out)
{
	const struct hr_summary_loss *loss = find_loss(s, HR_LOSS_REGIONS);
	uint64_t lost = loss != NULL ? loss->count : 0;

	if (s->regions > 0 || lost > 0)
		fprintf(out, "; %s region%s, %s lost", hr_text_count(s->regions).s,
			plural(s->regions), hr_text_count(lost).s);
}

static void print_head(const struct hr_summary *s, FILE *out)
{
	fprintf(out, "headrace: %s ", s->job);
	print_state(s, out);
	fprintf(out, " %s %s; ", strcmp(s->run_state, "running") == 0 ? "for" : "after",
		hr_text_duration(s->run_span_ns).s);
	if (s->runs > 1)
		fprintf(out, "in %u runs ", s->runs);
	fprintf(out, "%u process%s", s->processes, s->processes == 1 ? "" : "es");
	if (s->processes_open > 0)
		fprintf(out, " (%u still open)", s->processes_open);
	if (s->ranks > 0)
		fprintf(out, ", %u rank%s", s->ranks, plural(s->ranks));
	if (s->workers > 0)
		fprintf(out, ", %u worker%s", s->workers, plural(s->workers));
	if (s->nodes > 1)
		fprintf(out, ", %u nodes", s->nodes);
	fprintf(out, "; %s event%s, %s lost", hr_text_count(s->events).s, plural(s->events),
		hr_text_count(s->lost).s);
	print_regions(s, out);
	putc('\n', out);
	if (s->runs > 1)
		fprintf(
		    out,
		    "  with      %u earlier run%s of this job in the same store, %s from first to "
		    "last: all numbers here are sums over the %u runs (--job NAME keeps runs "
		    "apart)\n",
		    s->runs - 1, plural(s->runs - 1), hr_text_duration(s->span_ns).s, s->runs);
	if (s->processes == 0 && find_loss(s, HR_LOSS_NO_PRELOAD) == NULL)
		fputs("  note      nothing was recorded: no I/O on files that the filters "
		      "(--include, --exclude) let through, a static or 32-bit program, or one "
		      "started without LD_PRELOAD\n",
		      out);
}

/*
 * Prints the processes that a signal ended. Programs that end normally may stop helpers by a
 * signal, for example Ray.
 */
static void print_killed(const struct hr_summary *s, FILE *out)
{
	bool well = strcmp(s->state, "ended") == 0;

	for (size_t i = 0; i < s->n_killed; i++) {
		const struct hr_summary_killed *killed = &s->killed[i];

		fprintf(out,
			well ? "  signals   %u process%s ended by %s, while CMD ended normally:"
			     : "  killed    %u process%s by %s:",
			killed->processes, killed->processes == 1 ? "" : "es", killed->signal);
		for (uint32_t k = 0; k < killed->processes && k < HR_KILLED_NAMED; k++) {
			fputs(k > 0 ? "; " : " ", out);
			if (killed->first[k].rank >= 0)
				fprintf(out, "rank %d, ", killed->first[k].rank);
			if (killed->first[k].worker >= 0)
				fprintf(out, "worker %d, ", killed->first[k].worker);
			fprintf(out, "pid %d", killed->first[k].pid);
		}
		fputs(killed->processes > HR_KILLED_NAMED ? "; ...\n" : "\n", out);
	}
}

/* Prints times, counts, bytes, and rates if bytes were moved. The caller prints the label. */
static void print_row(uint64_t ns, uint64_t ops, uint64_t bytes, uint64_t span_ns, FILE *out)
{
	fprintf(out, "  %10s %12s %12s ", hr_text_duration(ns).s,
		ops > 0 ? hr_text_count(ops).s : "-", bytes > 0 ? hr_text_size(bytes).s : "-");
	if (bytes > 0 && span_ns > 0)
		fprintf(out, "%11s/s %11s/s  ", hr_text_size(per_second(bytes, ns)).s,
			hr_text_size(per_second(bytes, span_ns)).s);
	else
		fprintf(out, "%13s %13s  ", "-", "-");
}

static void print_totals(const struct hr_summary *s, FILE *out)
{
	const struct hr_totals *d = &s->data, *own = &s->runtime;

	fprintf(out, "  %10s %12s %12s %13s %13s\n", "I/O time", "operations", "bytes",
		"while active", "over the run");
	print_row(d->io_ns, d->ops, d->read_bytes + d->written_bytes, s->span_ns, out);
	fputs("all, summed over threads", out);
	if (d->errors > 0)
		fprintf(out, "; %s failed", hr_text_count(d->errors).s);
	fputc('\n', out);
	print_row(d->read_ns, d->reads, d->read_bytes, s->span_ns, out);
	fputs("read", out);
	if (d->reads > 0)
		fprintf(out, ", %s of the reads under %u KiB",
			hr_text_percent(d->small_reads, d->reads).s, HR_SUMMARY_SMALL_BYTES / 1024);
	fputc('\n', out);
	print_row(d->write_ns, d->writes, d->written_bytes, s->span_ns, out);
	fputs("written\n", out);
	print_row(d->meta_ns, d->others, 0, 0, out);
	fputs("other: open, stat, seek, sync, close, ...\n", out);
	if (s->memory.files > 0) {
		print_row(s->memory.io_ns, 0, s->memory.read_bytes + s->memory.written_bytes,
			  s->span_ns, out);
		fprintf(out, "of these, in memory: %s file%s of tmpfs and the like\n",
			hr_text_count(s->memory.files).s, plural(s->memory.files));
	}
	if (own->ops > 0) {
		print_row(own->io_ns, own->ops, own->read_bytes + own->written_bytes, 0, out);
		fputs("Python's own files, not in the lines above\n", out);
	}
}

/* Prints how many files were mapped. Page faults read such files, without calls. */
static void print_mapped(const struct hr_summary *s, FILE *out)
{
	const struct hr_summary_mapped *mapped = &s->mapped;
	uint64_t on_disk = mapped->files - mapped->files_in_memory;

	if (mapped->files == 0)
		return;
	fputs("  mapped    ", out);
	if (on_disk > 0)
		fprintf(out, "%s file%s", hr_text_count(on_disk).s, plural(on_disk));
	if (mapped->files_in_memory > 0)
		fprintf(out, "%s%s in memory", on_disk > 0 ? " and " : "",
			hr_text_count(mapped->files_in_memory).s);
	fprintf(out,
		", by %s call%s of mmap; the totals do not include bytes that page faults read\n",
		hr_text_count(mapped->maps).s, plural(mapped->maps));
}

/* ---- ranks and workers ---- */

/* Names a part. A program without ranks has one main part and perhaps workers. */
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
		snprintf(out, bytes, "%s, worker %d", rank, who->worker);
}

static void print_parts_head(const char *of, FILE *out)
{
	fprintf(out, "  %10s %12s %12s %10s  %s\n", "I/O time", "read", "written", "opens", of);
}

static void print_part(uint64_t io_ns, uint64_t read_bytes, uint64_t written_bytes, uint64_t opens,
		       FILE *out)
{
	fprintf(out, "  %10s %12s %12s %10s  ", hr_text_duration(io_ns).s,
		hr_text_size(read_bytes).s, hr_text_size(written_bytes).s, hr_text_count(opens).s);
}

/* Prints nothing if there is only one row, which would repeat the totals. */
static void print_who(const struct hr_summary *s, const char *store, FILE *out)
{
	size_t active = 0, printed = 0;

	for (size_t i = 0; i < s->n_who; i++)
		active += s->who[i].data.ops > 0;
	if (active < 2)
		return;
	print_parts_head("by rank and worker", out);
	for (size_t i = 0; i < s->n_who && printed < WHO_LINES; i++) {
		const struct hr_summary_who *who = &s->who[i];
		char name[64];

		if (who->data.ops == 0)
			continue;
		printed++;
		name_who(s, who, name, sizeof(name));
		print_part(who->data.io_ns, who->data.read_bytes, who->data.written_bytes,
			   who->data.opens, out);
		fprintf(out, "%s; %s of its time\n", name,
			hr_text_percent(who->data.io_ns, who->life_ns).s);
	}
	if (active > printed)
		fprintf(out, "  ... and %zu more: headrace query %s workers\n", active - printed,
			store);
}

/* ---- paths ---- */

/* Cuts a long path at its beginning, because its end matters more. */
static void print_path(const struct hr_summary_path *row, bool folder, FILE *out)
{
	size_t n = strlen(row->path), width = PATH_WIDTH - folder;
	const char *shown = row->path;

	if (n > width) {
		shown += n - width + 3;
		while (((uint8_t)*shown & 0xc0) == 0x80)
			shown++; /* never cuts within a character */
	}
	print_part(row->sums.io_ns, row->sums.read_bytes, row->sums.written_bytes, row->sums.opens,
		   out);
	fprintf(out, "%s%s%s", n > width ? "..." : "", shown, folder ? "/" : "");
	if (folder)
		fprintf(out, "  (%s file%s)", hr_text_count(row->sums.files).s,
			plural(row->sums.files));
	fputc('\n', out);
}

static void print_paths(const struct hr_summary *s, FILE *out)
{
	if (s->n_folders > 0)
		print_parts_head("by folder, with all below it", out);
	for (size_t i = 0; i < s->n_folders; i++)
		print_path(&s->folders[i], true, out);
	if (s->n_files > 0)
		print_parts_head("by file", out);
	for (size_t i = 0; i < s->n_files && i < FILE_LINES; i++)
		print_path(&s->files[i], false, out);
}

/*
 * Returns STORE as an argument of `headrace query`, with --job if the job's name differs from the
 * store's. NULL: no memory.
 */
static char *query_words(const struct hr_summary *s)
{
	const char *slash = strrchr(s->store, '/');
	bool own = strcmp(s->job, slash != NULL ? slash + 1 : s->store) == 0;
	char *store = hr_text_quote(s->store), *job = hr_text_quote(s->job), *words = NULL;

	if (store != NULL && job != NULL &&
	    asprintf(&words, "%s%s%s", store, own ? "" : " --job ", own ? "" : job) < 0)
		words = NULL;
	free(store);
	free(job);
	return words;
}

static void print_all(const struct hr_summary *s, FILE *out)
{
	char *words = query_words(s);
	const char *store = words != NULL ? words : s->store;

	print_head(s, out);
	hr_summary_finding_print(s, store, out);
	print_missing(s, out);
	print_killed(s, out);
	if (s->processes > 0)
		print_totals(s, out);
	print_mapped(s, out);
	hr_cover_print(&s->cover, store, out);
	hr_loops_print(s, store, out);
	print_who(s, store, out);
	print_paths(s, out);
	fprintf(out, "  stored %s; next: headrace query %s %s\n", hr_text_size(s->stored_bytes).s,
		store, s->events > 0 ? "io-time" : "files");
	free(words);
}

void hr_summary_print(const struct hr_summary *s, FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (to != NULL) {
		print_all(s, to);
		if (fclose(to) == 0)
			hr_text_print(out, "%s", text);
	}
	free(text);
	fflush(out);
}
