/* SPDX-License-Identifier: Apache-2.0 */
/* headrace top - shows what a running job waits for. This file: options and the main loop. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/fleet/fleet.h"
#include "cli/service/service_link.h"
#include "cli/report/serve.h"
#include "cli/top/top.h"
#include "cli/screen.h"
#include "common/now.h"
#include "common/text.h"
#include "net/address.h"
#include "proto/now.h"

#define SECOND_NS UINT64_C(1000000000)
#define EVERY_MIN (SECOND_NS / 10)
/* headraced lists ended processes for at least this time (proto/live.h) */
#define EVERY_MAX (30 * SECOND_NS)
#define ANSWER_NS (3 * SECOND_NS)
/* The largest loss is computed every 10 s, or less often: 1/20 of the time is the limit. */
#define FINDING_NS    (10 * SECOND_NS)
#define FINDING_SHARE 20
/* `headrace top` ends if headraced has not answered for this time */
#define RETRY_NS (10 * SECOND_NS)

#define VIEWS	    "rank worker process file mount class op"
#define SORTS	    "time bytes ops latency"
#define ORDER(name) " " #name
#define FLEET_SORTS (HR_FLEET_ORDERS(ORDER) + 1) /* of a collector */

enum output { NONE, SCREEN, LINES, JSON };

struct top {
	const char *job, *socket;
	const char *collector; /* NULL: a job of this machine */
	const char *by, *sort; /* values of --by and --sort, or NULL */
	enum output output;
	bool has_view, json, web;
	uint64_t count;
	struct hr_top_source source;
	struct hr_top_fetch fetch;
	struct hr_top_display display;
	Headrace__LiveJob *before, *picture;
	struct hr_top_table table;
	uint64_t pictures;
	/* when the next request is due; when the last one was sent */
	uint64_t next_ns, requested_ns;
	uint64_t finding_ns; /* when the largest loss is computed again */
	/* time of the first failure since the last answer; 0: no failure */
	uint64_t failing_ns;
	char trouble[600];
	int signals; /* signalfd of the screen; -1: none */
	bool over;
	int status, signal;
};

#define TEXT(member) HR_OPTION_TEXT(struct top, member)
#define FLAG(member) HR_OPTION_FLAG(struct top, member)

const struct hr_option hr_top_option_table[] = {
    {"by", 'b', "WHAT", "a row per rank, worker, process, file, mount, class or op", VIEWS},
    {"sort", 's', "KEY", "time, bytes, ops, latency; COLLECTOR: metadata, waiting, stuck",
     SORTS " metadata waiting stuck"},
    {"interval", 'i', "TIME", "time between updates: 100ms to 30s (default: 1s)", HR_VALUES_OTHER},
    {"count", 'n', "N", "end after N updates", HR_VALUES_OTHER},
    {"all-columns", FLAG(display.all_columns), NULL,
     "on a wide terminal, also show values since the start of the job", NULL},
    HR_OPTIONS_FORMAT("text json"),
    {"web", FLAG(web), NULL, "show a page with pictures in a browser of this machine", NULL},
    {"socket", TEXT(socket), "PATH",
     "search only this control socket (default: service and own runs)", NULL},
    HR_OPTIONS_END,
};

static uint64_t now_ns(void)
{
	return hr_now_ns(CLOCK_MONOTONIC);
}

/* ---- showing ---- */

static void draw(struct top *t)
{
	struct hr_screen_text text = {0};
	unsigned columns, rows;

	hr_screen_size(&columns, &rows);
	hr_top_draw(&text, &t->display, columns, rows);
	hr_screen_put(&text);
	hr_screen_text_done(&text);
}

/* Adds the share of the last interval to the history of waits on the screen. */
static void remember_wait(struct top *t)
{
	struct hr_top_display *d = &t->display;
	struct hr_top_table table;
	double share;

	if (!t->before || hr_top_sums(t->before, t->picture, HR_TOP_RANK, d->sort, &table) < 0)
		return;
	share = hr_top_wait(&table.now, table.waiters, table.interval_ns);
	hr_top_table_done(&table);
	if (share < 0)
		return;
	if (d->n_waits == HR_TOP_WAITS)
		memmove(d->waits, d->waits + 1, --d->n_waits * sizeof(d->waits[0]));
	d->waits[d->n_waits++] = share;
}

static void top_show(struct top *t)
{
	if (!t->picture || t->output == NONE)
		return;
	hr_top_table_done(&t->table);
	if (hr_top_sums(t->before, t->picture, t->display.view, t->display.sort, &t->table) < 0)
		return;
	t->display.job = t->picture;
	t->display.table = &t->table;
	if (t->output == SCREEN)
		draw(t);
	else if (t->output == JSON)
		hr_top_json(stdout, &t->display);
	else
		hr_top_print(stdout, &t->display);
}

static void top_end(struct top *t, int status, const char *text)
{
	t->over = true;
	t->status = status;
	hr_screen_close();
	if (text)
		hr_report("%s", text);
}

/* ---- requests and keys ---- */

static void top_find_loss(struct top *t)
{
	uint64_t now = now_ns(), took;

	if (now < t->finding_ns)
		return;
	hr_top_finding_make(&t->source, &t->display.finding);
	took = now_ns() - now;
	t->finding_ns =
	    now + (FINDING_SHARE * took > FINDING_NS ? FINDING_SHARE * took : FINDING_NS);
}

static void top_take(struct top *t, Headrace__LiveJob *picture)
{
	/* headraced answers requests that follow shortly after each other with the same picture. */
	bool same = t->picture && t->picture->instance == picture->instance &&
		    t->picture->boot_ns == picture->boot_ns;

	headrace__live_job__free_unpacked(same ? t->picture : t->before, NULL);
	if (!same)
		t->before = t->picture;
	t->picture = picture;
	t->failing_ns = 0;
	t->display.trouble = NULL;
	if (!t->has_view) {
		t->has_view = true;
		t->display.view = hr_top_has_ranks(picture) ? HR_TOP_RANK : HR_TOP_PROCESS;
	}
	if (!same)
		remember_wait(t);
	top_find_loss(t);
	top_show(t);
	if (++t->pictures == t->count)
		top_end(t, EXIT_SUCCESS, NULL);
	else if (ferror(stdout))
		top_end(t, EXIT_FAILURE, NULL);
}

/* Returns whether later requests will fail, too: the job has ended, or the user may not see it. */
static bool is_final(const struct top *t, int r, bool connected)
{
	if (connected)
		return r == -ENOENT || r == -ESHUTDOWN || r == -EPERM || r == -ENOSYS;
	return t->source.private && (r == -ENOENT || r == -ECONNREFUSED);
}

/* Handles a failed request. `connected`: the error is the answer of headraced. */
static void top_failed(struct top *t, int r, bool connected)
{
	uint64_t now = now_ns();

	if (t->failing_ns == 0)
		t->failing_ns = now;
	if (r == -ENOENT || r == -ESHUTDOWN) {
		snprintf(t->trouble, sizeof(t->trouble), "job %s has ended", t->source.job);
		if (is_final(t, r, connected)) {
			top_end(t, t->pictures ? EXIT_SUCCESS : EXIT_FAILURE, t->trouble);
			return;
		}
	}
	if (t->fetch.refusal[0] != '\0')
		snprintf(t->trouble, sizeof(t->trouble), "headraced: %s", t->fetch.refusal);
	else
		snprintf(t->trouble, sizeof(t->trouble), "headraced does not answer: %s",
			 strerrordesc_np(-r));
	if (is_final(t, r, connected) || now - t->failing_ns > RETRY_NS)
		top_end(t, connected && r != -ETIMEDOUT ? EXIT_FAILURE : HR_EXIT_NO_SERVICE,
			t->trouble);
	else if (t->output == SCREEN && t->picture) {
		t->display.trouble = t->trouble;
		draw(t);
	}
}

static void top_request(struct top *t)
{
	int r = hr_top_fetch_begin(&t->fetch, &t->source);

	t->requested_ns = now_ns();
	t->next_ns = t->requested_ns + t->display.every_ns;
	if (r < 0)
		top_failed(t, r, false);
}

static void top_answer(struct top *t)
{
	Headrace__LiveJob *picture = NULL;
	int r = hr_top_fetch_step(&t->fetch, &picture);

	if (r > 0)
		top_take(t, picture);
	else if (r < 0)
		top_failed(t, r, true);
}

static void press(struct top *t, char key)
{
	static const char sorts[] = "tbol", views[] = "rwpfmcn";
	const char *sort = strchr(sorts, key), *view = strchr(views, key);

	if (key == 'q') {
		top_end(t, EXIT_SUCCESS, NULL);
		return;
	}
	if (key == ' ')
		t->display.paused = !t->display.paused;
	else if (key == '?' || key == 'h')
		t->display.help = !t->display.help;
	else if (key != '\0' && sort)
		t->display.sort = (enum hr_top_sort)(sort - sorts);
	else if (key != '\0' && view)
		t->display.view = (enum hr_top_view)(view - views);
	else
		return;
	top_show(t);
}

/* Handles typed keys. Ignores arrows and others that begin with an escape. */
static void read_keys(struct top *t)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n == 0)
		top_end(t, EXIT_SUCCESS, NULL);
	if (n > 0 && keys[0] == '\033')
		return;
	for (ssize_t i = 0; i < n && !t->over; i++)
		press(t, keys[i]);
}

/* ---- the loop ---- */

/* Returns the timeout for poll() in milliseconds; -1: none. */
static int poll_timeout(const struct top *t)
{
	uint64_t now = now_ns();
	uint64_t at = t->fetch.fd >= 0 ? t->requested_ns + ANSWER_NS : t->next_ns;

	if (t->fetch.fd < 0 && t->display.paused)
		return -1;
	return at > now ? (int)((at - now) / 1000000) + 1 : 0;
}

static void top_step(struct top *t)
{
	bool keys = t->output == SCREEN && isatty(STDIN_FILENO);
	struct pollfd fds[] = {{.fd = t->fetch.fd, .events = POLLIN},
			       {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN},
			       {.fd = t->signals, .events = POLLIN}};

	if (poll(fds, 3, poll_timeout(t)) < 0)
		return;
	if (fds[2].revents) {
		enum hr_screen_event event = hr_screen_signals(&t->signal);

		if (event == HR_SCREEN_END)
			top_end(t, EXIT_SUCCESS, NULL);
		else if (event == HR_SCREEN_REDRAW && t->picture)
			draw(t);
	}
	if (!t->over && fds[1].revents)
		read_keys(t);
	if (!t->over && fds[0].revents)
		top_answer(t);
	else if (!t->over && t->fetch.fd >= 0 && now_ns() - t->requested_ns >= ANSWER_NS) {
		hr_top_fetch_done(&t->fetch);
		top_failed(t, -ETIMEDOUT, true);
	}
	if (!t->over && t->fetch.fd < 0 && !t->display.paused && now_ns() >= t->next_ns)
		top_request(t);
}

/* Fetches the first picture before the screen opens, so that an error is an ordinary message. */
static void fetch_first(struct top *t)
{
	top_request(t);
	while (!t->over && t->pictures == 0)
		top_step(t);
}

static int top_run(struct top *t)
{
	enum output output = t->json ? JSON : t->count || !hr_screen_usable() ? LINES : SCREEN;

	if (output == SCREEN) {
		fetch_first(t);
		if (!t->over && hr_screen_open(&t->signals) < 0)
			output = LINES;
	}
	t->output = output;
	if (!t->over)
		top_show(t);
	while (!t->over)
		top_step(t);
	hr_screen_close();
	hr_top_fetch_done(&t->fetch);
	hr_top_table_done(&t->table);
	headrace__live_job__free_unpacked(t->before, NULL);
	headrace__live_job__free_unpacked(t->picture, NULL);
	if (t->signal)
		raise(t->signal); /* end by this signal, so that the shell sees it */
	return t->status;
}

/* ---- options ---- */

static int take_argument(void *self, int id, const char *value)
{
	struct top *t = self;
	int i = 0;

	switch (id) {
	case 'b':
		t->by = value;
		break;
	case 's':
		t->sort = value;
		break;
	case 'i':
		if (hr_text_parse_duration(value, &t->display.every_ns) < 0 ||
		    t->display.every_ns < EVERY_MIN || t->display.every_ns > EVERY_MAX)
			i = hr_option_wrong("interval", "a time from 100ms to 30s", value);
		break;
	case 'n':
		i = hr_option_number("count", "a number above 0", value, 1, UINT32_MAX, &t->count);
		break;
	case HR_OPTION_FORMAT:
		t->json = hr_option_is_json(value);
		break;
	default: /* an operand */
		if (t->job) {
			hr_report("more than one job given: headrace top [OPTION...] "
				  "[COLLECTOR] [JOB]");
			return -1;
		}
		if (!t->collector && hr_address_meant(value))
			t->collector = value;
		else
			t->job = value;
	}
	return i;
}

/* Takes --by and --sort for a job of this machine. False: it has reported a mistake. */
static bool take_view(struct top *t)
{
	int by = 0, sort = 0;

	if (t->by)
		by = hr_option_word("by", VIEWS, t->by);
	if (t->sort)
		sort = hr_option_word("sort", SORTS, t->sort);
	if (by < 0 || sort < 0)
		return false;
	t->has_view = t->by != NULL;
	t->display.view = (enum hr_top_view)by;
	t->display.sort = (enum hr_top_sort)sort;
	return true;
}

/* `headrace top tcp://COLLECTOR [JOB]` */
static int top_fleet(const struct top *t)
{
	const struct hr_fleet_command c = {
	    .collector = t->collector,
	    .job = t->job,
	    .by = t->sort,
	    .every_ns = t->display.every_ns,
	    .count = t->count,
	    .json = t->json,
	};

	if (t->by || t->web || t->socket || t->display.all_columns) {
		hr_report("--by, --web, --socket and --all-columns are for a job of this machine");
		return HR_EXIT_USAGE;
	}
	if (t->sort && hr_option_word("sort", FLEET_SORTS, t->sort) < 0)
		return HR_EXIT_USAGE;
	return hr_fleet_run(&c);
}

static int serve_page(const struct hr_top_source *source)
{
	if (source->store[0] != '\0')
		return hr_report_serve(source->store, source->job, 0, 10);
	hr_report("--web reads a store, and job %s has none on this machine" HR_HINT
		  "a page of the data at the collector: `headrace report tcp://COLLECTOR --job %s`",
		  source->job, source->job);
	return EXIT_FAILURE;
}

int hr_top_main(int argc, char **argv)
{
	struct top t = {.fetch.fd = -1, .signals = -1, .display.every_ns = SECOND_NS};
	int status;

	if (!hr_arguments(argc, argv, hr_top_option_table, take_argument, &t, &status))
		return status;
	if (t.collector)
		return top_fleet(&t);
	if (!take_view(&t))
		return HR_EXIT_USAGE;
	status = hr_top_find(t.job, t.socket, &t.source);
	if (status == EXIT_SUCCESS && t.web)
		return serve_page(&t.source);
	return status == EXIT_SUCCESS ? top_run(&t) : status;
}
