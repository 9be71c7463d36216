/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink/uplink_command.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/config.h"
#include "common/host.h"
#include "common/text.h"
#include "daemon/spool/spool_stream.h"
#include "daemon/uplink/uplink.h"
#include "net/tls_find.h"

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

/* ---- the command line ------------------------------------------------------------------------ */

struct uplink_options {
	const char *spool;
	char *collectors; /* as the user typed them */
	struct hr_address to[HR_ADDRESSES_MAX];
	size_t n_to;
	char *tls_cert, *tls_key, *tls_ca; /* as the user typed them */
	struct hr_tls_paths tls;	   /* the files that were found */
	char *discard; /* the job to discard; NULL: none, and `collectors` is not NULL */
	uint64_t recover_ms;
	bool follow, help;
};

#define KEY(name, type, field) HR_CONFIG_KEY(struct uplink_options, name, type, field)

static const struct hr_config_key keys[] = {
    {KEY("collector", LIST, collectors), .value_name = "LIST",
     .help = "Collectors to send to: tcp://HOST[:PORT] or unix:///PATH, in order of preference; "
	     "comma-separated, repeatable."},
    {KEY("tls_cert", TEXT, tls_cert), .value_name = "FILE",
     .help = "Your certificate (PEM); '' selects plain TCP. Default of this and the next two "
	     "options: HEADRACE_TLS_CERT, HEADRACE_TLS_KEY, HEADRACE_TLS_CA, else cert.pem, "
	     "key.pem and ca.pem in ~/.config/headrace/tls, else plain TCP."},
    {KEY("tls_key", TEXT, tls_key), .value_name = "FILE", .help = "Key of the certificate (PEM)."},
    {KEY("tls_ca", TEXT, tls_ca), .value_name = "FILE",
     .help = "CA certificates (PEM) that verify the collector."},
    {KEY("follow", FLAG, follow),
     .help = "Do not end: also send data that is added to the spool later."},
    {KEY("recover_after", DURATION, recover_ms), .value_name = "TIME",
     .help = "Time to wait for a headraced that continues the stream of a killed one, before that "
	     "stream is ended (default: 0)."},
    {KEY("discard", TEXT, discard), .value_name = "JOB",
     .help = "Send nothing: delete the data of job JOB that no collector has acknowledged, and "
	     "report how much was deleted. For a job that collectors reject, for example because "
	     "another user has a job with this id."},
    {KEY("help", FLAG, help), .help = "Print this text."},
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* Prints why a call failed, and frees the text. Returns r. */
static int call_failed(int r, char *error)
{
	hr_text_print(stderr, "headraced: %s\n", error ? error : strerrordesc_np(-r));
	free(error);
	return r;
}

static int mistake(const char *text)
{
	fprintf(stderr,
		"headraced: %s\nheadraced: hint: `headraced uplink --help` lists the options\n",
		text);
	return -EINVAL;
}

static int read_arguments(int argc, char **argv, struct uplink_options *o)
{
	for (int i = 1; i < argc;) {
		char *error = NULL;
		int r = hr_config_flag(keys, KEYS, o, argc, argv, &i, &error);

		if (r == -ENOENT && strcmp(argv[i], "-h") == 0) {
			o->help = true;
			return 0;
		}
		if (r == -ENOENT && argv[i][0] != '-' && !o->spool) {
			o->spool = argv[i++];
			continue;
		}
		if (r == -ENOENT) {
			hr_text_print(stderr, "headraced: unknown option or operand: %s\n",
				      argv[i]);
			return r;
		}
		if (r < 0)
			return call_failed(r, error);
	}
	return 0;
}

static int find_certificate(struct uplink_options *o)
{
	const struct hr_tls_files given = {o->tls_cert, o->tls_key, o->tls_ca};
	char *error = NULL;
	bool local = true;
	int r;

	for (size_t i = 0; i < o->n_to; i++)
		local &= o->to[i].local;
	r = local ? 0 : hr_tls_find(&given, &o->tls, &error);
	return r < 0 ? call_failed(r, error) : r;
}

static int options_check(struct uplink_options *o)
{
	char *error = NULL;
	int r;

	if (!o->spool)
		return mistake("no SPOOL given");
	if (o->discard && (o->collectors || o->follow))
		return mistake("--discard cannot be combined with --collector or --follow");
	if (o->discard)
		return *o->discard ? 0 : mistake("--discard needs a job id");
	if (!o->collectors || !*o->collectors)
		return mistake("--collector is required");
	r = hr_address_parse_targets(o->collectors, o->to, HR_ADDRESSES_MAX, &o->n_to, &error);
	if (r < 0)
		fprintf(stderr, "headraced: --collector %s\n", error ? error : "out of memory");
	free(error);
	return r < 0 ? r : find_certificate(o);
}

static void print_help(void)
{
	fputs("usage: headraced uplink SPOOL --collector tcp://HOST[:PORT][,...] [OPTION...]\n"
	      "       headraced uplink SPOOL --discard JOB\n\n"
	      "Sends the contents of a spool to a collector, and ends when the collector has "
	      "acknowledged all of it.\n\n",
	      stdout);
	hr_config_help(keys, KEYS, stdout);
	fputs("\nExit status: 0: everything is acknowledged, or deleted; 1: something is not; 2: "
	      "usage; 66: no such spool or job.\n",
	      stdout);
}

void hr_uplink_man(FILE *to)
{
	hr_config_man(keys, KEYS, false, to);
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
		call_failed(r, error);
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

static int uplink_command_run(const struct uplink_options *o, struct hr_spool *spool)
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
		call_failed(r, error);
		return EXIT_FAILURE;
	}
	status = send_all(u, o->follow);
	hr_uplink_free(u);
	return status;
}

int hr_uplink_command(int argc, char **argv)
{
	const struct sigaction stop = {.sa_handler = on_signal};
	struct uplink_options o = {0};
	struct hr_spool *spool;
	int r = read_arguments(argc, argv, &o), status = 0;

	if (r < 0 || (!o.help && options_check(&o) < 0)) {
		status = EXIT_USAGE;
	} else if (o.help) {
		print_help();
	} else if ((status = open_spool(o.spool, &spool)) == 0) {
		sigaction(SIGINT, &stop, NULL);
		sigaction(SIGTERM, &stop, NULL);
		status = o.discard ? discard(o.discard, spool) : uplink_command_run(&o, spool);
		hr_spool_free(spool);
	}
	hr_config_done(keys, KEYS, &o);
	hr_tls_paths_done(&o.tls);
	return status;
}
