/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - the checks of `headrace doctor`
 *
 * Purpose   One row per check in doctor_checks.def, or of a collector in doctor_collector.def:
 *           name, function. A check returns ok, warn or fail, what it found, and how to fix it.
 *           With `fail`, `headrace run` cannot record, or the collector cannot be used; `warn`
 *           means slower, less complete or temporary.
 * Owner     Texts are in the result itself.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_DOCTOR_DOCTOR_H
#define HEADRACE_CLI_DOCTOR_DOCTOR_H

#include "cli/doctor/probe.h"

enum hr_health { HR_HEALTH_OK, HR_HEALTH_WARN, HR_HEALTH_FAIL };

struct hr_check {
	enum hr_health health;
	char found[1200];
	char fix[320]; /* "" when there is nothing to do */
};

struct hr_doctor {
	const char *store; /* NULL: a new folder in this one */
	bool no_store;	   /* check a collector */
	const char *library, *headraced,
	    *python; /* NULL: not found; python: of the start-up module */
};

#define HR_CHECK(name, function, what) void function(const struct hr_doctor *d, struct hr_check *c);
#include "cli/doctor/doctor_checks.def"
#undef HR_CHECK

/* The same for a collector. A check that does not apply leaves `found` empty. */
#define HR_CHECK(name, function, what) void function(const struct hr_probe *p, struct hr_check *c);
#include "cli/doctor/doctor_collector.def"
#undef HR_CHECK

/* Fills a result; `fix` may be NULL. */
void hr_check_set(struct hr_check *c, enum hr_health health, const char *fix, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));

#endif
