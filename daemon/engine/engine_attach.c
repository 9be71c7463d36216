/* SPDX-License-Identifier: Apache-2.0 */
/* Applies an ATTACH entry: makes the process, and adds what the process counted before. */
#include <errno.h>

#include "daemon/base/hello.h"
#include "common/procfs.h"
#include "daemon/engine/state.h"

#define AGE_SLACK_NS UINT64_C(1000000000)
/* Assumed age of a process that ended before headraced read its offer. */
#define UNKNOWN_AGE_NS UINT64_C(3600000000000)

static uint64_t age_ns(const struct hr_entry_attach *in)
{
	uint64_t started_ns = hr_procstat_ns(in->start_time);

	if (!in->start_time)
		return UNKNOWN_AGE_NS + AGE_SLACK_NS;
	return (in->now_ns > started_ns ? in->now_ns - started_ns : 0) + AGE_SLACK_NS;
}

/* Adds what the process counted while no daemon ran. */
static void take_counters(struct hr_engine *e, const struct hr_entry_attach *in,
			  const struct hr_hello_item *item)
{
	uint64_t proc = in->proc, left = hr_count_most(in->cpus, age_ns(in));

	for (uint32_t i = 0; i + sizeof(struct hr_counter) <= item->bytes;
	     i += sizeof(struct hr_counter)) {
		enum hr_loss_reason reason;
		struct hr_counter c;

		memcpy(&c, item->value + i, sizeof(c));
		if (c.total.count > left) {
			e->stats.hostile++;
			hr__loss(e, proc, HR_LOSS_HOSTILE, 0, 1);
			return;
		}
		left -= c.total.count;
		if (hr__counts_no_operations(c.op, &reason))
			hr__loss(e, proc, reason, 0, c.total.count);
		if (c.op >= HR_OP_MAX || !e->trait[c.op].class || !c.total.count ||
		    c.total.bytes > HR_COUNT_MOST || c.total.ticks > HR_COUNT_MOST)
			continue;
		e->stats.lost += c.total.count;
		e->stats.detached += c.total.count;
		hr_losses_add(&e->losses,
			      &(struct hr_loss){proc, HR_LOSS_DETACHED, c.op, c.total.count,
						c.total.bytes,
						hr_ticks_span_ns(&e->line, c.total.ticks)});
	}
}

static void keep_text(char **text, size_t *bytes, const struct hr_hello_item *item)
{
	size_t n = item->bytes < HR_PROC_TEXT ? item->bytes : HR_PROC_TEXT;

	if (*text)
		return;
	*text = malloc(n + 1);
	if (!*text)
		return;
	memcpy(*text, item->value, n);
	*bytes = n;
}

/*
 * Sets *ret to VALUE if `text` is "NAME=VALUE". Returns false if *ret is already set, if `text` has
 * another name, or if VALUE is not a number.
 */
static bool engine_attach_take_number(const char *text, size_t bytes, const char *name, char **ret)
{
	size_t skip = strlen(name), digits = 0;
	char *copy;

	if (bytes <= skip || bytes - skip > 20 || memcmp(text, name, skip) != 0 ||
	    (*ret)[0] != '\0')
		return false;
	while (skip + digits < bytes && text[skip + digits] >= '0' && text[skip + digits] <= '9')
		digits++;
	copy = skip + digits == bytes ? strndup(text + skip, digits) : NULL;
	if (!copy)
		return false;
	*ret = copy; /* do not free the old value: it is a constant of protobuf-c */
	return true;
}

/* Sets the array of the job from a process: Slurm's prolog does not have these variables. */
static void take_array(struct hr_engine *e, const char *text, size_t bytes)
{
	bool job =
	    engine_attach_take_number(text, bytes, "SLURM_ARRAY_JOB_ID=", &e->job->array_job);
	bool task =
	    engine_attach_take_number(text, bytes, "SLURM_ARRAY_TASK_ID=", &e->job->array_task);

	if ((job || task) && e->job->array_job[0] != '\0' && e->job->array_task[0] != '\0')
		hr__emit_job(e, "running", 0);
}

/* Sets the number of restarts of the ranks, which torchrun counts. */
static void take_restart(struct hr_identity *id, const char *text, size_t bytes)
{
	static const char name[] = "TORCHELASTIC_RESTART_COUNT=";
	unsigned n = 0;

	if (bytes <= sizeof(name) - 1 || memcmp(text, name, sizeof(name) - 1) != 0)
		return;
	for (size_t i = sizeof(name) - 1; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return;
		n = n * 10 + (unsigned)(text[i] - '0');
		if (n > UINT8_MAX - 1)
			n = UINT8_MAX - 1;
	}
	id->restart_plus1 = (uint8_t)(n + 1);
}

/* Keeps the thread that covers the process, for the probes of the next daemon. */
static void take_cover(struct hr_identity *id, const struct hr_hello_item *item)
{
	struct hr_item_cover cover;

	memcpy(&cover, item->value, sizeof(cover));
	id->cover = cover.thread;
	id->covered = 1;
}

static void take_items(struct hr_engine *e, struct hr_proc *p, const struct hr_entry_attach *in)
{
	struct hr_hello_item item;
	size_t at = 0;

	while (hr_hello_next(in->hello, in->hello_bytes, &at, &item)) {
		switch (item.kind) {
		case HR_ITEM_EXE:
			keep_text(&p->exe, &p->exe_bytes, &item);
			break;
		case HR_ITEM_ARGV:
			keep_text(&p->cmdline, &p->cmdline_bytes, &item);
			break;
		case HR_ITEM_ENV:
			hr_rank_env(&p->id.env, (const char *)item.value, item.bytes);
			take_array(e, (const char *)item.value, item.bytes);
			take_restart(&p->id, (const char *)item.value, item.bytes);
			if (item.bytes > 12 && memcmp(item.value, "MASTER_ADDR=", 12) == 0)
				p->id.rendezvous = 1;
			break;
		case HR_ITEM_DEFAULTS:
			if (item.bytes <= HR_EXCLUDED_TEXT)
				keep_text(&p->defaults, &p->defaults_bytes, &item);
			break;
		case HR_ITEM_COVER:
			take_cover(&p->id, &item);
			break;
		case HR_ITEM_COUNTERS:
			take_counters(e, in, &item);
			break;
		default:
			break;
		}
	}
	/* Each word ends with NUL. Further NULs at the end are not part of the command line. */
	while (p->cmdline_bytes && p->cmdline[p->cmdline_bytes - 1] == 0)
		p->cmdline_bytes--;
	for (size_t i = 0; i < p->cmdline_bytes; i++)
		if (p->cmdline[i] == 0)
			p->cmdline[i] = ' ';
}

/*
 * Returns the start of the process, before which none of its operations can have begun. The first
 * operation may begin long before the attach: a process attaches at the end of an open, and the
 * open may wait for an automounter.
 */
static uint64_t min_ticks(const struct hr_engine *e, const struct hr_entry_attach *in)
{
	uint64_t age = hr_ns_ticks(&e->line, age_ns(in));

	return in->now_ticks > age ? in->now_ticks - age : 0;
}

/* Ends a process of a notice: its program runs without the shim, or its shim cannot work. */
static void end_unrecorded(struct hr_engine *e, struct hr_proc *p, uint64_t now_ns, uint32_t flags)
{
	enum hr_loss_reason reason = HR_LOSS_NO_PRELOAD;

	if (flags & HR_HELLO_UNABLE)
		reason = HR_LOSS_UNABLE;
	else if (flags & HR_HELLO_STATIC)
		reason = HR_LOSS_STATIC;
	else if (flags & HR_HELLO_32BIT)
		reason = HR_LOSS_32BIT;
	hr__loss(e, p->id.proc, reason, 0, 1);
	p->end_ns = now_ns;
	hr__proc_forget(e, p);
	e->stats.processes--;
}

int hr__apply_attach(struct hr_engine *e, const struct hr_entry_attach *in)
{
	struct hr_identity id = {0};
	struct hr_hello hello;
	struct hr_proc *p;

	if (in->hello_bytes > in->h.bytes - sizeof(*in) ||
	    hr_hello_check(in->hello, in->hello_bytes, &hello))
		return -EBADMSG;
	id.proc = in->proc;
	id.token = in->token;
	id.exec_of = in->exec_of;
	id.start_ns = hr_ticks_ns(&e->line, in->now_ticks);
	id.start_time = in->start_time;
	id.min_ticks = min_ticks(e, in);
	id.pid = in->pid;
	id.image = hello.image;
	id.ppid = in->ancestors[0];
	id.uid = in->uid;
	id.cpus = in->cpus;
	id.first_cpu = in->first_cpu;
	id.cpu_quota_milli = in->cpu_quota_milli;
	id.deselected = in->deselected != 0;
	hr__missed_came(e, in->pid, hello.image);
	e->last_hello = (struct hr_last_hello){.ticks = hello.start_ticks, .pid = in->pid};
	p = hr__proc_new(e, &id);
	if (!p)
		return -ENOMEM;
	e->stats.processes_total++;
	take_items(e, p, in);
	hr__attribute_attach(e, p, hello.flags & HR_HELLO_FORKED, hello.parent_session,
			     in->ancestors);
	hr__proc_dirty(e, p);
	if (in->deselected)
		p->end_ns = in->now_ns;
	if (hello.kind == HR_HELLO_EXEC)
		end_unrecorded(e, p, in->now_ns, hello.flags);
	return 0;
}
