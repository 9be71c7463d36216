/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet/fleet.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/collector.h"
#include "cli/screen.h"
#include "common/fleet_json.h"
#include "common/now.h"
#include "proto/now.h"

#define SECOND_NS UINT64_C(1000000000)
#define BY_KEYS	  "mbown"		/* keys that set the order, as in by_words */
#define RETRY_NS  UINT64_C(10000000000) /* how long a lost collector is tried again */

static const char *const by_words[] = {
#define ORDER(name) #name,
    HR_FLEET_ORDERS(ORDER)
#undef ORDER
};

struct fleet {
	const struct hr_fleet_command *command;
	struct hr_address to;
	struct hr_collector collector;
	bool linked;		  /* `collector` is in use; false: lost */
	Headrace__Wire *received; /* NULL: the collector has not answered the last Look */
	Headrace__Wire *answer;	  /* shown; NULL: none yet */
	const char *by;
	uint64_t answers;
	int signals; /* signalfd of the screen; -1: no screen */
	bool paused, over;
	bool again; /* an answer in another order is wanted at once */
	int status, signal;
};

static void fleet_end(struct fleet *f, int status)
{
	f->over = true;
	f->status = status;
	hr_screen_close();
}

/* ---- showing --------------------------------------------------------------------------------- */

/* Draws a text on the screen, each line cut at its width. */
static void fleet_draw_text(const char *text, unsigned columns, unsigned rows)
{
	struct hr_screen_text to = {0};

	hr_screen_text_put(&to, "\033[H", 3);
	for (unsigned i = 0; i < rows && *text != '\0'; i++) {
		size_t n = strcspn(text, "\n");
		char *line = strndup(text, n);

		if (i > 0)
			hr_screen_text_put(&to, "\r\n", 2);
		hr_screen_text_put(&to, "\033[K", 3);
		if (line != NULL)
			hr_screen_text_fit(&to, line, columns, HR_SCREEN_CUT_END, false);
		free(line);
		text += n + (text[n] == '\n');
	}
	hr_screen_text_put(&to, "\033[J", 3);
	hr_screen_put(&to);
	hr_screen_text_done(&to);
}

static void fleet_draw(const struct fleet *f, struct hr_fleet_display *d)
{
	unsigned columns, rows;
	char *text = NULL;
	size_t bytes;
	FILE *to;

	hr_screen_size(&columns, &rows);
	d->lines = rows > 2 ? rows - 1 : 1;
	to = open_memstream(&text, &bytes);
	if (to == NULL)
		return;
	hr_fleet_print(to, d);
	fprintf(to, "%sq quit  by: m metadata b bytes o ops w waiting n no return  space pause",
		f->paused ? "PAUSED  " : "");
	if (fclose(to) == 0)
		fleet_draw_text(text, columns, rows);
	free(text);
}

static void fleet_show(struct fleet *f)
{
	struct hr_fleet_display d = {
	    .collector = f->command->collector,
	    .by = f->by,
	    .brief = f->command->status,
	};

	if (f->answer == NULL)
		return;
	d.fleet = f->answer->fleet;
	if (f->command->json)
		hr_fleet_json(stdout, d.fleet);
	else if (f->signals >= 0)
		fleet_draw(f, &d);
	else
		hr_fleet_print(stdout, &d);
}

/* ---- the connection -------------------------------------------------------------------------- */

static int fleet_take(void *self, Headrace__Wire *msg)
{
	struct fleet *f = self;

	if (msg->body_case == HEADRACE__WIRE__BODY_FLEET) {
		headrace__wire__free_unpacked(f->received, NULL);
		f->received = msg;
	} else { /* ignores messages of later versions */
		headrace__wire__free_unpacked(msg, NULL);
	}
	return 0;
}

static void fleet_disconnect(struct fleet *f)
{
	if (f->linked)
		hr_collector_done(&f->collector);
	f->linked = false;
	headrace__wire__free_unpacked(f->received, NULL);
	f->received = NULL;
}

/* Connects, and waits for the collector. Returns 0 or -errno. */
static int fleet_connect(struct fleet *f)
{
	static const struct hr_collector_events events = {.take = fleet_take};
	struct hr_collector *c = &f->collector;

	f->linked = true;
	if (hr_collector_init(c, &f->to) == 0)
		hr_collector_connect(c, "headrace " HEADRACE_VERSION, &events, f);
	while (c->error == 0 && !c->welcome)
		uv_run(&c->loop, UV_RUN_ONCE);
	return c->error;
}

/* Asks, and waits for the answer. Returns 0 or -errno; *ret_error (malloc'ed) is a sentence. */
static int fleet_ask(struct fleet *f, Headrace__Wire **ret, char **ret_error)
{
	Headrace__Look look = HEADRACE__LOOK__INIT;
	struct hr_collector *c = &f->collector;
	int r = f->linked ? 0 : fleet_connect(f);

	look.job = f->command->job != NULL ? (char *)(uintptr_t)f->command->job : "";
	look.by = (char *)(uintptr_t)f->by;
	if (r == 0) {
		hr_collector_send(c, HR_WIRE(LOOK, look, &look));
		hr_collector_expect(c);
	}
	while (c->error == 0 && f->received == NULL)
		uv_run(&c->loop, UV_RUN_ONCE);
	uv_timer_stop(&c->timer);
	if (f->received != NULL) {
		*ret = f->received;
		f->received = NULL;
		return 0;
	}
	r = c->error;
	*ret_error = hr_collector_text(c);
	fleet_disconnect(f);
	return r;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void fleet_press(struct fleet *f, char key)
{
	const char *by = key != '\0' ? strchr(BY_KEYS, key) : NULL;

	if (key == 'q') {
		fleet_end(f, EXIT_SUCCESS);
	} else if (key == ' ') {
		f->paused = !f->paused;
	} else if (by != NULL) {
		f->by = by_words[by - BY_KEYS];
		f->again = true;
	}
}

static void fleet_read_keys(struct fleet *f)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n == 0)
		fleet_end(f, EXIT_SUCCESS);
	for (ssize_t i = 0; i < n && keys[0] != '\033' && !f->over; i++)
		fleet_press(f, keys[i]);
}

/* Waits for the next update, a key or a signal. */
static void fleet_wait(struct fleet *f, uint64_t until_ns)
{
	f->again = false;
	while (!f->over && !f->again) {
		uint64_t now = hr_now_ns(CLOCK_MONOTONIC);
		bool keys = f->signals >= 0 && isatty(STDIN_FILENO);
		struct pollfd fds[] = {{.fd = keys ? STDIN_FILENO : -1, .events = POLLIN},
				       {.fd = f->signals, .events = POLLIN}};
		int timeout = f->paused	       ? -1
			      : until_ns > now ? (int)((until_ns - now) / 1000000) + 1
					       : 0;
		int n = poll(fds, 2, timeout);

		if (n == 0)
			return;
		if (n > 0 && fds[1].revents != 0 && hr_screen_signals(&f->signal) == HR_SCREEN_END)
			fleet_end(f, EXIT_SUCCESS);
		if (n > 0 && fds[0].revents != 0 && !f->over)
			fleet_read_keys(f);
		if (!f->over)
			fleet_show(f);
	}
}

static void fleet_fail(struct fleet *f, int r, const char *error)
{
	fleet_end(f, r == -EACCES ? EXIT_FAILURE : HR_EXIT_NO_SERVICE);
	hr_report("%s", error != NULL ? error : "out of memory");
}

/*
 * Fetches an answer. If the collector answered before, connects again for some seconds: it may be
 * restarting. After a failure, `over` is set.
 */
static void fleet_fetch(struct fleet *f)
{
	uint64_t began = hr_now_ns(CLOCK_MONOTONIC), now;
	Headrace__Wire *answer = NULL;
	char *error = NULL;
	int r = 0;

	while (!f->over && (r = fleet_ask(f, &answer, &error)) < 0) {
		now = hr_now_ns(CLOCK_MONOTONIC);
		if (f->answers == 0 || r == -EACCES || now - began > RETRY_NS)
			fleet_fail(f, r, error);
		else
			fleet_wait(f, now + SECOND_NS);
		free(error);
		error = NULL;
	}
	if (answer == NULL)
		return;
	headrace__wire__free_unpacked(f->answer, NULL);
	f->answer = answer;
	if (f->answers++ == 0 && f->command->job != NULL && answer->fleet->n_jobs == 0) {
		fleet_end(f, EXIT_FAILURE);
		hr_report("no running job of yours at this collector is '%s'", f->command->job);
	}
}

static bool is_screen(const struct hr_fleet_command *c)
{
	return !c->json && !c->status && c->count == 0 && hr_screen_usable();
}

static void fleet_loop(struct fleet *f)
{
	const struct hr_fleet_command *c = f->command;

	/* The first answer comes before the screen opens: an error is then an ordinary message. */
	for (fleet_fetch(f); !f->over; fleet_fetch(f)) {
		uint64_t until = hr_now_ns(CLOCK_MONOTONIC) + c->every_ns;

		if (f->answers == 1 && is_screen(c) && hr_screen_open(&f->signals) < 0)
			f->signals = -1;
		fleet_show(f);
		if (ferror(stdout)) {
			fleet_end(f, EXIT_FAILURE);
			if (errno != EPIPE)
				hr_report("cannot write the answer: %s", strerrordesc_np(errno));
		} else if (f->answers == c->count) {
			fleet_end(f, EXIT_SUCCESS);
		} else {
			fleet_wait(f, until);
		}
	}
}

int hr_fleet_run(const struct hr_fleet_command *c)
{
	struct fleet f = {.command = c, .signals = -1, .by = c->by != NULL ? c->by : by_words[0]};

	if (hr_address_parse(c->collector, &f.to) < 0) {
		hr_report("'%s' is not an address of a collector (tcp://HOST[:PORT] or "
			  "unix://PATH)",
			  c->collector);
		return HR_EXIT_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	fleet_loop(&f);
	hr_screen_close();
	fleet_disconnect(&f);
	headrace__wire__free_unpacked(f.answer, NULL);
	if (f.signal != 0)
		raise(f.signal); /* end by this signal, so that the shell sees it */
	return f.status;
}
