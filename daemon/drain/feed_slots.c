/* SPDX-License-Identifier: Apache-2.0 */
/* Makes entries from probe records: ATTACH without a session, and RECORDS like those of a shim. */
#include "daemon/drain/feed_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/ops.h"
#include "common/procfs.h"
#include "daemon/base/cgroup.h"

#define SLOTS_MOST  8192u
#define HELLO_BYTES (HR_PROBE_PATH + HR_PROBE_ARGS + HR_PROBE_ENV + 8192u)
#define ITEM_MOST   4096u

struct feed_image *hr__feed_image(struct hr_feed *f, uint64_t image, bool make)
{
	uint32_t i = hr_map64_get(&f->by_image, image);

	if (i != HR_MAP64_NONE)
		return &f->images[i];
	if (!make)
		return NULL;
	i = f->unused ? f->unused - 1 : f->n_images;
	if (!hr_array_reserve(f->images, i, f->room_images))
		return NULL;
	if (hr_map64_set(&f->by_image, image, i))
		return NULL;
	if (i == f->n_images)
		f->n_images++;
	else
		f->unused = f->images[i].next_unused;
	f->images[i] = (struct feed_image){.image = image};
	return &f->images[i];
}

/* ---- slots ----------------------------------------------------------------------------------- */

static struct hr_record *add_slots(struct feed_image *img, uint32_t n)
{
	struct hr_record *at;

	if (!hr_array_fit(img->slots, img->n_slots + n, img->room_slots))
		return NULL;
	at = img->slots + img->n_slots;
	memset(at, 0, n * sizeof(*at));
	for (uint32_t i = 0; i < n; i++)
		at[i].seq = (uint32_t)(img->index + img->n_slots + i + 1);
	img->n_slots += n;
	return at;
}

static uint32_t scope_of(const struct feed_name *n)
{
	return n->verdict == HR__TRACED_RUNTIME ? HR_REC_RUNTIME : 0;
}

static void write_path(struct feed_image *img, struct feed_name *n)
{
	uint32_t parts = (n->bytes + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES;
	struct hr_record *r = n->written ? NULL : add_slots(img, 1 + parts);

	if (!r)
		return;
	r->op = HR_CTL_PATH;
	r->file = n->hash;
	r->asked = n->bytes;
	r->fd = (int32_t)parts;
	r->offset = n->device;
	r->ret = n->mount;
	r->flags = n->mode;
	r->bits = scope_of(n);
	for (uint32_t i = 0; i < parts; i++) {
		uint32_t at = i * HR_TEXT_BYTES, left = n->bytes - at;

		memcpy(((struct hr_text *)(r + 1 + i))->text, n->path + at,
		       left < HR_TEXT_BYTES ? left : HR_TEXT_BYTES);
	}
	n->written = true;
	free(n->path);
	n->path = NULL;
}

/* Writes the second slot of a copy. If its second file is not recorded, n is NULL. */
static void write_pair(struct hr_record *at, const struct hr_probe_op *r, const struct feed_name *n)
{
	struct hr_pair *pair = (struct hr_pair *)at;

	pair->op = HR_CTL_PAIR;
	pair->file = n ? n->hash : 0;
	pair->bits = n ? scope_of(n) : 0;
	pair->offset = r->offset2;
	pair->fd = r->fd2;
}

void hr__feed_path(struct feed_image *img, struct feed_name *n)
{
	struct hr_record *thread = n->written ? NULL : add_slots(img, 1);

	if (!thread)
		return;
	thread->op = HR_CTL_THREAD;
	thread->fd = (int32_t)img->tgid;
	write_path(img, n);
}

void hr__feed_op(struct hr_feed *f, struct feed_image *img, const struct hr_probe_op *r)
{
	struct feed_name *first = hr__feed_name_get(f, r->name);
	struct feed_name *second = hr__feed_name_get(f, r->name2);
	const struct hr_clock_line *line = &f->d->c.clock->line;
	bool known = hr__feed_recorded(first), other = hr__feed_recorded(second);
	bool pair = other || hr_op_copies(r->op);
	struct hr_record *thread, *op;
	uint64_t ticks;

	if (!known && !other)
		return;
	if (known)
		write_path(img, first);
	if (other)
		write_path(img, second);
	thread = add_slots(img, pair ? 3 : 2);
	if (!thread)
		return;
	thread->op = HR_CTL_THREAD;
	thread->fd = (int32_t)r->tid;
	op = thread + 1;
	ticks = hr_ns_ticks(line, r->dur_ns);
	op->start_ticks = hr_clock_ticks_at(line, r->start_ns);
	op->dur_lo = (uint32_t)ticks;
	op->dur_hi = (uint16_t)(ticks >> 32);
	op->op = r->op;
	op->ret = r->ret;
	op->asked = r->asked;
	op->flags = r->flags;
	op->fd = r->fd;
	op->offset = known ? r->offset : HR_OFFSET_NONE;
	op->file = known ? first->hash : 0;
	op->bits = (known ? scope_of(first) : 0) | (pair ? HR_REC_PAIR : 0) |
		   (r->sum == HR_SUM_URING ? HR_REC_VFORK : 0);
	if (pair)
		write_pair(op + 1, r, other ? second : NULL);
	if (img->n_slots >= SLOTS_MOST)
		hr__feed_flush(f, img);
}

void hr__feed_flush(struct hr_feed *f, struct feed_image *img)
{
	uint64_t bytes = sizeof(struct hr_entry_records) + sizeof(struct hr_run) +
			 (uint64_t)img->n_slots * HR_SLOT_BYTES;
	struct hr_entry_records *in;

	if (!img->n_slots || !img->proc)
		return;
	in = hr__drain_begin(f->d, bytes);
	if (!in)
		return;
	in->proc = img->proc;
	in->sweep_ticks = hr_clock_ticks(f->d->c.clock);
	in->n_runs = 1;
	in->spare = 0;
	in->runs[0] = (struct hr_run){HR_MAP_KERNEL, 0, img->n_slots, img->index};
	memcpy(in->runs + 1, img->slots, (size_t)img->n_slots * HR_SLOT_BYTES);
	hr__drain_commit(f->d, HR_ENTRY_RECORDS, bytes);
	img->index += img->n_slots;
	img->n_slots = 0;
}

/* ---- a process that sent no hello ------------------------------------------------------------ */

struct hello {
	uint8_t bytes[HELLO_BYTES];
	uint32_t used;
};

static void add_item(struct hello *h, enum hr_item_kind kind, const char *text, size_t bytes)
{
	struct hr_item_hdr head = {(uint16_t)kind, (uint16_t)bytes};

	if (!bytes || bytes > ITEM_MOST || h->used + sizeof(head) + bytes > sizeof(h->bytes))
		return;
	memcpy(h->bytes + h->used, &head, sizeof(head));
	memcpy(h->bytes + h->used + sizeof(head), text, bytes);
	h->used += (uint32_t)(sizeof(head) + bytes);
}

/* Returns whether the shim sends this variable (proto/env_names.def). */
static bool is_sent(const char *text, size_t bytes)
{
#define HR_ENV_NAME(name)                                                                          \
	if (bytes > sizeof(name) - 1 && text[sizeof(name) - 1] == '=' &&                           \
	    memcmp(text, name, sizeof(name) - 1) == 0)                                             \
		return true;
#define HR_ENV_PREFIX(name)                                                                        \
	if (bytes > sizeof(name) - 1 && memcmp(text, name, sizeof(name) - 1) == 0)                 \
		return true;
#include "proto/env_names.def"
#undef HR_ENV_NAME
#undef HR_ENV_PREFIX
	return false;
}

static void add_env(const struct hr_feed *f, struct feed_image *img, struct hello *h,
		    const char *env, size_t bytes)
{
	struct hr_rank rank = {0};

	for (size_t at = 0; at < bytes;) {
		size_t n = strnlen(env + at, bytes - at);

		if (at + n < bytes && is_sent(env + at, n)) {
			add_item(h, HR_ITEM_ENV, env + at, n);
			hr_rank_env(&rank, env + at, n);
		}
		at += n + 1;
	}
	img->left_out = hr_rank_left_out(&rank, f->d->c.node->ranks, f->d->c.node->local_ranks);
}

/* Makes the hello that the shim of the process would have sent. */
static void make_hello(const struct hr_feed *f, struct feed_image *img,
		       const struct hr_probe_image *who, uint64_t parent_token, struct hello *h)
{
	const char *text = hr__feed_text(who);
	struct hr_hello head = {
	    .magic = HR_ABI_MAGIC,
	    .abi = HR_ABI_VERSION,
	    .word_bytes = sizeof(void *),
	    .kind = HR_HELLO_ATTACH,
	    .flags = parent_token ? HR_HELLO_FORKED : 0,
	    .pid = (int32_t)who->tgid,
	    .ppid = (int32_t)who->ppid,
	    .tid = (int32_t)who->tgid,
	    .parent_session = parent_token,
	};
	char exe[HR_PROBE_PATH];

	h->used = sizeof(head);
	add_item(h, HR_ITEM_EXE, exe, hr__feed_unwalk(text, who->exe_bytes, exe, sizeof(exe)));
	add_item(h, HR_ITEM_ARGV, text + who->exe_bytes, who->args_bytes);
	add_env(f, img, h, text + who->exe_bytes + who->args_bytes, who->env_bytes);
	head.bytes = h->used;
	memcpy(h->bytes, &head, sizeof(head));
}

bool hr__feed_attach(struct hr_feed *f, struct feed_image *img)
{
	const struct hr_probe_image *who = img->who;
	const struct feed_image *parent = who ? hr__feed_image(f, who->parent, false) : NULL;
	bool forked = who && who->flags & HR_IMAGE_FORKED;
	struct hello *h = who ? malloc(sizeof(*h)) : NULL;
	struct hr_affinity affinity;
	struct hr_entry_attach *in;
	uint32_t quota;

	if (!h)
		return false;
	make_hello(f, img, who, forked && parent ? parent->token : 0, h);
	hr_affinity_read((pid_t)who->tgid, &affinity);
	quota = hr_cpu_quota_milli((pid_t)who->tgid);
	in = hr__drain_begin(f->d, sizeof(*in) + h->used);
	if (!in) {
		free(h);
		return false;
	}
	img->proc = __atomic_add_fetch(f->d->c.last_proc, 1, __ATOMIC_RELAXED);
	img->token = f->salt ^ hr_mix64(img->image);
	img->state = FEED_PROBED;
	in->proc = img->proc;
	in->token = img->token;
	in->now_ns = hr_boot_ns();
	in->now_ticks = hr_clock_ticks_at(
	    &f->d->c.clock->line, img->first_ns < who->now_ns ? img->first_ns : who->now_ns);
	in->start_time = hr_procstat_start(who->start_ns);
	in->exec_of = !forked && parent ? parent->proc : 0;
	in->pid = (int32_t)who->tgid;
	in->uid = who->uid;
	in->deselected = img->left_out;
	in->hello_bytes = h->used;
	in->cpus = affinity.cpus;
	in->first_cpu = affinity.first;
	in->cpu_quota_milli = quota;
	hr_procstat_ancestors((pid_t)who->ppid, NULL, NULL, in->ancestors, HR_ANCESTORS);
	memcpy(in->hello, h->bytes, h->used);
	hr__drain_commit(f->d, HR_ENTRY_ATTACH, sizeof(*in) + h->used);
	free(h);
	free(img->who);
	img->who = NULL;
	return true;
}
