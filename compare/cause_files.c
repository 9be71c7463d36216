/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why reads, opens and writes of a kind of files took longer. The time of a kind is
 *
 *      files opened  x  bytes of each file  x  reads of each byte  x  time of a read
 *
 * so the logarithms of the four ratios sum to that of the time, and the largest one is the cause.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "compare/causes.h"

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
	double read = hr_log_ratio(per(a->read_s, a->reads), per(b->read_s, b->reads));
	double byte = hr_log_ratio(per(a->read_s, a->bytes_read), per(b->read_s, b->bytes_read));

	if (read > 0 && byte > 0)
		return fmin(read, byte);
	return read < 0 && byte < 0 ? fmax(read, byte) : 0;
}

static struct kind_ratios ratios_of(const struct hr_kind *k)
{
	const struct hr_kind_means *a = &k->side[HR_COMPARE_A], *b = &k->side[HR_COMPARE_B];

	return (struct kind_ratios){
	    .files = hr_log_ratio(a->opens, b->opens),
	    .amount = hr_log_ratio(per(a->bytes_read, a->opens), per(b->bytes_read, b->opens)),
	    .size = hr_log_ratio(per(a->reads, a->bytes_read), per(b->reads, b->bytes_read)),
	    .speed = speed_of(a, b),
	};
}

/* The share of all bytes read that came from the storage; -1: not known. */
static double from_storage(struct hr_causes_search *s, int side)
{
	double read = hr_causes_sum(s, side, "bytes_read");

	if (!hr_side_has(&s->sides[side], "fetch_storage_bytes") || !(read > 0))
		return -1;
	return hr_causes_sum(s, side, "fetch_storage_bytes") / read;
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
	slower = hr_log_ratio(uncached_time(a), uncached_time(b));
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
		return sign * r.files >= 0.5 * sign * hr_log_ratio(a->meta_s, b->meta_s)
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
	fprintf(to, "%s reads of %s, %s each", hr_text_count((uint64_t)(m->reads + 0.5)).s,
		hr_text_size((uint64_t)per(m->bytes_read, m->reads)).s,
		hr_compare_seconds(per(m->read_s, m->reads)).s);
}

static char *evidence_of(struct hr_causes_search *s, const struct hr_kind *k)
{
	const struct hr_kind_means *a = &k->side[HR_COMPARE_A], *b = &k->side[HR_COMPARE_B];
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
		fprintf(to, "; %s opens (A: %s)", hr_text_count((uint64_t)(b->opens + 0.5)).s,
			hr_text_count((uint64_t)(a->opens + 0.5)).s);
	if (b->mount != NULL)
		fprintf(to, "; on %s", b->mount);
	if (a->mount != NULL && (b->mount == NULL || strcmp(a->mount, b->mount) != 0))
		fprintf(to, " (A: %s)", a->mount);
	if (disk_a >= 0 && disk_b >= 0 && fmax(disk_a, disk_b) > HARDLY)
		fprintf(to, "; the page cache served %.0f %% of the bytes (A: %.0f %%)",
			100 * fmax(0, 1 - disk_b), 100 * fmax(0, 1 - disk_a));
	if (fclose(to) == 0)
		return text;
	free(text);
	s->failed = true;
	return NULL;
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
		return hr_compare_cause_text(s, "%s %s: %s", hr_kind_shown(k),
					     seconds > 0 ? "are used in B only"
							 : "are used in A only",
					     hr_compare_cause_meaning(id, seconds));
	return hr_compare_cause_text(s, "I/O of %s took %.2fx as long%s: %s", hr_kind_shown(k),
				     per(tb, ta), is_same_work(k) ? ", same count and sizes" : "",
				     hr_compare_cause_meaning(id, seconds));
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
	    hr_compare_cause_add(s, id,
				 writes				       ? HR_QUANTITY_write
				 : fabs(own.metadata) > fabs(own.read) ? HR_QUANTITY_metadata
								       : HR_QUANTITY_read,
				 sum);

	if (cause == NULL)
		return;
	cause->what = sentence_of(s, k, id, sum);
	cause->evidence = evidence_of(s, k);
}

/* Divides the seconds of the quantities among the kinds. */
void hr_causes_of_files(struct hr_causes_search *s)
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
		hr_compare_cause_add_simple(s, HR_WHY_files, HR_QUANTITY_read);
	if (all.metadata == 0)
		hr_compare_cause_add_simple(s, HR_WHY_files, HR_QUANTITY_metadata);
	if (all.written == 0)
		hr_compare_cause_add_simple(s, HR_WHY_files, HR_QUANTITY_write);
}
