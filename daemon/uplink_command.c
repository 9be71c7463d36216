/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink_command.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/uplink.h"
#include "net/tls_find.h"

#define LOOK_NS	      50000000L
#define EXIT_USAGE    2
#define EXIT_NO_SPOOL 66
#define LOOKS_ENOUGH  2u /* at the streams: the second one has seen what the first one recovered */

struct options {
	const char *spool;
	struct hr_address to[HR_ADDRESSES_MAX];
	size_t n_to;
	struct hr_tls_files tls;   /* as given, then as found */
	struct hr_tls_paths found; /* what `tls` points into */
	bool follow;
};

static const char usage[] =
    "usage: headraced uplink SPOOL --collector tcp://HOST[:PORT][,...] [OPTION...]\n"
    "Sends what lies in a spool to a collector, and ends when all of it is acknowledged.\n"
    "  --collector LIST  where to, in order of preference; with commas, or several times\n"
    "  --tls-cert FILE   certificate, PEM; \"\": plain TCP. Without these three: "
    "HEADRACE_TLS_CERT,\n"
    "  --tls-key FILE    its key           _KEY and _CA, else ~/.config/headrace/tls/cert.pem,\n"
    "  --tls-ca FILE     who has signed    key.pem and ca.pem, else plain TCP\n"
    "                    the collector's\n"
    "  --follow          goes on: sends what comes into the spool later\n"
    "Exit status: 0 all is acknowledged, 1 something is not, 2 usage, 66 no such spool.\n";

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* ---- options --------------------------------------------------------------------------------------- */

static int add_collectors(struct options *o, const char *list)
{
	size_t n;
	int r = hr_address_parse_list(list, o->to + o->n_to, HR_ADDRESSES_MAX - o->n_to, &n);

	if (r) {
		fprintf(stderr, "headraced: --collector %s: tcp://HOST[:PORT], at most %u\n", list,
			HR_ADDRESSES_MAX);
		return r;
	}
	o->n_to += n;
	return 0;
}

static int set_option(struct options *o, int id, const char *value)
{
	switch (id) {
	case 'c':
		return add_collectors(o, value);
	case 'C':
		o->tls.cert = value;
		return 0;
	case 'K':
		o->tls.key = value;
		return 0;
	case 'A':
		o->tls.ca = value;
		return 0;
	case 'f':
		o->follow = true;
		return 0;
	default:
		return -EINVAL;
	}
}

/* 0; 1: help was asked for; -EINVAL, said. */
static int parse(int argc, char **argv, struct options *ret)
{
	static const struct option table[] = {{"collector", required_argument, NULL, 'c'},
					      {"tls-cert", required_argument, NULL, 'C'},
					      {"tls-key", required_argument, NULL, 'K'},
					      {"tls-ca", required_argument, NULL, 'A'},
					      {"follow", no_argument, NULL, 'f'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	int id, r = 0;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread so far */
	while (!r && (id = getopt_long(argc, argv, "h", table, NULL)) >= 0) {
		if (id == 'h')
			return 1;
		r = set_option(ret, id, optarg);
	}
	if (r)
		return r;
	if (optind + 1 != argc || !ret->n_to) {
		fputs(usage, stderr);
		return -EINVAL;
	}
	ret->spool = argv[optind];
	return 0;
}

static int find_certificate(struct options *o)
{
	char *error = NULL;
	bool local = true;
	int r;

	for (size_t i = 0; i < o->n_to; i++)
		local &= o->to[i].local;
	r = local ? 0 : hr_tls_find(&o->tls, &o->found, &error);
	if (r < 0)
		fprintf(stderr, "headraced: %s\n", error ? error : "out of memory");
	else
		o->tls = hr_tls_paths_files(&o->found);
	free(error);
	return r;
}

/* 0, or the exit status after saying why. */
static int open_spool(const char *path, struct hr_spool **ret)
{
	int r;

	if (hr_store_check(path) < 0 || access(path, F_OK) < 0) {
		fprintf(stderr, "headraced: there is no spool at %s\n", path);
		return EXIT_NO_SPOOL;
	}
	r = hr_spool_new(path, 0, ret);
	if (r)
		fprintf(stderr, "headraced: %s: %s\n", path, strerrordesc_np(-r));
	return r ? EXIT_NO_SPOOL : 0;
}

/* ---- sending --------------------------------------------------------------------------------------- */

static void read_boot_id(char *ret, size_t bytes)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(ret, (int)bytes, f))
		snprintf(ret, bytes, "unknown");
	if (f)
		fclose(f);
	ret[strcspn(ret, "\n")] = '\0';
}

/* What has changed since `told`, as a line each. */
static void say_news(const struct hr_uplink_stats *s, struct hr_uplink_stats *told)
{
	if (s->connected && !told->connected)
		fprintf(stderr, "headraced: sending to %s\n", s->collector);
	else if (!s->connected && *s->error && strcmp(s->error, told->error) != 0)
		fprintf(stderr, "headraced: %s; trying again\n", s->error);
	if (s->aside && strcmp(s->aside_text, told->aside_text) != 0)
		fprintf(stderr, "headraced: %s\n", s->aside_text);
	*told = *s;
}

static bool all_sent(const struct hr_uplink_stats *s)
{
	return s->looks >= LOOKS_ENOUGH && s->streams == 0 && s->unseen == 0;
}

static int say_end(const struct hr_uplink_stats *s)
{
	bool all = all_sent(s) && s->aside == 0 && s->waiting_journals == 0;

	if (*s->collector)
		fprintf(stderr, "headraced: sent to %s: %s frames\n", s->collector,
			hr_text_count(s->sent_frames).s);
	if (s->frames)
		fprintf(stderr, "headraced: %s frames are not sent\n", hr_text_count(s->frames).s);
	if (s->waiting_journals)
		fprintf(stderr, "headraced: %u journal%s cannot be replayed\n", s->waiting_journals,
			s->waiting_journals == 1 ? "" : "s");
	if (s->elsewhere)
		fprintf(stderr, "headraced: %u stream%s %s left to the daemon that has it\n",
			s->elsewhere, s->elsewhere == 1 ? "" : "s",
			s->elsewhere == 1 ? "is" : "are");
	return all ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int send_all(struct hr_uplink *u, bool follow)
{
	struct hr_uplink_stats s, told = {0};

	do {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		hr_uplink_stats(u, &s);
		say_news(&s, &told);
	} while (!interrupted && (follow || !all_sent(&s)));
	return say_end(&s);
}

static int run(const struct options *o, struct hr_spool *spool)
{
	char node[256] = "", boot_id[40], *error = NULL;
	struct hr_uplink_config c = {
	    .spool = spool,
	    .any_aim = true,
	    .collectors = o->to,
	    .n_collectors = o->n_to,
	    .tls = o->tls.cert ? &o->tls : NULL,
	    .software = "headraced " HEADRACE_VERSION,
	    .node = node,
	    .boot_id = boot_id,
	    .any_node = true,
	    .scan_ms = o->follow ? 0 : 1000,
	};
	struct hr_uplink *u;
	int r, status;

	gethostname(node, sizeof(node) - 1);
	read_boot_id(boot_id, sizeof(boot_id));
	r = hr_uplink_new(&c, &u, &error);
	if (r) {
		fprintf(stderr, "headraced: %s\n", error ? error : strerrordesc_np(-r));
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
	struct options o = {0};
	struct hr_spool *spool;
	int r = parse(argc, argv, &o), status;

	if (r) {
		if (r == 1)
			fputs(usage, stdout);
		return r == 1 ? EXIT_SUCCESS : EXIT_USAGE;
	}
	if (find_certificate(&o) < 0)
		return EXIT_USAGE;
	status = open_spool(o.spool, &spool);
	if (status == 0) {
		sigaction(SIGINT, &stop, NULL);
		sigaction(SIGTERM, &stop, NULL);
		status = run(&o, spool);
		hr_spool_free(spool);
	}
	hr_tls_paths_done(&o.found);
	return status;
}
