/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ops.h"

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "rig: %s\n", what);
	abort();
}

#define must(ok, what) ((ok) ? (void)0 : fail(what))

static void collect(struct rig *r)
{
	struct hr_out_list out;
	struct hr_out *o;

	hr_out_list_init(&out);
	hr_engine_take(r->engine, &out);
	while ((o = hr_out_list_pop(&out))) {
		must(r->n_frames < RIG_FRAMES, "too many frames");
		r->frames[r->n_frames++] = o;
	}
}

static void apply(struct rig *r)
{
	const struct hr_entry *e;

	while ((e = hr_journal_next(r->journal, hr_journal_gen(r->journal), &r->applied))) {
		hr_engine_apply(r->engine, e);
		if (hr_engine_known(r->engine)) {
			uint32_t n = hr_engine_known(r->engine);
			struct hr_entry_known *in = hr_journal_reserve(
			    r->journal, sizeof(*in) + n * sizeof(in->rows[0]), 0);

			must(in != NULL, "no room for KNOWN");
			in->n = n;
			hr_engine_known_rows(r->engine, in->rows);
			hr_journal_commit(r->journal, HR_ENTRY_KNOWN,
					  sizeof(*in) + n * sizeof(in->rows[0]));
		}
	}
	collect(r);
}

void rig_entry(struct rig *r, uint32_t kind, const void *entry, size_t bytes)
{
	void *to = hr_journal_reserve(r->journal, bytes, 0);

	must(to != NULL, "journal full");
	memcpy(to, entry, bytes);
	hr_journal_commit(r->journal, kind, bytes);
	apply(r);
}

static void start(struct rig *r)
{
	Headrace__JobEvent job = HEADRACE__JOB_EVENT__INIT;
	struct {
		struct hr_entry_start e;
		uint8_t job[256];
	} in = {.e = {.next_seq = 2, .line = {0, 0, UINT64_C(1) << 32}, .level = HR_LEVEL_TRACE}};

	job.state = (char *)(uintptr_t) "running";
	in.e.now.boot_ns = RIG_START;
	in.e.job_bytes = (uint32_t)headrace__job_event__pack(&job, in.job);
	memmove(in.e.job, in.job, in.e.job_bytes);
	rig_entry(r, HR_ENTRY_START, &in, sizeof(in.e) + in.e.job_bytes);
}

void rig_init(struct rig *r)
{
	bool found;

	memset(r, 0, sizeof(*r));
	r->now = RIG_START;
	r->next_proc = 1;
	must(hr_batch_pool_new(1024, &r->pool) == 0, "pool");
	must(hr_journal_open(-1, 16u << 20, &r->journal, &found) == 0, "journal");
	must(hr_engine_new(r->pool, &r->engine) == 0, "engine");
	must(hr_journal_begin(r->journal) == 0, "begin");
	hr_journal_begun(r->journal);
	start(r);
}

void rig_clear(struct rig *r)
{
	for (unsigned i = 0; i < r->n_frames; i++)
		hr_out_free(r->frames[i], r->pool);
	r->n_frames = 0;
}

void rig_done(struct rig *r)
{
	rig_clear(r);
	hr_engine_free(r->engine);
	hr_journal_close(r->journal);
	hr_batch_pool_free(r->pool);
}

/* ---- entries -------------------------------------------------------------------------------------- */

static size_t put_item(uint8_t *to, uint16_t kind, const char *text, size_t bytes)
{
	struct hr_item_hdr hdr = {kind, (uint16_t)bytes};

	memcpy(to, &hdr, sizeof(hdr));
	memcpy(to + sizeof(hdr), text, bytes);
	return sizeof(hdr) + bytes;
}

uint64_t rig_attach(struct rig *r, const struct rig_hello *h)
{
	struct {
		struct hr_entry_attach e;
		uint8_t hello[4096];
	} in = {
	    .e = {.proc = r->next_proc++, .now_ns = r->now, .now_ticks = r->now, .pid = h->pid}};
	struct hr_hello hello = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .word_bytes = 8};
	uint8_t *to = in.e.hello + sizeof(hello);
	char args[512];

	in.e.token = in.e.proc + 1000;
	in.e.start_time = h->start_time ? h->start_time : r->now / (RIG_SECOND / 100) + in.e.proc;
	in.e.exec_of = h->exec_of;
	in.e.ancestors[0] = h->ppid;
	hello.kind = HR_HELLO_ATTACH;
	hello.image = h->image;
	hello.flags = h->forked ? HR_HELLO_FORKED : 0;
	hello.parent_session = h->parent ? h->parent + 1000 : 0;
	to += put_item(to, HR_ITEM_EXE, h->exe ? h->exe : "/usr/bin/python3",
		       strlen(h->exe ? h->exe : "/usr/bin/python3"));
	snprintf(args, sizeof(args), "%s", h->cmdline ? h->cmdline : "python3 train.py");
	for (char *c = args; *c; c++)
		if (*c == ' ')
			*c = '\0';
	to += put_item(to, HR_ITEM_ARGV, args,
		       strlen(h->cmdline ? h->cmdline : "python3 train.py") + 1);
	for (unsigned i = 0; i < 8 && h->env[i]; i++)
		to += put_item(to, HR_ITEM_ENV, h->env[i], strlen(h->env[i]));
	snprintf(args, sizeof(args), "%s", h->defaults ? h->defaults : "");
	for (char *c = args; *c; c++)
		if (*c == ',')
			*c = '\0';
	to += put_item(to, HR_ITEM_DEFAULTS, args, h->defaults ? strlen(h->defaults) : 0);
	if (h->detached.op)
		to +=
		    put_item(to, HR_ITEM_COUNTERS, (const char *)&h->detached, sizeof(h->detached));
	hello.bytes = (uint32_t)(to - in.e.hello);
	memcpy(in.e.hello, &hello, sizeof(hello));
	in.e.hello_bytes = hello.bytes;
	rig_entry(r, HR_ENTRY_ATTACH, &in, sizeof(in.e) + in.e.hello_bytes);
	return in.e.proc;
}

void rig_end(struct rig *r, uint64_t proc, const char *exit)
{
	struct hr_entry_end in = {.proc = proc, .now_ns = r->now};

	snprintf(in.exit, sizeof(in.exit), "%s", exit);
	rig_entry(r, HR_ENTRY_END, &in, sizeof(in));
}

void rig_excluded(struct rig *r, uint64_t proc, const uint64_t *totals, unsigned n)
{
	struct hr_entry_excluded in = {.proc = proc};

	memcpy(in.total, totals, n * sizeof(*totals));
	rig_entry(r, HR_ENTRY_EXCLUDED, &in, sizeof(in));
}

void rig_tick(struct rig *r, uint64_t now)
{
	struct hr_entry_tick in = {.line = {0, 0, UINT64_C(1) << 32}, .now = {now, now, 1}};

	r->now = now;
	rig_entry(r, HR_ENTRY_TICK, &in, sizeof(in));
}

static void run(struct rig *r, uint64_t proc, struct hr_run run, const struct hr_record *slots)
{
	size_t bytes = run.count * sizeof(*slots);
	struct hr_entry_records *in = calloc(1, sizeof(*in) + sizeof(run) + bytes);

	in->proc = proc;
	in->sweep_ticks = r->now;
	in->n_runs = 1;
	in->runs[0] = run;
	memcpy(in->runs + 1, slots, bytes);
	rig_entry(r, HR_ENTRY_RECORDS, in, sizeof(*in) + sizeof(run) + bytes);
	free(in);
}

void rig_records(struct rig *r, uint64_t proc, const struct hr_record *slots, unsigned n)
{
	run(r, proc, (struct hr_run){0, 0, n, r->next_index[proc % 64]}, slots);
	r->next_index[proc % 64] += n;
}

void rig_probed(struct rig *r, uint64_t proc, const struct hr_record *slots, unsigned n)
{
	run(r, proc, (struct hr_run){HR_MAP_KERNEL, 0, n, 0}, slots);
}

void rig_kernel(struct rig *r, uint64_t proc, const struct hr_kernel_row *rows, unsigned n)
{
	size_t bytes = sizeof(struct hr_entry_kernel) + n * sizeof(*rows);
	struct hr_entry_kernel *in = calloc(1, bytes);

	in->proc = proc;
	in->n = n;
	memcpy(in->rows, rows, n * sizeof(*rows));
	rig_entry(r, HR_ENTRY_KERNEL, in, bytes);
	free(in);
}

uint64_t rig_hash(const char *path)
{
	uint64_t h = 14695981039346656037u;

	for (; *path; path++)
		h = (h ^ (uint8_t)*path) * 1099511628211u;
	return (h & ~UINT64_C(7)) | 8;
}

unsigned rig_path(struct hr_record *slots, const char *path, bool runtime)
{
	size_t bytes = strlen(path);
	unsigned n = (unsigned)((bytes + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES);

	slots[0] = (struct hr_record){
	    .file = rig_hash(path),
	    .offset = HR_OFFSET_NONE,
	    .ret = -1,
	    .asked = bytes,
	    .op = HR_CTL_PATH,
	    .fd = (int32_t)n,
	    .bits = runtime ? HR_REC_RUNTIME : 0,
	};
	memset(slots + 1, 0, n * sizeof(*slots));
	for (unsigned i = 0; i < n; i++) {
		size_t left = bytes - i * HR_TEXT_BYTES;

		memcpy(&slots[1 + i], path + i * HR_TEXT_BYTES,
		       left < HR_TEXT_BYTES ? left : HR_TEXT_BYTES);
	}
	return n + 1;
}

struct hr_record rig_op(struct rig *r, const char *name, const char *path, int fd, int64_t ret,
			uint64_t asked, int64_t offset, uint32_t flags, uint64_t dur)
{
	struct hr_record rec = {
	    .start_ticks = r->now,
	    .file = path ? rig_hash(path) : 0,
	    .offset = offset,
	    .ret = ret,
	    .asked = asked,
	    .dur_lo = (uint32_t)dur,
	    .op = hr_op_by_name(name),
	    .fd = fd,
	    .flags = flags,
	};

	must(rec.op != 0, name);
	r->now += dur;
	return rec;
}

static int next_half(struct rig *r)
{
	uint64_t full = hr_journal_gen(r->journal);
	int result;

	must(hr_engine_checkpoint(r->engine) == 0, "checkpoint");
	must(hr_journal_begin(r->journal) == 0, "spare half");
	result = hr_engine_snapshot(r->engine, r->journal);
	hr_journal_begun(r->journal);
	hr_journal_retire(r->journal, full);
	r->applied = hr_journal_head(r->journal);
	collect(r);
	return result;
}

void rig_next_half(struct rig *r)
{
	(void)next_half(r);
}

void rig_checkpoint(struct rig *r)
{
	must(next_half(r) == 0, "snapshot");
}

static void throw_away(void *arg, struct hr_out_list *out)
{
	struct rig *r = arg;
	struct hr_out *o;

	while ((o = hr_out_list_pop(out)))
		hr_out_free(o, r->pool);
}

void rig_restart(struct rig *r)
{
	struct hr_entry_note note = {.reason = HR_LOSS_RESTART};

	next_half(r);
	rig_clear(r); /* frames may point to the engine's texts */
	hr_engine_free(r->engine);
	must(hr_engine_new(r->pool, &r->engine) == 0, "engine");
	must(hr_engine_replay(r->engine, r->journal,
			      &(struct hr_replay){HR_MARK_ANY, throw_away, NULL, r}) == 0,
	     "replay");
	note.count = hr_engine_left_out(r->engine);
	if (note.count)
		rig_entry(r, HR_ENTRY_NOTE, &note, sizeof(note));
}

struct replayed {
	const struct rig *first;
	unsigned n;
};

static void compare(void *arg, struct hr_out_list *out)
{
	struct replayed *again = arg;
	struct hr_out *o;

	while ((o = hr_out_list_pop(out))) {
		const struct hr_out *first = again->first->frames[again->n];
		size_t bytes = headrace__frame__get_packed_size(&o->frame);
		uint8_t *was = malloc(bytes), *is = malloc(bytes);

		must(again->n++ < again->first->n_frames, "a replay makes no more frames");
		must(headrace__frame__get_packed_size(&first->frame) == bytes,
		     "a replay's frame is as long");
		headrace__frame__pack(&first->frame, was);
		headrace__frame__pack(&o->frame, is);
		must(memcmp(was, is, bytes) == 0, "a replay makes the same frames");
		free(was);
		free(is);
		hr_out_free(o, again->first->pool);
	}
}

void rig_replay(struct rig *r)
{
	struct replayed again = {.first = r};
	struct hr_engine *next;

	must(hr_engine_new(r->pool, &next) == 0, "engine");
	must(hr_engine_replay(next, r->journal,
			      &(struct hr_replay){HR_MARK_ANY, compare, NULL, &again}) == 0,
	     "replay");
	must(again.n == r->n_frames, "a replay makes all frames");
	hr_engine_free(next);
}

/* ---- what came of it -------------------------------------------------------------------------------- */

const Headrace__Frame *rig_next(const struct rig *r, Headrace__Frame__BodyCase body, unsigned *at)
{
	while (*at < r->n_frames) {
		const Headrace__Frame *f = &r->frames[(*at)++]->frame;

		if (f->body_case == body)
			return f;
	}
	return NULL;
}

const Headrace__Process *rig_process(const struct rig *r, uint64_t proc)
{
	const Headrace__Process *found = NULL;
	const Headrace__Frame *f;

	for (unsigned i = 0; (f = rig_next(r, HEADRACE__FRAME__BODY_PROCESSES, &i)) != NULL;)
		for (size_t k = 0; k < f->processes->n_rows; k++)
			if (f->processes->rows[k]->proc == proc)
				found = f->processes->rows[k];
	return found;
}

size_t rig_events(const struct rig *r, struct hr_event *events, size_t max)
{
	size_t n = 0;

	for (unsigned i = 0; i < r->n_frames; i++)
		for (uint32_t k = 0; r->frames[i]->batch && k < r->frames[i]->batch->n && n < max;
		     k++)
			events[n++] = r->frames[i]->batch->events[k];
	return n;
}

int64_t rig_last_offset(struct rig *r)
{
	struct hr_event e[64];
	size_t n;

	rig_tick(r, r->now + 2 * RIG_SECOND);
	n = rig_events(r, e, 64);
	must(n > 0, "no event");
	return e[n - 1].offset;
}

Headrace__Rollup rig_rollup(const struct rig *r, uint64_t proc, uint16_t op)
{
	Headrace__Rollup sum = HEADRACE__ROLLUP__INIT;
	const Headrace__Frame *f;

	for (unsigned i = 0; (f = rig_next(r, HEADRACE__FRAME__BODY_ROLLUPS, &i)) != NULL;)
		for (size_t k = 0; k < f->rollups->n_rows; k++) {
			const Headrace__Rollup *row = f->rollups->rows[k];

			if (row->proc != proc || row->op != op)
				continue;
			sum.count += row->count;
			sum.bytes += row->bytes;
			sum.errors += row->errors;
			sum.dur_ns += row->dur_ns;
			if (row->max_dur_ns > sum.max_dur_ns)
				sum.max_dur_ns = row->max_dur_ns;
		}
	return sum;
}

Headrace__KernelRecord rig_kernel_record(const struct rig *r, uint64_t proc, uint32_t file,
					 const char *op, unsigned cause)
{
	Headrace__KernelRecord sum = HEADRACE__KERNEL_RECORD__INIT;
	const Headrace__Frame *f;

	for (unsigned i = 0; (f = rig_next(r, HEADRACE__FRAME__BODY_KERNEL_RECORDS, &i)) != NULL;)
		for (size_t k = 0; k < f->kernel_records->n_rows; k++) {
			const Headrace__KernelRecord *row = f->kernel_records->rows[k];

			if (row->proc != proc || row->file != file ||
			    row->op != hr_op_by_name(op) || row->cause != cause)
				continue;
			sum.count += row->count;
			sum.bytes += row->bytes;
			sum.errors += row->errors;
			sum.dur_ns += row->dur_ns;
		}
	return sum;
}

uint64_t rig_loss(const struct rig *r, const char *reason)
{
	const Headrace__Frame *f;
	uint64_t sum = 0;

	for (unsigned i = 0; (f = rig_next(r, HEADRACE__FRAME__BODY_LOSS, &i)) != NULL;)
		for (size_t k = 0; k < f->loss->n_rows; k++)
			if (strcmp(f->loss->rows[k]->reason, reason) == 0)
				sum += f->loss->rows[k]->count;
	return sum;
}

uint32_t rig_file_id(const struct rig *r, const char *path)
{
	const Headrace__Frame *f;

	for (unsigned i = 0; (f = rig_next(r, HEADRACE__FRAME__BODY_PATHS, &i)) != NULL;)
		for (size_t k = 0; k < f->paths->n_rows; k++) {
			const Headrace__Path *row = f->paths->rows[k];

			if (row->path.len == strlen(path) &&
			    memcmp(row->path.data, path, row->path.len) == 0)
				return row->id;
		}
	return 0;
}

const Headrace__FileRecord *rig_filerec(const struct rig *r, const char *path, unsigned nth)
{
	uint32_t id = rig_file_id(r, path);
	const Headrace__Frame *f;

	for (unsigned i = 0; (f = rig_next(r, HEADRACE__FRAME__BODY_FILE_RECORDS, &i)) != NULL;)
		for (size_t k = 0; k < f->file_records->n_rows; k++)
			if (f->file_records->rows[k]->file == id && nth-- == 0)
				return f->file_records->rows[k];
	return NULL;
}

struct hr_live_picture *rig_picture(struct rig *r, const struct hr_live_cell *cells, size_t n)
{
	struct hr_clock_sample now = {r->now, r->now, 1};
	struct hr_live_picture *p = NULL;

	must(hr_engine_live(r->engine, &now, cells, n, &p) == 0, "no picture");
	return p;
}

unsigned rig_text(struct hr_record *slots, const void *bytes, size_t n)
{
	unsigned more = (unsigned)((n + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES);

	slots[0].asked = n;
	memset(slots + 1, 0, more * sizeof(*slots));
	for (unsigned i = 0; i < more; i++)
		memcpy(&slots[1 + i], (const char *)bytes + i * HR_TEXT_BYTES,
		       n - i * HR_TEXT_BYTES < HR_TEXT_BYTES ? n - i * HR_TEXT_BYTES
							     : HR_TEXT_BYTES);
	return more + 1;
}

void rig_region_key(struct rig *r, uint64_t proc, uint64_t id, uint32_t kind, const char *domain,
		    const char *category, const char *name)
{
	struct hr_record slots[16] = {{.op = HR_CTL_REGION_KEY, .file = id}};
	char all[512];
	int n = snprintf(all, sizeof(all), "%c%c%s%c%s%c%s", '\0', 'A' + (int)kind, domain, '\0',
			 category, '\0', name);

	rig_records(r, proc, slots, rig_text(slots, all, (size_t)n));
}

struct hr_record rig_region(const struct rig *r, uint64_t key, uint32_t kind, uint64_t dur)
{
	return (struct hr_record){
	    .op = HR_CTL_REGION,
	    .file = key,
	    .start_ticks = r->now,
	    .dur_lo = (uint32_t)dur,
	    .offset = HR_REGION_NONE,
	    .ret = HR_REGION_NONE,
	    .asked = 1,
	    .flags = HR_REGION_KIND(kind),
	};
}
