/* SPDX-License-Identifier: Apache-2.0 */
/* Draws an update on a screen, or prints it as lines. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/sheet.h"
#include "common/live_rows.h"
#include "cli/top/top.h"
#include "cli/screen.h"
#include "common/ops.h"
#include "common/text.h"

#define LABEL_BYTES 4200u
#define PRINT_ROWS  10u

/* ---- labels ---- */

/* Appends text at the offset `at`. Returns the offset of its end. */
__attribute__((format(printf, 4, 5))) static size_t
top_lines_append(char *ret, size_t bytes, size_t at, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(ret + at, bytes - at, format, args);
	va_end(args);
	return n < 0 || (size_t)n >= bytes - at ? bytes - 1 : at + (size_t)n;
}

static size_t add_rank(const Headrace__LiveProcess *p, char *ret, size_t bytes, size_t at)
{
	if (p && p->rank_plus1)
		return top_lines_append(ret, bytes, at, "rank %u", p->rank_plus1 - 1);
	return top_lines_append(ret, bytes, at, "no rank");
}

static size_t add_worker(const Headrace__LiveProcess *p, char *ret, size_t bytes, size_t at)
{
	at = add_rank(p, ret, bytes, at);
	if (p && p->worker_plus1)
		return top_lines_append(ret, bytes, at, " worker %u", p->worker_plus1 - 1);
	return top_lines_append(ret, bytes, at, " main");
}

static size_t add_process(const Headrace__LiveProcess *p, char *ret, size_t bytes, size_t at)
{
	const ProtobufCBinaryData *text = p->cmdline.len ? &p->cmdline : &p->name;
	const uint8_t *blank = text->len ? memchr(text->data, ' ', text->len) : NULL;
	size_t program = blank ? (size_t)(blank - text->data) : text->len;
	const uint8_t *slash = program ? memrchr(text->data, '/', program) : NULL;
	/* bytes of the folder of the program */
	size_t skipped = slash ? (size_t)(slash + 1 - text->data) : 0;

	at = top_lines_append(ret, bytes, at, "%u ", p->pid);
	if (p->rank_plus1 || p->worker_plus1)
		at = add_worker(p, ret, bytes, at);
	return top_lines_append(ret, bytes, at, "%s%s%.*s",
				p->rank_plus1 || p->worker_plus1 ? " " : "",
				p->end_ns ? "(ended) " : "", (int)(text->len - skipped),
				(const char *)text->data + skipped);
}

static void op_label(uint16_t op, char *ret, size_t bytes)
{
	const struct hr_op_info *info = hr_op_info(op);

	if (info->name)
		snprintf(ret, bytes, "%s (%s)", info->name, hr_class_name(info->class));
	else
		snprintf(ret, bytes, "operation %u", op);
}

static void file_label(const Headrace__LiveFile *f, uint64_t number, char *ret, size_t bytes)
{
	if (f && f->path.len)
		snprintf(ret, bytes, "%.*s", (int)f->path.len, (const char *)f->path.data);
	else
		snprintf(ret, bytes, "(file %llu: unknown name)", (unsigned long long)number);
}

/* Sets the unescaped label of a row, such as "rank 3 worker 1", "/data/x" or "pread64 (read)". */
static void row_label(const struct hr_top_row *row, enum hr_top_view view, char *ret, size_t bytes)
{
	const char *class;

	ret[0] = '\0';
	switch (view) {
	case HR_TOP_RANK:
		add_rank(row->process, ret, bytes, 0);
		break;
	case HR_TOP_WORKER:
		add_worker(row->process, ret, bytes, 0);
		break;
	case HR_TOP_PROCESS:
		add_process(row->process, ret, bytes, 0);
		break;
	case HR_TOP_FILE:
		file_label(row->file, row->key, ret, bytes);
		break;
	case HR_TOP_MOUNT:
		if (row->mount)
			snprintf(ret, bytes, "%.*s (%s)", (int)row->mount->path.len,
				 (const char *)row->mount->path.data, row->mount->fs_type);
		else
			snprintf(ret, bytes, "(unknown)");
		break;
	case HR_TOP_CLASS:
		class = hr_class_name((unsigned)row->key);
		snprintf(ret, bytes, "%s", class ? class : "other");
		break;
	default:
		op_label(row->op, ret, bytes);
		break;
	}
}

/* ---- numbers ---- */

enum top_number {
	TOP_WAIT, /* shown only if the table has waiters */
	TOP_IN_IO,
	TOP_OPS,
	TOP_BYTES,
	TOP_MEAN,
	TOP_P99,
	TOP_LONGEST,
	TOP_ALL_TIME,
	TOP_ALL_BYTES,
	TOP_ERRORS,
	TOP_COLUMNS,
	TOP_STEPS = TOP_COLUMNS /* no column */
};

static const struct {
	const char *title;
	int width;
	unsigned from; /* smallest width of the terminal with this column */
	bool extra;    /* shown only with --all-columns */
} top_columns[TOP_COLUMNS] = {
    [TOP_WAIT] = {"WAIT", 6, 0, false},
    [TOP_IN_IO] = {"IN I/O", 7, 0, false},
    [TOP_OPS] = {"OPS/S", 9, 36, false},
    [TOP_BYTES] = {"BYTES/S", 10, 48, false},
    [TOP_MEAN] = {"MEAN", 10, 64, false},
    [TOP_P99] = {"P99", 10, 78, false},
    [TOP_LONGEST] = {"LONGEST", 10, 100, true},
    [TOP_ALL_TIME] = {"ALL TIME", 10, 116, true},
    [TOP_ALL_BYTES] = {"ALL BYTES", 10, 130, true},
    [TOP_ERRORS] = {"ERRORS", 8, 144, true},
};

/* Returns a number of the row; "-": it is not known. */
static struct hr_human number(enum top_number what, const struct hr_top_row *r,
			      const struct hr_top_table *t)
{
	double s = t->interval_ns ? (double)t->interval_ns / 1e9 : 1;
	double share = hr_top_wait(&r->now, r->waiters, t->interval_ns);
	uint64_t p99 = hr_top_quantile(&r->now, 0.99);
	struct hr_human h = {"-"};

	switch (what) {
	case TOP_WAIT:
		if (share >= 0)
			snprintf(h.s, sizeof(h.s), "%.0f %%", share * 100);
		return h;
	case TOP_IN_IO:
		return hr_text_decimal((double)r->now.dur_ns / 1e9 / s);
	case TOP_OPS:
		return hr_text_decimal((double)r->now.ops / s);
	case TOP_STEPS:
		return hr_text_decimal((double)r->now.steps / s);
	case TOP_BYTES:
		return hr_text_size((uint64_t)((double)r->now.bytes / s));
	case TOP_MEAN:
		return r->now.ops ? hr_text_duration(r->now.dur_ns / r->now.ops) : h;
	case TOP_P99:
		return p99 ? hr_text_duration(p99) : h;
	case TOP_LONGEST:
		return r->all.max_ns ? hr_text_duration(r->all.max_ns) : h;
	case TOP_ALL_TIME:
		return hr_text_duration(r->all.dur_ns);
	case TOP_ALL_BYTES:
		return hr_text_size(r->all.bytes);
	default:
		return hr_text_count(r->all.errors);
	}
}

static bool has_room(enum top_number column, unsigned columns, const struct hr_top_display *k)
{
	return columns >= top_columns[column].from && (column != TOP_WAIT || k->table->waiters) &&
	       (!top_columns[column].extra || k->all_columns);
}

/* ---- output as a screen and as lines ---- */

struct page {
	struct hr_screen_text *to;
	unsigned columns, rows, used;
	unsigned last;
};

/* Prints a line, cut at the width of the screen. `text` has no control bytes. */
static void put_line(struct page *p, const char *style, const char *text)
{
	if (p->used == p->rows)
		return;
	if (p->used++ > 0)
		hr_screen_text_put(p->to, "\r\n", 2);
	/* Erases the line before the text: after a full line, erasing would clear its last cell. */
	hr_screen_text_put(p->to, p->used == p->last ? "\033[J" : "\033[K", 3);
	hr_screen_text_put(p->to, style, strlen(style));
	hr_screen_text_fit(p->to, text, p->columns, HR_SCREEN_CUT_END, false);
	hr_screen_text_put(p->to, "\033[0m", 4);
}

/* Prints a line with a label, which is escaped and cut, and with `right` at the end. */
static void put_row(struct page *p, const char *style, const char *label, const char *right,
		    enum hr_screen_cut cut)
{
	char escaped[4 * LABEL_BYTES];
	struct hr_screen_text line = {0};
	unsigned rest = (unsigned)strlen(right);

	hr_text_escape(escaped, sizeof(escaped), label, strlen(label));
	hr_screen_text_fit(&line, escaped, p->columns > rest ? p->columns - rest : 0, cut, true);
	hr_screen_text_put(&line, right, rest + 1);
	if (!line.failed)
		put_line(p, style, line.s);
	hr_screen_text_done(&line);
}

static const char *colour(const char *code)
{
	return hr_getenv("NO_COLOR") == NULL ? code : "";
}

/* Prints a sentence after a label, on as many lines as the sentence needs. */
static void put_sentence(struct page *p, const char *style, const char *label, const char *text)
{
	size_t indent = strlen(label),
	       room = p->columns > 2 * indent ? p->columns - indent : indent;
	char escaped[4 * LABEL_BYTES], line[4 * LABEL_BYTES];

	hr_text_escape(escaped, sizeof(escaped), text, strlen(text));
	for (const char *rest = escaped; *rest != '\0'; label = "") {
		size_t bytes = hr_sheet_words(rest, room);

		snprintf(line, sizeof(line), "%-*s%.*s", (int)indent, label, (int)bytes, rest);
		put_line(p, style, line);
		rest += bytes + (rest[bytes] == ' ');
	}
}

static void put_state(struct page *p, const struct hr_top_display *k)
{
	const Headrace__LiveJob *m = k->job;
	const struct hr_top_table *t = k->table;
	const struct hr_top_row all = {.now = t->now, .waiters = t->waiters};
	char text[512], label[LABEL_BYTES], clock[40], ranks[32] = "", rate[64] = "";

	snprintf(clock, sizeof(clock), " %s", hr_screen_clock(m->real_ns).s);
	snprintf(label, sizeof(label), "%s%s%s%s  %s %s on %s, level %s", m->job,
		 m->name[0] ? " (" : "", m->name, m->name[0] ? ")" : "",
		 m->whole ? "running for" : "headraced restarted, recorded again for",
		 hr_text_duration(m->boot_ns - m->since_ns).s, m->node, m->level);
	put_row(p, "\033[1m", label, clock, HR_SCREEN_CUT_END);
	if (t->ranks)
		snprintf(ranks, sizeof(ranks), ", %u rank%s", t->ranks, t->ranks == 1 ? "" : "s");
	if (t->waiters)
		snprintf(rate, sizeof(rate), "%s steps/s, ", number(TOP_STEPS, &all, t).s);
	snprintf(text, sizeof(text), "%u process%s%s: %s%s/s, %s ops/s, %s lost%s", t->processes,
		 t->processes == 1 ? "" : "es", ranks, rate, number(TOP_BYTES, &all, t).s,
		 number(TOP_OPS, &all, t).s, hr_text_count(m->lost).s,
		 m->refused ? "; some processes were refused" : "");
	put_line(p, m->lost > 0 || m->refused > 0 ? colour("\033[31m") : "", text);
}

/* Prints which share of the time training loops waited, in this and in earlier intervals. */
static void put_waits(struct page *p, const struct hr_top_display *k)
{
	const struct hr_top_row all = {.now = k->table->now, .waiters = k->table->waiters};
	double share = hr_top_wait(&all.now, all.waiters, k->table->interval_ns);
	char history[HR_TOP_WAITS + 1], text[160];

	if (share < 0)
		return;
	for (unsigned i = 0; i < k->n_waits; i++) {
		double part = k->waits[i];

		history[i] = "_.:|"[(part >= 0.05) + (part >= 0.33) + (part >= 0.66)];
	}
	history[k->n_waits] = '\0';
	snprintf(text, sizeof(text), "WAITING FOR DATA %6s [%s]",
		 number(TOP_WAIT, &all, k->table).s, hr_text_bar(share, 30).s);
	put_line(p, share >= 0.2 ? colour("\033[33m") : "", text);
	if (k->n_waits > 1) {
		snprintf(text, sizeof(text), "  last %s: %s",
			 hr_text_duration(k->n_waits * k->every_ns).s, history);
		put_line(p, "", text);
	}
	if (k->finding.loss[0] != '\0')
		put_sentence(p, "", "  because: ", k->finding.loss);
	if (k->finding.action[0] != '\0')
		put_sentence(p, "", "  do:      ", k->finding.action);
}

static void put_head(struct page *p, const struct hr_top_display *k)
{
	char label[LABEL_BYTES];

	put_state(p, k);
	put_waits(p, k);
	snprintf(label, sizeof(label), "by %s, sorted by %s, every %s%s%s%s",
		 hr_top_view_names[k->view], hr_top_sort_names[k->sort],
		 hr_text_duration(k->every_ns).s, k->paused ? ", PAUSED" : "",
		 k->trouble ? ": " : "", k->trouble ? k->trouble : "");
	put_row(p, "", label, "", HR_SCREEN_CUT_END);
	put_line(p, "", "");
}

static void put_table(struct page *p, const struct hr_top_display *k, unsigned most)
{
	char right[256], label[LABEL_BYTES];
	size_t at = 0;

	for (enum top_number c = 0; c < TOP_COLUMNS; c++)
		if (has_room(c, p->columns, k))
			at = top_lines_append(right, sizeof(right), at, " %*s",
					      top_columns[c].width, top_columns[c].title);
	snprintf(label, sizeof(label), "%s", hr_top_view_names[k->view]);
	put_row(p, "\033[7m", label, right, HR_SCREEN_CUT_END);
	for (size_t i = 0; i < k->table->n && i + 1 < most; i++) {
		const struct hr_top_row *r = &k->table->rows[i];

		at = 0;
		for (enum top_number c = 0; c < TOP_COLUMNS; c++)
			if (has_room(c, p->columns, k))
				at = top_lines_append(right, sizeof(right), at, " %*s",
						      top_columns[c].width,
						      number(c, r, k->table).s);
		row_label(r, k->view, label, sizeof(label));
		put_row(p, "", label, right,
			k->view == HR_TOP_FILE ? HR_SCREEN_CUT_BEGIN : HR_SCREEN_CUT_END);
	}
}

static int by_age(const void *a, const void *b)
{
	const Headrace__LiveInFlight *x = *(Headrace__LiveInFlight *const *)a;
	const Headrace__LiveInFlight *y = *(Headrace__LiveInFlight *const *)b;

	return x->since_ns < y->since_ns ? -1 : x->since_ns > y->since_ns;
}

/* Sets the label of an operation, such as "10 min 03 s rank 0 main pid 7: pread64 /data/x". */
static void flight_label(const Headrace__LiveJob *m, const Headrace__LiveInFlight *f, char *ret,
			 size_t n)
{
	const Headrace__LiveProcess *who = hr_live_process(m, f->proc);
	const char *op = hr_op_info((uint16_t)f->op)->name;
	size_t at =
	    top_lines_append(ret, n, 0, "%10s ", hr_text_duration(m->boot_ns - f->since_ns).s);

	at = add_worker(who, ret, n, at);
	at = top_lines_append(ret, n, at, " pid %u: %s ", who ? who->pid : 0, op ? op : "?");
	if (f->file)
		file_label(hr_live_file(m, f->file), f->file, ret + at, n - at);
	else if (f->fd >= 0)
		top_lines_append(ret, n, at, "(descriptor %d)", f->fd);
}

static void put_in_flight(struct page *p, const Headrace__LiveJob *m, unsigned most)
{
	char label[LABEL_BYTES];

	if (most < 2)
		return;
	snprintf(label, sizeof(label), "in flight for more than 1 s: %zu",
		 m->n_in_flight + m->in_flight_cut);
	put_row(p, "\033[7m", label, "", HR_SCREEN_CUT_END);
	for (size_t i = 0; i < m->n_in_flight && i + 1 < most; i++) {
		flight_label(m, m->in_flight[i], label, sizeof(label));
		put_row(p, "", label, "", HR_SCREEN_CUT_END);
	}
}

static void put_help(struct page *p)
{
	static const char *const lines[] = {
	    "keys",
	    "  t b o l        sort by time, bytes, ops, latency (mean) of the last interval",
	    "  r w p          by rank, by worker of a rank, by process",
	    "  f m c n        by file in use, by mount, by class of operation, by operation",
	    "  space          pause; again: continue",
	    "  ? q            this text; quit",
	    "",
	    "columns, of the last interval",
	    "  WAIT           part of the time in which the training loop waited for a batch",
	    "  IN I/O         average number of threads inside an operation",
	    "  OPS/S BYTES/S  operations that returned, and what they moved",
	    "  MEAN P99       mean duration, and 99th percentile within its power of two",
	    "and with --all-columns, since the job began: LONGEST, ALL TIME, ALL BYTES, ERRORS",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		put_line(p, "", lines[i]);
}

void hr_top_draw(struct hr_screen_text *to, const struct hr_top_display *display, unsigned columns,
		 unsigned rows)
{
	const Headrace__LiveJob *m = display->job;
	bool keys = rows >= 10;
	struct page p = {to, columns, keys ? rows - 1 : rows, 0, rows};
	unsigned flights = 0, left;

	if (m->n_in_flight) {
		qsort(m->in_flight, m->n_in_flight, sizeof(*m->in_flight), by_age);
		flights = m->n_in_flight < rows / 4 ? (unsigned)m->n_in_flight : rows / 4;
		flights = flights ? flights + 1 : 0;
	}
	hr_screen_text_put(to, "\033[H", 3);
	put_head(&p, display);
	left = p.rows > p.used ? p.rows - p.used : 0;
	if (display->help)
		put_help(&p);
	else
		put_table(&p, display, left > flights ? left - flights : 0);
	while (p.used + (display->help ? 0 : flights) < p.rows)
		put_line(&p, "", "");
	if (!display->help)
		put_in_flight(&p, m, flights);
	p.rows = rows;
	if (keys)
		put_line(&p, "", "q quit  sort: t b o l  by: r w p f m c n  space pause  ? help");
	if (p.used < p.last)
		hr_screen_text_put(to, "\033[J", 3);
}

static void print_escaped(FILE *out, const char *text)
{
	char escaped[4 * LABEL_BYTES];

	hr_text_escape(escaped, sizeof(escaped), text, strlen(text));
	fputs(escaped, out);
}

void hr_top_print(FILE *out, const struct hr_top_display *k)
{
	const Headrace__LiveJob *m = k->job;
	const struct hr_top_table *t = k->table;
	const struct hr_top_row all = {.now = t->now, .waiters = t->waiters};
	const struct hr_human now = hr_screen_clock(m->real_ns);
	const char *clock = now.s;
	char label[LABEL_BYTES];

	fprintf(out, "%s job ", clock);
	print_escaped(out, m->job);
	fprintf(out, ": %u process%s, ", t->processes, t->processes == 1 ? "" : "es");
	if (t->waiters)
		fprintf(out, "%s input wait, %s steps/s, ", number(TOP_WAIT, &all, t).s,
			number(TOP_STEPS, &all, t).s);
	fprintf(out, "%s in I/O, %s ops/s, %s/s, %s lost\n", number(TOP_IN_IO, &all, t).s,
		number(TOP_OPS, &all, t).s, number(TOP_BYTES, &all, t).s, hr_text_count(m->lost).s);
	if (k->finding.loss[0] != '\0') {
		fprintf(out, "%s   last minute: ", clock);
		print_escaped(out, k->finding.loss);
		fputs(k->finding.action[0] != '\0' ? "; do: " : "", out);
		print_escaped(out, k->finding.action);
		putc('\n', out);
	}
	for (size_t i = 0; i < t->n && i < PRINT_ROWS; i++) {
		const struct hr_top_row *r = &t->rows[i];

		row_label(r, k->view, label, sizeof(label));
		fprintf(out, "%s   ", clock);
		if (t->waiters && k->view <= HR_TOP_PROCESS)
			fprintf(out, "%6s input wait ", number(TOP_WAIT, r, t).s);
		fprintf(out, "%7s in I/O %9s ops/s %10s/s  mean %10s  p99 %10s  ",
			number(TOP_IN_IO, r, t).s, number(TOP_OPS, r, t).s,
			number(TOP_BYTES, r, t).s, number(TOP_MEAN, r, t).s,
			number(TOP_P99, r, t).s);
		print_escaped(out, label);
		putc('\n', out);
	}
	if (t->n > PRINT_ROWS)
		fprintf(out, "%s   and %zu more\n", clock, t->n - PRINT_ROWS);
	if (m->n_in_flight)
		qsort(m->in_flight, m->n_in_flight, sizeof(*m->in_flight), by_age);
	for (size_t i = 0; i < m->n_in_flight && i < PRINT_ROWS; i++) {
		flight_label(m, m->in_flight[i], label, sizeof(label));
		fprintf(out, "%s   in flight for ", clock);
		print_escaped(out, label);
		putc('\n', out);
	}
	fflush(out);
}
