/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the answer as text: totals, a table of jobs, a table of mounts. */
#include <stdlib.h>
#include <string.h>

#include "cli/fleet/fleet.h"
#include "cli/screen.h"
#include "cli/sheet.h"
#include "common/text.h"

#define MOUNTS 6u /* rows of mounts of the whole cluster */

struct fleet_page {
	FILE *out;
	size_t left; /* lines; SIZE_MAX: no limit */
};

static void end_line(struct fleet_page *p)
{
	fputc('\n', p->out);
	if (p->left != SIZE_MAX && p->left > 0)
		p->left--;
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* Prints bytes of another machine, escaped. */
static void put_bytes(struct fleet_page *p, const void *bytes, size_t n)
{
	char *escaped = hr_text_escaped(bytes, n);

	fputs(escaped != NULL ? escaped : "?", p->out);
	free(escaped);
}

static void put_text(struct fleet_page *p, const char *text)
{
	put_bytes(p, text, strlen(text));
}

/* Prints them in `width` cells, cut and padded, and a blank. */
static void put_cell(struct fleet_page *p, const void *bytes, size_t n, unsigned width)
{
	struct hr_screen_text cell = {0};
	char *escaped = hr_text_escaped(bytes, n);

	hr_screen_text_fit(&cell, escaped != NULL ? escaped : "?", width, HR_SCREEN_CUT_END, true);
	fwrite(cell.s, 1, cell.bytes, p->out);
	fputc(' ', p->out);
	hr_screen_text_done(&cell);
	free(escaped);
}

static void put_text_cell(struct fleet_page *p, const char *text, unsigned width)
{
	put_cell(p, text, strlen(text), width);
}

static double bytes_of(const Headrace__FleetRate *r)
{
	return r != NULL ? r->bytes_read + r->bytes_written : 0;
}

static double ops_of(const Headrace__FleetRate *r)
{
	return r != NULL ? r->metadata + r->reads + r->writes : 0;
}

static void put_rates(struct fleet_page *p, const Headrace__FleetRate *r)
{
	static const Headrace__FleetRate none;

	r = r != NULL ? r : &none;
	fprintf(p->out, "%10s %10s %10s", hr_text_decimal(r->metadata).s,
		hr_text_decimal(r->reads + r->writes).s, hr_text_size((uint64_t)bytes_of(r)).s);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void put_head(struct fleet_page *p, const struct hr_fleet_display *d)
{
	const Headrace__Fleet *f = d->fleet;

	fprintf(p->out, "%s %s: %u running job%s", hr_screen_clock(f->real_ns).s, d->collector,
		f->jobs_total, hr_plural(f->jobs_total));
	if (f->nodes > 0)
		fprintf(p->out, "; %u node%s connected", f->nodes, hr_plural(f->nodes));
	end_line(p);
	if (f->rate == NULL || f->jobs_total == 0)
		return;
	fprintf(p->out, "%s metadata operations/s, %s reads and writes/s, %s/s",
		hr_text_decimal(f->rate->metadata).s,
		hr_text_decimal(f->rate->reads + f->rate->writes).s,
		hr_text_size((uint64_t)bytes_of(f->rate)).s);
	end_line(p);
	if (f->loops > 0)
		fprintf(p->out, "%s of %u training loops wait for data",
			hr_text_decimal(f->waiting).s, f->loops);
	if (f->stuck_total > 0)
		fprintf(p->out, "%s%u %s not ended for more than 5 s", f->loops > 0 ? "; " : "",
			f->stuck_total,
			f->stuck_total == 1 ? "operation, step or wait has"
					    : "operations, steps or waits have");
	if (f->loops > 0 || f->stuck_total > 0)
		end_line(p);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void put_job_row(struct fleet_page *p, const Headrace__FleetJob *j)
{
	char user[16], waiting[48] = "-", steps[32] = "-";

	snprintf(user, sizeof(user), "%u", j->uid);
	put_text_cell(p, j->job, 14);
	put_text_cell(p, j->user[0] != '\0' ? j->user : user, 8);
	fprintf(p->out, "%5u ", j->nodes);
	if (j->nodes > 0)
		put_rates(p, j->rate);
	else /* not known now */
		fprintf(p->out, "%10s %10s %10s", "-", "-", "-");
	if (j->loops > 0) {
		snprintf(waiting, sizeof(waiting), "%.12s/%u", hr_text_decimal(j->waiting).s,
			 j->loops);
		snprintf(steps, sizeof(steps), "%s", hr_text_decimal(j->steps).s);
	}
	fprintf(p->out, " %9s %7s", waiting, steps);
	end_line(p);
}

static bool has_most(const Headrace__FleetJob *j)
{
	return ops_of(j->rate) > 0 && j->rank != NULL;
}

/* "  most: rank 3 on n12 (98 %), in /scratch/many (97 %)" */
static void put_most(struct fleet_page *p, const Headrace__FleetJob *j)
{
	if (!has_most(j))
		return;
	fputs("  most: ", p->out);
	if (j->rank->rank_plus1 > 0)
		fprintf(p->out, "rank %u on ", j->rank->rank_plus1 - 1);
	put_text(p, j->rank->node);
	fprintf(p->out, " (%.0f %%)", 100 * ops_of(j->rank->rate) / ops_of(j->rate));
	if (j->folder != NULL && j->folder->share > 0) {
		fputs(", in ", p->out);
		put_bytes(p, j->folder->path.data, j->folder->path.len);
		fprintf(p->out, " (%.0f %%)", 100 * j->folder->share);
	}
	end_line(p);
}

static void put_stuck(struct fleet_page *p, const Headrace__FleetJob *j)
{
	const Headrace__FleetStuck *s = j->n_stuck > 0 ? j->stuck[0] : NULL;

	if (s == NULL || s->op == NULL)
		return;
	fprintf(p->out, "  no %s for %s: ", s->op->hang ? "end" : "return",
		hr_text_duration(s->op->age_ns).s);
	put_text(p, s->op->op);
	if (s->op->path.len > 0) {
		fputs(s->op->hang ? " at " : " of ", p->out);
		put_bytes(p, s->op->path.data, s->op->path.len);
	}
	fputs(",", p->out);
	if (s->op->rank_plus1 > 0)
		fprintf(p->out, " rank %u", s->op->rank_plus1 - 1);
	if (s->op->worker_plus1 > 0)
		fprintf(p->out, " worker %u", s->op->worker_plus1 - 1);
	fprintf(p->out, " pid %u on ", s->op->pid);
	put_text(p, s->node);
	if (j->n_stuck > 1)
		fprintf(p->out, ", and %zu more", j->n_stuck - 1);
	end_line(p);
}

static void put_problems(struct fleet_page *p, const Headrace__FleetJob *j)
{
	if (j->silent_nodes > 0) {
		fprintf(p->out, "  %u connection%s sent nothing for more than 5 s", j->silent_nodes,
			hr_plural(j->silent_nodes));
		end_line(p);
	}
	if (j->lost > 0) {
		fprintf(p->out, "  %s operations are not recorded", hr_text_count(j->lost).s);
		end_line(p);
	}
}

static size_t lines_of(const Headrace__FleetJob *j, bool brief)
{
	return 1 + (!brief && has_most(j)) + (j->n_stuck > 0) + (j->silent_nodes > 0) +
	       (j->lost > 0);
}

/* Leaves `keep` lines for what follows. */
static void put_jobs(struct fleet_page *p, const struct hr_fleet_display *d, size_t keep)
{
	const Headrace__Fleet *f = d->fleet;
	size_t i = 0;

	if (f->n_jobs == 0)
		return;
	end_line(p);
	fprintf(p->out, "%-14s %-8s %5s %10s %10s %10s %9s %7s", "JOB", "USER", "NODES",
		"METADATA/S", "RW/S", "BYTES/S", "WAITING", "STEPS/S");
	end_line(p);
	for (; i < f->n_jobs; i++) {
		size_t lines = lines_of(f->jobs[i], d->brief) + (i + 1 < f->jobs_total);

		if (p->left != SIZE_MAX && p->left < keep + lines && i > 0)
			break;
		put_job_row(p, f->jobs[i]);
		if (!d->brief)
			put_most(p, f->jobs[i]);
		put_stuck(p, f->jobs[i]);
		put_problems(p, f->jobs[i]);
	}
	if (i < f->jobs_total) {
		fprintf(p->out, "and %zu more; these come first by %s", f->jobs_total - i, d->by);
		end_line(p);
	}
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static void put_mount(struct fleet_page *p, const Headrace__FleetMount *m)
{
	put_cell(p, m->path.data, m->path.len, 20);
	put_text_cell(p, m->fs_type, 8);
	put_rates(p, m->rate);
	fprintf(p->out, "  %.0f %% job ", 100 * m->share);
	put_text(p, m->job);
	end_line(p);
}

static void put_mounts(struct fleet_page *p, const Headrace__Fleet *f, size_t n)
{
	if (n == 0)
		return;
	end_line(p);
	fprintf(p->out, "%-20s %-8s %10s %10s %10s  %s", "MOUNT", "TYPE", "METADATA/S", "RW/S",
		"BYTES/S", "MOST BY");
	end_line(p);
	for (size_t i = 0; i < n; i++)
		put_mount(p, f->mounts[i]);
}

/* How many mounts have room, in at most a quarter of the lines. */
static size_t mounts_shown(const struct hr_fleet_display *d)
{
	size_t n = d->fleet->n_mounts < MOUNTS ? d->fleet->n_mounts : MOUNTS;
	size_t room = d->lines > 0 ? d->lines / 4 : n + 2;

	if (d->brief || room < 3)
		return 0;
	return n + 2 <= room ? n : room - 2;
}

void hr_fleet_print(FILE *out, const struct hr_fleet_display *d)
{
	struct fleet_page p = {out, d->lines > 0 ? d->lines : SIZE_MAX};
	size_t mounts = mounts_shown(d);

	put_head(&p, d);
	put_jobs(&p, d, mounts > 0 ? mounts + 2 : 0);
	put_mounts(&p, d->fleet, mounts);
	fflush(out);
}
