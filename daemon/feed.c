/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/feed_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/cause.h"
#include "common/ops.h"
#include "daemon/exit.h"

#define AT_ONCE	     16384u /* records in one sweep */
#define SUMS_NS	     UINT64_C(1000000000)
#define WAIT_NS	     UINT64_C(1000000000) /* for a hello */
#define WAITING_MOST 4096u		  /* operations of one image */
#define HELD_MOST    65536u
#define FORGET_NS    UINT64_C(5000000000) /* sums of what has ended may come so late */

/* ---- images ------------------------------------------------------------------------------------------- */

static struct feed_image *image_get(struct hr_feed *f, uint64_t image, bool make)
{
	uint32_t i = hr_map64_get(&f->by_image, image);

	if (i != HR_MAP64_NONE)
		return &f->images[i];
	if (!make)
		return NULL;
	for (i = 0; i < f->n_images && f->images[i].image; i++)
		;
	if (i == f->room_images) {
		uint32_t room = f->room_images ? f->room_images * 2 : 64;
		struct feed_image *v = realloc(f->images, room * sizeof(*v));

		if (!v)
			return NULL;
		f->images = v;
		f->room_images = room;
	}
	if (hr_map64_set(&f->by_image, image, i))
		return NULL;
	if (i == f->n_images)
		f->n_images++;
	f->images[i] = (struct feed_image){.image = image};
	return &f->images[i];
}

static void image_drop(struct hr_feed *f, struct feed_image *img)
{
	hr_map64_remove(&f->by_image, img->image);
	free(img->who);
	free(img->waiting);
	free(img->slots);
	*img = (struct feed_image){0};
}

static void wait_with(struct feed_image *img, const struct hr_probe_op *r)
{
	if (img->n_waiting == img->room_waiting) {
		uint32_t room = img->room_waiting ? img->room_waiting * 2 : 32;
		struct hr_probe_op *v = realloc(img->waiting, room * sizeof(*v));

		if (!v)
			return;
		img->waiting = v;
		img->room_waiting = room;
	}
	if (!img->n_waiting)
		img->first_ns = r->start_ns;
	img->waiting[img->n_waiting++] = *r;
}

/* The call at whose end its process attached, or all since an offer: its session records them itself. */
static bool is_shims(const struct hr_feed *f, const struct feed_image *img, const struct hr_probe_op *r)
{
	const struct hr_probed *p = &img->probed;
	uint64_t ticks = hr__feed_ticks(f, r->start_ns);

	return p->began_ticks && ticks >= p->began_ticks && ticks <= p->covered_ticks &&
	       (p->offered || (int32_t)r->tid == p->tid);
}

static void go_on(struct hr_feed *f, struct feed_image *img)
{
	for (uint32_t i = 0; i < img->n_waiting; i++)
		if (!is_shims(f, img, &img->waiting[i]))
			hr__feed_op(f, img, &img->waiting[i]);
	free(img->waiting);
	img->waiting = NULL;
	img->n_waiting = img->room_waiting = 0;
	hr__feed_flush(f, img);
}

static void attach(struct hr_feed *f, struct feed_image *img)
{
	if (img->state == FEED_WAITING && img->n_waiting && hr__feed_attach(f, img))
		go_on(f, img);
}

void hr_feed_session(struct hr_feed *f, const struct hr_session *s)
{
	struct feed_image *img = s->probed.image ? image_get(f, s->probed.image, true) : NULL;

	if (!img)
		return;
	if (img->state ==
	    FEED_PROBED) { /* so late: what it did before stays a process of its own */
		hr__feed_flush(f, img);
		hr__drain_end(f->d, img->proc, "exec");
	}
	img->state = FEED_ATTACHED;
	img->proc = s->proc;
	img->token = s->token;
	img->index = 0;
	img->probed = s->probed;
	go_on(f, img);
}

void hr_feed_session_ended(struct hr_feed *f, uint64_t proc)
{
	for (uint32_t i = 0; i < f->n_images; i++)
		if (f->images[i].image && f->images[i].proc == proc && !f->images[i].ended_ns)
			f->images[i].ended_ns = hr_boot_ns();
}

/* ---- records ------------------------------------------------------------------------------------------ */

static void take_image(struct hr_feed *f, const struct hr_probe_image *r, size_t bytes)
{
	struct feed_image *img;

	if (bytes < sizeof(*r) ||
	    (uint64_t)r->exe_bytes + r->args_bytes + r->env_bytes > bytes - sizeof(*r))
		return;
	hr__feed_filter(f, r, bytes);
	img = image_get(f, r->image, true);
	if (!img || img->state != FEED_WAITING || img->who)
		return;
	img->who = malloc(bytes);
	if (!img->who)
		return;
	memcpy(img->who, r, bytes);
	img->who_bytes = bytes;
	img->tgid = r->tgid;
	img->first_ns = r->now_ns;
}

static void take_op(struct hr_feed *f, const struct hr_probe_op *r)
{
	struct feed_image *img = image_get(f, r->image, true);

	if (!img)
		return;
	if (img->state != FEED_WAITING) {
		if (!is_shims(f, img, r))
			hr__feed_op(f, img, r);
		return;
	}
	wait_with(img, r);
	if (img->n_waiting >= WAITING_MOST)
		attach(f, img);
}

static void take_exit(struct hr_feed *f, const struct hr_probe_exit *r)
{
	struct feed_image *img = image_get(f, r->image, false);

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

static void take(void *arg, const void *record, size_t bytes)
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

/* ---- sums --------------------------------------------------------------------------------------------- */

static uint16_t cause_of(const struct hr_sum_key *key, const struct feed_image *img)
{
	switch (key->kind) {
	case HR_SUM_LOST:
		return HR_CAUSE_LOST;
	case HR_SUM_URING:
		return HR_CAUSE_URING;
	case HR_SUM_FILL:
		return HR_CAUSE_FILL;
	case HR_SUM_FETCH:
		return HR_CAUSE_FETCH;
	default:
		break;
	}
	if (key->cell_op == HR_COVER_EXIT)
		return HR_CAUSE_STDIO;
	if (key->cell_op == HR_COVER_CALL)
		return HR_CAUSE_SHIM;
	if (key->cell_op == 0)
		return img->state == FEED_ATTACHED ? HR_CAUSE_SYSCALL : HR_CAUSE_UNATTACHED;
	switch (hr_op_info(key->cell_op)->api) {
	case HR_API_STDIO:
		return HR_CAUSE_STDIO;
	case HR_API_AIO:
		return HR_CAUSE_AIO;
	default:
		return HR_CAUSE_SHIM;
	}
}

/* Makes a row of a sum. False: of a file that nobody knows any more, or our own. */
static bool make_row(struct hr_feed *f, const struct feed_image *img, const struct hr_sum_key *key,
		     const struct hr_sum *sum, struct hr_kernel_row *row)
{
	bool moved = hr_op_info(key->op)->bytes_rule != HR_BYTES_NONE;

	*row = (struct hr_kernel_row){
	    .file = key->file,
	    .count = sum->count,
	    .bytes = moved ? sum->bytes : 0,
	    .errors = sum->errors,
	    .dur_ns = sum->dur_ns,
	    .op = key->op,
	    .cause = cause_of(key, img),
	};
	if (key->cell_op == 0 && key->file) {
		const struct feed_name *n = hr__feed_name_get(f, key->file);

		if (n && (n->verdict == HR__EXCLUDED || n->verdict == HR__LEFT_OUT))
			row->cause = HR_CAUSE_EXCLUDED;
		row->file = n && n->said ? n->hash : 0;
	}
	return true;
}

static void write_row(struct hr_feed *f, uint64_t proc, const struct hr_kernel_row *row)
{
	struct hr_entry_kernel *in = hr__drain_begin(f->d, sizeof(*in) + sizeof(*row));

	if (!in)
		return;
	in->proc = proc;
	in->n = 1;
	in->rows[0] = *row;
	hr__drain_commit(f->d, HR_ENTRY_KERNEL, sizeof(*in) + sizeof(*row));
}

static void summed(void *arg, const struct hr_sum_key *key, const struct hr_sum *sum)
{
	struct hr_feed *f = arg;
	struct feed_image *img = image_get(f, key->image, true);
	struct hr_kernel_row row;

	if (!img || img->left_out)
		return;
	if (img->proc) {
		if (make_row(f, img, key, sum, &row))
			write_row(f, img->proc, &row);
		return;
	}
	if (f->n_held == HELD_MOST)
		return;
	if (f->n_held == f->room_held) {
		uint32_t room = f->room_held ? f->room_held * 2 : 256;
		struct feed_held *v = realloc(f->held, room * sizeof(*v));

		if (!v)
			return;
		f->held = v;
		f->room_held = room;
	}
	f->held[f->n_held++] = (struct feed_held){*key, *sum};
}

/* Those whose process is known by now. */
static void let_go(struct hr_feed *f)
{
	uint32_t n = f->n_held, kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct feed_held h = f->held[i];
		const struct feed_image *img = image_get(f, h.key.image, false);

		if (img && !img->proc)
			f->held[kept++] = h;
		else if (img)
			summed(f, &h.key, &h.sum);
	}
	f->n_held = kept;
}

/* ---- sweeps ------------------------------------------------------------------------------------------- */

static void look_after(struct hr_feed *f, uint64_t now_ns, bool all)
{
	for (uint32_t i = 0; i < f->n_images; i++) {
		struct feed_image *img = &f->images[i];

		if (!img->image)
			continue;
		if (img->state == FEED_WAITING && img->who &&
		    (all || img->ended_ns || now_ns > img->first_ns + WAIT_NS))
			attach(f, img);
		hr__feed_flush(f, img);
		if (img->end_due && img->state == FEED_PROBED) {
			hr__drain_end(f->d, img->proc, img->exit);
			img->end_due = false;
		}
		if (img->ended_ns && now_ns > img->ended_ns + FORGET_NS)
			image_drop(f, img);
	}
}

static void take_sums(struct hr_feed *f, uint64_t now_ns)
{
	hr_probes_sums(f->probes, summed, f);
	f->turned_ns = now_ns;
}

uint64_t hr_feed_sweep(struct hr_feed *f, uint64_t now_ns, bool all)
{
	uint64_t n = hr_probes_poll(f->probes, AT_ONCE, take, f);

	look_after(f, now_ns, all);
	if (all) { /* both sides, the one in use last */
		const struct timespec turn = {.tv_nsec = HR_PROBES_TURN_NS};

		take_sums(f, now_ns);
		nanosleep(&turn, NULL);
		take_sums(f, now_ns);
		n += hr_probes_poll(f->probes, AT_ONCE, take, f);
		look_after(f, now_ns, all);
	} else if (now_ns - f->turned_ns > SUMS_NS) {
		take_sums(f, now_ns);
	}
	let_go(f);
	return n;
}

int hr_feed_new(struct hr_drain *d, struct hr_probes *probes, struct hr_feed **ret)
{
	const struct hr__filter_config defaults = {0};
	struct hr_feed *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->d = d;
	f->probes = probes;
	f->names = calloc(HR_PROBE_NAMES, sizeof(*f->names));
	f->filter = calloc(1, sizeof(*f->filter));
	if (!f->names || !f->filter || getrandom(&f->salt, sizeof(f->salt), 0) < 0) {
		hr_feed_free(f);
		return -ENOMEM;
	}
	hr__filter_init(f->filter, &defaults);
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
	free(f->held);
	free(f);
}
