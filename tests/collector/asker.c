/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/collector/asker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "query/duckdb/duckdb_api.h"
#include "common/frame.h"
#include "net/wire.h"
#include "tests/unit.h"

#define PATIENCE_S 300
#define WORDS_MAX  24

/* ---- the server -------------------------------------------------------------------------------- */

static void run_server(const struct server *s, const char *store, const char *const *options,
		       int input, int output)
{
	const char *words[WORDS_MAX] = {QUERY_SERVER, store, s->socket};
	size_t n = 3;

	while (options != NULL && *options != NULL)
		words[n++] = *options++;
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	execv(words[0], (char **)words);
	_exit(127);
}

void server_start(struct server *s, const char *store, const char *const *options)
{
	static unsigned number;
	int in[2], out[2];
	char line[16] = {0}, *error = NULL;

	if (hr_duckdb_load(&error) < 0) {
		print_message("skipped: %s\n", error);
		exit(77);
	}
	snprintf(s->socket, sizeof(s->socket), "/tmp/headrace-asker-%d-%u", (int)getpid(),
		 number++);
	unlink(s->socket);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0)
		run_server(s, store, options, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	s->input = in[1];
	assert_true(read(out[0], line, sizeof(line) - 1) > 0);
	assert_string_equal(line, "listening\n");
	close(out[0]);
}

void server_stop(struct server *s)
{
	int status;

	close(s->input);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	unlink(s->socket);
}

/* Parent of a process, 0 when it has none any more. */
static pid_t parent(const char *pid)
{
	char path[64], text[512];
	const char *after;
	FILE *from;
	size_t n;
	int ppid = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	from = fopen(path, "re");
	if (from == NULL)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, from);
	fclose(from);
	text[n] = '\0';
	after = strrchr(text, ')');
	if (after == NULL || after[2] == 'Z' || sscanf(after + 3, "%d", &ppid) != 1)
		return 0;
	return ppid;
}

/* How many there are; the nth, if there is. Children of one age have pids in that order, mostly. */
static unsigned children(const struct server *s, unsigned nth, pid_t *ret)
{
	struct dirent **entries;
	int n = scandir("/proc", &entries, NULL, versionsort);
	unsigned found = 0;

	for (int i = 0; i < n; i++) {
		if (atoi(entries[i]->d_name) > 0 && parent(entries[i]->d_name) == s->pid &&
		    found++ == nth)
			*ret = atoi(entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return found;
}

unsigned server_children(const struct server *s)
{
	pid_t any;

	return children(s, 0, &any);
}

pid_t server_child(const struct server *s, unsigned nth)
{
	pid_t pid = 0;

	for (unsigned i = 0; i < PATIENCE_S * 100; i++) {
		if (children(s, nth, &pid) > nth)
			return pid;
		usleep(10000);
	}
	fail_msg("no child %u", nth);
	return 0;
}

/* ---- the client -------------------------------------------------------------------------------- */

static void tell(struct asker *a, const Headrace__Wire *msg)
{
	uint8_t *buf;
	size_t bytes;

	assert_int_equal(hr_wire_pack(msg, &buf, &bytes), 0);
	assert_int_equal(send(a->fd, buf, bytes, MSG_NOSIGNAL), bytes);
	free(buf);
}

void asker_open(struct asker *a, const struct server *s, const char *who)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	Headrace__Hello hello = HEADRACE__HELLO__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;

	*a = (struct asker){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .status = -1};
	assert_true(a->fd >= 0);
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", s->socket);
	assert_int_equal(connect(a->fd, (struct sockaddr *)&to, sizeof(to)), 0);
	setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	hello.min_version = hello.max_version = HR_WIRE_VERSION;
	hello.node = (char *)who;
	msg.body_case = HEADRACE__WIRE__BODY_HELLO;
	msg.hello = &hello;
	tell(a, &msg);
	assert_true(asker_step(a));
}

/* The answer. */
static void forget(struct asker *a)
{
	if (a->to != NULL)
		fclose(a->to);
	free(a->out);
}

void asker_close(struct asker *a)
{
	if (a->fd >= 0)
		close(a->fd);
	forget(a);
	*a = (struct asker){.fd = -1};
}

void asker_send(struct asker *a, const struct question *q)
{
	char *words[] = {(char *)q->sql};
	Headrace__Query body = HEADRACE__QUERY__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;

	forget(a);
	*a = (struct asker){.fd = a->fd, .status = -1};
	a->to = open_memstream(&a->out, &a->n);
	assert_non_null(a->to);
	body.n_words = 1;
	body.words = words;
	body.job = q->job != NULL ? (char *)q->job : "";
	body.format = q->format != NULL ? (char *)q->format : "csv";
	body.memory_bytes = q->memory_bytes;
	body.threads = q->threads;
	body.time_ms = q->time_ms;
	body.progress = true;
	msg.body_case = HEADRACE__WIRE__BODY_QUERY;
	msg.query = &body;
	tell(a, &msg);
}

void asker_cancel(struct asker *a)
{
	Headrace__Cancel body = HEADRACE__CANCEL__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;

	msg.body_case = HEADRACE__WIRE__BODY_CANCEL;
	msg.cancel = &body;
	tell(a, &msg);
}

static bool receive(struct asker *a, void *to, size_t bytes)
{
	ssize_t n = recv(a->fd, to, bytes, MSG_WAITALL);

	if (n < 0)
		fail_msg("the server: %s", strerror(errno));
	return (size_t)n == bytes;
}

static void take(struct asker *a, const Headrace__Wire *msg)
{
	size_t n = strlen(a->notes);

	switch (msg->body_case) {
	case HEADRACE__WIRE__BODY_OUTPUT:
		assert_true(msg->output->data.len <= HR_WIRE_OUTPUT_BYTES);
		fwrite(msg->output->data.data, 1, msg->output->data.len, a->to);
		fflush(a->to);
		break;
	case HEADRACE__WIRE__BODY_NOTE:
		snprintf(a->notes + n, sizeof(a->notes) - n, "%s\n", msg->note->text);
		break;
	case HEADRACE__WIRE__BODY_PROGRESS:
		a->progress++;
		if (msg->progress->text[0] != '\0')
			snprintf(a->waiting, sizeof(a->waiting), "%s", msg->progress->text);
		break;
	case HEADRACE__WIRE__BODY_DONE:
		a->status = (int)msg->done->status;
		break;
	default:
		break;
	}
}

bool asker_step(struct asker *a)
{
	uint8_t *frame = malloc(HR_FRAME_HDR_BYTES + HR_WIRE_MAX_BYTES);
	struct hr_frame_hdr h;
	Headrace__Wire *msg;

	assert_non_null(frame);
	if (!receive(a, frame, sizeof(h))) {
		free(frame);
		return false;
	}
	memcpy(&h, frame, sizeof(h));
	assert_true(h.length <= HR_WIRE_MAX_BYTES);
	assert_true(receive(a, frame + sizeof(h), h.length));
	assert_int_equal(hr_wire_unpack(frame, sizeof(h) + h.length, &msg), 0);
	take(a, msg);
	headrace__wire__free_unpacked(msg, NULL);
	free(frame);
	return true;
}

int asker_wait(struct asker *a)
{
	while (a->status < 0)
		if (!asker_step(a))
			return -1;
	return a->status;
}

int asker_ask(struct asker *a, const char *sql)
{
	asker_send(a, &(struct question){.sql = sql});
	return asker_wait(a);
}
