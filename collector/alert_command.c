/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/alert_command.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLANKS	   " \t"
#define WORDS_MOST 64u

struct hr_alert_process {
	struct hr_alert_process *next, **at;
	struct hr_alert_commands *all;
	uv_process_t process;
	uv_pipe_t input;
	uv_write_t write;
	char *body;
	uint64_t id, started_ms;
	unsigned open; /* handles that are not closed yet */
	bool late;     /* it was killed */
};

static void on_closed(uv_handle_t *handle)
{
	struct hr_alert_process *p = handle->data;

	if (--p->open > 0)
		return;
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	p->all->n--;
	free(p->body);
	free(p);
}

static void close_input(struct hr_alert_process *p)
{
	if (!uv_is_closing((uv_handle_t *)&p->input))
		uv_close((uv_handle_t *)&p->input, on_closed);
}

/* A command need not read its input, so an error is none. */
static void on_written(uv_write_t *write, int status)
{
	(void)status;
	close_input(write->data);
}

static void on_exit_of(uv_process_t *process, int64_t status, int signal_)
{
	struct hr_alert_process *p = process->data;
	char error[96] = "";

	if (p->late)
		snprintf(error, sizeof(error), "it was killed after %u s",
			 HR_ALERT_COMMAND_MS / 1000);
	else if (signal_ != 0)
		snprintf(error, sizeof(error), "it was ended by SIG%s", sigabbrev_np(signal_));
	else if (status != 0)
		snprintf(error, sizeof(error), "it ended with status %lld", (long long)status);
	close_input(p);
	uv_close((uv_handle_t *)process, on_closed);
	p->all->done(p->all->self, p->id, error[0] != '\0' ? error : NULL);
}

/* Splits `text` in place. Returns the number of words, or 0 if there are none or too many. */
static size_t split_words(char *text, char *words[static WORDS_MOST + 1])
{
	size_t n = 0;
	char *word;

	while ((word = strsep(&text, BLANKS)) != NULL) {
		if (*word == '\0')
			continue;
		if (n == WORDS_MOST)
			return 0;
		words[n++] = word;
	}
	words[n] = NULL;
	return n;
}

static int spawn(struct hr_alert_process *p, const char *command)
{
	char *copy = strdup(command), *words[WORDS_MOST + 1];
	uv_stdio_container_t stdio[] = {
	    {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&p->input},
	    {.flags = UV_IGNORE},
	    {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
	};
	/* detached: the leader of a session, so that its children can be killed, too */
	uv_process_options_t options = {.exit_cb = on_exit_of,
					.args = words,
					.flags = UV_PROCESS_DETACHED,
					.stdio_count = 3,
					.stdio = stdio};
	int r = copy ? 0 : -ENOMEM;

	if (r == 0 && split_words(copy, words) == 0)
		r = -EINVAL;
	if (r == 0) {
		options.file = words[0];
		r = uv_spawn(p->all->loop, &p->process, &options);
	}
	free(copy);
	return r;
}

int hr_alert_command_run(struct hr_alert_commands *c, const char *command, uint64_t id, char *body)
{
	struct hr_alert_process *p = calloc(1, sizeof(*p));
	uv_buf_t bytes;
	int r;

	if (!p) {
		free(body);
		return -ENOMEM;
	}
	p->all = c;
	p->id = id;
	p->body = body;
	p->started_ms = uv_now(c->loop);
	p->process.data = p->input.data = p->write.data = p;
	p->next = c->first;
	p->at = &c->first;
	if (p->next)
		p->next->at = &p->next;
	c->first = p;
	c->n++;
	uv_pipe_init(c->loop, &p->input, 0);
	p->open = 2;
	r = spawn(p, command);
	bytes = uv_buf_init(body, (unsigned)strlen(body));
	if (r == 0 && uv_write(&p->write, (uv_stream_t *)&p->input, &bytes, 1, on_written) < 0)
		close_input(p);
	if (r == 0)
		return 0;
	/* uv_spawn has initialized the handle, unless it was not called */
	if (p->process.type == UV_PROCESS)
		uv_close((uv_handle_t *)&p->process, on_closed);
	else
		p->open--;
	close_input(p);
	return r;
}

static void kill_process(struct hr_alert_process *p)
{
	if (p->process.pid > 0 && !uv_is_closing((uv_handle_t *)&p->process))
		(void)kill(-p->process.pid, SIGKILL);
}

void hr_alert_commands_tick(struct hr_alert_commands *c, uint64_t now_ms)
{
	for (struct hr_alert_process *p = c->first; p; p = p->next) {
		if (now_ms - p->started_ms < HR_ALERT_COMMAND_MS)
			continue;
		p->late = true;
		kill_process(p);
	}
}

void hr_alert_commands_stop(struct hr_alert_commands *c)
{
	for (struct hr_alert_process *p = c->first; p; p = p->next)
		kill_process(p);
}

void hr_alert_command_program(const char *command, char *ret, size_t bytes)
{
	command += strspn(command, BLANKS);
	snprintf(ret, bytes, "%.*s", (int)strcspn(command, BLANKS), command);
}
