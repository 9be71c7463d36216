/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of --fail-on: QUANTITY > +5%, QUANTITY < -2s, bytes_read > 1MiB. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/compare/compare.h"
#include "common/near.h"

static const char *const measures[] = {
#define HR_KIND(measure) #measure,
    HR_KIND_MEASURES
#undef HR_KIND
};

static bool find_name(const char *name, size_t n, struct hr_gate *g)
{
	for (unsigned i = 0; i < HR_QUANTITIES; i++)
		if (strncmp(hr_quantity_rows[i].id, name, n) == 0 &&
		    hr_quantity_rows[i].id[n] == '\0') {
			g->quantity = (int)i;
			return true;
		}
	for (size_t i = 0; i < sizeof(measures) / sizeof(*measures); i++)
		if (strncmp(measures[i], name, n) == 0 && measures[i][n] == '\0') {
			g->quantity = -1;
			g->measure = measures[i];
			return true;
		}
	return false;
}

static bool report_name(const char *name, size_t n)
{
	char word[64];
	struct hr_near near = hr_near(word);

	snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), name);
	for (unsigned i = 0; i < HR_QUANTITIES; i++)
		hr_near_add(&near, hr_quantity_rows[i].id);
	for (size_t i = 0; i < sizeof(measures) / sizeof(*measures); i++)
		hr_near_add(&near, measures[i]);
	hr_report("--fail-on: unknown quantity %s" HR_HINT
		  "`headrace compare A B --format json` lists the quantities",
		  hr_near_text(&near).s);
	return false;
}

bool hr_gate_parse(const char *text, struct hr_gate *ret)
{
	const char *at = text + strspn(text, " "), *name = at;
	size_t n = strcspn(at, " <>");
	char *end;

	*ret = (struct hr_gate){.text = text};
	at += n;
	at += strspn(at, " ");
	if (n == 0 || (*at != '<' && *at != '>'))
		return hr_option_wrong("fail-on", "a condition, for example 'input_wait > +5%'",
				       text) == 0;
	if (!find_name(name, n, ret))
		return report_name(name, n);
	ret->less = *at++ == '<';
	ret->limit = strtod(at, &end);
	if (end == at || !isfinite(ret->limit))
		return hr_option_wrong("fail-on", "a number after < or >", text) == 0;
	end += strspn(end, " ");
	ret->percent = *end == '%';
	if (ret->percent || (ret->quantity >= 0 && *end == 's'))
		end++;
	else if (ret->quantity >= 0)
		return hr_option_wrong("fail-on", "a limit with % or s, for example +5% or 2s",
				       text) == 0;
	end += strspn(end, " ");
	if (*end != '\0')
		return hr_option_wrong("fail-on", "one condition for each --fail-on", text) == 0;
	return true;
}

/* The sum of a measure over all kinds of files. */
static double sum_of(const struct hr_comparison *c, const char *measure, int side)
{
	double sum = 0;

	for (size_t i = 0; i < c->kinds.n; i++)
		sum += hr_kind_value(&c->kinds.list[i].side[side], measure);
	return sum;
}

void hr_gate_check(struct hr_gate *g, const struct hr_comparison *c)
{
	double change;

	if (g->quantity >= 0) {
		g->a = c->quantities[g->quantity].a;
		g->b = c->quantities[g->quantity].b;
		g->noise = c->quantities[g->quantity].noise;
	} else {
		g->a = sum_of(c, g->measure, HR_COMPARE_A);
		g->b = sum_of(c, g->measure, HR_COMPARE_B);
	}
	change = g->b - g->a;
	if (g->percent)
		change = g->a > 0 ? 100 * change / g->a : g->b > 0 ? INFINITY : 0;
	g->holds =
	    (g->less ? change < g->limit : change > g->limit) && fabs(g->b - g->a) > g->noise;
}
