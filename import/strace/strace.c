/* SPDX-License-Identifier: Apache-2.0 */
/* Text that strace writes: its files, its lines, and messages about what is missing. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/strace/strace_lines.h"
#include "import/strace/strace_state.h"

#define PROBE_LINES 32u
#define CHECK_LINES 65536u
#define COMMAND	    "strace -f -ttt -T -y -o FILE COMMAND"

/* ---- detection ------------------------------------------------------------------------------- */

struct probe {
	bool is_strace, has_tid;
	enum hr_strace_clock clock;
};

/* Whether the first lines are those of strace. */
static struct probe head_probe(const uint8_t *head, size_t bytes)
{
	const char *p = (const char *)head, *end = p + bytes, *next;
	struct hr_strace_line l;
	struct hr_strace_call c;
	struct probe ret = {0};

	for (unsigned i = 0; i < PROBE_LINES && p < end; i++, p = next + 1) {
		next = memchr(p, '\n', (size_t)(end - p));
		if (!next)
			next = end;
		if (hr__strace_line(p, (size_t)(next - p), &l))
			return (struct probe){0};
		if (l.kind == HR_STRACE_NOTHING)
			continue;
		if (l.kind == HR_STRACE_CALL && hr__strace_call(l.text, &c) && next < end)
			return (struct probe){0};
		return (struct probe){true, l.tid != 0, l.clock};
	}
	return ret;
}

static bool strace_probe(const uint8_t *head, size_t bytes)
{
	return head_probe(head, bytes).is_strace;
}

/* ---- files of strace -ff --------------------------------------------------------------------- */

/* The pid at the end of NAME.PID or NAME.PID.gz. 0: none. */
static int32_t path_pid(const char *path, size_t *ret_stem)
{
	static const char gz[] = ".gz";
	size_t n = strlen(path), i;
	unsigned long pid;

	if (n > strlen(gz) && strcmp(path + n - strlen(gz), gz) == 0)
		n -= strlen(gz);
	for (i = n; i > 0 && isdigit((unsigned char)path[i - 1]);)
		i--;
	*ret_stem = i;
	if (i == n || n - i > 9 || i == 0 || path[i - 1] != '.')
		return 0;
	pid = strtoul(path + i, NULL, 10);
	return (int32_t)pid;
}

static bool same_trace(const char *a, const char *b)
{
	size_t n, m;

	return path_pid(a, &n) && path_pid(b, &m) && n == m && memcmp(a, b, n) == 0;
}

/* Whether the files of strace -ff can be merged by their times. */
static bool clock_joins(enum hr_strace_clock clock)
{
	return clock == HR_STRACE_UNIX || clock == HR_STRACE_DAY;
}

/* Opens a file of the same strace -ff. NULL: it is none, or cannot be read. */
static struct hr_input *part_open(const struct hr_import_file *f)
{
	struct hr_input *in;
	const uint8_t *head;
	struct probe probe;
	long n;

	if (hr_input_open(f->path, &in))
		return NULL;
	n = hr_input_head(in, &head);
	probe = head_probe(head, n > 0 ? (size_t)n : 0);
	if (probe.is_strace && clock_joins(probe.clock) && !probe.has_tid)
		return in;
	hr_input_close(in);
	return NULL;
}

/* Whether an earlier file of the same strace -ff has the lines of this one, too. */
static bool part_follows(const struct hr_import_file *f)
{
	for (size_t i = 0; i < f->index; i++) {
		const struct hr_import_file *other = hr_import_file_at(f, i);
		struct hr_input *in;

		if (!same_trace(other->path, f->path))
			continue;
		in = part_open(other);
		hr_input_close(in);
		if (in)
			return true;
	}
	return false;
}

static int lines_add(struct strace *p, struct strace_merge *m, struct hr_input *in, int32_t tid)
{
	struct strace_lines *l = hr__strace_lines_new(in, tid, p->births_only ? NULL : p->f->input);

	return l ? hr__strace_merge_add(m, l) : -ENOMEM;
}

/* Adds this file, and with strace -ff all others of the same trace. */
static int parts_add(struct strace *p, struct strace_merge *m)
{
	const struct hr_import_file *f = p->f;
	size_t stem;
	int32_t pid = p->merged ? path_pid(f->path, &stem) : 0;
	struct hr_input *in;
	const uint8_t *head;
	int r = hr_input_open(f->path, &in);

	if (!r) {
		(void)hr_input_head(in, &head);
		r = lines_add(p, m, in, pid);
	}
	for (size_t i = f->index + 1; p->merged && i < hr_import_files(f) && !r; i++) {
		const struct hr_import_file *other = hr_import_file_at(f, i);

		if (!same_trace(other->path, f->path))
			continue;
		in = part_open(other);
		if (in)
			r = lines_add(p, m, in, path_pid(other->path, &stem));
	}
	return r;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int call_line(struct strace *p, const struct hr_strace_line *l, int32_t tid)
{
	const struct strace_shape *shape = hr__strace_shape(p, l->name);
	bool life = shape && shape->how == STRACE_CLONE;

	if (l->kind == HR_STRACE_INTERRUPTED) {
		p->interrupted_tid = tid;
		p->interrupted_name = shape ? shape->name : "other";
	}
	if (!shape || (p->births_only && !life))
		return 0;
	if (l->kind != HR_STRACE_CALL)
		return hr__strace_pending_set(p, tid, shape, l->time_ns, l->text);
	return hr__strace_finish(p, tid, shape, l->text, l->time_ns, l->time_ns);
}

/* Joins the two parts of a call. */
static int resumed_line(struct strace *p, const struct hr_strace_line *l, int32_t tid)
{
	const struct strace_shape *shape = hr__strace_shape(p, l->name);
	struct strace_pending *pending;

	struct hr_strace_call c;

	if (!shape || (p->births_only && shape->how != STRACE_CLONE))
		return 0;
	pending = hr__strace_pending(p, tid);
	if (!pending && shape->how == STRACE_CLONE && !hr__strace_call(l->text, &c) && c.ret == 0)
		return 0; /* the first line of a child, whose parent has the begin */
	if (!pending || pending->shape != shape)
		return -EBADMSG;
	return hr__strace_pending_finish(p, pending, l->text, l->time_ns);
}

/* A task has ended in a call, or the trace has. */
static int pending_end(struct strace *p, struct strace_pending *pending, uint64_t end_ns)
{
	static const char rest[] = ") = ?";

	if (!pending)
		return 0;
	return hr__strace_pending_finish(p, pending, (struct hr_strace_text){rest, strlen(rest)},
					 end_ns);
}

/* The first call of a program that shows the tid of a task whose lines have none. */
static void main_find(struct strace *p, const struct hr_strace_line *l)
{
	static const char name[] = "set_tid_address";
	struct hr_strace_call c;

	if (!l->tid && !p->main_tid && l->kind == HR_STRACE_CALL && l->name.n == strlen(name) &&
	    memcmp(l->name.p, name, l->name.n) == 0 && hr__strace_call(l->text, &c) == 0 &&
	    c.ret > 0 && c.ret <= INT32_MAX)
		p->main_tid = (int32_t)c.ret;
}

static int exit_line(struct strace *p, const struct hr_strace_line *l, int32_t tid)
{
	int r = pending_end(p, hr__strace_pending(p, tid), l->time_ns);
	int error = hr__strace_exit(p, tid, l->time_ns, l->text);

	return error ? error : r;
}

static int line_convert(struct strace *p, const struct hr_strace_line *l)
{
	int32_t tid = l->tid ? l->tid : p->main_tid;

	if (p->births_only)
		main_find(p, l);
	else if (l->kind != HR_STRACE_NOTHING)
		hr__strace_seen(p, tid);
	if (l->kind != HR_STRACE_NOTHING && l->clock != p->clock)
		return -EBADMSG;
	switch (l->kind) {
	case HR_STRACE_CALL:
	case HR_STRACE_UNFINISHED:
	case HR_STRACE_INTERRUPTED:
		return call_line(p, l, tid);
	case HR_STRACE_RESUMED:
		return resumed_line(p, l, tid);
	case HR_STRACE_EXITED:
	case HR_STRACE_KILLED:
		return p->births_only ? 0 : exit_line(p, l, tid);
	case HR_STRACE_SUPERSEDED:
		return hr__strace_supersede(p, l->other, tid);
	default:
		return 0;
	}
}

/* A line that cannot be scanned: the rest of an interrupted call, or a bad line. */
static int rest_convert(struct strace *p, struct hr_strace_line *l, const char *name)
{
	static const char unfinished[] = "<unfinished ...>";

	if (!name)
		return -EBADMSG;
	if (l->text.n == strlen(unfinished) && memcmp(l->text.p, unfinished, l->text.n) == 0)
		return 0; /* "<... clone resumed>" follows later */
	l->tid = p->interrupted_tid;
	l->name = (struct hr_strace_text){name, strlen(name)};
	return resumed_line(p, l, l->tid);
}

static void line_bad(struct strace *p)
{
	if (p->n_bad++ == 0)
		p->first_bad = p->n_lines;
}

/* Converts calls that have not finished at the end of the trace. */
static int rest_read(struct strace *p)
{
	int r = 0;

	for (uint32_t i = 0; i < p->n_pending && !r; i++) {
		r = p->pending[i].text ? pending_end(p, &p->pending[i], p->last_ns) : 0;
		if (r == -EBADMSG) {
			line_bad(p);
			r = 0;
		}
	}
	return r;
}

static int lines_read(struct strace *p)
{
	struct strace_merge m = {0};
	struct hr_strace_line l;
	bool bad, torn;
	int r = parts_add(p, &m), more = 0;

	while (!r && (more = hr__strace_merge_next(&m, &l, &bad, &torn)) > 0) {
		const char *interrupted = p->interrupted_name;

		p->n_lines++;
		if (l.kind != HR_STRACE_NOTHING || !l.text.n || *l.text.p != 's')
			p->interrupted_name = NULL; /* else a message of strace follows */
		r = bad ? rest_convert(p, &l, interrupted) : line_convert(p, &l);
		if (r == -EBADMSG) {
			if (torn)
				p->n_torn++;
			else
				line_bad(p);
			r = 0;
		}
		if (l.time_ns > p->last_ns)
			p->last_ns = l.time_ns;
		if (p->n_lines % CHECK_LINES == 0 && hr_import_stopped(p->f))
			r = -ECANCELED;
	}
	hr__strace_merge_done(&m);
	return r ? r : more;
}

/*
 * A child's lines may come before the result of the clone that made it. So the first pass finds all
 * clones. The files of strace -ff are merged by the starts of calls, and need no such pass.
 */
static int births_read(struct strace *p)
{
	int r;

	p->births_only = true;
	r = lines_read(p);
	p->births_only = false;
	hr__strace_pending_forget(p);
	p->interrupted_name = NULL;
	p->n_lines = p->n_bad = p->first_bad = p->n_torn = 0;
	return r;
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void options_report(struct strace *p)
{
	struct hr_import_file *f = p->f;
	uint64_t unseen = hr__strace_unseen(p);

	if (p->n_calls && !p->n_timed)
		hr_import_problem(f, "no durations: they need the option -T of strace");
	if (p->n_fds_bare && !p->n_fds_shown)
		hr_import_problem(f, "no paths of descriptors: headrace takes them from the calls "
				     "that opened them; the option -y of strace stores them");
	if (!p->n_fds_shown) /* with -y: they are not open */
		hr_import_missing(f, HR_LOSS_IMPORT_NOTED, p->n_unknown_fds,
				  "%" PRIu64
				  " calls use descriptors without a known file: not imported",
				  p->n_unknown_fds);
	hr_import_missing(f, HR_LOSS_IMPORT_NOTED, unseen,
			  "%" PRIu64 " child processes or threads are not in the trace: they need "
			  "the option -f of strace",
			  unseen);
	hr_import_missing(f, HR_LOSS_IMPORT_NOTED, p->n_submits,
			  "%" PRIu64
			  " calls submit I/O by io_uring or libaio, which strace does not show",
			  p->n_submits);
}

static void problems_report(struct strace *p)
{
	struct hr_import_file *f = p->f;

	hr_import_bad(f, &(struct hr_import_bad){p->n_bad, p->n_lines, "lines", p->first_bad});
	hr_import_missing(f, HR_LOSS_IMPORT_CUT, p->n_torn, "the last line is cut");
	options_report(p);
	hr_import_missing(f, HR_LOSS_IMPORT_EMPTY, !p->n_calls, "no file I/O");
}

/* Reports times without a date. False: the file cannot be imported. */
static bool clock_check(struct hr_import_file *f, const struct probe *probe)
{
	size_t stem;

	if (probe->clock == HR_STRACE_NO_CLOCK) {
		hr_import_problem(f, "no times: not imported; record with " COMMAND);
	} else if (probe->clock == HR_STRACE_STEP && !probe->has_tid && path_pid(f->path, &stem)) {
		hr_import_problem(f, "the times of -r and -ff have no common begin: not imported; "
				     "record with " COMMAND);
	} else {
		if (probe->clock == HR_STRACE_DAY)
			hr_import_problem(f, "its times have no date, which needs -ttt instead of "
					     "-t and -tt: the day is unknown");
		else if (probe->clock == HR_STRACE_STEP)
			hr_import_problem(f, "its times begin at 0, because strace had the option "
					     "-r: the time of day is unknown");
		return true;
	}
	hr_import_lose(f, HR_LOSS_IMPORT_FILE, 1);
	return false;
}

static int strace_read(struct hr_import_file *f)
{
	struct strace *p;
	const uint8_t *head;
	long n = hr_input_head(f->input, &head);
	struct probe probe = head_probe(head, n > 0 ? (size_t)n : 0);
	size_t stem;
	int r;

	if (!clock_check(f, &probe))
		return 0;
	if (!probe.has_tid && path_pid(f->path, &stem) && part_follows(f))
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->f = f;
	p->clock = probe.clock;
	p->merged = !probe.has_tid && path_pid(f->path, &stem);
	r = hr_import_stream(f, NULL, 0, &p->s);
	if (!r && p->clock != HR_STRACE_UNIX)
		hr_import_clock(p->s, 0, false);
	if (!r && !p->merged)
		r = births_read(p);
	if (!r)
		r = lines_read(p);
	if (!r)
		r = rest_read(p);
	if (!r)
		problems_report(p);
	hr__strace_done(p);
	free(p);
	return r;
}

const struct hr_reader hr_reader_strace = {
    .name = "strace",
    .what = "trace of strace",
    .probe = strace_probe,
    .read = strace_read,
};
