/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace as Chrome's JSON (Trace Event Format), compressed by gzip. A member that has no
 * value is left out: viewers refuse `"dur": null`.
 *
 * A track that is not a thread's own gets a thread id above all others, because the format has no
 * tracks. Times are microseconds, with three decimals.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "export/text_out.h"
#include "export/trace/trace_out.h"

#define LINE_BYTES 1024u /* more than a line without texts needs */
/* Typical bytes of an operation, a region, a value of a counter: compressed, and not. */
#define SLICE_BYTES(plain)   ((plain) ? 230u : 40u)
#define REGION_BYTES(plain)  ((plain) ? 350u : 100u)
#define COUNTER_BYTES(plain) ((plain) ? 110u : 40u)
#define LANE_TID	     10000000u /* above the kernel's thread ids */

struct chrome {
	struct hr_trace_out out;
	struct hr_text_out text;
	int error;
};

#define put_literal(c, literal) hr_text_out_literal(&(c)->text, literal)
#define put_string(c, text_)	hr_text_out_string(&(c)->text, (text_).data, (text_).bytes)

/* Begins a line, with room for texts of `bytes` bytes. Returns false after an error. */
static bool chrome_line(struct chrome *c, size_t bytes)
{
	int r = c->error < 0 ? c->error : hr_text_out_room(&c->text, LINE_BYTES + 8 * bytes);

	c->error = r;
	if (r == 0)
		put_literal(c, ",\n{");
	return r == 0;
}

static uint64_t shown_tid(const struct hr_track *t)
{
	return t->tid != 0 ? (uint64_t)t->tid : LANE_TID + t->id;
}

static void put_ids(struct chrome *c, const struct hr_track *t)
{
	put_literal(c, ",\"pid\":");
	hr_text_out_int(&c->text, t->pid);
	put_literal(c, ",\"tid\":");
	hr_text_out_uint(&c->text, shown_tid(t));
}

static void put_time(struct chrome *c, uint64_t ns)
{
	char rest[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
			(char)('0' + ns % 10)};

	put_literal(c, ",\"ts\":");
	hr_text_out_uint(&c->text, ns / 1000);
	hr_text_out_bytes(&c->text, rest, sizeof(rest));
}

static void chrome_begin(struct hr_trace_out *o, uint64_t boot_ns, uint64_t real_ns)
{
	struct chrome *c = (struct chrome *)o;

	c->error = hr_text_out_room(&c->text, LINE_BYTES);
	if (c->error < 0)
		return;
	put_literal(c, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"boot_ns\":");
	hr_text_out_uint(&c->text, boot_ns);
	put_literal(c, ",\"real_ns\":");
	hr_text_out_uint(&c->text, real_ns);
	put_literal(c,
		    "},\"traceEvents\":[\n{\"name\":\"headrace\",\"ph\":\"M\",\"pid\":0,\"tid\":0,"
		    "\"args\":{}}");
}

/* Writes an argument of metadata, unless it is 0. */
static void put_number(struct chrome *c, const char *name, uint64_t value)
{
	if (value == 0)
		return;
	put_literal(c, ",\"");
	hr_text_out_bytes(&c->text, name, strlen(name));
	put_literal(c, "\":");
	hr_text_out_uint(&c->text, value);
}

/*
 * Names a process or a thread, with what an import needs: parent and CPUs of a process, and the
 * thread of a track that has another id. A counter has its name in each value.
 */
static void chrome_track(struct hr_trace_out *o, const struct hr_track *t)
{
	struct chrome *c = (struct chrome *)o;
	struct hr_bytes name = {t->name, strlen(t->name)};

	if (t->values != HR_TRACK_SLICES || !chrome_line(c, name.bytes))
		return;
	if (t->process)
		put_literal(c, "\"name\":\"process_name\",\"ph\":\"M\"");
	else
		put_literal(c, "\"name\":\"thread_name\",\"ph\":\"M\"");
	put_ids(c, t);
	put_literal(c, ",\"args\":{\"name\":");
	put_string(c, name);
	put_number(c, "ppid", t->ppid > 0 ? (uint64_t)t->ppid : 0);
	put_number(c, "cpus", t->cpus);
	put_number(c, "first_cpu", t->first_cpu);
	put_number(c, "cpu_quota_milli", t->cpu_quota_milli);
	put_number(c, "tid", t->thread != shown_tid(t) ? t->thread : 0);
	put_literal(c, "}}");
}

static void put_arguments(struct chrome *c, const struct hr_slice *s)
{
	put_literal(c, ",\"args\":{");
	for (size_t i = 0; i < s->n_args; i++) {
		const struct hr_argument *a = &s->args[i];
		const char *name = hr_arg_name(a->name);

		if (i > 0)
			put_literal(c, ",");
		put_literal(c, "\"");
		hr_text_out_bytes(&c->text, name, strlen(name));
		put_literal(c, "\":");
		if (a->type == HR_ARG_INT)
			hr_text_out_int(&c->text, a->value);
		else if (a->type == HR_ARG_BOOL)
			put_literal(c, "true");
		else
			put_string(c, a->text);
	}
	put_literal(c, "}");
}

static void chrome_slice(struct hr_trace_out *o, const struct hr_slice *s)
{
	static const char phases[] = {
	    [HR_SLICE_BEGIN] = 'B', [HR_SLICE_END] = 'E', [HR_SLICE_INSTANT] = 'i'};
	struct chrome *c = (struct chrome *)o;
	size_t bytes = s->name_text.bytes + s->category_text.bytes;

	for (size_t i = 0; i < s->n_args; i++)
		bytes += s->args[i].text.bytes;
	if (!chrome_line(c, bytes))
		return;
	put_literal(c, "\"ph\":\"");
	hr_text_out_bytes(&c->text, &phases[s->type], 1);
	put_literal(c, "\"");
	put_ids(c, s->track);
	put_time(c, s->ns);
	if (s->type != HR_SLICE_END) {
		put_literal(c, ",\"name\":");
		put_string(c, s->name_text);
		put_literal(c, ",\"cat\":");
		put_string(c, s->category_text);
		put_arguments(c, s);
	}
	if (s->type == HR_SLICE_INSTANT)
		put_literal(c, ",\"s\":\"t\"");
	put_literal(c, "}");
}

static void chrome_counter(struct hr_trace_out *o, uint64_t ns, const struct hr_track *t,
			   double value)
{
	struct chrome *c = (struct chrome *)o;
	struct hr_bytes name = {t->name, strlen(t->name)};
	char number[64];
	int n;

	if (!chrome_line(c, name.bytes))
		return;
	put_literal(c, "\"ph\":\"C\"");
	put_ids(c, t);
	put_time(c, ns);
	put_literal(c, ",\"name\":");
	put_string(c, name);
	n = snprintf(number, sizeof(number), ",\"args\":{\"value\":%.17g}}",
		     isfinite(value) ? value : 0);
	hr_text_out_bytes(&c->text, number, (size_t)n);
}

static int chrome_end(struct hr_trace_out *o)
{
	struct chrome *c = (struct chrome *)o;
	int r = c->error, done;

	if (r == 0)
		r = hr_text_out_room(&c->text, LINE_BYTES);
	if (r == 0)
		put_literal(c, "\n]}\n");
	done = hr_text_out_done(&c->text);
	free(c);
	return r < 0 ? r : done;
}

int hr_chrome_out_new(FILE *to, bool plain, struct hr_trace_out **ret)
{
	struct chrome *c = malloc(sizeof(*c));
	int r = c != NULL ? hr_text_out_init(&c->text, to, plain) : -ENOMEM;

	if (r < 0) {
		free(c);
		return r;
	}
	c->out = (struct hr_trace_out){.begin = chrome_begin,
				       .track = chrome_track,
				       .slice = chrome_slice,
				       .counter = chrome_counter,
				       .end = chrome_end,
				       .slice_bytes = SLICE_BYTES(plain),
				       .region_bytes = REGION_BYTES(plain),
				       .counter_bytes = COUNTER_BYTES(plain),
				       .paths = plain};
	c->error = 0;
	*ret = &c->out;
	return 0;
}
