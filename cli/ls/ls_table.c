/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/ls/ls.h"
#include "common/now.h"
#include "common/text.h"

#define CELL_BYTES  1024u
#define GAP	    2u	/* blanks between columns */
#define PROGRAM_MIN 10u /* cells that names of programs keep */
#define STORE_MIN   20u /* cells that names of stores keep */
#define SECOND_NS   UINT64_C(1000000000)

enum { WHEN, STORE, JOBS, STATE, TIME, WAITED, SIZE, PROGRAM, COLUMNS };

static const char *const titles[COLUMNS] = {"WHEN", "STORE",  "JOBS", "STATE",
					    "TIME", "WAITED", "SIZE", "PROGRAM"};

struct cells {
	char (*text)[COLUMNS][CELL_BYTES];
	unsigned widths[COLUMNS]; /* in cells; 0: the column is empty and left out */
};

/* Writes "21:14" for today, else "Nov 25", or "2025" if it is not this year. */
static void write_when(char to[CELL_BYTES], uint64_t real_ns)
{
	time_t at = (time_t)(real_ns / SECOND_NS),
	       now = (time_t)(hr_now_ns(CLOCK_REALTIME) / SECOND_NS);
	struct tm then, today;
	const char *format = "%b %e";

	if (real_ns == 0 || localtime_r(&at, &then) == NULL || localtime_r(&now, &today) == NULL)
		return;
	if (then.tm_year != today.tm_year)
		format = "%Y";
	else if (then.tm_yday == today.tm_yday)
		format = "%H:%M";
	(void)strftime(to, CELL_BYTES, format, &then);
}

static void write_text(char to[CELL_BYTES], const char *text)
{
	if (text != NULL)
		hr_text_escape(to, CELL_BYTES, text, strlen(text));
}

static void fill_row(char to[COLUMNS][CELL_BYTES], const struct hr_ls_row *row)
{
	const char *store = row->store != NULL ? row->store : "";

	write_when(to[WHEN], row->start_ns);
	write_text(to[STORE], strncmp(store, "./", 2) == 0 ? store + 2 : store);
	write_text(to[STATE], row->state);
	write_text(to[PROGRAM], row->program);
	if (row->jobs > 1)
		snprintf(to[JOBS], CELL_BYTES, "%zu", row->jobs);
	if (row->span_ns > 0)
		snprintf(to[TIME], CELL_BYTES, "%s", hr_text_duration(row->span_ns).s);
	if (row->waited >= 0)
		snprintf(to[WAITED], CELL_BYTES, "%.0f %%", 100 * row->waited);
	snprintf(to[SIZE], CELL_BYTES, "%s", hr_text_size(row->bytes).s);
}

static void measure(struct cells *c, size_t n)
{
	for (unsigned k = 0; k < COLUMNS; k++) {
		for (size_t i = 0; i < n; i++) {
			unsigned width = (unsigned)hr_text_cells(c->text[i][k]);

			if (width > c->widths[k])
				c->widths[k] = width;
		}
		if (c->widths[k] > 0 && c->widths[k] < strlen(titles[k]))
			c->widths[k] = (unsigned)strlen(titles[k]);
	}
}

static void narrow(unsigned *width, unsigned least, unsigned *excess)
{
	unsigned cut = *width > least ? *width - least : 0;

	cut = cut < *excess ? cut : *excess;
	*width -= cut;
	*excess -= cut;
}

/* Shortens names of programs first, because users copy names of stores to other commands. */
static void fit(struct cells *c, unsigned width)
{
	unsigned total = 0, excess;

	for (unsigned k = 0; k < COLUMNS; k++)
		total += c->widths[k] > 0 ? c->widths[k] + GAP : 0;
	excess = total > width + GAP ? total - width - GAP : 0;
	narrow(&c->widths[PROGRAM], PROGRAM_MIN, &excess);
	narrow(&c->widths[STORE], STORE_MIN, &excess);
}

/* Prints the text, without its middle if it is wider than `width`. */
static void put_text(const char *text, unsigned width, FILE *out)
{
	unsigned n = (unsigned)hr_text_cells(text), half = (width - 3) / 2;
	size_t head = hr_text_start(text, half);
	const char *tail = hr_text_end(text, width - 3 - half);

	if (n > width)
		n = (unsigned)(n - hr_text_cells(text + head) + 3 + hr_text_cells(tail));
	else
		head = strlen(text), tail = "";
	fprintf(out, "%.*s%s%s%*s", (int)head, text, *tail ? "..." : "", tail, (int)(width - n),
		"");
}

static bool is_number(unsigned column)
{
	return column == JOBS || column == TIME || column == WAITED || column == SIZE;
}

static void print_line(const struct cells *c, const char *const cells[COLUMNS], FILE *out)
{
	unsigned pending = 0; /* blanks before the next text; not printed at the end of a line */

	for (unsigned k = 0; k < COLUMNS; k++) {
		unsigned n = (unsigned)hr_text_cells(cells[k]);

		if (c->widths[k] == 0)
			continue;
		if (n > 0 && is_number(k))
			fprintf(out, "%*s%s", (int)(pending + c->widths[k] - n), "", cells[k]);
		else if (n > 0) {
			fprintf(out, "%*s", (int)pending, "");
			put_text(cells[k], n < c->widths[k] ? n : c->widths[k], out);
		}
		if (n == 0)
			pending += c->widths[k] + GAP;
		else if (is_number(k))
			pending = GAP;
		else
			pending = GAP + c->widths[k] - (n < c->widths[k] ? n : c->widths[k]);
	}
	fputc('\n', out);
}

void hr_ls_table(const struct hr_ls_row *rows, size_t n, unsigned width, FILE *out)
{
	struct cells c = {.text = calloc(n + 1, sizeof(*c.text))};

	if (c.text == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		fill_row(c.text[i], &rows[i]);
	measure(&c, n);
	if (width > 0)
		fit(&c, width);
	print_line(&c, titles, out);
	for (size_t i = 0; i < n; i++) {
		const char *cells[COLUMNS];

		for (unsigned k = 0; k < COLUMNS; k++)
			cells[k] = c.text[i][k];
		print_line(&c, cells, out);
	}
	free(c.text);
}
