/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach.h - one attempt of `headrace doctor` to reach a collector
 *
 * Resolves, connects and sends Hello like `headrace query`, with the same certificate, and with a
 * MUNGE credential if the collector accepts one. Then it disconnects. It has its own loop and
 * takes at most about 20 s. doctor_collector.c interprets the result.
 */
#ifndef HEADRACE_CLI_DOCTOR_REACH_H
#define HEADRACE_CLI_DOCTOR_REACH_H

#include "cli/query/query_identity.h"
#include "net/conn.h"

enum hr_reach_end {
	HR_REACH_NO_ADDRESS,	 /* sets `error`: the error of the resolver */
	HR_REACH_NO_CERTIFICATE, /* sets `why`: what is wrong with the certificate */
	HR_REACH_CLOSED,	 /* sets `error` and `why` */
	HR_REACH_REFUSED,	 /* sets `reason` and `why` */
	HR_REACH_WELCOME,	 /* sets `software`, `version` and `who` */
};

struct hr_reach {
	struct hr_address to;
	char shown[HR_ADDRESS_HOST_BYTES + 32];
	char addresses[256]; /* "10.0.0.5:4747, [::1]:4747" */
	struct hr_query_identity identity;
	struct hr_conn_peer peer;
	enum hr_reach_end end;
	int error;
	char why[1200], reason[32], software[64], who[320];
	uint32_t version;
};

void hr_reach_run(const struct hr_address *to, struct hr_reach *ret);
void hr_reach_done(struct hr_reach *p);

#endif
