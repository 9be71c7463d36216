/* SPDX-License-Identifier: Apache-2.0 */
/* What the recording lacks, and processes that a signal ended: a sentence for each reason. */
#include <stdlib.h>
#include <string.h>

#include "cli/summary/summary_parts.h"
#include "common/loss.h"
#include "common/text.h"

static const struct hr_summary_loss *find_loss(const struct hr_summary *s,
					       enum hr_loss_reason reason)
{
	for (size_t i = 0; i < s->n_losses; i++)
		if (strcmp(s->losses[i].reason, hr_loss_name(reason)) == 0)
			return &s->losses[i];
	return NULL;
}

/*
 * Returns whether nothing is missing, apart from programs that were never recorded. *ret_programs:
 * their number.
 */
static bool is_complete(const struct hr_summary *s, uint64_t *ret_programs)
{
	*ret_programs = 0;
	for (size_t i = 0; i < s->n_losses; i++)
		if (hr_loss_is_programs(s->losses[i].reason))
			*ret_programs += s->losses[i].count;
		else if (&s->losses[i] != find_loss(s, HR_LOSS_JOURNAL_MEMORY))
			return false;
	return !s->counters_only && s->cut_short == 0 && s->n_problems == 0 &&
	       s->ranks_missing == NULL && strcmp(s->state, "unfinished") != 0;
}

struct hr_human hr__summary_lost(const struct hr_summary *s, bool *ret_complete)
{
	uint64_t programs;
	bool complete = is_complete(s, &programs);
	struct hr_human t = {"nothing lost"};

	*ret_complete = complete && programs == 0;
	if (s->lost > 0)
		snprintf(t.s, sizeof(t.s), "%.24s lost", hr_text_count(s->lost).s);
	else if (complete && programs > 0)
		snprintf(t.s, sizeof(t.s), "%u not recorded", (unsigned)programs);
	else if (!complete)
		snprintf(t.s, sizeof(t.s), "the recording has gaps");
	else if (s->processes == 0)
		snprintf(t.s, sizeof(t.s), "nothing recorded");
	return t;
}

static void print_loss(const struct hr_summary *s, const struct hr_summary_loss *loss,
		       struct hr_sheet *sheet)
{
	/* A full disk drops rollups only if there are no events to drop, as at level counters. */
	bool unsure =
	    s->counters_only || s->unreported || find_loss(s, HR_LOSS_ROLLUPS_FULL) != NULL;
	char *text = hr_loss_text(
	    &(struct hr_loss_sum){loss->reason, loss->count, loss->bytes, loss->program, unsure});

	if (text != NULL)
		hr__summary_say(sheet, HR_STYLE_BAD, "  missing", "%s", text);
	free(text);
}

static void print_counters_only(const struct hr_summary *s, struct hr_sheet *sheet)
{
	bool full = find_loss(s, HR_LOSS_MAX_SIZE) != NULL;
	char what[80] = "events of a part of the job";

	if (s->events == 0)
		snprintf(what, sizeof(what), "all events");
	else if (full)
		snprintf(what, sizeof(what), "events from %s on",
			 hr_text_duration(s->counters_from_ns).s);
	hr__summary_say(sheet, HR_STYLE_BAD, "  missing", "%s: %s; totals are not affected", what,
			full ? hr_loss_sentence(HR_LOSS_MAX_SIZE) : "headraced kept only counters");
}

static void print_left_out(const struct hr_summary *s, struct hr_sheet *sheet)
{
	char *text = hr_left_out_text(&s->left_out, s->data.opens);

	if (s->ranks_deselected != NULL)
		hr__summary_say(sheet, HR_STYLE_WARN, "  left out",
				"ranks %s, by --ranks or --local-ranks", s->ranks_deselected);
	if (text != NULL)
		hr__summary_say(sheet, HR_STYLE_WARN, "  left out", "%s", text);
	free(text);
}

static void print_gaps(const struct hr_summary *s, struct hr_sheet *sheet)
{
	bool in_memory = find_loss(s, HR_LOSS_JOURNAL_MEMORY) != NULL;

	if (s->cut_short > 0)
		hr__summary_say(sheet, HR_STYLE_BAD, "  missing",
				"later operations: the recording was cut short (headraced was "
				"killed or stopped)");
	if (strcmp(s->state, "unfinished") == 0)
		hr__summary_say(sheet, HR_STYLE_BAD, "  missing",
				"the last operations of a stream, whose headraced reported no end: "
				"%s",
				in_memory
				    ? "the disk was full, and headraced kept its journal in memory"
				    : "`headrace query` stores what its journal contains");
	else if (in_memory && find_loss(s, HR_LOSS_JOURNAL_DAMAGED) == NULL)
		hr__summary_say(sheet, HR_STYLE_PLAIN, "  note", "%s",
				hr_loss_sentence(HR_LOSS_JOURNAL_MEMORY));
	for (size_t i = 0; i < s->n_problems && i < 3; i++)
		hr__summary_say(sheet, HR_STYLE_BAD, "  damaged", "%s", s->problems[i]);
	if (s->n_problems > 3)
		hr__summary_say(sheet, HR_STYLE_BAD, "  damaged", "and %zu more",
				s->n_problems - 3);
}

/*
 * Prints the processes that a signal ended. This is no failure if CMD ended normally, because some
 * programs, for example Ray, stop helpers by a signal.
 */
static void print_killed(const struct hr_summary *s, struct hr_sheet *sheet)
{
	bool well = strcmp(s->state, "ended") == 0;

	for (size_t i = 0; i < s->n_killed; i++) {
		const struct hr_summary_killed *killed = &s->killed[i];
		const char *es = killed->processes == 1 ? "" : "es";
		char pids[256] = "";
		size_t n = 0;

		for (uint32_t k = 0; k < killed->processes && k < HR_KILLED_NAMED; k++) {
			n += (size_t)snprintf(pids + n, sizeof(pids) - n, k > 0 ? "; " : " ");
			if (killed->first[k].rank >= 0)
				n += (size_t)snprintf(pids + n, sizeof(pids) - n, "rank %d, ",
						      killed->first[k].rank);
			if (killed->first[k].worker >= 0)
				n += (size_t)snprintf(pids + n, sizeof(pids) - n, "worker %d, ",
						      killed->first[k].worker);
			n += (size_t)snprintf(pids + n, sizeof(pids) - n, "pid %d",
					      killed->first[k].pid);
		}
		hr__summary_say(sheet, well ? HR_STYLE_PLAIN : HR_STYLE_BAD,
				well ? "  signals" : "  killed", "%u process%s %sby %s%s:%s%s",
				killed->processes, es, well ? "ended " : "", killed->signal,
				well ? ", while CMD ended normally" : "", pids,
				killed->processes > HR_KILLED_NAMED ? "; ..." : "");
	}
}

void hr__summary_print_missing(const struct hr_summary *s, struct hr_sheet *sheet)
{
	if (s->ranks_missing != NULL)
		hr__summary_say(sheet, HR_STYLE_BAD, "  missing", "ranks %s of %u were not seen",
				s->ranks_missing, s->ranks_expected);
	print_left_out(s, sheet);
	for (size_t i = 0; i < s->n_losses; i++)
		/* print_counters_only() prints HR_LOSS_MAX_SIZE */
		if (&s->losses[i] != find_loss(s, HR_LOSS_MAX_SIZE))
			print_loss(s, &s->losses[i], sheet);
	if (s->counters_only)
		print_counters_only(s, sheet);
	print_gaps(s, sheet);
	hr_summary_python_print(&s->python, hr_loops_any(s), sheet);
	print_killed(s, sheet);
}
