/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces in Chrome's JSON format: of torch.profiler, of `headrace export --to chrome`, and of other
 * programs. An object with the member traceEvents, or only the array of events. The file is read
 * event by event, and is never in memory as a whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/chrome/chrome.h"

#define WINDOW_BYTES (512u << 10)
#define STOP_EVENTS  4096u	     /* the signal is checked after so many events */
#define TORCH_PID    "CPU functions" /* of torch without kineto, which writes only an array */

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Returns the next byte that is not blank, without taking it; 0 at the end; or -errno. */
static int window_peek(struct hr_window *b)
{
	for (;;) {
		int r;

		while (b->at < b->used && strchr(" \n\t\r", b->p[b->at]) && b->p[b->at])
			b->at++;
		if (b->at < b->used)
			return (unsigned char)b->p[b->at];
		r = hr_window_more(b);
		if (r <= 0)
			return r;
	}
}

/* Skips a value that is not valid or too long, by its brackets and quotes. 1; 0: cut; -errno. */
static int window_skip(struct hr_window *b)
{
	bool string = false, escaped = false;
	unsigned depth = 0;
	size_t taken = 0;

	for (;; b->at++) {
		char ch;

		while (b->at == b->used) {
			int r = hr_window_more(b);

			if (r <= 0)
				return r;
		}
		ch = b->p[b->at];
		taken++;
		if (string) {
			string = escaped || ch != '"';
			escaped = !escaped && ch == '\\';
		} else if (ch == '"') {
			string = true;
		} else if (ch == '{' || ch == '[') {
			depth++;
		} else if ((ch == '}' || ch == ']') && depth > 0) {
			depth--;
		} else if (depth == 0 && (ch == ',' || ch == '}' || ch == ']') && taken > 1) {
			return 1;
		}
	}
}

/* ---- members besides the events -------------------------------------------------------------- */

/* Reads an integer member of an object. False: it has none. */
static bool number_find(const struct hr_json_part *object, const char *name, int64_t *ret)
{
	struct hr_json_part value;

	return object->type == HR_JSON_OBJECT &&
	       hr_json_part_find(object->p, object->n, name, &value) &&
	       hr_json_part_int(&value, ret);
}

static void distributed_take(struct chrome_trace *c, const struct hr_json_part *info)
{
	int64_t number;

	if (number_find(info, "rank", &number) && number >= 0 && number <= INT32_MAX)
		c->rank = (int32_t)number;
	if (number_find(info, "world_size", &number) && number >= 0 && number <= INT32_MAX)
		c->world_size = (uint32_t)number;
}

/* The clocks of headrace's own files. */
static void clocks_take(struct chrome_trace *c, const struct hr_json_part *data)
{
	int64_t ns;

	if (number_find(data, "boot_ns", &ns)) {
		c->clock_ns -= ns;
		c->own = true;
	}
	if (number_find(data, "real_ns", &ns)) {
		c->clock_ns += ns;
		c->clock_known = true;
	}
}

static int member_take(struct chrome_trace *c, const struct hr_json_part *key,
		       const struct hr_json_part *value)
{
	if (hr_json_part_is(key, "schemaVersion") || hr_json_part_is(key, "deviceProperties"))
		c->torch = true;
	if (hr_json_part_is(key, "baseTimeNanoseconds") && hr_json_part_int(value, &c->clock_ns))
		c->clock_known = c->torch = true;
	if (hr_json_part_is(key, "distributedInfo"))
		distributed_take(c, value);
	if (hr_json_part_is(key, "otherData"))
		clocks_take(c, value);
	if (!hr_json_part_is(key, "host_name") || value->type != HR_JSON_STRING || value->escaped ||
	    value->n == 0 || c->host)
		return 0;
	c->host = strndup(value->p, value->n);
	return c->host ? 0 : -ENOMEM;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Reads the event at b->at. 1; 0: the file is cut; or a fatal error. */
static int event_read(struct chrome_trace *c, struct hr_window *b)
{
	struct chrome_event e;
	const char *at;
	int r;

	c->n_events++;
	for (;;) {
		at = b->p + b->at;
		r = hr__chrome_event_read(&at, b->p + b->used, &e);
		if (r != -EAGAIN)
			break;
		r = hr_window_more(b);
		if (r == -E2BIG)
			break;
		if (r <= 0)
			return r;
	}
	if (!r && hr__chrome_event_is_empty(b->p + b->at)) {
		c->n_events--;
		b->at = (size_t)(at - b->p);
		return 1;
	}
	if (!r) {
		if (!c->torch && e.cat.type == HR_JSON_NONE && hr_json_part_is(&e.pid, TORCH_PID))
			c->torch = true;
		b->at = (size_t)(at - b->p);
		r = hr__chrome_event(c, &e);
		c->n_bad += r == -EBADMSG;
		return r && r != -EBADMSG ? r : 1;
	}
	c->n_bad++;
	return window_skip(b);
}

/*
 * Reads the array of events, after its '['. `alone`: it is the whole trace, so its last bracket may
 * be missing, and that of another trace follow. 1: it ended; 0: the file is cut; or a fatal error.
 */
static int events_read(struct chrome_trace *c, struct hr_window *b, bool alone)
{
	for (uint64_t n = 0;; n++) {
		int r = window_peek(b);

		if (r <= 0)
			return r;
		if (n % STOP_EVENTS == 0 && hr_import_stopped(c->f))
			return -ECANCELED;
		if (r == '[' && alone)
			return 1;
		if (r == ',' || r == ']') {
			b->at++;
			if (r == ']')
				return 1;
			continue;
		}
		r = event_read(c, b);
		if (r <= 0)
			return r;
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Reads a value in memory. 1; 0: cut; -E2BIG, -EBADMSG. */
static int value_read(struct hr_window *b, struct hr_json_part *ret)
{
	for (;;) {
		const char *at = b->p + b->at;
		int r = hr_json_part_read(&at, b->p + b->used, ret);

		if (!r) {
			b->at = (size_t)(at - b->p);
			return 1;
		}
		if (r != -EAGAIN)
			return r;
		r = hr_window_more(b);
		if (r <= 0)
			return r;
	}
}

/* Reads a member of the file's object, after its key and colon. 1; 0: cut; or a fatal error. */
static int member_read(struct chrome_trace *c, struct hr_window *b, const char *name, size_t bytes)
{
	const struct hr_json_part key = {.p = name, .n = bytes, .type = HR_JSON_STRING};
	struct hr_json_part value;
	int r = window_peek(b);

	if (r <= 0)
		return r;
	c->is_trace |= hr__chrome_member_is(&key);
	if (r == '[' && hr_json_part_is(&key, "traceEvents")) {
		b->at++;
		return events_read(c, b, false);
	}
	r = value_read(b, &value);
	if (r == 1)
		return member_take(c, &key, &value) ? -ENOMEM : 1;
	if (r != -E2BIG && r != -EBADMSG)
		return r;
	c->n_events++;
	c->n_bad++;
	return window_skip(b);
}

static int key_read(struct hr_window *b, char *name, size_t room, size_t *ret_bytes)
{
	struct hr_json_part key;
	int r = value_read(b, &key);

	if (r <= 0)
		return r;
	if (key.type != HR_JSON_STRING)
		return 0;
	*ret_bytes = key.n < room ? key.n : room;
	memcpy(name, key.p, *ret_bytes);
	r = window_peek(b);
	if (r != ':')
		return r < 0 ? r : 0;
	b->at++;
	return 1;
}

/* Reads the object of the file, after its '{'. 1: it ended; 0: cut; or a fatal error. */
static int file_object_read(struct chrome_trace *c, struct hr_window *b)
{
	char name[64];
	size_t bytes;

	for (;;) {
		int r = window_peek(b);

		if (r <= 0)
			return r;
		if (r == '}' || r == ',') {
			b->at++;
			if (r == '}')
				return 1;
			continue;
		}
		r = key_read(b, name, sizeof(name), &bytes);
		if (r == 1)
			r = member_read(c, b, name, bytes);
		if (r <= 0)
			return r == -EBADMSG || r == -E2BIG ? 0 : r;
	}
}

static int file_read(struct chrome_trace *c, struct hr_window *b)
{
	int r = window_peek(b);
	bool array = r == '[';

	if (r <= 0)
		return r;
	b->at++;
	c->is_trace = array;
	r = array ? events_read(c, b, true) : file_object_read(c, b);
	if (r == 0)
		c->cut =
		    !array || b->at < b->used; /* the last bracket of an array may be missing */
	return r < 0 ? r : 0;
}

static void problems_report(struct chrome_trace *c)
{
	struct hr_import_file *f = c->f;

	hr_import_bad(f, &(struct hr_import_bad){c->n_bad, c->n_events, "events", 0});
	hr_import_missing(f, HR_LOSS_IMPORT_CUT, c->cut && !hr_input_cut(f->input),
			  "the file is cut: imported up to there");
	hr_import_missing(f, HR_LOSS_IMPORT_KINDS, c->n_other,
			  "%" PRIu64 " counters and events of other kinds were not imported",
			  c->n_other);
	hr_import_missing(f, HR_LOSS_IMPORT_LINES, c->n_alone,
			  "%" PRIu64 " ends of slices have no begin", c->n_alone);
	if (c->s && !c->clock_known && c->last_ns < HR_IMPORT_WALL_LEAST_NS)
		hr_import_problem(f, "its times begin at 0: the time of day is unknown");
	hr_import_missing(f, HR_LOSS_IMPORT_EMPTY, !c->s && !hr_input_cut(f->input), "no events");
}

static void clock_set(struct chrome_trace *c)
{
	if (c->s)
		hr_import_clock(c->s, c->clock_ns,
				c->clock_known || c->last_ns >= HR_IMPORT_WALL_LEAST_NS);
}

/* Reads a trace. *ret_cut: nothing can be read after it. */
static int trace_read(struct hr_import_file *f, struct hr_window *b, bool *ret_cut)
{
	struct chrome_trace c = {.f = f, .rank = -1};
	int r = file_read(&c, b);

	clock_set(&c); /* the last regions need it to find their steps */
	if (!r)
		r = hr__chrome_finish(&c);
	clock_set(&c);
	if (!r && !c.is_trace)
		r = HR_READER_OTHER;
	if (!r)
		problems_report(&c);
	hr__chrome_done(&c);
	*ret_cut = c.cut;
	return r;
}

/*
 * Reads the traces that follow the first one: a program that ran again added its own one, or files
 * were joined. They have clocks and processes of their own.
 */
static int further_read(struct hr_import_file *f, struct hr_window *b)
{
	bool cut = false;
	int r = 0;

	while (!r && !cut && ((r = window_peek(b)) == '{' || r == '[')) {
		f->part++;
		r = trace_read(f, b, &cut);
	}
	if (r > 0) {
		hr_import_missing(f, HR_LOSS_IMPORT_LINES, 1,
				  "the rest of the file is no trace: not imported");
		r = 0;
	}
	return r;
}

static int chrome_read(struct hr_import_file *f)
{
	struct hr_window b;
	int r = hr_window_init(&b, f->input, WINDOW_BYTES);
	bool cut = false;

	if (!r)
		r = trace_read(f, &b, &cut);
	if (!r && !cut)
		r = further_read(f, &b);
	free(b.p);
	return r;
}

const struct hr_reader hr_reader_chrome = {
    .name = "chrome",
    .what = "Chrome trace",
    .probe = hr__chrome_probe,
    .read = chrome_read,
};
