/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink/uplink_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/config.h"

#define KEY(key_name, key_type, field)                                                             \
	.name = (key_name), .type = HR_CONFIG_##key_type,                                          \
	.offset = offsetof(struct hr_uplink_options, field)

static const struct hr_config_key keys[] = {
    {KEY("collector", LIST, collectors), .value_name = "LIST",
     .help = "Where to: tcp://HOST[:PORT] or unix:///PATH, in order of preference; with commas, or "
	     "several times."},
    {KEY("tls_cert", TEXT, tls_cert), .value_name = "FILE",
     .help = "The certificate that is shown (PEM); '' for plain TCP. Without this and the next "
	     "two: HEADRACE_TLS_CERT, HEADRACE_TLS_KEY, HEADRACE_TLS_CA, else cert.pem, key.pem, "
	     "ca.pem in ~/.config/headrace/tls, else plain TCP."},
    {KEY("tls_key", TEXT, tls_key), .value_name = "FILE", .help = "Its key."},
    {KEY("tls_ca", TEXT, tls_ca), .value_name = "FILE", .help = "Who has signed the collector's."},
    {KEY("follow", FLAG, follow), .help = "Goes on, and sends what comes into the spool later."},
    {KEY("recover_after", DURATION, recover_ms), .value_name = "TIME",
     .help = "A stream whose daemon was killed is ended when no other has gone on with it for so "
	     "long; without this at once."},
    {KEY("discard", TEXT, discard), .value_name = "JOB",
     .help =
	 "Sends nothing, but gives up what of job JOB no collector has, and says how much that is. "
	 "For a job that none takes, as when its id is another user's there."},
    {KEY("help", FLAG, help), .help = "This text."},
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* ---- the command line ------------------------------------------------------------------------------ */

static int mistake(const char *text)
{
	fprintf(stderr, "headraced: %s; `headraced uplink --help` lists all\n", text);
	return -EINVAL;
}

static int read_arguments(int argc, char **argv, struct hr_uplink_options *o)
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
		if (r == -ENOENT)
			fprintf(stderr, "headraced: what is %s?\n", argv[i]);
		else if (r < 0)
			fprintf(stderr, "headraced: %s\n", error ? error : strerrordesc_np(-r));
		free(error);
		if (r < 0)
			return r;
	}
	return 0;
}

static int find_certificate(struct hr_uplink_options *o)
{
	const struct hr_tls_files given = {o->tls_cert, o->tls_key, o->tls_ca};
	char *error = NULL;
	bool local = true;
	int r;

	for (size_t i = 0; i < o->n_to; i++)
		local &= o->to[i].local;
	r = local ? 0 : hr_tls_find(&given, &o->tls, &error);
	if (r < 0)
		fprintf(stderr, "headraced: %s\n", error ? error : "out of memory");
	free(error);
	return r;
}

static int uplink_options_check(struct hr_uplink_options *o)
{
	char *error = NULL;
	int r;

	if (!o->spool)
		return mistake("which spool?");
	if (o->discard && (o->collectors || o->follow))
		return mistake("--discard sends nothing: without --collector and --follow");
	if (o->discard)
		return *o->discard ? 0 : mistake("--discard which job?");
	if (!o->collectors || !*o->collectors)
		return mistake("--collector says where to");
	r = hr_address_parse_targets(o->collectors, o->to, HR_ADDRESSES_MAX, &o->n_to, &error);
	if (r < 0)
		fprintf(stderr, "headraced: --collector %s\n", error ? error : "out of memory");
	free(error);
	return r < 0 ? r : find_certificate(o);
}

int hr_uplink_options_read(int argc, char **argv, struct hr_uplink_options *ret)
{
	int r;

	*ret = (struct hr_uplink_options){0};
	r = read_arguments(argc, argv, ret);
	return r < 0 || ret->help ? r : uplink_options_check(ret);
}

void hr_uplink_options_done(struct hr_uplink_options *o)
{
	hr_config_done(keys, KEYS, o);
	hr_tls_paths_done(&o->tls);
}

/* ---- for people ------------------------------------------------------------------------------------ */

void hr_uplink_help(FILE *to)
{
	fputs("usage: headraced uplink SPOOL --collector tcp://HOST[:PORT][,...] [OPTION...]\n"
	      "       headraced uplink SPOOL --discard JOB\n\n"
	      "Sends what lies in a spool to a collector, and ends when all of it is "
	      "acknowledged.\n\n",
	      to);
	hr_config_help(keys, KEYS, to);
	fputs("\nExit status: 0 all is acknowledged, or given up, 1 something is not, 2 usage, 66 "
	      "no such spool or job.\n",
	      to);
}

void hr_uplink_man(FILE *to)
{
	hr_config_man_flags(keys, KEYS, to);
}
