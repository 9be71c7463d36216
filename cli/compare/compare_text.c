/* SPDX-License-Identifier: Apache-2.0 */
/* The answer for people: a verdict, the causes, a table of durations, settings, files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "cli/sheet.h"

#define KINDS 5u
#define RANKS 4u
#define LABEL 11u /* columns of "per epoch: " */

struct hr_human hr_compare_change(const struct hr_difference *d)
{
	struct hr_human text = {"-"};

	if (d->a > 0)
		snprintf(text.s, sizeof(text.s), "%+.*f %%", fabs(d->b - d->a) < 0.1 * d->a ? 1 : 0,
			 100 * (d->b - d->a) / d->a);
	return text;
}

bool hr_compare_shows(const struct hr_comparison *c, enum hr_quantity quantity)
{
	const struct hr_difference *whole = &c->quantities[HR_QUANTITY_wall],
				   *d = &c->quantities[quantity];

	return hr_quantity_rows[quantity].level == HR_LEVEL_WHOLE || d->differs ||
	       fmax(d->a, d->b) >= HR_COMPARE_LEAST * fmax(whole->a, whole->b);
}

/* ---- the verdict ---- */

static const char *runs_text(const struct hr_compare_answer *a, char *to, size_t size)
{
	size_t na = a->runs[HR_COMPARE_A].n, nb = a->runs[HR_COMPARE_B].n;

	if (na == 1 && nb == 1)
		return "one run each";
	if (na == nb)
		snprintf(to, size, "%zu runs each", na);
	else
		snprintf(to, size, "%zu and %zu runs", na, nb);
	return to;
}

static double noise_percent(const struct hr_difference *d)
{
	return d->a > 0 ? 100 * d->noise / d->a : 0;
}

/* The verdict if the sides did different amounts of work. */
static int verdict_of_work(const struct hr_comparison *c, const char *runs, char **ret)
{
	const struct hr_difference *own = &c->measured[HR_QUANTITY_loop],
				   *same = &c->quantities[HR_QUANTITY_loop];

	return asprintf(
	    ret,
	    "B did %.3g %% of the work of A: the training loop took %s instead of %s "
	    "(%s); for the same work, %s (%s, %s; noise %.1f %%, %s)",
	    100 * c->work[HR_COMPARE_B] / c->work[HR_COMPARE_A], hr_compare_seconds(own->b).s,
	    hr_compare_seconds(own->a).s, hr_compare_change(own).s,
	    !same->differs	? "no difference"
	    : same->b > same->a ? "B is slower"
				: "B is faster",
	    hr_compare_seconds(same->b).s, hr_compare_change(same).s, noise_percent(same), runs);
}

char *hr_compare_verdict(const struct hr_compare_answer *a)
{
	const struct hr_comparison *c = a->comparison;
	const struct hr_difference *loop = &c->quantities[HR_QUANTITY_loop],
				   *wall = &c->quantities[HR_QUANTITY_wall];
	bool use_loop = loop->differs || (!wall->differs && loop->a > 0 && loop->b > 0);
	const struct hr_difference *d = use_loop ? loop : wall;
	const char *name = hr_quantity_rows[use_loop ? HR_QUANTITY_loop : HR_QUANTITY_wall].name;
	char buffer[48], *text;
	const char *runs = runs_text(a, buffer, sizeof(buffer));
	int n;

	if (c->scaled)
		n = verdict_of_work(c, runs, &text);
	else if (d->differs)
		n = asprintf(&text, "B is %s: the %s took %s instead of %s (%s; noise %.1f %%, %s)",
			     d->b > d->a ? "slower" : "faster", name, hr_compare_seconds(d->b).s,
			     hr_compare_seconds(d->a).s, hr_compare_change(d).s, noise_percent(d),
			     runs);
	else
		n = asprintf(
		    &text,
		    "no difference%s: the %s took %s in A and %s in B (%s; noise %.1f %%, %s)",
		    c->n_causes > 0 ? " in total" : "", name, hr_compare_seconds(d->a).s,
		    hr_compare_seconds(d->b).s, hr_compare_change(d).s, noise_percent(d), runs);
	return n < 0 ? NULL : text;
}

/* ---- the page ---- */

static void put_line(struct hr_sheet *p, const char *label, const char *text)
{
	if (text[0] != '\0')
		hr_sheet_say(p, HR_STYLE_PLAIN, LABEL, label, "%s", text);
}

static void put_causes(struct hr_sheet *p, const struct hr_comparison *c)
{
	char unsure[HR_COMPARE_LINE];

	for (size_t i = 0; i < c->n_causes; i++) {
		const struct hr_compare_cause *cause = &c->causes[i];
		char label[64];

		snprintf(label, sizeof(label), "%2zu. %s%s  ", i + 1, cause->seconds > 0 ? "+" : "",
			 hr_compare_seconds(cause->seconds).s);
		hr_sheet_say(p, HR_STYLE_BOLD, (unsigned)strlen(label), label, "%s", cause->what);
		if (cause->evidence != NULL)
			hr_sheet_say(p, HR_STYLE_PLAIN, (unsigned)strlen(label), "", "%s",
				     cause->evidence);
	}
	hr_compare_unsure_text(c, unsure);
	put_line(p, "not sure:", unsure);
	if (c->n_causes > 0 || unsure[0] != '\0')
		hr_sheet_end(p);
}

static bool in_loop(enum hr_quantity q)
{
	return strcmp(hr_quantity_rows[q].phases, "t") == 0;
}

static void put_quantity(struct hr_sheet *p, const struct hr_comparison *c, enum hr_quantity q)
{
	const struct hr_difference *d = &c->quantities[q];
	int indent = q == HR_QUANTITY_wall ? 0 : in_loop(q) && q != HR_QUANTITY_loop ? 4 : 2;
	struct hr_human noise = hr_compare_seconds(d->noise);
	char scaled[16] = "";

	if (c->scaled)
		snprintf(scaled, sizeof(scaled), " %10.12s", hr_compare_seconds(d->b).s);
	hr_sheet_line(p, d->differs ? HR_STYLE_BOLD : HR_STYLE_PLAIN,
		      "%*s%-*s %10s %10s%s %10s %9s  %s", indent, "", 32 - indent,
		      hr_quantity_rows[q].name, hr_compare_seconds(d->a).s,
		      hr_compare_seconds(c->measured[q].b).s, scaled, hr_compare_change(d).s,
		      noise.s, d->differs ? "differs" : "");
}

static void put_quantities(struct hr_sheet *p, const struct hr_comparison *c)
{
	hr_sheet_line(p, HR_STYLE_PLAIN, "%-32s %10s %10s%s %10s %9s", "", "A", "B",
		      c->scaled ? "   B scaled" : "", "change", "noise");
	put_quantity(p, c, HR_QUANTITY_wall);
	for (int loop = 1; loop >= 0; loop--)
		for (unsigned i = 0; i < HR_QUANTITIES; i++)
			if (i != HR_QUANTITY_wall && in_loop(i) == (loop == 1) &&
			    hr_compare_shows(c, i))
				put_quantity(p, c, i);
}

/* "per step: 53.1 ms instead of 24.9 ms (64 steps, 64 in A)": the training loop, and how many */
static void put_each(struct hr_sheet *p, const struct hr_comparison *c, const char *label,
		     const char *what, const double n[HR_COMPARE_SIDES])
{
	const struct hr_difference *loop = &c->measured[HR_QUANTITY_loop];

	if (c->trains && n[HR_COMPARE_A] > 0 && n[HR_COMPARE_B] > 0)
		hr_sheet_say(p, HR_STYLE_PLAIN, LABEL, label, "%s instead of %s (%s %s, %s in A)",
			     hr_compare_seconds(loop->b / n[HR_COMPARE_B]).s,
			     hr_compare_seconds(loop->a / n[HR_COMPARE_A]).s,
			     hr_compare_count(n[HR_COMPARE_B]).s, what,
			     hr_compare_count(n[HR_COMPARE_A]).s);
}

void hr_compare_settings_text(const struct hr_comparison *c, char to[HR_COMPARE_LINE])
{
	size_t n = 0;

	to[0] = '\0';
	for (unsigned i = 0; i < HR_COMPARE_SETTINGS && n < HR_COMPARE_LINE; i++) {
		const struct hr_compare_setting *s = &c->settings[i];

		if (s->a != s->b && s->a >= 0 && s->b >= 0)
			n += (size_t)snprintf(to + n, HR_COMPARE_LINE - n,
					      "%s%s %.6g (A) and %.6g (B)", n > 0 ? ", " : "",
					      s->name, s->a, s->b);
	}
}

void hr_compare_unsure_text(const struct hr_comparison *c, char to[HR_COMPARE_LINE])
{
	const struct hr_compare_unsure *u = &c->unsure;

	to[0] = '\0';
	if (u->seconds != 0)
		snprintf(to, HR_COMPARE_LINE,
			 "%s: %s%s, with a noise of %s; more runs of each side show whether this "
			 "is chance",
			 hr_quantity_rows[u->quantity].name, u->seconds > 0 ? "+" : "",
			 hr_compare_seconds(u->seconds).s, hr_compare_seconds(u->noise).s);
}

static double rank_change(const struct hr_compare_rank *r)
{
	return hr_compare_rank_own(&r->side[HR_COMPARE_B]) -
	       hr_compare_rank_own(&r->side[HR_COMPARE_A]);
}

static int by_rank_change(const void *a, const void *b)
{
	double x = fabs(rank_change(*(const struct hr_compare_rank *const *)a)),
	       y = fabs(rank_change(*(const struct hr_compare_rank *const *)b));

	return (x < y) - (x > y);
}

static void put_rank(struct hr_sheet *p, const struct hr_compare_rank *r)
{
	const struct hr_rank_means *a = &r->side[HR_COMPARE_A], *b = &r->side[HR_COMPARE_B];
	struct hr_difference d = {.a = hr_compare_rank_own(a), .b = hr_compare_rank_own(b)};
	char label[32];

	snprintf(label, sizeof(label), "rank %lld", (long long)r->rank);
	hr_sheet_line(p, HR_STYLE_PLAIN, "  %-30s %10s %10s %10s", label,
		      a->processes > 0 ? hr_compare_seconds(d.a).s : "-",
		      b->processes > 0 ? hr_compare_seconds(d.b).s : "-",
		      a->processes > 0 && b->processes > 0 ? hr_compare_change(&d).s : "-");
}

/* The ranks whose own time changed most. */
static void put_ranks(struct hr_sheet *p, const struct hr_comparison *c)
{
	const struct hr_compare_rank **sorted = calloc(c->ranks.n + 1, sizeof(*sorted));

	for (size_t i = 0; sorted != NULL && i < c->ranks.n; i++)
		sorted[i] = &c->ranks.list[i];
	if (sorted == NULL || c->ranks.n < 2) {
		free(sorted);
		return;
	}
	qsort(sorted, c->ranks.n, sizeof(*sorted), by_rank_change);
	hr_sheet_end(p);
	hr_sheet_line(p, HR_STYLE_PLAIN, "%-32s %10s %10s %10s",
		      "ranks, without waiting for others", "A", c->scaled ? "B scaled" : "B",
		      "change");
	for (size_t i = 0; i < c->ranks.n && i < RANKS; i++)
		put_rank(p, sorted[i]);
	if (c->ranks.n > RANKS)
		hr_sheet_line(p, HR_STYLE_PLAIN, "  the %u of %zu ranks that changed most", RANKS,
			      c->ranks.n);
	free(sorted);
}

static int by_change(const void *a, const void *b)
{
	const struct hr_kind *x = *(const struct hr_kind *const *)a,
			     *y = *(const struct hr_kind *const *)b;
	double dx = fmax(hr_kind_seconds(&x->side[HR_COMPARE_A]), hr_kind_seconds(&x->measured));
	double dy = fmax(hr_kind_seconds(&y->side[HR_COMPARE_A]), hr_kind_seconds(&y->measured));

	return (dx < dy) - (dx > dy);
}

static void put_kind(struct hr_sheet *p, const struct hr_kind *k)
{
	static const char *const names[HR_COMPARE_SIDES] = {"A", "B"};

	for (int i = 0; i < HR_COMPARE_SIDES; i++) {
		const struct hr_kind_means *m = i == HR_COMPARE_B ? &k->measured : &k->side[i];

		hr_sheet_line(p, HR_STYLE_PLAIN, "%-30.30s %s %9s %9s %10s %10s",
			      i > 0 ? "" : hr_kind_shown(k), names[i], hr_compare_count(m->opens).s,
			      hr_compare_count(m->reads).s,
			      hr_text_size((uint64_t)(m->bytes_read + m->bytes_written)).s,
			      hr_compare_seconds(hr_kind_seconds(m)).s);
	}
}

static void put_kinds(struct hr_sheet *p, const struct hr_comparison *c)
{
	const struct hr_kind **sorted = calloc(c->kinds.n + 1, sizeof(*sorted));

	for (size_t i = 0; sorted != NULL && i < c->kinds.n; i++)
		sorted[i] = &c->kinds.list[i];
	if (sorted == NULL || c->kinds.n == 0) {
		free(sorted);
		return;
	}
	qsort(sorted, c->kinds.n, sizeof(*sorted), by_change);
	hr_sheet_end(p);
	hr_sheet_line(p, HR_STYLE_PLAIN, "%-30s   %9s %9s %10s %10s", "files (all processes)",
		      "opens", "reads", "bytes", "time");
	for (size_t i = 0; i < c->kinds.n && i < KINDS; i++)
		put_kind(p, sorted[i]);
	free(sorted);
}

static void put_gates(struct hr_sheet *p, const struct hr_compare_answer *a)
{
	for (size_t i = 0; i < a->n_gates; i++) {
		const struct hr_gate *g = &a->gates[i];

		hr_sheet_say(p, g->holds ? HR_STYLE_BAD : HR_STYLE_GOOD, 8,
			     g->holds ? "FAILED" : "passed", "%s", g->text);
	}
}

static void put_bad_ends(struct hr_sheet *p, const struct hr_compare_answer *a)
{
	for (int side = 0; side < HR_COMPARE_SIDES; side++)
		for (size_t i = 0; i < a->runs[side].n; i++) {
			const struct hr_compare_run *run = &a->runs[side].runs[i];

			if (hr_compare_bad_end(run) != NULL)
				hr_sheet_say(p, HR_STYLE_BAD, LABEL, "warning:", "%s (%s) is %s",
					     run->store, side == HR_COMPARE_A ? "A" : "B",
					     hr_compare_bad_end(run));
		}
}

void hr_compare_text(const struct hr_compare_answer *a, FILE *to)
{
	const struct hr_comparison *c = a->comparison;
	char *verdict = hr_compare_verdict(a), line[HR_COMPARE_LINE];
	struct hr_sheet page;

	hr_sheet_init(&page, to);
	hr_sheet_say(&page, HR_STYLE_BOLD, 0, "", "%s", verdict != NULL ? verdict : "");
	put_gates(&page, a);
	put_bad_ends(&page, a);
	if (!c->trains)
		hr_sheet_say(
		    &page, HR_STYLE_PLAIN, LABEL, "note:",
		    "not all runs have a recorded training loop, so the causes are not known");
	put_each(&page, c, "per step:", "steps", c->steps);
	put_each(&page, c, "per epoch:", "epochs", c->epochs);
	hr_compare_settings_text(c, line);
	put_line(&page, "settings:", line);
	hr_sheet_end(&page);
	put_causes(&page, c);
	put_quantities(&page, c);
	put_ranks(&page, c);
	put_kinds(&page, c);
	free(verdict);
}
