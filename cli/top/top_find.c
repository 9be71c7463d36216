/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the job for `headrace top` among jobs of the service and runs of this user. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/service/runs.h"
#include "cli/service/service_link.h"
#include "cli/top/top.h"
#include "common/near.h"
#include "common/text.h"

#define FOUND_MAX 256u

struct found_service {
	struct hr_top_source source;
	uint32_t processes;
};

struct top_search {
	const char *job; /* id or name of the job; NULL: any job of the caller */
	const char *socket;
	bool private;
	bool incomplete; /* a headraced did not answer in time */
	struct found_service *v;
	size_t n;
	struct hr_near near; /* jobs of the caller with a name similar to `job` */
};

static bool is_known(const struct top_search *s, const struct found_service *f)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->v[i].source.socket, f->source.socket) == 0 &&
		    strcmp(s->v[i].source.job, f->source.job) == 0 &&
		    s->v[i].source.attempt == f->source.attempt)
			return true;
	return false;
}

static void add_job(struct top_search *s, const Headrace__JobStatus *j)
{
	struct found_service f = {.source = {.private = s->private, .attempt = j->attempt},
				  .processes = j->processes};

	snprintf(f.source.socket, sizeof(f.source.socket), "%s", s->socket);
	snprintf(f.source.job, sizeof(f.source.job), "%s", j->id);
	if (s->private && strlen(j->store) < sizeof(f.source.store))
		snprintf(f.source.store, sizeof(f.source.store), "%s", j->store);
	if (s->job && (j->uid == geteuid() || geteuid() == 0))
		hr_near_add(&s->near, j->id);
	if (s->job ? strcmp(s->job, j->id) != 0 && strcmp(s->job, j->name) != 0
		   : j->uid != geteuid())
		return;
	if (strcmp(j->state, "draining") == 0 || s->n == FOUND_MAX || is_known(s, &f))
		return;
	s->v[s->n++] = f;
}

static void add_answer(void *arg, Headrace__Control *m)
{
	if (m->kind_case == HR_CONTROL(JOB_STATUS))
		add_job(arg, m->job_status);
}

static void add_run(void *arg, const char *socket, Headrace__Control *m)
{
	struct top_search *s = arg;

	s->socket = socket;
	add_job(s, m->job_status);
}

/* Returns whether all found jobs are attempts of one job. The last of them is then the latest. */
static bool same_job(const struct top_search *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(s->v[i].source.socket, s->v[0].source.socket) != 0 ||
		    strcmp(s->v[i].source.job, s->v[0].source.job) != 0)
			return false;
	return true;
}

static void report_choice(const struct top_search *s)
{
	hr_report("%zu jobs%s run here; choose one: headrace top %s", s->n,
		  s->job ? " of that name" : "", s->job ? "--socket PATH JOB" : "JOB");
	for (size_t i = 0; i < s->n; i++) {
		const struct found_service *f = &s->v[i];
		char id[4 * sizeof(f->source.job)];

		hr_text_escape(id, sizeof(id), f->source.job, strlen(f->source.job));
		hr_report("  %s (%s%u process%s)%s%s", id,
			  f->source.private ? "headrace run, " : "", f->processes,
			  f->processes == 1 ? "" : "es", s->job ? " at " : "",
			  s->job ? f->source.socket : "");
	}
}

static int report_none(const struct top_search *s, const char *socket, int r)
{
	if (s->incomplete) {
		hr_runs_report_missing();
		return HR_EXIT_NO_SERVICE;
	}
	if (s->job)
		hr_report(
		    "no running job of yours on this machine is %s%s", hr_near_text(&s->near).s,
		    s->near.best[0] == '\0' ? HR_HINT "`headrace status` lists the jobs" : "");
	else
		hr_report("no job of yours is recorded on this machine" HR_HINT
			  "`headrace run -- CMD` records CMD; `headrace top` in another terminal "
			  "shows it");
	if (r < 0 && !hr_service_is_absent(r))
		hr_service_report_absent(socket, r);
	return r < 0 ? HR_EXIT_NO_SERVICE : EXIT_FAILURE;
}

int hr_top_find(const char *job, const char *socket, struct hr_top_source *ret)
{
	struct top_search s = {
	    .job = job, .v = calloc(FOUND_MAX, sizeof(*s.v)), .near = hr_near(job)};
	const char *service = hr_service_socket(socket);
	int status = EXIT_SUCCESS, r;

	if (!s.v)
		return EXIT_FAILURE;
	s.socket = service;
	r = hr_service_status(service, HR_RUNS_ANSWER_MS, add_answer, &s);
	r = r == -EREMOTEIO ? 0 : r; /* headraced refused the request */
	s.incomplete = r == -ETIMEDOUT;
	s.private = true;
	if (!socket)
		s.incomplete |= !hr_runs_request_status(add_run, &s);
	if (s.n == 0) {
		status = report_none(&s, service, r);
	} else if (same_job(&s)) {
		*ret = s.v[s.n - 1].source;
	} else {
		report_choice(&s);
		status = HR_EXIT_USAGE;
	}
	free(s.v);
	return status;
}
