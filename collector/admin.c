/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/layout.h"
#include "collector/retire.h"
#include "store/stream_state.h"
#include "common/now.h"
#include "common/text.h"

#define IN_USE                                                                                     \
	"a daemon has it open, or had it open within the last minute: end the job there first"

__attribute__((format(printf, 1, 2))) static int admin_fail(const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	hr_text_print(stderr, "headrace-collector: %s\n", text ? text : "out of memory");
	free(text);
	return EXIT_FAILURE;
}

/* If root runs this, takes the rights of the store's owner, who could not read files of root. */
static int become_owner(int store_fd)
{
	struct stat st;

	if (fstat(store_fd, &st) < 0)
		return -errno;
	if (geteuid() != 0 || st.st_uid == 0)
		return 0;
	return setegid(st.st_gid) < 0 || seteuid(st.st_uid) < 0 ? -errno : 0;
}

/* Opens the folder `jobs` of the store. `encoded` receives the name of the folder of the job. */
static int open_jobs(const char *store, const char *job, char encoded[HR__NAME_BYTES], int *ret_fd)
{
	int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = become_owner(fd);
	if (r == 0)
		r = hr_store_version(fd);
	if (r == 0)
		r = hr_name_encode(job, encoded);
	*ret_fd = r == 0 ? hr_store_open_folder(fd, "jobs") : -1;
	if (r == 0 && *ret_fd < 0)
		r = *ret_fd;
	close(fd);
	return r;
}

static void close_jobs(int fd)
{
	if (fd >= 0)
		close(fd);
	if (geteuid() != getuid() && (seteuid(getuid()) < 0 || setegid(getgid()) < 0))
		abort(); /* a process without its own rights must not continue */
}

static int fail_absent(const char *store, const char *job, int error)
{
	if (error == -ENOENT)
		return admin_fail("no job '%s' in the store %s", job, store);
	return admin_fail("job '%s' in the store %s: %s", job, store, strerrordesc_np(-error));
}

struct closing {
	const char *job, *node;
	unsigned seen, closed, failed;
};

static void close_stream(const struct hr__retired_folder *f, struct closing *c, const char *node)
{
	struct hr_stream_state state = {0};
	int lock = -1, r = hr_stream_lock(f->fd, &lock);

	if (r == 0) {
		r = hr_stream_state_read(f->fd, &state);
		state.closed_ns = hr_now_ns(CLOCK_REALTIME);
		state.connected = false;
		if (r == 0)
			r = hr_stream_state_write(f->fd, &state, true);
		close(lock);
	}
	if (r < 0) {
		c->failed++;
		(void)admin_fail("cannot close job %s, node %s: %s", c->job, node,
				 r == -EBUSY ? IN_USE : strerrordesc_np(-r));
	} else {
		c->closed++;
		hr_text_print(stdout, "job %s, node %s: closed; last message on %s\n", c->job, node,
			      hr_text_date(state.heard_ns).s);
	}
}

static int visit_to_close(const struct hr__retired_folder *f, void *context)
{
	struct closing *c = context;
	struct hr_stream_state state;
	char node[HR__NAME_BYTES], *dot;

	hr_name_decode(f->name, node);
	dot = strrchr(node, '.');
	if (dot)
		*dot = '\0';
	if (c->node && strcmp(c->node, node) != 0)
		return 0;
	c->seen++;
	/* Without `state`, no collector wrote the stream, so no daemon will continue it. */
	if (hr_stream_state_read(f->fd, &state) == 0 && !hr__stream_over(f->fd))
		close_stream(f, c, node);
	return 0;
}

int hr_admin_close_job(const char *store, const char *job, const char *node)
{
	struct closing c = {.job = job, .node = node};
	char encoded[HR__NAME_BYTES];
	int fd = -1, r = open_jobs(store, job, encoded, &fd);

	if (r == 0)
		r = hr__each_stream(fd, encoded, visit_to_close, &c);
	close_jobs(fd);
	if (r < 0)
		return fail_absent(store, job, r);
	if (node && c.seen == 0)
		return admin_fail("job '%s' has no node '%s' in the store %s", job, node, store);
	if (c.closed == 0 && c.failed == 0)
		hr_text_print(
		    stdout, "job %s%s%s: nothing to close: all streams have ended or are closed\n",
		    job, node ? ", node " : "", node ? node : "");
	return c.failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int hr_admin_remove_job(const char *store, const char *job)
{
	struct hr__retire_job found = {0};
	char encoded[HR__NAME_BYTES];
	uint64_t bytes = 0;
	int fd = -1, r = open_jobs(store, job, encoded, &fd);

	if (r == 0)
		r = hr__retire_inspect(fd, encoded, &found);
	if (r == 0 && found.in_use)
		r = -EBUSY;
	if (r == 0)
		r = hr__retire_job(fd, encoded, hr_now_ns(CLOCK_REALTIME), &bytes);
	close_jobs(fd);
	if (bytes > 0 || r == 0)
		hr_text_print(stdout, "job %s: removed %s\n", job, hr_text_size(bytes).s);
	if (r == -EBUSY)
		return admin_fail("cannot remove job %s%s: %s", job, bytes > 0 ? " completely" : "",
				  IN_USE);
	return r < 0 ? fail_absent(store, job, r) : EXIT_SUCCESS;
}
