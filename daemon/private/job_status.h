/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_status.h - the JobStatus (proto/control.proto) of the job that this process records
 *
 * Purpose   The one place that fills it in: for `headrace status` and `top` of a private daemon, and for the service of a worker.
 * Owner     The caller, of all structures. Strings of a status belong to the configuration, the node and struct hr_job_status.
 * Threads   The loop's.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_JOB_STATUS_H
#define HEADRACE_DAEMON_PRIVATE_JOB_STATUS_H

#include "daemon/control/control.h"
#include "daemon/control/private.h"
#include "daemon/node/node.h"
#include "daemon/private/private_uplink.h"
#include "daemon/uplink/uplink.h"

struct hr_job_status {
	const struct hr_private_config *config;
	struct hr_node *node;
	struct hr_private_uplink *uplink; /* NULL: no collectors */
	struct hr_uplink_stats sending;	  /* of the last status */
	/* rates, between two measurements */
	uint64_t measured_ms; /* 0: no measurement yet */
	uint64_t events, bytes, events_per_s, bytes_per_s;
};

/* Measures the rates of events and bytes, if the last measurement is about a second old. To be called each second, or more often. */
void hr_job_status_measure(struct hr_job_status *s, const struct hr_node_stats *now,
			   uint64_t now_ms);

/* Fills in what this process can. */
void hr_job_status_fill(struct hr_job_status *s, Headrace__JobStatus *ret);

#endif
