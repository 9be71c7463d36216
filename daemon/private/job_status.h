/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_status.h - fills in the JobStatus (proto/control.proto) of the job that this process records,
 * and makes notices of problems
 *
 * A private headraced answers `headrace status` with the JobStatus. A recording process of the node
 * service sends it to the service. The configuration, the node or struct hr_job_status owns its
 * strings. Loop thread only.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_JOB_STATUS_H
#define HEADRACE_DAEMON_PRIVATE_JOB_STATUS_H

#include "daemon/control/control.h"
#include "daemon/control/private.h"
#include "daemon/node/live_link.h"
#include "daemon/node/node.h"
#include "daemon/private/private_uplink.h"
#include "daemon/uplink/uplink.h"

struct hr_job_status {
	const struct hr_private_config *config;
	struct hr_node *node;
	struct hr_private_uplink *uplink; /* NULL: the job has no collectors */
	struct hr_uplink_stats sending;	  /* what the last status contained about the uplink */
	Headrace__JobHang hang;		  /* of the last status */
	char hang_line[HR_HANG_LINE];
	/* The last measurement, and the rates since the one before. */
	uint64_t measured_ms; /* 0: no measurement yet */
	uint64_t events, bytes, steps, events_per_s, bytes_per_s, steps_per_ks;
};

/* Call it at least once a second. Measures the rates about once a second. */
void hr_job_status_measure(struct hr_job_status *s, const struct hr_node_stats *now,
			   uint64_t now_ms);

/* Sets those fields of *ret that this process knows. `now` comes from hr_node_stats(). */
void hr_job_status_fill(struct hr_job_status *s, const struct hr_node_stats *now,
			Headrace__JobStatus *ret);

/*
 * A private headraced answers get_status and get_live over `fd`, which the caller owns. False: it
 * is another request.
 */
bool hr_private_answer(struct hr_job_status *s, struct hr_live_link *live,
		       const Headrace__Control *m, int fd);

/* ---- notices to the runs of a job about problems of the recording; each is reported once ----- */

struct hr_reported { /* the values that notices have reported */
	int store_error;
	bool counters_only, journal_in_memory, refused;
};

/* Writes the next notice (a line). False: there is none. `spool`: the store is a spool. */
bool hr_health_next_notice(struct hr_reported *reported, const struct hr_node_stats *now,
			   bool spool, char *ret, size_t bytes);

#endif
