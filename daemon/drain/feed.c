/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/drain/feed_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/array.h"
#include "common/cause.h"
#include "daemon/base/exit.h"

#define AT_ONCE 16384u
#define SUMS_NS UINT64_C(1000000000)
#define WAIT_NS UINT64_C(1000000000) /* how long operations wait for the process's hello */
/* how long after the end of a process its hello may arrive */
#define ENDED_NS     UINT64_C(200000000)
#define WAITING_MOST 4096u /* maximum number of operations that wait in one image */
/* Maximum number of new names before the sides of the sum maps are switched. */
#define NAMES_MOST (HR_PROBE_NAMES / 4)
/* Largest difference between the clock of the kernel and ticks of a shim. */
#define SLACK_NS UINT64_C(2000)

/* ---- images ---------------------------------------------------------------------------------- */

static void image_drop(struct hr_feed *f, struct feed_image *img)
{
	hr_map64_remove(&f->by_image, img->image);
	f->missed += img->left_out ? 0 : img->n_waiting;
	free(img->who);
	free(img->waiting);
	free(img->slots);
	*img = (struct feed_image){.next_unused = f->unused};
	f->unused = (uint32_t)(img - f->images) + 1;
}

static void wait_with(struct hr_feed *f, struct feed_image *img, const struct hr_probe_op *r)
{
	if (!hr_array_reserve(img->waiting, img->n_waiting, img->room_waiting)) {
		f->missed++;
		return;
	}
	if (!img->n_waiting)
		img->first_ns = r->start_ns;
	img->waiting[img->n_waiting++] = *r;
}

/*
 * Returns whether the shim records this operation, although no cell shows it. A process attaches at
 * the end of a call. The attaching thread records its operations from the start of this call on.
 * Other threads (after an offer: all threads) may be in a call that they will record. The start of
 * that call is unknown, so each operation that ends after began_ticks counts.
 */
static bool is_shims(const struct hr_feed *f, const struct feed_image *img,
		     const struct hr_probe_op *r)
{
	const struct hr_clock_line *line = &f->d->c.clock->line;
	const struct hr_probed *p = &img->probed;
	uint64_t ticks = hr_clock_ticks_at(line, r->start_ns + SLACK_NS);
	bool attaches = !p->offered && (int32_t)r->tid == p->tid;

	return p->began_ticks && ticks <= p->covered_ticks && r->sum == HR_SUM_CALL &&
	       (attaches ? ticks : hr_clock_ticks_at(line, r->start_ns + r->dur_ns)) >=
		   p->began_ticks;
}

static void feed_record(struct hr_feed *f, struct feed_image *img, const struct hr_probe_op *r)
{
	bool shims = is_shims(f, img, r);

	if (img->left_out)
		return;
	if (hr__feed_sum_op(f, img, r, shims) != HR_CAUSE_LOST && !shims)
		hr__feed_op(f, img, r);
}

static void record_waiting(struct hr_feed *f, struct feed_image *img)
{
	for (uint32_t i = 0; i < img->n_waiting; i++)
		feed_record(f, img, &img->waiting[i]);
	free(img->waiting);
	img->waiting = NULL;
	img->n_waiting = img->room_waiting = 0;
	hr__feed_flush(f, img);
}

static void attach(struct hr_feed *f, struct feed_image *img)
{
	if (img->state == FEED_WAITING && img->n_waiting && hr__feed_attach(f, img))
		record_waiting(f, img);
}

static void give_up_waiting(struct hr_feed *f, struct feed_image *img)
{
	if (img->state == FEED_PROBED && img->n_waiting)
		record_waiting(f, img);
	else if (img->state == FEED_WAITING && img->who)
		attach(f, img);
}

void hr_feed_session(struct hr_feed *f, const struct hr_session *s)
{
	struct feed_image *img = s->probed.image ? hr__feed_image(f, s->probed.image, true) : NULL;

	if (!img)
		return;
	/* The hello came too late: the operations before it belong to a separate process. */
	if (img->state == FEED_PROBED) {
		hr__feed_flush(f, img);
		hr__drain_end(f->d, img->proc, "exec");
	}
	img->state = FEED_ATTACHED;
	img->proc = s->proc;
	img->token = s->token;
	img->index = 0;
	img->probed = s->probed;
	record_waiting(f, img);
}

void hr_feed_session_ended(struct hr_feed *f, uint64_t proc)
{
	for (uint32_t i = 0; i < f->n_images; i++)
		if (f->images[i].image && f->images[i].proc == proc && !f->images[i].ended_ns)
			f->images[i].ended_ns = hr_boot_ns();
}

/* ---- records --------------------------------------------------------------------------------- */

static void take_image(struct hr_feed *f, const struct hr_probe_image *r, size_t bytes)
{
	struct feed_image *img;

	if (bytes < sizeof(*r) ||
	    (uint64_t)r->exe_bytes + r->args_bytes + r->env_bytes > bytes - sizeof(*r))
		return;
	hr__feed_filter(f, r);
	img = hr__feed_image(f, r->image, true);
	if (!img || img->state != FEED_WAITING || img->who)
		return;
	img->who = malloc(bytes);
	if (!img->who)
		return;
	memcpy(img->who, r, bytes);
	img->tgid = r->tgid;
	img->first_ns = r->now_ns;
}

static void take_op(struct hr_feed *f, const struct hr_probe_op *r)
{
	struct feed_image *img = hr__feed_image(f, r->image, true);

	if (!img) {
		f->missed++;
		return;
	}
	if (img->state == FEED_ATTACHED ||
	    (img->state == FEED_PROBED && r->settled && !img->n_waiting)) {
		feed_record(f, img, r);
		return;
	}
	wait_with(f, img, r);
	if (img->n_waiting >= WAITING_MOST)
		give_up_waiting(f, img);
}

static void take_exit(struct hr_feed *f, const struct hr_probe_exit *r)
{
	struct feed_image *img = hr__feed_image(f, r->image, false);

	if (!img)
		return;
	if (!img->ended_ns)
		img->ended_ns = r->now_ns;
	img->end_due = true;
	if (r->exec)
		memcpy(img->exit, "exec", sizeof("exec"));
	else
		hr_exit_text(r->status, img->exit);
}

static void feed_take(void *arg, const void *record, size_t bytes)
{
	const uint32_t *kind = record;
	struct hr_feed *f = arg;

	switch (*kind) {
	case HR_PROBE_IMAGE:
		take_image(f, record, bytes);
		break;
	case HR_PROBE_NAME:
		hr__feed_name(f, record, bytes);
		break;
	case HR_PROBE_OP:
		take_op(f, record);
		break;
	case HR_PROBE_EXIT:
		take_exit(f, record);
		break;
	default:
		break;
	}
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static void check_images(struct hr_feed *f, uint64_t now_ns, bool all)
{
	for (uint32_t i = 0; i < f->n_images; i++) {
		struct feed_image *img = &f->images[i];

		if (!img->image)
			continue;
		if (all || (img->ended_ns && now_ns > img->ended_ns + ENDED_NS) ||
		    now_ns > img->first_ns + WAIT_NS)
			give_up_waiting(f, img);
		hr__feed_flush(f, img);
	}
}

/* Journals the ends of processes without a session, after their last sums. Drops old images. */
static void end_due(struct hr_feed *f, uint64_t now_ns, bool all)
{
	for (uint32_t i = 0; i < f->n_images; i++) {
		struct feed_image *img = &f->images[i];

		if (!img->image || !img->ended_ns)
			continue;
		if (img->end_due && img->state == FEED_PROBED &&
		    (all || now_ns > img->ended_ns + 2 * SUMS_NS + SUMS_NS / 2)) {
			hr__drain_end(f->d, img->proc, img->exit);
			img->end_due = false;
		}
		if (now_ns > img->ended_ns + HR__FEED_FORGET_NS)
			image_drop(f, img);
	}
}

static bool sums_due(const struct hr_feed *f, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - f->turned_ns;

	return since_ns > SUMS_NS ||
	       (since_ns > HR_PROBES_TURN_NS &&
		(hr_probes_full(f->probes) || f->last_name - f->turned_name > NAMES_MOST));
}

/* Takes records, and sums that are due: later, maps might be full, or names be dropped. */
static uint64_t take_records(struct hr_feed *f)
{
	uint64_t all = 0, n, now_ns;

	do {
		n = hr_probes_poll(f->probes, AT_ONCE, feed_take, f);
		all += n;
		now_ns = hr_boot_ns();
		if (n == AT_ONCE && sums_due(f, now_ns))
			hr__feed_sums(f, now_ns);
	} while (n == AT_ONCE && all < HR_PROBE_BUFFER / sizeof(struct hr_probe_op));
	return all;
}

/* Takes the sums of both sides of the maps. Takes the side in use last, after the records. */
static void take_all_sums(struct hr_feed *f, uint64_t now_ns, bool all)
{
	const struct timespec turn = {.tv_nsec = HR_PROBES_TURN_NS};

	hr__feed_sums(f, now_ns);
	nanosleep(&turn, NULL);
	take_records(f);
	check_images(f, now_ns, all);
	hr__feed_sums(f, now_ns);
}

void hr_feed_settle(struct hr_feed *f, uint64_t now_ns)
{
	take_records(f);
	check_images(f, now_ns, false);
	if (f->d->level != HR_LEVEL_TRACE)
		take_all_sums(f, now_ns, false);
}

static void note_missed(struct hr_feed *f)
{
	struct hr_probes_missed now;
	uint64_t all;

	hr_probes_missed(f->probes, &now);
	all = now.calls + now.processes + f->missed;
	if (all > f->missed_noted)
		hr__drain_note(f->d, HR_LOSS_PROBE_FULL, all - f->missed_noted);
	f->missed_noted = all;
	if (now.compat > f->compat_noted)
		hr__drain_note(f->d, HR_LOSS_32BIT, now.compat - f->compat_noted);
	f->compat_noted = now.compat;
}

uint64_t hr_feed_sweep(struct hr_feed *f, uint64_t now_ns, bool all)
{
	uint64_t n = take_records(f);

	hr_probes_events(f->probes, f->d->level == HR_LEVEL_TRACE);
	check_images(f, now_ns, all);
	if (all) {
		take_all_sums(f, now_ns, true);
		hr__feed_sums_end(f);
	} else if (sums_due(f, now_ns)) {
		hr__feed_sums(f, now_ns);
	}
	end_due(f, now_ns, all);
	note_missed(f);
	/* Journals once that operations between a previous daemon's probes and these are lost. */
	if (f->continued)
		hr__drain_note(f->d, HR_LOSS_PROBE_RESTART, 0);
	f->continued = false;
	return n;
}

int hr_feed_new(struct hr_drain *d, struct hr_probes *probes, struct hr_feed **ret)
{
	const struct hr_filter_config defaults = {0};
	struct hr_feed *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->d = d;
	f->continued = d->c.continued;
	f->probes = probes;
	f->names = calloc(HR_PROBE_NAMES, sizeof(*f->names));
	f->filter = calloc(1, sizeof(*f->filter));
	if (!f->names || !f->filter || getrandom(&f->salt, sizeof(f->salt), 0) < 0) {
		hr_feed_free(f);
		return -ENOMEM;
	}
	hr_filter_init(f->filter, &defaults);
	*ret = f;
	return 0;
}

void hr_feed_free(struct hr_feed *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->n_images; i++)
		if (f->images[i].image)
			image_drop(f, &f->images[i]);
	for (uint32_t i = 0; f->names && i < HR_PROBE_NAMES; i++)
		free(f->names[i].path);
	hr_map64_done(&f->by_image);
	free(f->images);
	free(f->names);
	free(f->filter);
	hr__feed_sums_done(f);
	free(f);
}
