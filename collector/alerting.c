/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/alerting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/alert_command.h"
#include "collector/alert_text.h"
#include "collector/alert_url.h"
#include "common/host.h"
#include "common/log.h"
#include "common/now.h"
#include "common/text.h"
#include "net/address.h"

#define URL_LOG	    "alert_url" /* keys of hr_log_about */
#define COMMAND_LOG "alert_command"

struct hr_alerting {
	uv_loop_t *loop;
	const struct hr_peers *peers;
	struct hr_alerts alerts;
	const char *command, *url; /* NULL: none */
	bool manager;
	struct hr_alert_batch *batch; /* NULL: no request is in flight */
	struct hr_alert_commands commands;
	bool url_fails; /* the last batch failed */
	bool stopping;
	uint64_t delivered[HR_ALERT_N_SINKS], failed[HR_ALERT_N_SINKS];
	char address[HR_ADDRESS_HOST_BYTES + 32]; /* of the collector, for commands in messages */
};

/* What all jobs do now, while messages are made. */
struct alerting_look {
	struct hr_alerting *a;
	struct hr_arena memory;
	Headrace__Fleet fleet;
};

static void note_result(struct hr_alerting *a, enum hr_alert_sink sink, uint64_t id, bool good)
{
	a->delivered[sink] += good;
	a->failed[sink] += !good;
	hr_alerts_sent(&a->alerts, sink, id, good, uv_now(a->loop));
}

static struct hr_alert_view view_of(const struct alerting_look *l, const struct hr_alert *x)
{
	return (struct hr_alert_view){.alert = x,
				      .job = hr_alert_job(x, &l->fleet),
				      .address = l->a->address,
				      .real_ns = hr_now_ns(CLOCK_REALTIME)};
}

/* ---- the log --------------------------------------------------------------------------------- */

static void log_alerts(const struct alerting_look *l)
{
	struct hr_alerts *alerts = &l->a->alerts;
	const struct hr_alert *x;

	while ((x = hr_alerts_due(alerts, HR_ALERT_LOG, false, uv_now(l->a->loop)))) {
		const struct hr_alert_view view = view_of(l, x);
		char *text = hr_alert_sentence(&view);

		hr_log(x->state == HR_ALERT_OVER ? HR_LOG_INFO : HR_LOG_WARNING, "alert: %s",
		       text ? text : "out of memory");
		free(text);
		note_result(l->a, HR_ALERT_LOG, x->id, true);
	}
}

/* ---- the HTTP receiver ----------------------------------------------------------------------- */

static void alerting_send(struct hr_alerting *a);

static void log_batch(struct hr_alerting *a, const struct hr_alert_batch *b)
{
	char host[HR_ADDRESS_HOST_BYTES];

	hr_alert_url_host(b->url, host, sizeof(host));
	if (b->error[0] != '\0')
		hr_log_about(HR_LOG_WARNING, URL_LOG,
			     "alert_url: %s did not take an alert: %s; the collector repeats "
			     "messages while their alerts are active",
			     host, b->error);
	else if (a->url_fails)
		hr_log(HR_LOG_INFO, "alert_url: %s takes alerts again", host);
	a->url_fails = b->error[0] != '\0';
}

static void on_batch(struct hr_alert_batch *b)
{
	struct hr_alerting *a = b->self;

	if (!a->stopping)
		log_batch(a, b);
	for (size_t i = 0; i < b->n; i++)
		note_result(a, HR_ALERT_URL, b->posts[i].id, b->posts[i].good);
	a->batch = NULL;
	hr_alert_url_free(b);
	if (!a->url_fails && !a->stopping)
		alerting_send(a);
}

/* Adds the next message to the batch. False: no message is due, or no memory. */
static bool batch_add(const struct alerting_look *l, struct hr_alert_batch *b)
{
	struct hr_alerting *a = l->a;
	const struct hr_alert *x =
	    hr_alerts_due(&a->alerts, HR_ALERT_URL, a->manager, uv_now(a->loop));
	struct hr_alert_view view;
	char *body;

	if (!x)
		return false;
	view = view_of(l, x);
	body = hr_alert_json(&view, a->manager);
	if (!body) {
		note_result(a, HR_ALERT_URL, x->id, false);
		return false;
	}
	b->posts[b->n++] = (struct hr_alert_post){.id = x->id, .body = body};
	return true;
}

/* While the receiver fails, sends one message at a time. */
static void send_batch(const struct alerting_look *l)
{
	struct hr_alerting *a = l->a;
	size_t most = a->url_fails ? 1 : HR_ALERT_URL_MOST;
	struct hr_alert_batch *b = a->url && !a->batch ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return;
	while (b->n < most && batch_add(l, b))
		;
	b->done = on_batch;
	b->self = a;
	if (b->n > 0 && hr_alert_url_send(a->loop, a->url, b) == 0) {
		a->batch = b;
		return;
	}
	for (size_t i = 0; i < b->n; i++)
		note_result(a, HR_ALERT_URL, b->posts[i].id, false);
	hr_alert_url_free(b);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* A command that has run is not repeated, because it may have done its work before it failed. */
static void on_command(void *self, uint64_t id, const char *error)
{
	struct hr_alerting *a = self;

	if (a->stopping)
		return;
	if (error)
		hr_log_about(HR_LOG_WARNING, COMMAND_LOG, "alert_command: %s", error);
	a->failed[HR_ALERT_COMMAND] += error != NULL;
	a->delivered[HR_ALERT_COMMAND] += error == NULL;
	hr_alerts_sent(&a->alerts, HR_ALERT_COMMAND, id, true, uv_now(a->loop));
	alerting_send(a);
}

static void run_command(const struct alerting_look *l, const struct hr_alert *x)
{
	struct hr_alerting *a = l->a;
	const struct hr_alert_view view = view_of(l, x);
	char *body = hr_alert_json(&view, false), program[256];
	int r = body ? hr_alert_command_run(&a->commands, a->command, x->id, body) : -ENOMEM;

	if (r == 0)
		return;
	hr_alert_command_program(a->command, program, sizeof(program));
	hr_log_about(HR_LOG_WARNING, COMMAND_LOG,
		     "alert_command: cannot run %s: %s; the collector repeats this while the alert "
		     "is active",
		     program, strerrordesc_np(-r));
	note_result(a, HR_ALERT_COMMAND, x->id, false);
}

static void run_commands(const struct alerting_look *l)
{
	struct hr_alerting *a = l->a;

	while (a->command && a->commands.n < HR_ALERT_COMMAND_MOST) {
		const struct hr_alert *x =
		    hr_alerts_due(&a->alerts, HR_ALERT_COMMAND, false, uv_now(a->loop));

		if (!x)
			return;
		run_command(l, x);
	}
}

/* ---- ticks ----------------------------------------------------------------------------------- */

static bool alerting_look(struct hr_alerting *a, struct alerting_look *l)
{
	*l = (struct alerting_look){.a = a};
	if (hr_peers_fleet(a->peers, SIZE_MAX, HR_ALERT_STUCK_MOST, &l->memory, &l->fleet) == 0)
		return true;
	hr_log_about(HR_LOG_ERROR, "alerts", "alerts: out of memory");
	return false;
}

static void send_messages(const struct alerting_look *l)
{
	log_alerts(l);
	send_batch(l);
	run_commands(l);
}

static void alerting_send(struct hr_alerting *a)
{
	struct alerting_look l;

	if (a->alerts.n > 0 && alerting_look(a, &l)) {
		send_messages(&l);
		hr_arena_free(&l.memory);
	}
}

void hr_alerting_tick(struct hr_alerting *a)
{
	struct hr_alert_time now = {.ms = uv_now(a->loop), .real_ns = hr_now_ns(CLOCK_REALTIME)};
	struct alerting_look l;

	if (a->batch)
		hr_alert_url_tick(a->batch, now.ms);
	hr_alert_commands_tick(&a->commands, now.ms);
	if ((a->alerts.rules.n == 0 && a->alerts.n == 0) || !alerting_look(a, &l))
		return;
	if (hr_alerts_tick(&a->alerts, &l.fleet, now) < 0)
		hr_log_about(HR_LOG_ERROR, "alerts", "alerts: out of memory");
	send_messages(&l);
	hr_arena_free(&l.memory);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* Clients cannot connect to the address of all interfaces: replaces it by the name of the host. */
static void find_address(const char *listen, char *ret, size_t bytes)
{
	char name[HR_HOST_NAME_BYTES];
	struct hr_address address;

	snprintf(ret, bytes, "%s", listen);
	if (hr_address_parse(listen, &address) < 0 || address.local ||
	    (strcmp(address.host, "0.0.0.0") != 0 && strcmp(address.host, "::") != 0))
		return;
	hr_host_name(name);
	snprintf(address.host, sizeof(address.host), "%s", name);
	hr_address_text(&address, ret, bytes);
}

int hr_alerting_new(uv_loop_t *loop, const struct hr_peers *peers, const char *listen,
		    struct hr_alerting **ret)
{
	struct hr_alerting *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->loop = loop;
	a->peers = peers;
	a->commands = (struct hr_alert_commands){.loop = loop, .done = on_command, .self = a};
	find_address(listen, a->address, sizeof(a->address));
	*ret = a;
	return 0;
}

static void report_nothing(const char *text)
{
	(void)text; /* hr_collector_config_check has reported it */
}

void hr_alerting_change(struct hr_alerting *a, const struct hr_collector_config *c)
{
	(void)hr_alert_rules_parse(c->alerts, &a->alerts.rules, report_nothing);
	a->command = hr_text_or_null(c->alert_command);
	a->url = hr_text_or_null(c->alert_url);
	a->url_fails = false; /* it may be another one */
	a->manager = c->alert_format == HR_ALERT_FORMAT_MANAGER;
	a->alerts.sinks[HR_ALERT_LOG] = true;
	a->alerts.sinks[HR_ALERT_URL] = a->url;
	a->alerts.sinks[HR_ALERT_COMMAND] = a->command;
}

void hr_alerting_stop(struct hr_alerting *a)
{
	if (!a)
		return;
	a->stopping = true;
	if (a->batch)
		hr_alert_url_stop(a->batch);
	hr_alert_commands_stop(&a->commands);
}

bool hr_alerting_idle(const struct hr_alerting *a)
{
	return !a || (!a->batch && a->commands.n == 0);
}

void hr_alerting_free(struct hr_alerting *a)
{
	if (!a)
		return;
	hr_alerts_done(&a->alerts);
	free(a);
}

void hr_alerting_stats(const struct hr_alerting *a, struct hr_alerting_stats *ret)
{
	*ret = (struct hr_alerting_stats){.ignored = a->alerts.ignored};
	for (unsigned i = 0; i < HR_ALERT_N_KINDS; i++)
		ret->firing[i] = hr_alerts_count(&a->alerts, i);
	memcpy(ret->delivered, a->delivered, sizeof(ret->delivered));
	memcpy(ret->failed, a->failed, sizeof(ret->failed));
}
