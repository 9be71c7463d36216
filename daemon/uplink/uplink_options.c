/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink/uplink_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/config.h"

#define KEY(name, type, field) HR_CONFIG_KEY(struct hr_uplink_options, name, type, field)

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

/* ---- the command line ------------------------------------------------------------------------ */

static int mistake(const char *text)
{
	fprintf(stderr,
		"headraced: %s\nheadraced: hint: `headraced uplink --help` lists the options\n",
		text);
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
			fprintf(stderr, "headraced: unknown option or operand: %s\n", argv[i]);
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

/* ---- help and man page ----------------------------------------------------------------------- */

void hr_uplink_help(FILE *to)
{
	fputs("usage: headraced uplink SPOOL --collector tcp://HOST[:PORT][,...] [OPTION...]\n"
	      "       headraced uplink SPOOL --discard JOB\n\n"
	      "Sends the contents of a spool to a collector, and ends when the collector has "
	      "acknowledged all of it.\n\n",
	      to);
	hr_config_help(keys, KEYS, to);
	fputs("\nExit status: 0: everything is acknowledged, or deleted; 1: something is not; 2: "
	      "usage; 66: no such spool or job.\n",
	      to);
}

void hr_uplink_man(FILE *to)
{
	hr_config_man(keys, KEYS, false, to);
}
