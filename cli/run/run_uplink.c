/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/text.h"
#include "common/now.h"
#include "store/store.h"

#define SPOOL_MIN_BYTES	  (UINT64_C(16) << 20)
#define ANSWER_MS	  10000 /* much longer than the interval of reports of headraced */
#define PROGRESS_FIRST_NS UINT64_C(1000000000)
#define PROGRESS_NS	  UINT64_C(5000000000)

/* Sets the folder of headrace in $XDG_STATE_HOME or ~/.local/state. */
static int state_folder(char *ret, size_t bytes)
{
	const char *state = hr_getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (state != NULL && state[0] != '/')
		hr_report("XDG_STATE_HOME=%s is ignored: it is not an absolute path", state);
	if (state != NULL && state[0] == '/')
		n = snprintf(ret, bytes, "%s/headrace", state);
	else if (home != NULL && home[0] == '/')
		n = snprintf(ret, bytes, "%s/.local/state/headrace", home);
	else
		return -ENOENT;
	return (size_t)n < bytes ? 0 : -ENAMETOOLONG;
}

/*
 * Finds the path of the spool. A user has one spool or, on a network file system, one per node. On
 * failure, `ret` may contain the path of the folder that was not created.
 */
static int spool_path(const char *node, char *ret, size_t bytes)
{
	const char *given = hr_getenv("HEADRACE_SPOOL");
	struct hr_fs_kind kind;
	size_t used;
	int n, r;

	if (given != NULL) {
		n = snprintf(ret, bytes, "%s", given);
		return (size_t)n < bytes ? hr_folder_make(ret, 0700) : -ENAMETOOLONG;
	}
	r = state_folder(ret, bytes);
	if (r == 0)
		r = hr_folder_make(ret, 0700);
	if (r < 0)
		return r;
	used = strlen(ret);
	if (hr_fs_kind(ret, &kind) == 0 && kind.network)
		n = snprintf(ret + used, bytes - used, "/spool.%s", node);
	else
		n = snprintf(ret + used, bytes - used, "/spool");
	return (size_t)n < bytes - used ? 0 : -ENAMETOOLONG;
}

static int make_spool(struct hr_run_uplink *u, const char *node)
{
	char path[PATH_MAX] = "";
	int r = spool_path(node, path, sizeof(path));

	if (r == 0)
		r = hr_store_create(path);
	if (r == 0) {
		u->spool = realpath(path, NULL);
		r = u->spool != NULL ? 0 : -errno;
	}
	if (r < 0)
		hr_report("cannot create the spool %s: %s" HR_HINT
			  "set HEADRACE_SPOOL to a folder that you can write to",
			  path[0] != '\0' ? path : "(HOME is not set)", strerrordesc_np(-r));
	return r;
}

static int read_size(struct hr_run_uplink *u)
{
	const char *size = hr_getenv("HEADRACE_SPOOL_SIZE");

	u->spool_bytes = HR_SPOOL_LIMIT_BYTES;
	if (size == NULL ||
	    (hr_text_parse_size(size, &u->spool_bytes) == 0 && u->spool_bytes >= SPOOL_MIN_BYTES))
		return 0;
	hr_report("HEADRACE_SPOOL_SIZE must be a size of at least %s such as 256MiB, not '%s'",
		  hr_text_size(SPOOL_MIN_BYTES).s, size);
	return -EINVAL;
}

static int find_certificate(struct hr_run_uplink *u)
{
	const struct hr_tls_files none = {0};
	char *error = NULL;
	int r = strstr(u->collectors, "tcp://") != NULL ? hr_tls_find(&none, &u->tls, &error) : 0;

	if (r < 0)
		hr_report("%s", error != NULL ? error : "out of memory");
	free(error);
	return r;
}

int hr_run_uplink_init(const char *collectors, const char *node, struct hr_run_uplink *ret)
{
	int r;

	*ret = (struct hr_run_uplink){.collectors = collectors};
	snprintf(ret->first, sizeof(ret->first), "%.*s", (int)strcspn(collectors, ","), collectors);
	r = read_size(ret);
	if (r == 0)
		r = find_certificate(ret);
	return r < 0 ? r : make_spool(ret, node);
}

void hr_run_uplink_done(struct hr_run_uplink *u)
{
	free(u->spool);
	hr_tls_paths_done(&u->tls);
	*u = (struct hr_run_uplink){0};
}

void hr_run_uplink_adapt(const struct hr_run_uplink *u, struct hr_summary *s)
{
	char *first = strdup(u->first);

	if (first != NULL) {
		free(s->store);
		s->store = first;
	}
	if (s->partial)
		hr_report("the summary lacks the beginning of the job: the full spool dropped sent "
			  "data" HR_HINT "query %s, which has it",
			  u->first);
	if (s->ranks_missing != NULL)
		hr_report("the summary covers this node only: ranks %s ran on other nodes or are "
			  "missing" HR_HINT "query %s, which receives the data of all nodes",
			  s->ranks_missing, u->first);
	free(s->ranks_missing);
	s->ranks_missing = NULL;
}

static bool add_option(FILE *out, const char *option, const char *path)
{
	char *quoted = path != NULL ? hr_text_quote(path) : NULL;

	if (quoted != NULL)
		fprintf(out, "%s%s", option, quoted);
	free(quoted);
	return path == NULL || quoted != NULL;
}

void hr_run_uplink_report_unsent(const struct hr_run_uplink *u, const char *headraced)
{
	char *command = NULL;
	size_t bytes;
	FILE *out = open_memstream(&command, &bytes);
	bool whole;

	if (out == NULL)
		return;
	whole = add_option(out, "", headraced) && add_option(out, " uplink ", u->spool) &&
		fprintf(out, " --collector %s", u->collectors) > 0 &&
		add_option(out, " --tls-cert ", u->tls.cert) &&
		add_option(out, " --tls-key ", u->tls.key) &&
		add_option(out, " --tls-ca ", u->tls.ca);
	if (fclose(out) == 0 && whole)
		hr_report("hint: the next `headrace run -o %s` on this node sends unsent frames; "
			  "to send them now: %s",
			  u->collectors, command);
	free(command);
}

static void report_progress(const Headrace__Sending *s)
{
	hr_report("sending to %s: %s of %s frames left%s%s", s->collector, hr_text_count(s->left).s,
		  hr_text_count(s->frames).s, s->error[0] != '\0' ? "; " : "", s->error);
}

/*
 * Waits for a message, and stores it in *last if it is `sending`. Returns 0; -ETIMEDOUT: headraced
 * does not answer; -EINTR: an interrupt; or an error of the connection.
 */
static int drain_step(struct hr_link *link, Headrace__Control **last, int interrupt_fd)
{
	struct pollfd fds[] = {{.fd = link->fd, .events = POLLIN},
			       {.fd = interrupt_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	Headrace__Control *m = NULL;
	int r, n = poll(fds, 2, ANSWER_MS);

	if (n == 0)
		return -ETIMEDOUT;
	if (n > 0 && fds[1].revents != 0 && read(interrupt_fd, &info, sizeof(info)) > 0)
		return -EINTR;
	r = n > 0 && fds[0].revents != 0 ? hr_control_wait(link->fd, 0, &m) : -EAGAIN;
	if (r == 0 && m->kind_case == HR_CONTROL(SENDING)) {
		hr_control_free(*last);
		*last = m;
		return 0;
	}
	hr_control_free(m);
	return r == -EAGAIN || r == -ETIMEDOUT || r == -EINTR ? 0 : r;
}

static void report_result(const struct hr_run_uplink *u, const Headrace__Sending *s,
			  const char *headraced)
{
	if (s->finished && s->left == 0) {
		hr_report("sent to %s: %s frames", s->collector, hr_text_count(s->frames).s);
		return;
	}
	if (s->set_aside[0] != '\0') {
		hr_report("%s", s->set_aside);
		return;
	}
	hr_report("%s of %s frames are not sent yet%s%s%s; they wait in the spool %s",
		  hr_text_count(s->left).s, hr_text_count(s->frames).s,
		  s->error[0] != '\0' ? " (" : "", s->error, s->error[0] != '\0' ? ")" : "",
		  u->spool);
	hr_run_uplink_report_unsent(u, headraced);
}

void hr_run_uplink_drain(const struct hr_run_uplink *u, struct hr_link *link, int interrupt_fd,
			 const char *headraced)
{
	uint64_t report_ns = hr_now_ns(CLOCK_MONOTONIC) + PROGRESS_FIRST_NS;
	Headrace__Sending none = HEADRACE__SENDING__INIT;
	const Headrace__Sending *s = &none;
	Headrace__Control *last = NULL;
	int r = hr_control_send(link->fd, HR_CONTROL(SUMMARY_PRINTED), NULL);

	none.left = 1; /* frames may remain, until headraced reports */
	while (r == 0 && !s->finished) {
		r = drain_step(link, &last, interrupt_fd);
		s = last != NULL ? last->sending : s;
		if (r == 0 && !s->finished && last != NULL &&
		    hr_now_ns(CLOCK_MONOTONIC) >= report_ns) {
			report_ns = hr_now_ns(CLOCK_MONOTONIC) + PROGRESS_NS;
			report_progress(s);
		}
	}
	report_result(u, s, headraced);
	hr_control_free(last);
}
