/* SPDX-License-Identifier: Apache-2.0 */
/* The answer for programs (JSON), for comments of a code review (Markdown), and for CI (JUnit). */
#include <math.h>
#include <stdlib.h>

#include "cli/compare/compare.h"

/* ---- JSON ---- */

static void put_runs(struct hr_json *j, const char *key, const struct hr_compare_runs *runs)
{
	for (size_t i = 0; hr_json_row(j, key, i, runs->n); i++) {
		hr_json_string(j, "store", runs->runs[i].store);
		hr_json_string(j, "job", runs->runs[i].job);
		hr_json_string(j, "state", hr_compare_run_state(&runs->runs[i]));
	}
}

static void put_rank_side(struct hr_json *j, const char *key, const struct hr_rank_means *m)
{
	if (!hr_json_object_if(j, key, m->processes > 0))
		return;
	for (unsigned i = 0; i < HR_QUANTITIES; i++)
		hr_json_double(j, hr_quantity_rows[i].id, m->seconds[i]);
	hr_json_end(j);
}

/* Seconds of each quantity, as those of all ranks */
static void put_ranks(struct hr_json *j, const struct hr_comparison *c)
{
	for (size_t i = 0; hr_json_row(j, "ranks", i, c->ranks.n); i++) {
		const struct hr_compare_rank *r = &c->ranks.list[i];

		hr_json_int(j, "rank", r->rank);
		put_rank_side(j, "a_s", &r->side[HR_COMPARE_A]);
		put_rank_side(j, "b_scaled_s", &r->side[HR_COMPARE_B]);
	}
}

static void put_kind_side(struct hr_json *j, const char *key, const struct hr_kind_means *m)
{
	hr_json_object(j, key);
	hr_json_string(j, "mount", m->mount);
#define HR_KIND(measure) hr_json_double(j, #measure, m->measure);
	HR_KIND_MEASURES
#undef HR_KIND
	hr_json_end(j);
}

static void put_kinds(struct hr_json *j, const struct hr_comparison *c)
{
	for (size_t i = 0; hr_json_row(j, "files", i, c->kinds.n); i++) {
		const struct hr_kind *k = &c->kinds.list[i];

		hr_json_string(j, "files", k->name);
		put_kind_side(j, "a", &k->side[HR_COMPARE_A]);
		put_kind_side(j, "b", &k->measured);
		put_kind_side(j, "b_scaled", &k->side[HR_COMPARE_B]);
	}
}

void hr_compare_json(const struct hr_compare_answer *a, FILE *to)
{
	const struct hr_comparison *c = a->comparison;
	char *verdict = hr_compare_verdict(a);
	struct hr_json j;

	hr_json_init(&j, to);
	hr_json_document(&j, "headrace-compare/1");
	hr_json_string(&j, "verdict", verdict);
	put_runs(&j, "a", &a->runs[HR_COMPARE_A]);
	put_runs(&j, "b", &a->runs[HR_COMPARE_B]);
	hr_json_bool(&j, "training_loops", c->trains);
	hr_json_double(&j, "steps_a", c->steps[HR_COMPARE_A]);
	hr_json_double(&j, "steps_b", c->steps[HR_COMPARE_B]);
	hr_json_double(&j, "epochs_a", c->epochs[HR_COMPARE_A]);
	hr_json_double(&j, "epochs_b", c->epochs[HR_COMPARE_B]);
	hr_json_string(&j, "work", c->samples ? "samples" : "steps");
	hr_json_double(&j, "work_a", c->work[HR_COMPARE_A]);
	hr_json_double(&j, "work_b", c->work[HR_COMPARE_B]);
	hr_json_bool(&j, "work_differs", c->scaled);
	for (size_t i = 0; hr_json_row(&j, "causes", i, c->n_causes); i++) {
		const struct hr_compare_cause *cause = &c->causes[i];

		hr_json_string(&j, "cause", hr_compare_cause_name(cause->id));
		hr_json_double(&j, "seconds", cause->seconds);
		hr_json_double(&j, "noise_s", cause->noise);
		hr_json_string(&j, "what", cause->what);
		hr_json_string(&j, "evidence", cause->evidence);
	}
	if (hr_json_object_if(&j, "not_sure", c->unsure.seconds != 0)) {
		hr_json_string(&j, "quantity", hr_quantity_rows[c->unsure.quantity].id);
		hr_json_double(&j, "seconds", c->unsure.seconds);
		hr_json_double(&j, "noise_s", c->unsure.noise);
		hr_json_end(&j);
	}
	for (size_t i = 0; hr_json_row(&j, "quantities", i, HR_QUANTITIES); i++) {
		const struct hr_difference *d = &c->quantities[i];

		hr_json_string(&j, "quantity", hr_quantity_rows[i].id);
		hr_json_string(&j, "name", hr_quantity_rows[i].name);
		hr_json_double(&j, "a_s", d->a);
		hr_json_double(&j, "b_s", c->measured[i].b);
		hr_json_double(&j, "b_scaled_s", d->b);
		hr_json_double(&j, "noise_s", d->noise);
		hr_json_bool(&j, "differs", d->differs);
	}
	put_ranks(&j, c);
	for (size_t i = 0; hr_json_row(&j, "settings", i, HR_COMPARE_SETTINGS); i++) {
		hr_json_string(&j, "setting", c->settings[i].name);
		hr_json_double(&j, "a", c->settings[i].a >= 0 ? c->settings[i].a : NAN);
		hr_json_double(&j, "b", c->settings[i].b >= 0 ? c->settings[i].b : NAN);
	}
	put_kinds(&j, c);
	for (size_t i = 0; hr_json_row(&j, "conditions", i, a->n_gates); i++) {
		hr_json_string(&j, "fail_on", a->gates[i].text);
		hr_json_double(&j, "a", a->gates[i].a);
		hr_json_double(&j, "b", a->gates[i].b);
		hr_json_bool(&j, "failed", a->gates[i].holds);
	}
	hr_json_end(&j);
	free(verdict);
}

/* ---- Markdown ---- */

/* Names of files must not become markup. */
static void put_markdown(FILE *to, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\\' || *text == '`' || *text == '*' || *text == '_' || *text == '|' ||
		    *text == '<' || *text == '[' || *text == '#')
			fputc('\\', to);
		fputc(*text == '\n' ? ' ' : *text, to);
	}
}

static void put_markdown_end(FILE *to, const struct hr_compare_run *run)
{
	const char *state = hr_compare_bad_end(run);

	if (state == NULL)
		return;
	fputs("**Warning:** ", to);
	put_markdown(to, run->store);
	fprintf(to, " is %s: its durations are not those of a whole run.\n\n", state);
}

static void put_markdown_line(FILE *to, const char *label, const char *text)
{
	if (text[0] == '\0')
		return;
	fprintf(to, "%s: ", label);
	put_markdown(to, text);
	fputs("\n\n", to);
}

void hr_compare_markdown(const struct hr_compare_answer *a, FILE *to)
{
	const struct hr_comparison *c = a->comparison;
	char *verdict = hr_compare_verdict(a);
	char settings[HR_COMPARE_LINE], unsure[HR_COMPARE_LINE];

	hr_compare_settings_text(c, settings);
	hr_compare_unsure_text(c, unsure);
	fputs("**", to);
	put_markdown(to, verdict != NULL ? verdict : "");
	fputs("**\n\n", to);
	for (int side = 0; side < HR_COMPARE_SIDES; side++)
		for (size_t i = 0; i < a->runs[side].n; i++)
			put_markdown_end(to, &a->runs[side].runs[i]);
	put_markdown_line(to, "Settings", settings);
	for (size_t i = 0; i < a->n_gates; i++) {
		fprintf(to, "- %s: ", a->gates[i].holds ? "**failed**" : "passed");
		put_markdown(to, a->gates[i].text);
		fputc('\n', to);
	}
	if (a->n_gates > 0)
		fputc('\n', to);
	for (size_t i = 0; i < c->n_causes; i++) {
		fprintf(to, "%zu. %s%s: ", i + 1, c->causes[i].seconds > 0 ? "+" : "",
			hr_compare_seconds(c->causes[i].seconds).s);
		put_markdown(to, c->causes[i].what);
		if (c->causes[i].evidence != NULL) {
			fputs("<br>", to);
			put_markdown(to, c->causes[i].evidence);
		}
		fputc('\n', to);
	}
	if (unsure[0] != '\0')
		fputc('\n', to);
	put_markdown_line(to, "Not sure", unsure);
	fprintf(to, "\n| | A | B |%s change | noise |\n|---|---:|---:|%s---:|---:|\n",
		c->scaled ? " B scaled |" : "", c->scaled ? "---:|" : "");
	for (unsigned i = 0; i < HR_QUANTITIES; i++) {
		const struct hr_difference *d = &c->quantities[i];
		const char *mark = d->differs ? "**" : "";

		if (!hr_compare_shows(c, i))
			continue;
		fprintf(to, "| %s | %s | %s |", hr_quantity_rows[i].name,
			hr_compare_seconds(d->a).s, hr_compare_seconds(c->measured[i].b).s);
		if (c->scaled)
			fprintf(to, " %s |", hr_compare_seconds(d->b).s);
		fprintf(to, " %s%s%s | %s |\n", mark, hr_compare_change(d).s, mark,
			hr_compare_seconds(d->noise).s);
	}
	free(verdict);
}

/* ---- JUnit ---- */

static void put_xml(FILE *to, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<')
			fputs("&lt;", to);
		else if (*text == '&')
			fputs("&amp;", to);
		else if (*text == '"')
			fputs("&quot;", to);
		else
			fputc((unsigned char)*text < ' ' ? ' ' : *text, to);
	}
}

void hr_compare_junit(const struct hr_compare_answer *a, FILE *to)
{
	char *verdict = hr_compare_verdict(a);
	size_t failed = 0, bad = 0;

	for (size_t i = 0; i < a->n_gates; i++)
		failed += a->gates[i].holds;
	for (int side = 0; side < HR_COMPARE_SIDES; side++)
		for (size_t i = 0; i < a->runs[side].n; i++)
			bad += hr_compare_bad_end(&a->runs[side].runs[i]) != NULL;
	failed += bad > 0;
	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"headrace compare\" "
		"tests=\"%zu\" failures=\"%zu\">\n",
		a->n_gates + 1, failed);
	fputs("  <testcase classname=\"headrace.compare\" name=\"all runs ended\"", to);
	if (bad > 0)
		fprintf(to,
			"><failure message=\"%zu runs failed, were killed or still "
			"run\"/></testcase>\n",
			bad);
	else
		fputs("/>\n", to);
	for (size_t i = 0; i < a->n_gates; i++) {
		fputs("  <testcase classname=\"headrace.compare\" name=\"", to);
		put_xml(to, a->gates[i].text);
		if (!a->gates[i].holds) {
			fputs("\"/>\n", to);
			continue;
		}
		fprintf(to, "\">\n    <failure message=\"%.6g instead of %.6g\">", a->gates[i].b,
			a->gates[i].a);
		put_xml(to, verdict != NULL ? verdict : "");
		fputs("</failure>\n  </testcase>\n", to);
	}
	fputs("</testsuite>\n", to);
	free(verdict);
}
