/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the summary for people. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/summary/summary_parts.h"
#include "common/text.h"

/* Prints the state of the last run and, if known, the reason: "failed (exit status 3)". */
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

static void print_head(const struct hr_summary *s, struct hr_sheet *sheet)
{
	bool complete;
	struct hr_human lost = hr__summary_lost(s, &complete);
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return;
	fprintf(out, "%s ", s->job);
	print_state(s, out);
	fprintf(out, " %s %s; ", strcmp(s->run_state, "running") == 0 ? "for" : "after",
		hr_text_duration(s->run_span_ns).s);
	if (s->runs > 1)
		fprintf(out, "in %u runs ", s->runs);
	fprintf(out, "%u process%s", s->processes, s->processes == 1 ? "" : "es");
	if (s->processes_open > 0)
		fprintf(out, " (%u still open)", s->processes_open);
	if (s->ranks > 0)
		fprintf(out, ", %u rank%s", s->ranks, hr_plural(s->ranks));
	if (s->workers > 0)
		fprintf(out, ", %u worker%s", s->workers, hr_plural(s->workers));
	if (s->nodes > 1)
		fprintf(out, ", %u nodes", s->nodes);
	fprintf(out, "; %s", lost.s);
	if (fclose(out) == 0)
		hr_sheet_say(sheet, complete ? HR_STYLE_PLAIN : HR_STYLE_BAD,
			     sizeof("headrace: ") - 1, "headrace: ", "%s", text);
	free(text);
	if (s->runs > 1)
		hr__summary_say(
		    sheet, HR_STYLE_PLAIN, "  with",
		    "%u earlier run%s of this job in the same store, %s from first to "
		    "last: all numbers here are sums over the %u runs (--job NAME keeps "
		    "runs apart)",
		    s->runs - 1, hr_plural(s->runs - 1), hr_text_duration(s->span_ns).s, s->runs);
}

static void print_verdict(const struct hr_summary *s, struct hr_sheet *sheet)
{
	const struct hr_totals *d = &s->data;

	hr_sheet_end(sheet);
	hr_summary_finding_print(s, sheet);
	if (hr_loops_any(s)) {
		hr_loops_print(s, sheet);
	} else if (d->ops > 0) {
		hr_sheet_say(
		    sheet, HR_STYLE_BOLD, 2, "",
		    "The program read %s and wrote %s. Its threads spent %s in I/O, during a "
		    "run of %s.",
		    hr_text_size(d->read_bytes).s, hr_text_size(d->written_bytes).s,
		    hr_text_duration(d->io_ns).s, hr_text_duration(s->span_ns).s);
	} else if (s->lost > 0) {
		hr_sheet_say(sheet, HR_STYLE_BOLD, 2, "",
			     "The recording lacks totals of the program: see `missing`.");
	} else if (s->processes > 0) {
		hr_sheet_say(sheet, HR_STYLE_BOLD, 2, "", "The program used no files of its own.");
	} else {
		hr_sheet_say(sheet, HR_STYLE_BOLD, 2, "",
			     "Nothing was recorded: no I/O on files that the filters (--include, "
			     "--exclude) let through, a static or 32-bit program, one started "
			     "without LD_PRELOAD, or a seccomp filter without "
			     "HEADRACE_SECCOMP=allow.");
	}
}

/* Returns the store as a word for a shell, relative to the working directory if it is below. */
static char *store_words(const struct hr_summary *s, const struct hr_sheet *sheet)
{
	size_t n = strlen(sheet->folder);
	char *below = NULL, *words;

	if (n > 1 && strncmp(s->store, sheet->folder, n) == 0 && s->store[n] == '/' &&
	    asprintf(&below, ".%s", s->store + n) < 0)
		below = NULL;
	words = hr_text_quote(below != NULL ? below : s->store);
	free(below);
	return words;
}

/* Returns STORE for `headrace query`, and --job if the names differ. NULL: no memory. */
static char *query_words(const struct hr_summary *s, const struct hr_sheet *sheet)
{
	const char *slash = strrchr(s->store, '/');
	bool own = strcmp(s->job, slash != NULL ? slash + 1 : s->store) == 0;
	char *store = store_words(s, sheet), *job = hr_text_quote(s->job), *words = NULL;

	if (store != NULL && job != NULL &&
	    asprintf(&words, "%s%s%s", store, own ? "" : " --job ", own ? "" : job) < 0)
		words = NULL;
	free(store);
	free(job);
	return words;
}

/* Prints a command on one line, even on a narrow terminal, so that it can be copied. */
static void print_command(struct hr_sheet *sheet, const char *label, const char *verb,
			  const char *store, const char *query)
{
	hr_sheet_line(sheet, HR_STYLE_PLAIN, "%-*s%s %s%s%s", (int)HR_SUMMARY_INDENT, label, verb,
		      store, query[0] != '\0' ? " " : "", query);
}

static const char *next_query(const struct hr_summary *s)
{
	for (size_t i = 0; i < s->n_who; i++)
		if (s->who[i].loop.waits > 0)
			return "input-wait";
	if (hr_loops_any(s))
		return "steps";
	return s->events > 0 ? "io-time" : "files";
}

static void print_more(const struct hr_summary *s, const char *store, struct hr_sheet *sheet)
{
	bool trains = hr_loops_any(s) || s->finding.meaning != NULL;

	hr__summary_say(sheet, HR_STYLE_PLAIN, "  stored", "%s", hr_text_size(s->stored_bytes).s);
	if (trains)
		print_command(sheet, "  more", "headrace diagnose", store, "");
	print_command(sheet, trains ? "" : "  more", "headrace query", store, next_query(s));
	print_command(sheet, "", "headrace report", store, "");
}

void hr_summary_print(const struct hr_summary *s, struct hr_sheet *sheet)
{
	char *words = query_words(s, sheet);
	const char *store = words != NULL ? words : s->store;

	print_head(s, sheet);
	print_verdict(s, sheet);
	hr_loops_draw(s, sheet);
	hr__summary_print_table(s, sheet);
	hr_sheet_end(sheet);
	hr__summary_print_missing(s, sheet);
	hr_cover_print(&s->cover, store, sheet);
	print_more(s, store, sheet);
	free(words);
	fflush(sheet->out);
}
