/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

void hr_loop_add(struct hr_summary_loop *loop, const struct hr_region *region)
{
	uint64_t end_ns = region->start_ns + region->dur_ns;

	if (region->kind != HR_REGION_INPUT_WAIT && region->kind != HR_REGION_STEP &&
	    region->kind != HR_REGION_EPOCH)
		return;
	if (loop->from_ns == 0 || region->start_ns < loop->from_ns)
		loop->from_ns = region->start_ns;
	if (end_ns > loop->to_ns)
		loop->to_ns = end_ns;
	if (region->kind == HR_REGION_INPUT_WAIT) { /* also one that did not end: a hang */
		loop->waits += region->count;
		loop->wait_ns += region->dur_ns;
	} else if (region->kind == HR_REGION_STEP && !region->open) {
		loop->steps += region->count;
		loop->step_ns += region->dur_ns;
	}
}

bool hr_loops_any(const struct hr_summary *s)
{
	for (size_t i = 0; i < s->n_who; i++)
		if (s->who[i].loop.waits > 0 || s->who[i].loop.steps > 0)
			return true;
	return false;
}

static uint64_t loop_ns(const struct hr_summary_loop *l)
{
	return l->loop_ns != 0 ? l->loop_ns : l->to_ns - l->from_ns;
}

static double share(const struct hr_summary_loop *l)
{
	uint64_t ns = loop_ns(l);

	return ns > 0 ? (double)l->wait_ns / (double)ns : 0;
}

#define LITTLE "under 1 %"

struct loops { /* sums over the ranks with waits or steps */
	const struct hr_summary_who *least, *most;
	struct hr_summary_loop all;
	size_t n;
};

static struct loops sum_loops(const struct hr_summary *s)
{
	struct loops l = {0};

	for (size_t i = 0; i < s->n_who; i++) {
		const struct hr_summary_who *who = &s->who[i];

		if (who->loop.waits == 0 && who->loop.steps == 0)
			continue;
		l.n++;
		l.least = !l.least || share(&who->loop) < share(&l.least->loop) ? who : l.least;
		l.most = !l.most || share(&who->loop) > share(&l.most->loop) ? who : l.most;
		l.all.waits += who->loop.waits;
		l.all.wait_ns += who->loop.wait_ns;
		l.all.loop_ns += loop_ns(&who->loop);
		l.all.steps += who->loop.steps;
		l.all.step_ns += who->loop.step_ns;
	}
	return l;
}

/* Prints a share in percent. A share that rounds to 0 but is not 0 is printed as `little`. */
static struct hr_human percent(double part, const char *little)
{
	struct hr_human t;

	if (part >= 0.005 || part <= 0)
		snprintf(t.s, sizeof(t.s), "%.0f %%", 100 * part);
	else
		snprintf(t.s, sizeof(t.s), "%s", little);
	return t;
}

void hr_loops_print(const struct hr_summary *s, struct hr_sheet *sheet)
{
	struct loops l = sum_loops(s);
	char range[80], of[48] = "", most[64] = "";

	if (l.n == 0)
		return;
	if (l.all.waits == 0) {
		hr_sheet_say(sheet, HR_STYLE_BOLD, 2, "",
			     "The training loop ran for %s; it reported no waits for data. To "
			     "measure them, mark them: headrace.region(kind=headrace.INPUT_WAIT)",
			     hr_text_duration(l.all.loop_ns).s);
		return;
	}
	snprintf(range, sizeof(range), "%s", percent(share(&l.most->loop), LITTLE).s);
	if (l.n > 1) {
		snprintf(of, sizeof(of), "s of %zu ranks", l.n);
		snprintf(most, sizeof(most), " on average, most in rank %d", l.most->rank);
		if (strcmp(percent(share(&l.least->loop), LITTLE).s, range) != 0)
			snprintf(range, sizeof(range), "%.0f to %s", 100 * share(&l.least->loop),
				 percent(share(&l.most->loop), LITTLE).s);
	}
	hr_sheet_say(sheet, HR_STYLE_BOLD, 2, "",
		     "The training loop%s waited for data %s of %s time (%s of %s%s).", of, range,
		     l.n > 1 ? "their" : "its", hr_text_duration(l.all.wait_ns / l.n).s,
		     hr_text_duration(l.all.loop_ns / l.n).s, most);
}

#define ROWS_MOST   5u /* bars without those of waits */
#define WAITS_MOST  3u
#define LABEL_CELLS 22
#define BAR_CELLS   30u

struct bar {
	const char *label;
	uint64_t ns;
};

static int by_time(const void *a, const void *b)
{
	const struct bar *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Makes a bar for each label of parts, the longest first. Returns the number of bars. */
static size_t make_bars(const struct hr_summary *s, bool waits, struct bar *bars)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_parts; i++) {
		size_t k = 0;

		if (s->parts[i].waits != waits)
			continue;
		while (k < n && strcmp(bars[k].label, s->parts[i].label) != 0)
			k++;
		if (k == n)
			bars[n++] = (struct bar){.label = s->parts[i].label};
		bars[k].ns += s->parts[i].ns;
	}
	qsort(bars, n, sizeof(*bars), by_time);
	return n;
}

static void draw_bar(struct hr_sheet *sheet, enum hr_style style, const char *indent,
		     const struct bar *bar, uint64_t all)
{
	double part = (double)bar->ns / (double)all;

	hr_sheet_put(sheet, HR_STYLE_PLAIN, "  %s%-*s %5s  ", indent,
		     LABEL_CELLS - (int)strlen(indent), bar->label, percent(part, "<1 %").s);
	hr_sheet_line(sheet, style, "%.*s", (int)strspn(hr_text_bar(part, BAR_CELLS).s, "#"),
		      hr_text_bar(part, BAR_CELLS).s);
}

/* Draws at most `most` bars of at least 1 %. Returns the sum of all other bars. */
static uint64_t draw_bars(struct hr_sheet *sheet, enum hr_style style, const char *indent,
			  const struct bar *bars, size_t n, size_t most, uint64_t all)
{
	uint64_t rest = 0;

	for (size_t i = 0; i < n; i++) {
		if (i < most && bars[i].ns >= all / 100)
			draw_bar(sheet, style, indent, &bars[i], all);
		else
			rest += bars[i].ns;
	}
	return rest;
}

void hr_loops_draw(const struct hr_summary *s, struct hr_sheet *sheet)
{
	struct loops l = sum_loops(s);
	struct bar *bars = calloc(s->n_parts + 1, sizeof(*bars));
	struct bar waits = {"waiting for data", 0}, rest = {"the rest", 0};
	uint64_t all = l.all.loop_ns;
	size_t n;

	if (bars == NULL || s->n_parts == 0 || all == 0) {
		free(bars);
		return;
	}
	hr_sheet_end(sheet);
	hr_sheet_put(sheet, HR_STYLE_PLAIN, "  time of the training loop%s", l.n > 1 ? "s" : "");
	if (l.all.steps > 0)
		hr_sheet_put(sheet, HR_STYLE_PLAIN, ", %s step%s of %s%s",
			     hr_text_count(l.all.steps / l.n).s, l.all.steps / l.n == 1 ? "" : "s",
			     hr_text_duration(l.all.step_ns / l.all.steps).s,
			     l.n > 1 ? " in each rank" : "");
	hr_sheet_end(sheet);
	n = make_bars(s, true, bars);
	for (size_t i = 0; i < n; i++)
		waits.ns += bars[i].ns;
	if (waits.ns > 0)
		draw_bar(sheet, HR_STYLE_WARN, "", &waits, all);
	if (waits.ns >= all / 20)
		draw_bars(sheet, HR_STYLE_WARN, "  ", bars, n, WAITS_MOST, all);
	n = make_bars(s, false, bars);
	rest.ns = draw_bars(sheet, HR_STYLE_PLAIN, "", bars, n, ROWS_MOST, all);
	if (rest.ns >= all / 100)
		draw_bar(sheet, HR_STYLE_PLAIN, "", &rest, all);
	free(bars);
}
