/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink/uplink_command.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/host.h"
#include "common/text.h"
#include "daemon/spool/spool_stream.h"
#include "daemon/uplink/uplink.h"
#include "daemon/uplink/uplink_options.h"

#define LOOK_NS	      50000000L
#define EXIT_USAGE    2
#define EXIT_NO_SPOOL 66
/*
 * This many searches find all streams: the second finds the streams that the first has recovered.
 */
#define SEARCHES_ENOUGH 2u

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* ---- the spool ------------------------------------------------------------------------------- */

/* Opens the spool. Returns 0, or prints a message and returns the exit status. */
static int open_spool(const char *path, struct hr_spool **ret)
{
	int r;

	if (hr_store_check(path) < 0 || access(path, F_OK) < 0) {
		hr_text_print(stderr, "headraced: no spool at %s\n", path);
		return EXIT_NO_SPOOL;
	}
	r = hr_spool_new(path, 0, ret);
	if (r)
		hr_text_print(stderr, "headraced: %s: %s\n", path, strerrordesc_np(-r));
	return r ? EXIT_NO_SPOOL : 0;
}

static int discard(const char *job, struct hr_spool *spool)
{
	struct hr_spool_discarded done;
	char *error = NULL;
	int r = hr_spool_discard(spool, job, &done, &error);

	if (r < 0) {
		hr_text_print(stderr, "headraced: %s\n", error ? error : strerrordesc_np(-r));
		free(error);
		return EXIT_FAILURE;
	}
	if (done.streams + done.kept == 0) {
		hr_text_print(stderr, "headraced: no job %s in %s\n", job, hr_spool_path(spool));
		return EXIT_NO_SPOOL;
	}
	if (done.streams > 0)
		hr_text_print(stderr, "headraced: job %s: deleted %s frames with %s events\n", job,
			      hr_text_count(done.frames).s, hr_text_count(done.events).s);
	if (done.kept > 0)
		hr_text_print(stderr,
			      "headraced: job %s: %u stream%s kept: being written or sent, or with "
			      "a journal that `headraced uplink` must replay first\n",
			      job, done.kept, done.kept == 1 ? " is" : "s are");
	return done.kept > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Prints a line for each change since the last status. */
static void print_changes(const struct hr_uplink_stats *s, struct hr_uplink_stats *printed)
{
	if (s->connected && !printed->connected)
		hr_text_print(stderr, "headraced: sending to %s\n", s->collector);
	else if (!s->connected && *s->error && strcmp(s->error, printed->error) != 0)
		hr_text_print(stderr, "headraced: %s; trying again\n", s->error);
	if (s->aside && strcmp(s->aside_text, printed->aside_text) != 0)
		hr_text_print(stderr, "headraced: %s\n", s->aside_text);
	*printed = *s;
}

static bool all_sent(const struct hr_uplink_stats *s)
{
	return s->searches >= SEARCHES_ENOUGH && s->streams == 0 && s->unseen == 0;
}

static int say_end(const struct hr_uplink_stats *s)
{
	bool all = all_sent(s) && s->aside == 0 && s->waiting_journals == 0 && s->elsewhere == 0;

	if (*s->collector)
		hr_text_print(stderr, "headraced: sent to %s: %s frames\n", s->collector,
			      hr_text_count(s->sent_frames).s);
	if (s->frames)
		hr_text_print(stderr, "headraced: %s frames were not sent\n",
			      hr_text_count(s->frames).s);
	if (s->waiting_journals)
		hr_text_print(stderr, "headraced: cannot replay %u journal%s\n",
			      s->waiting_journals, s->waiting_journals == 1 ? "" : "s");
	if (s->elsewhere)
		hr_text_print(
		    stderr,
		    "headraced: %u stream%s %s not sent: another headraced writes or sends it\n",
		    s->elsewhere, s->elsewhere == 1 ? "" : "s", s->elsewhere == 1 ? "is" : "are");
	return all ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int send_all(struct hr_uplink *u, bool follow)
{
	struct hr_uplink_stats s, printed = {0};

	do {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		hr_uplink_stats(u, &s);
		print_changes(&s, &printed);
	} while (!interrupted && (follow || !all_sent(&s)));
	return say_end(&s);
}

static int uplink_command_run(const struct hr_uplink_options *o, struct hr_spool *spool)
{
	char node[HR_HOST_NAME_BYTES], boot_id[HR_HOST_BOOT_BYTES], *error = NULL;
	const struct hr_tls_files tls = hr_tls_paths_files(&o->tls);
	struct hr_uplink_config c = {
	    .spool = spool,
	    .all = true,
	    .collectors = o->to,
	    .n_collectors = o->n_to,
	    .tls = tls.cert ? &tls : NULL,
	    .software = "headraced " HEADRACE_VERSION,
	    .node = node,
	    .boot_id = boot_id,
	    .recover_ms = o->recover_ms,
	    .scan_ms = o->follow ? 0 : 1000,
	};
	struct hr_uplink *u;
	int r, status;

	hr_host_name(node);
	hr_host_boot_id(boot_id);
	r = hr_uplink_new(&c, &u, &error);
	if (r) {
		hr_text_print(stderr, "headraced: %s\n", error ? error : strerrordesc_np(-r));
		free(error);
		return EXIT_FAILURE;
	}
	status = send_all(u, o->follow);
	hr_uplink_free(u);
	return status;
}

int hr_uplink_command(int argc, char **argv)
{
	const struct sigaction stop = {.sa_handler = on_signal};
	struct hr_uplink_options o;
	struct hr_spool *spool;
	int status = hr_uplink_options_read(argc, argv, &o) < 0 ? EXIT_USAGE : 0;

	if (status == 0 && o.help) {
		hr_uplink_help(stdout);
	} else if (status == 0 && (status = open_spool(o.spool, &spool)) == 0) {
		sigaction(SIGINT, &stop, NULL);
		sigaction(SIGTERM, &stop, NULL);
		status = o.discard ? discard(o.discard, spool) : uplink_command_run(&o, spool);
		hr_spool_free(spool);
	}
	hr_uplink_options_done(&o);
	return status;
}
