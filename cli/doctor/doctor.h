/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - the checks of `headrace doctor`
 *
 * Each row of doctor_checks.def, or of doctor_collector.def, is a check: name and function. The
 * result of a check has a health, what was found, and how to fix it. `fail`: `headrace run` cannot
 * record, or the collector cannot be used. `warn`: the same works, but it is slow, it is
 * incomplete, or it may soon fail.
 */
#ifndef HEADRACE_CLI_DOCTOR_DOCTOR_H
#define HEADRACE_CLI_DOCTOR_DOCTOR_H

#include "cli/collector.h"

enum hr_health { HR_HEALTH_OK, HR_HEALTH_WARN, HR_HEALTH_FAIL };

struct hr_check {
	enum hr_health health;
	char found[1200];
	char fix[320]; /* "": nothing to do */
};

struct hr_doctor {
	const char *store; /* NULL: a new folder in the working directory */
	bool no_store;	   /* checks collectors instead of a store */
	/* NULL: not found; `python`: folder of the start-up module */
	const char *library, *headraced, *python;
};

#define HR_CHECK(name, function, what) void function(const struct hr_doctor *d, struct hr_check *c);
#include "cli/doctor/doctor_checks.def"
#undef HR_CHECK

/* What one attempt to reach a collector has found. */
struct hr_reach {
	enum {
		HR_REACH_NO_ADDRESS,	 /* sets `error`: that of the resolver */
		HR_REACH_NO_CERTIFICATE, /* sets collector.why */
		HR_REACH_TRIED,		 /* the collector has answered, or collector.error is set */
	} end;
	int error;
	char addresses[256]; /* "10.0.0.5:4747, [::1]:4747" */
	struct hr_collector collector;
};

/* Checks of a collector. If a check does not apply, `found` stays empty. */
#define HR_CHECK(name, function, what) void function(const struct hr_reach *p, struct hr_check *c);
#include "cli/doctor/doctor_collector.def"
#undef HR_CHECK

/*
 * Resolves, connects and sends Hello like `headrace query`, with the same certificate or MUNGE
 * credential, and disconnects. Takes at most about 20 s.
 */
void hr_reach_run(const struct hr_address *to, struct hr_reach *ret);

void hr_check_set(struct hr_check *c, enum hr_health health, const char *fix, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));

#endif
