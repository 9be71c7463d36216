/* SPDX-License-Identifier: Apache-2.0 */
/* Which job `headrace top` is about: of the service of this node, and of this user's own runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run/runs.h"
#include "cli/service/service_link.h"
#include "cli/top/top.h"
#include "common/text.h"

#define FOUND_MOST 256u
#define ANSWER_MS  3000

struct found {
	struct hr_top_source source;
	uint32_t processes;
};

struct search {
	const char *job; /* NULL: the caller's */
	const char *socket;
	bool private;
	struct found *v;
	size_t n;
};

static bool is_there(const struct search *s, const struct found *f)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->v[i].source.socket, f->source.socket) == 0 &&
		    strcmp(s->v[i].source.job, f->source.job) == 0 &&
		    s->v[i].source.attempt == f->source.attempt)
			return true;
	return false;
}

static void take_job(struct search *s, const Headrace__JobStatus *j)
{
	struct found f = {.source = {.private = s->private, .attempt = j->attempt},
			  .processes = j->processes};

	snprintf(f.source.socket, sizeof(f.source.socket), "%s", s->socket);
	snprintf(f.source.job, sizeof(f.source.job), "%s", j->id);
	if (s->job ? strcmp(s->job, j->id) != 0 && strcmp(s->job, j->name) != 0
		   : j->uid != geteuid())
		return;
	if (strcmp(j->state, "draining") == 0 || s->n == FOUND_MOST || is_there(s, &f))
		return;
	s->v[s->n++] = f;
}

static void take_answer(void *arg, Headrace__Control *m)
{
	if (m->kind_case == HR_CONTROL(JOB_STATUS))
		take_job(arg, m->job_status);
}

/* Its jobs. 0, or -errno: no headraced answers there. */
static int top_find_ask(struct search *s, const char *socket)
{
	int fd = -1, r = hr_control_connect(socket, &fd);

	if (r < 0)
		return r;
	s->socket = socket;
	r = hr_control_ask(fd, ANSWER_MS, HR_CONTROL(GET_STATUS), NULL, take_answer, s, NULL);
	close(fd);
	return r == -EREMOTEIO ? 0 : r;
}

static void take_run(void *arg, const char *socket, Headrace__Control *m)
{
	struct search *s = arg;

	s->socket = socket;
	take_job(s, m->job_status);
}

/* Attempts of one job: the latest comes last. */
static bool same_job(const struct search *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(s->v[i].source.socket, s->v[0].source.socket) != 0 ||
		    strcmp(s->v[i].source.job, s->v[0].source.job) != 0)
			return false;
	return true;
}

static void say_which(const struct search *s)
{
	hr_report("%zu jobs%s run here: which? headrace top %s", s->n,
		  s->job ? " of that name" : "", s->job ? "--socket PATH JOB" : "JOB");
	for (size_t i = 0; i < s->n; i++) {
		const struct found *f = &s->v[i];
		char id[4 * sizeof(f->source.job)];

		hr_text_escape(id, sizeof(id), f->source.job, strlen(f->source.job));
		hr_report("  %s (%s%u process%s)%s%s", id,
			  f->source.private ? "headrace run, " : "", f->processes,
			  f->processes == 1 ? "" : "es", s->job ? " at " : "",
			  s->job ? f->source.socket : "");
	}
}

static int none(const struct search *s, const char *socket, int r)
{
	if (s->job)
		hr_report("no job %s of yours is recorded on this machine: `headrace status` lists "
			  "those of its service",
			  s->job);
	else
		hr_report(
		    "no job of yours is recorded on this machine: `headrace run -- CMD` records "
		    "CMD, `headrace top` in "
		    "another terminal shows it");
	if (r < 0 && r != -ENOENT && r != -ECONNREFUSED)
		hr_report("headraced at %s: %s", socket, strerrordesc_np(-r));
	return r < 0 ? HR_EXIT_NO_SERVICE : EXIT_FAILURE;
}

int hr_top_find(const char *job, const char *socket, struct hr_top_source *ret)
{
	struct search *s = calloc(1, sizeof(*s));
	const char *service = hr_service_socket(socket);
	int status = EXIT_SUCCESS, r;

	if (s)
		s->v = calloc(FOUND_MOST, sizeof(*s->v));
	if (!s || !s->v) {
		free(s);
		return EXIT_FAILURE;
	}
	s->job = job;
	r = top_find_ask(s, service);
	s->private = true;
	if (!socket)
		hr_runs_request_status(take_run, s);
	if (s->n == 0) {
		status = none(s, service, r);
	} else if (same_job(s)) {
		*ret = s->v[s->n - 1].source;
	} else {
		say_which(s);
		status = HR_EXIT_USAGE;
	}
	free(s->v);
	free(s);
	return status;
}
