/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/causes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/array.h"
#include "common/text.h"

static const struct {
	const char *name, *more, *less;
} cause_rows[] = {
#define HR_WHY(id, more, less) {#id, more, less},
#include "compare/causes.def"
#undef HR_WHY
};

const char *hr_compare_cause_name(enum hr_compare_cause_id id)
{
	return cause_rows[id].name;
}

static const char *cause_meaning(enum hr_compare_cause_id id, double seconds)
{
	return seconds > 0 ? cause_rows[id].more : cause_rows[id].less;
}

/* Returns ln(b / a); 0: one of them is not positive. */
static double log_ratio(double a, double b)
{
	return a > 0 && b > 0 ? log(b / a) : 0;
}

/* Returns the mean of a measure (hr_side_sum) of side A or B. */
static double mean_sum(const struct hr_causes_search *s, int side, const char *measure)
{
	return hr_side_sum(&s->sides[side], measure, s->scale);
}

/* Adds a cause without texts. On failure, returns NULL and sets s->failed. */
static struct hr_compare_cause *cause_new(struct hr_causes_search *s, enum hr_compare_cause_id id,
					  double seconds, double noise)
{
	struct hr_comparison *c = s->to;
	struct hr_compare_cause *cause;

	if (!hr_array_reserve(c->causes, c->n_causes, c->causes_room)) {
		s->failed = true;
		return NULL;
	}
	cause = &c->causes[c->n_causes++];
	*cause = (struct hr_compare_cause){.id = id, .seconds = seconds, .noise = noise};
	return cause;
}

/*
 * Adds a cause that takes `seconds` of the quantity, if this is more than the noise; then the
 * caller sets what and evidence of the result. Else the seconds may be what is unsure. NULL: not
 * added.
 */
static struct hr_compare_cause *cause_add(struct hr_causes_search *s, enum hr_compare_cause_id id,
					  enum hr_quantity quantity, double seconds)
{
	struct hr_comparison *c = s->to;
	const struct hr_difference *whole = &c->quantities[HR_QUANTITY_wall];
	double noise = c->quantities[quantity].noise;

	if (fabs(seconds) < HR_COMPARE_LEAST * fmax(whole->a, whole->b))
		return NULL;
	if (!c->quantities[quantity].differs) {
		if (fabs(seconds) > fabs(c->unsure.seconds))
			c->unsure = (struct hr_compare_unsure){quantity, seconds, noise};
		return NULL;
	}
	return cause_new(s, id, seconds, noise);
}

/* What follows the duration of a quantity of B. */
static const char *for_work(const struct hr_causes_search *s, enum hr_quantity quantity)
{
	return s->to->scaled && s->to->quantities[quantity].b != s->to->measured[quantity].b
		   ? " (scaled to the work of A)"
		   : "";
}

/* Formats a text (malloc'ed). On failure, returns NULL and sets s->failed. */
__attribute__((format(printf, 2, 3))) static char *cause_text(struct hr_causes_search *s,
							      const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	s->failed |= text == NULL;
	return text;
}

/* "computing: 12.3 s instead of 10.1 s" */
static char *instead(struct hr_causes_search *s, enum hr_quantity quantity)
{
	const struct hr_difference *d = &s->to->quantities[quantity];

	return cause_text(s, "%s: %s%s instead of %s", hr_quantity_rows[quantity].name,
			  hr_compare_seconds(d->b).s, for_work(s, quantity),
			  hr_compare_seconds(d->a).s);
}

/* Adds a cause that takes all that is left of the quantity, which it shows. */
static void cause_add_simple(struct hr_causes_search *s, enum hr_compare_cause_id id,
			     enum hr_quantity quantity)
{
	struct hr_compare_cause *cause = cause_add(s, id, quantity, s->left[quantity]);

	if (cause == NULL)
		return;
	cause->what = cause_text(s, "%s", cause_meaning(id, s->left[quantity]));
	cause->evidence = instead(s, quantity);
}

/* ---- work ---- */

/* How the work is divided into epochs (malloc'ed); NULL: not known. */
static char *epochs_text(struct hr_causes_search *s)
{
	const struct hr_comparison *c = s->to;
	double a = c->epochs[HR_COMPARE_A], b = c->epochs[HR_COMPARE_B];

	if (!(a > 0 && b > 0))
		return NULL;
	if (fabs(b - a) >= 0.5)
		return cause_text(s, "%.6g epochs instead of %.6g", b, a);
	return cause_text(s, "the same number of epochs (%.6g), each with %.2fx the %s", a,
			  c->work[HR_COMPARE_B] / c->work[HR_COMPARE_A], hr_compare_work_unit(c));
}

static void explain_work(struct hr_causes_search *s)
{
	const struct hr_comparison *c = s->to;
	const struct hr_difference *measured = &c->measured[HR_QUANTITY_loop];
	double seconds = measured->b - c->quantities[HR_QUANTITY_loop].b;
	struct hr_compare_cause *cause;

	if (!c->scaled)
		return;
	cause = cause_new(s, HR_WHY_work, seconds, measured->noise);
	if (cause == NULL)
		return;
	cause->what = cause_text(s, "%s: %s %s instead of %s", cause_meaning(HR_WHY_work, seconds),
				 hr_compare_count(c->work[HR_COMPARE_B]).s, hr_compare_work_unit(c),
				 hr_compare_count(c->work[HR_COMPARE_A]).s);
	cause->evidence = epochs_text(s);
}

/* ---- ranks ---- */

/* The mean of a quantity over all ranks but one. */
static double mean_of_others(const struct hr_side_means *m, size_t but, enum hr_quantity quantity)
{
	double sum = 0;

	for (size_t i = 0; i < m->n_ranks; i++)
		if (i != but)
			sum += m->ranks[i].seconds[quantity];
	return sum / (double)(m->n_ranks - 1);
}

/* Finds the rank for which the others wait. Returns false if no rank waits much less. */
static bool find_slow_rank(const struct hr_side_means *m, size_t *ret)
{
	size_t least = 0;

	if (m->n_ranks < 2)
		return false;
	for (size_t i = 1; i < m->n_ranks; i++)
		if (m->ranks[i].seconds[HR_QUANTITY_stall] <
		    m->ranks[least].seconds[HR_QUANTITY_stall])
			least = i;
	*ret = least;
	return m->ranks[least].seconds[HR_QUANTITY_stall] <
	       0.5 * mean_of_others(m, least, HR_QUANTITY_stall);
}

/* By how much the rank took longer than the others in a quantity. */
static double excess(const struct hr_side_means *m, size_t rank, enum hr_quantity quantity)
{
	if (rank >= m->n_ranks || m->n_ranks < 2)
		return 0;
	return m->ranks[rank].seconds[quantity] - mean_of_others(m, rank, quantity);
}

/* Time in which ranks waited for a slow one, and the time that the slow one took longer. */
static void explain_stall(struct hr_causes_search *s)
{
	double stall = s->left[HR_QUANTITY_stall], most = 0;
	int slower = stall > 0 ? HR_COMPARE_B : HR_COMPARE_A;
	const struct hr_side_means *m = &s->means[slower], *other = &s->means[!slower];
	enum hr_quantity why = HR_QUANTITY_compute;
	struct hr_compare_cause *cause;
	size_t rank = 0;
	bool slow = find_slow_rank(m, &rank);

	for (unsigned i = 0; slow && i < HR_QUANTITIES; i++) {
		double more = excess(m, rank, i) - excess(other, rank, i);

		if (hr_quantity_rows[i].level == HR_LEVEL_LEAF && i != HR_QUANTITY_stall &&
		    more > most) {
			most = more;
			why = i;
		}
	}
	if (!slow || most <= 0) {
		cause = cause_add(s, HR_WHY_stall, HR_QUANTITY_stall, stall);
		if (cause != NULL)
			cause->what = instead(s, HR_QUANTITY_stall);
		return;
	}
	most *= (stall > 0 ? 1 : -1) / (double)m->n_ranks; /* its share in the mean of all ranks */
	cause = cause_add(s, HR_WHY_slow_rank, HR_QUANTITY_stall, stall + most);
	if (cause == NULL)
		return;
	s->left[why] -= most;
	s->left[HR_QUANTITY_stall] = 0;
	cause->what = cause_text(s, "rank %lld %s slower than the others, which waited for it: %s",
				 (long long)m->ranks[rank].rank,
				 stall > 0 ? "was" : "was no longer", hr_quantity_rows[why].name);
	cause->evidence = cause_text(
	    s, "%s: rank %lld %s, the others %s; waiting for other ranks: %s%s instead of %s",
	    stall > 0 ? "B" : "A", (long long)m->ranks[rank].rank,
	    hr_compare_seconds(m->ranks[rank].seconds[why]).s,
	    hr_compare_seconds(mean_of_others(m, rank, why)).s,
	    hr_compare_seconds(s->to->quantities[HR_QUANTITY_stall].b).s,
	    for_work(s, HR_QUANTITY_stall),
	    hr_compare_seconds(s->to->quantities[HR_QUANTITY_stall].a).s);
}

/* ---- workers ---- */

static const enum hr_quantity of_batches[] = {
    HR_QUANTITY_read,	  HR_QUANTITY_metadata,	   HR_QUANTITY_write,	HR_QUANTITY_batch_cpu,
    HR_QUANTITY_core,	  HR_QUANTITY_sleep,	   HR_QUANTITY_network, HR_QUANTITY_lock,
    HR_QUANTITY_handover, HR_QUANTITY_unknown_wait};

#define N_OF_BATCHES (sizeof(of_batches) / sizeof(*of_batches))

/* The setting, which must be one of them. */
static const struct hr_compare_setting *setting_of(const struct hr_causes_search *s,
						   const char *name)
{
	const struct hr_compare_setting *setting = s->to->settings;

	while (strcmp(setting->name, name) != 0)
		setting++;
	return setting;
}

/*
 * With fewer workers, or with more work for each batch, the training waits longer. The shares of
 * both are those of their logarithms, because waits depend on work per worker.
 */
static void explain_workers(struct hr_causes_search *s)
{
	const struct hr_compare_setting *workers = setting_of(s, "num_workers");
	double fetches[HR_COMPARE_SIDES], work[HR_COMPARE_SIDES], waits = 0, share, fewer, more;
	struct hr_compare_cause *cause;

	if (workers->a < 0 || workers->b < 0 || fabs(workers->a - workers->b) < 0.5)
		return;
	for (int i = 0; i < HR_COMPARE_SIDES; i++) {
		fetches[i] = mean_sum(s, i, "fetches");
		work[i] = fetches[i] > 0 ? mean_sum(s, i, "fetch_s") / fetches[i] : 0;
	}
	for (size_t i = 0; i < N_OF_BATCHES; i++)
		waits += s->left[of_batches[i]];
	fewer = log_ratio(fmax(workers->b, 1), fmax(workers->a, 1));
	more = log_ratio(work[HR_COMPARE_A], work[HR_COMPARE_B]);
	if (fewer == 0) /* batches made by the training thread, or by one worker */
		fewer = workers->a > workers->b ? 0.5 : -0.5;
	if (fewer * waits <= 0)
		return;
	share = more * waits > 0 ? fewer / (fewer + more) : 1;
	cause = cause_add(s, HR_WHY_workers, HR_QUANTITY_input_wait, share * waits);
	if (cause == NULL)
		return;
	for (size_t i = 0; i < N_OF_BATCHES; i++)
		s->left[of_batches[i]] *= 1 - share;
	cause->what = cause_text(s, "%s: %.3g instead of %.3g",
				 cause_meaning(HR_WHY_workers, waits), workers->b, workers->a);
	if (work[HR_COMPARE_A] > 0 && work[HR_COMPARE_B] > 0)
		cause->evidence = cause_text(
		    s,
		    "a batch took a worker %s instead of %s; waiting for data: %s%s instead of %s",
		    hr_compare_seconds(work[HR_COMPARE_B]).s,
		    hr_compare_seconds(work[HR_COMPARE_A]).s,
		    hr_compare_seconds(s->to->quantities[HR_QUANTITY_input_wait].b).s,
		    for_work(s, HR_QUANTITY_input_wait),
		    hr_compare_seconds(s->to->quantities[HR_QUANTITY_input_wait].a).s);
}

static void explain_worker_life(struct hr_causes_search *s)
{
	const struct hr_compare_setting *stay = setting_of(s, "persistent_workers");
	double seconds = s->left[HR_QUANTITY_workers];
	struct hr_compare_cause *cause;

	if (stay->a < 0 || stay->b < 0 || fabs(stay->a - stay->b) < 0.5) {
		cause_add_simple(s, HR_WHY_worker_life, HR_QUANTITY_workers);
		return;
	}
	cause = cause_add(s, HR_WHY_worker_life, HR_QUANTITY_workers, seconds);
	if (cause == NULL)
		return;
	cause->what = cause_text(s, "%s: persistent_workers=%s in B",
				 cause_meaning(HR_WHY_worker_life, seconds),
				 stay->b > stay->a ? "True" : "False");
	cause->evidence = instead(s, HR_QUANTITY_workers);
}

/* ---- checkpoints ---- */

static void explain_checkpoints(struct hr_causes_search *s)
{
	double seconds = s->left[HR_QUANTITY_checkpoint], sign = seconds > 0 ? 1 : -1;
	double n[HR_COMPARE_SIDES], bytes[HR_COMPARE_SIDES], count, size, time;
	const struct hr_difference *d = &s->to->quantities[HR_QUANTITY_checkpoint];
	enum hr_compare_cause_id id = HR_WHY_checkpoint_speed;
	struct hr_compare_cause *cause;

	for (int i = 0; i < HR_COMPARE_SIDES; i++) {
		n[i] = hr_side_sum(&s->sides[i], "checkpoints", NULL);
		bytes[i] = hr_side_sum(&s->sides[i], "checkpoint_bytes", NULL);
	}
	count = sign * log_ratio(n[HR_COMPARE_A], n[HR_COMPARE_B]);
	time = sign * log_ratio(d->a, d->b) - count;
	size = n[HR_COMPARE_A] > 0 && n[HR_COMPARE_B] > 0
		   ? sign * log_ratio(bytes[HR_COMPARE_A] / n[HR_COMPARE_A],
				      bytes[HR_COMPARE_B] / n[HR_COMPARE_B])
		   : 0;
	if ((n[HR_COMPARE_A] > 0) != (n[HR_COMPARE_B] > 0) || (count > size && count > time - size))
		id = HR_WHY_checkpoint_count;
	else if (size > time - size)
		id = HR_WHY_checkpoint_size;
	cause = cause_add(s, id, HR_QUANTITY_checkpoint, seconds);
	if (cause == NULL)
		return;
	cause->what = cause_text(s, "%s", cause_meaning(id, seconds));
	cause->evidence = cause_text(
	    s, "%.4g checkpoints (%s) took %s; in A %.4g (%s) took %s", n[HR_COMPARE_B],
	    hr_text_size((uint64_t)bytes[HR_COMPARE_B]).s,
	    hr_compare_seconds(s->to->measured[HR_QUANTITY_checkpoint].b).s, n[HR_COMPARE_A],
	    hr_text_size((uint64_t)bytes[HR_COMPARE_A]).s, hr_compare_seconds(d->a).s);
}

/* ---- files ---- */

/*
 * Why reads, opens and writes of a kind of files took longer. The time of a kind is
 *
 *      files opened  x  bytes of each file  x  reads of each byte  x  time of a read
 *
 * so the logarithms of the four ratios sum to that of the time, and the largest one is the cause.
 */

#define SAME   0.02 /* logarithm of a ratio that counts as 1 */
#define HARDLY 0.02 /* share of bytes that came from the storage: as good as none */

struct kind_ratios {
	double files, amount, size, speed;
};

static double per(double part, double whole)
{
	return whole != 0 ? part / whole : 0;
}

/*
 * Storage is slower only if a read and a byte both take longer: a larger read takes longer, and a
 * byte of a smaller read does.
 */
static double speed_of(const struct hr_kind_means *a, const struct hr_kind_means *b)
{
	double read = log_ratio(per(a->read_s, a->reads), per(b->read_s, b->reads));
	double byte = log_ratio(per(a->read_s, a->bytes_read), per(b->read_s, b->bytes_read));

	if (read > 0 && byte > 0)
		return fmin(read, byte);
	return read < 0 && byte < 0 ? fmax(read, byte) : 0;
}

static struct kind_ratios ratios_of(const struct hr_kind *k)
{
	const struct hr_kind_means *a = &k->side[HR_COMPARE_A], *b = &k->side[HR_COMPARE_B];

	return (struct kind_ratios){
	    .files = log_ratio(a->opens, b->opens),
	    .amount = log_ratio(per(a->bytes_read, a->opens), per(b->bytes_read, b->opens)),
	    .size = log_ratio(per(a->reads, a->bytes_read), per(b->reads, b->bytes_read)),
	    .speed = speed_of(a, b),
	};
}

/* The share of all bytes read that came from the storage; -1: not known. */
static double from_storage(struct hr_causes_search *s, int side)
{
	double read = mean_sum(s, side, "bytes_read");

	if (!hr_side_has(&s->sides[side], "fetch_storage_bytes") || !(read > 0))
		return -1;
	return mean_sum(s, side, "fetch_storage_bytes") / read;
}

static double uncached_time(const struct hr_kind_means *m)
{
	return per(m->read_s - m->read_cached_s, m->reads - m->read_cached);
}

/*
 * Reads took longer (sign 1) or shorter (-1): because of the storage, or because the page cache
 * served fewer or more of them?
 */
static enum hr_compare_cause_id storage_or_cache(struct hr_causes_search *s,
						 const struct hr_kind *k, double sign)
{
	const struct hr_kind_means *a = &k->side[HR_COMPARE_A], *b = &k->side[HR_COMPARE_B];
	double disk_a = from_storage(s, HR_COMPARE_A), disk_b = from_storage(s, HR_COMPARE_B);
	double cached, slower;

	if (a->mount != NULL && b->mount != NULL && strcmp(a->mount, b->mount) != 0)
		return HR_WHY_mount;
	if (disk_a >= 0 && disk_b >= 0 && fmax(disk_a, disk_b) > HARDLY)
		return sign * (disk_b - disk_a) > 0.5 * fmax(disk_a, disk_b) ? HR_WHY_page_cache
									     : HR_WHY_storage;
	cached = per(b->read_cached, b->reads) - per(a->read_cached, a->reads);
	slower = log_ratio(uncached_time(a), uncached_time(b));
	if (a->read_cached + b->read_cached == 0 || fabs(cached) < 0.1)
		return HR_WHY_storage;
	return fabs(slower) > log(1.5) && per(a->read_cached, a->reads) < 0.9 &&
		       per(b->read_cached, b->reads) < 0.9
		   ? HR_WHY_storage
		   : HR_WHY_storage_or_cache;
}

static enum hr_compare_cause_id cause_of(struct hr_causes_search *s, const struct hr_kind *k,
					 double seconds, double metadata)
{
	const struct hr_kind_means *a = &k->side[HR_COMPARE_A], *b = &k->side[HR_COMPARE_B];
	double sign = seconds > 0 ? 1 : -1, most;
	struct kind_ratios r = ratios_of(k);

	if ((a->opens + a->reads == 0) != (b->opens + b->reads == 0))
		return HR_WHY_new_files;
	most = fmax(fmax(sign * r.files, sign * r.amount), fmax(sign * r.size, sign * r.speed));
	if (fabs(metadata) > 0.5 * fabs(seconds))
		return sign * r.files >= 0.5 * sign * log_ratio(a->meta_s, b->meta_s)
			   ? HR_WHY_file_count
			   : HR_WHY_metadata;
	if (most == sign * r.speed)
		return storage_or_cache(s, k, sign);
	if (most == sign * r.files)
		return HR_WHY_file_count;
	return most == sign * r.size ? HR_WHY_read_size : HR_WHY_read_amount;
}

/* Writes "1,000 reads of 64.0 KiB, 12.3 ms each" */
static void put_reads(FILE *to, const struct hr_kind_means *m)
{
	fprintf(to, "%s reads of %s, %s each", hr_compare_count(m->reads).s,
		hr_text_size((uint64_t)per(m->bytes_read, m->reads)).s,
		hr_compare_seconds(per(m->read_s, m->reads)).s);
}

static char *evidence_of(struct hr_causes_search *s, const struct hr_kind *k)
{
	const struct hr_kind_means *a = &k->side[HR_COMPARE_A], *b = &k->measured;
	double disk_a = from_storage(s, HR_COMPARE_A), disk_b = from_storage(s, HR_COMPARE_B);
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (to == NULL) {
		s->failed = true;
		return NULL;
	}
	put_reads(to, b);
	if (a->reads > 0) {
		fputs(" (A: ", to);
		put_reads(to, a);
		fputc(')', to);
	}
	if (fabs(b->opens - a->opens) >= 0.5)
		fprintf(to, "; %s opens (A: %s)", hr_compare_count(b->opens).s,
			hr_compare_count(a->opens).s);
	if (b->mount != NULL)
		fprintf(to, "; on %s", b->mount);
	if (a->mount != NULL && (b->mount == NULL || strcmp(a->mount, b->mount) != 0))
		fprintf(to, " (A: %s)", a->mount);
	if (disk_a >= 0 && disk_b >= 0 && fmax(disk_a, disk_b) > HARDLY)
		fprintf(to, "; the page cache served %.0f %% of the bytes (A: %.0f %%)",
			100 * fmax(0, 1 - disk_b), 100 * fmax(0, 1 - disk_a));
	text = hr_text_close(to, &text);
	s->failed |= text == NULL;
	return text;
}

/* Whether both sides opened as many files, and read as much of each in reads of the same size. */
static bool is_same_work(const struct hr_kind *k)
{
	struct kind_ratios r = ratios_of(k);

	return fmax(fabs(r.files), fmax(fabs(r.amount), fabs(r.size))) < SAME;
}

static char *sentence_of(struct hr_causes_search *s, const struct hr_kind *k,
			 enum hr_compare_cause_id id, double seconds)
{
	const struct hr_kind_means *a = &k->side[HR_COMPARE_A], *b = &k->side[HR_COMPARE_B];
	double ta = hr_kind_seconds(a), tb = hr_kind_seconds(b);

	if (id == HR_WHY_new_files)
		return cause_text(s, "%s %s: %s", hr_kind_shown(k),
				  seconds > 0 ? "are used in B only" : "are used in A only",
				  cause_meaning(id, seconds));
	return cause_text(s, "%sI/O of %s took %.2fx as long%s: %s",
			  s->to->scaled ? "for the same work, " : "", hr_kind_shown(k), per(tb, ta),
			  is_same_work(k) ? ", same count and sizes" : "",
			  cause_meaning(id, seconds));
}

static double positive(double change, double of)
{
	return change * of > 0 ? change : 0;
}

/* The seconds of a kind, or of all kinds whose times changed in the same direction. */
struct kind_seconds {
	double read, metadata, written;
};

static struct kind_seconds changes_of(const struct hr_causes_search *s, const struct hr_kind *k)
{
	const struct hr_kind_means *a = &k->side[HR_COMPARE_A], *b = &k->side[HR_COMPARE_B];

	return (struct kind_seconds){
	    .read = positive(b->read_s - a->read_s, s->left[HR_QUANTITY_read]),
	    .metadata = positive(b->meta_s - a->meta_s, s->left[HR_QUANTITY_metadata]),
	    .written = positive(b->write_s - a->write_s, s->left[HR_QUANTITY_write]),
	};
}

static void explain_kind(struct hr_causes_search *s, const struct hr_kind *k,
			 const struct kind_seconds *all)
{
	struct kind_seconds change = changes_of(s, k),
			    own = {
				.read = per(change.read, all->read) * s->left[HR_QUANTITY_read],
				.metadata = per(change.metadata, all->metadata) *
					    s->left[HR_QUANTITY_metadata],
				.written =
				    per(change.written, all->written) * s->left[HR_QUANTITY_write],
			    };
	double sum = own.read + own.metadata + own.written;
	bool writes = fabs(own.written) > fabs(own.read + own.metadata);
	enum hr_compare_cause_id id =
	    writes ? HR_WHY_writes : cause_of(s, k, own.read + own.metadata, own.metadata);
	struct hr_compare_cause *cause =
	    cause_add(s, id,
		      writes				    ? HR_QUANTITY_write
		      : fabs(own.metadata) > fabs(own.read) ? HR_QUANTITY_metadata
							    : HR_QUANTITY_read,
		      sum);

	if (cause == NULL)
		return;
	cause->what = sentence_of(s, k, id, sum);
	cause->evidence = evidence_of(s, k);
}

/* Divides the seconds of the quantities among the kinds. */
static void explain_files(struct hr_causes_search *s)
{
	const struct hr_kinds *kinds = &s->to->kinds;
	struct kind_seconds all = {0};

	for (size_t i = 0; i < kinds->n; i++) {
		struct kind_seconds k = changes_of(s, &kinds->list[i]);

		all.read += k.read;
		all.metadata += k.metadata;
		all.written += k.written;
	}
	for (size_t i = 0; i < kinds->n; i++)
		explain_kind(s, &kinds->list[i], &all);
	/* for example mapped files, which have no operations */
	if (all.read == 0)
		cause_add_simple(s, HR_WHY_files, HR_QUANTITY_read);
	if (all.metadata == 0)
		cause_add_simple(s, HR_WHY_files, HR_QUANTITY_metadata);
	if (all.written == 0)
		cause_add_simple(s, HR_WHY_files, HR_QUANTITY_write);
}

void hr_causes_find(struct hr_causes_search *s)
{
	static const struct {
		enum hr_compare_cause_id id;
		enum hr_quantity quantity;
	} simple[] = {
	    {HR_WHY_start, HR_QUANTITY_start},
	    {HR_WHY_validation, HR_QUANTITY_validation},
	    {HR_WHY_outside, HR_QUANTITY_outside},
	    {HR_WHY_batch_cpu, HR_QUANTITY_batch_cpu},
	    {HR_WHY_cores, HR_QUANTITY_core},
	    {HR_WHY_sleep, HR_QUANTITY_sleep},
	    {HR_WHY_network, HR_QUANTITY_network},
	    {HR_WHY_lock, HR_QUANTITY_lock},
	    {HR_WHY_handover, HR_QUANTITY_handover},
	    {HR_WHY_unknown_wait, HR_QUANTITY_unknown_wait},
	    {HR_WHY_compute, HR_QUANTITY_compute},
	};

	explain_work(s);
	explain_stall(s);
	explain_workers(s);
	explain_worker_life(s);
	explain_files(s);
	explain_checkpoints(s);
	for (size_t i = 0; i < sizeof(simple) / sizeof(*simple); i++)
		cause_add_simple(s, simple[i].id, simple[i].quantity);
}
