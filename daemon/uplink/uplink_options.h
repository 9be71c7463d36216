/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_options.h - the command line of `headraced uplink`: one table for parsing, --help and the
 * man page
 *
 * The caller owns the structure; hr_uplink_options_done frees its texts. One thread.
 */
#ifndef HEADRACE_DAEMON_UPLINK_UPLINK_OPTIONS_H
#define HEADRACE_DAEMON_UPLINK_UPLINK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "net/address.h"
#include "net/tls_find.h"

struct hr_uplink_options {
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

/* Returns 0, or prints a message and returns -errno. After --help, checks nothing else. */
int hr_uplink_options_read(int argc, char **argv, struct hr_uplink_options *ret);
void hr_uplink_options_done(struct hr_uplink_options *o);

void hr_uplink_help(FILE *to);
void hr_uplink_man(FILE *to); /* writes the options for headraced(8) */

#endif
