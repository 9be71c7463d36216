/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `headrace doctor tcp://...`. If a check does not apply, `found` stays empty. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/doctor/doctor.h"

#define DAY_S	  86400
#define SOON_DAYS 14

void hr_check_address(const struct hr_reach *p, struct hr_check *c)
{
	if (p->end == HR_REACH_NO_ADDRESS)
		hr_check_set(c, HR_HEALTH_FAIL,
			     p->to.local ? "use a shorter path"
					 : "check the name: `getent hosts` uses the same resolver",
			     "%s: %s", p->shown,
			     p->error == -ENOENT ? "no such host" : strerrordesc_np(-p->error));
	else if (p->to.local)
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s, on this machine", p->shown);
	else
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s is %s", p->shown, p->addresses);
}

static bool is_refused(const struct hr_reach *p, const char *reason)
{
	return p->end == HR_REACH_REFUSED && strcmp(p->reason, reason) == 0;
}

void hr_check_connection(const struct hr_reach *p, struct hr_check *c)
{
	const char *advice;

	switch (p->end) {
	case HR_REACH_WELCOME:
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s, protocol %u", p->software, p->version);
		break;
	case HR_REACH_REFUSED:
		if (is_refused(p, "identity"))
			hr_check_set(c, HR_HEALTH_OK, NULL, "a collector answers");
		else
			hr_check_set(c, HR_HEALTH_FAIL, "see the log of the collector",
				     "the collector refuses the connection (%s): %s", p->reason,
				     p->why);
		break;
	case HR_REACH_CLOSED:
		advice = hr_conn_advice(&p->to, p->identity.tls != NULL, p->error);
		hr_check_set(c, HR_HEALTH_FAIL,
			     advice[0] != '\0' ? advice
					       : "see docs/tls.md, \"When it does not work\"",
			     "%s", p->why);
		break;
	default:
		break;
	}
}

static void put_date(int64_t seconds, char ret[16])
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL || strftime(ret, 16, "%F", &tm) == 0)
		snprintf(ret, 16, "?");
}

static bool ends_soon(int64_t seconds)
{
	return seconds - (int64_t)time(NULL) < (int64_t)SOON_DAYS * DAY_S;
}

static void check_certificates(const struct hr_reach *p, struct hr_check *c)
{
	char ours[16], theirs[16];
	const char *file, *fix = NULL;
	int64_t until;

	hr_tls_own(p->identity.tls, &file, &until);
	put_date(until, ours);
	put_date(p->peer.until, theirs);
	if (ends_soon(p->peer.until))
		fix = "renew the certificate of the collector: make-ca, then SIGHUP (docs/tls.md)";
	if (ends_soon(until))
		fix = "renew your certificate: make-ca (docs/tls.md)";
	hr_check_set(
	    c, fix != NULL ? HR_HEALTH_WARN : HR_HEALTH_OK, fix,
	    "TLS 1.3; the certificate of the collector (%s) is valid until %s, yours (%s) until %s",
	    p->peer.cn, theirs, file, ours);
}

void hr_check_tls(const struct hr_reach *p, struct hr_check *c)
{
	bool there = p->end == HR_REACH_WELCOME || p->end == HR_REACH_REFUSED;

	if (p->end == HR_REACH_NO_CERTIFICATE)
		hr_check_set(c, HR_HEALTH_FAIL,
			     "see docs/tls.md for the required files and their places", "%s",
			     p->why);
	else if (there && p->peer.tls)
		check_certificates(p, c);
	else if (there && p->peer.loopback)
		hr_check_set(c, HR_HEALTH_OK, NULL, "not needed: the collector is on this machine");
	else if (there)
		hr_check_set(c, HR_HEALTH_WARN, "use certificates: docs/tls.md",
			     "plain TCP to another machine: anyone on the network path can read or "
			     "alter the data");
}

static bool doctor_collector_begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

void hr_check_identity(const struct hr_reach *p, struct hr_check *c)
{
	const char *may = "may stream, but not query";

	if (is_refused(p, "identity")) {
		hr_check_set(c, HR_HEALTH_FAIL, "see docs/tls.md, \"What a certificate permits\"",
			     "the collector cannot identify you: %s", p->why);
		return;
	}
	if (p->end != HR_REACH_WELCOME)
		return;
	if (doctor_collector_begins(p->who, "operator "))
		may = "may query all jobs";
	else if (doctor_collector_begins(p->who, "user "))
		may = "may stream and query their own jobs";
	hr_check_set(c, HR_HEALTH_OK, NULL, "the collector identifies you as %s, who %s", p->who,
		     may);
}
