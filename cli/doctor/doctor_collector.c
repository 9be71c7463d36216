/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `headrace doctor tcp://...`. If a check does not apply, `found` stays empty. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/doctor/doctor.h"

#define DAY_S	  86400
#define SOON_DAYS 14

static int reach_resolve(struct hr_reach *p)
{
	struct sockaddr_storage found[HR_ADDRESSES_MAX];
	size_t n = 0, at = 0;
	int r = hr_address_resolve(&p->collector.to, false, found, HR_ADDRESSES_MAX, &n);

	for (size_t i = 0; i < n && at < sizeof(p->addresses); i++) {
		char text[64];

		hr_sockaddr_text(&found[i], text, sizeof(text));
		at += (size_t)snprintf(p->addresses + at, sizeof(p->addresses) - at, "%s%s",
				       i > 0 ? ", " : "", text);
	}
	return r;
}

void hr_reach_run(const struct hr_address *to, struct hr_reach *ret)
{
	static const struct hr_collector_events events;
	struct hr_collector *c = &ret->collector;
	int r;

	*ret = (struct hr_reach){.end = HR_REACH_NO_ADDRESS};
	r = hr_collector_init(c, to);
	ret->error = reach_resolve(ret);
	if (ret->error < 0)
		return;
	ret->end = r < 0 ? HR_REACH_NO_CERTIFICATE : HR_REACH_TRIED;
	if (r < 0)
		return;
	hr_collector_connect(c, "headrace doctor " HEADRACE_VERSION, &events, NULL);
	while (!c->welcome && !c->closed)
		uv_run(&c->loop, UV_RUN_ONCE);
	hr_collector_close(c);
}

void hr_check_address(const struct hr_reach *p, struct hr_check *c)
{
	const struct hr_collector *to = &p->collector;

	if (p->end == HR_REACH_NO_ADDRESS)
		hr_check_set(c, HR_HEALTH_FAIL,
			     to->to.local ? "use a shorter path"
					  : "check the name: `getent hosts` uses the same resolver",
			     "%s: %s", to->shown,
			     p->error == -ENOENT ? "no such host" : strerrordesc_np(-p->error));
	else if (to->to.local)
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s, on this machine", to->shown);
	else
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s is %s", to->shown, p->addresses);
}

static bool is_refused(const struct hr_reach *p)
{
	return p->collector.reason[0] != '\0';
}

static bool is_refused_identity(const struct hr_reach *p)
{
	return strcmp(p->collector.reason, "identity") == 0;
}

void hr_check_connection(const struct hr_reach *p, struct hr_check *c)
{
	const struct hr_collector *to = &p->collector;

	if (p->end != HR_REACH_TRIED)
		return;
	if (to->welcome)
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s, protocol %u", to->software, to->version);
	else if (is_refused_identity(p))
		hr_check_set(c, HR_HEALTH_OK, NULL, "a collector answers");
	else if (is_refused(p))
		hr_check_set(c, HR_HEALTH_FAIL, "see the log of the collector",
			     "the collector refuses the connection (%s): %s", to->reason,
			     hr_collector_why(to));
	else
		hr_check_set(c, HR_HEALTH_FAIL,
			     to->advice[0] != '\0' ? to->advice
						   : "see docs/tls.md, \"When it does not work\"",
			     "%s", hr_collector_why(to));
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

	hr_tls_own(p->collector.tls, &file, &until);
	put_date(until, ours);
	put_date(p->collector.peer.until, theirs);
	if (ends_soon(p->collector.peer.until))
		fix = "renew the certificate of the collector: make-ca, then SIGHUP (docs/tls.md)";
	if (ends_soon(until))
		fix = "renew your certificate: make-ca (docs/tls.md)";
	hr_check_set(
	    c, fix != NULL ? HR_HEALTH_WARN : HR_HEALTH_OK, fix,
	    "TLS 1.3; the certificate of the collector (%s) is valid until %s, yours (%s) until %s",
	    p->collector.peer.cn, theirs, file, ours);
}

void hr_check_tls(const struct hr_reach *p, struct hr_check *c)
{
	bool there = p->collector.welcome || is_refused(p);

	if (p->end == HR_REACH_NO_CERTIFICATE)
		hr_check_set(c, HR_HEALTH_FAIL,
			     "see docs/tls.md for the required files and their places", "%s",
			     hr_collector_why(&p->collector));
	else if (there && p->collector.peer.tls)
		check_certificates(p, c);
	else if (there && p->collector.peer.loopback)
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
	const char *may = "may stream, but not query", *who = p->collector.who;

	if (is_refused_identity(p)) {
		hr_check_set(c, HR_HEALTH_FAIL, "see docs/tls.md, \"What a certificate permits\"",
			     "the collector cannot identify you: %s",
			     hr_collector_why(&p->collector));
		return;
	}
	if (!p->collector.welcome)
		return;
	if (doctor_collector_begins(who, "operator "))
		may = "may query all jobs";
	else if (doctor_collector_begins(who, "user "))
		may = "may stream and query their own jobs";
	hr_check_set(c, HR_HEALTH_OK, NULL, "the collector identifies you as %s, who %s", who, may);
}
