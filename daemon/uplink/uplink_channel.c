/* SPDX-License-Identifier: Apache-2.0 */
/* uplink_channel.c - messages and ends of channels and of the connection; errors for the status */
#include "daemon/uplink/uplink_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"

/* ---- the connection -------------------------------------------------------------------------- */

void hr__link_set(struct hr_uplink *u, enum hr__link_state state)
{
	u->link = state;
	u->link_ms = hr__uplink_now(u);
}

void hr__link_error(struct hr_uplink *u, const char *text, const char *advice)
{
	char name[HR_ADDRESS_HOST_BYTES + 32];

	hr_address_text(&u->c.collectors[u->at], name, sizeof(name));
	pthread_mutex_lock(&u->lock);
	snprintf(u->stats.error, sizeof(u->stats.error), "%s%s%s%s%s",
		 strstr(text, name) ? "" : name, strstr(text, name) ? "" : ": ", text,
		 *advice ? "; " : "", advice);
	pthread_mutex_unlock(&u->lock);
}

void hr__link_broken(struct hr_uplink *u, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hr__link_error(u, text, "");
	if (u->conn && u->link != HR__LINK_CLOSING) {
		hr__link_set(u, HR__LINK_CLOSING);
		hr_conn_close(u->conn, true);
	}
}

void hr__link_good(struct hr_uplink *u)
{
	u->backoff.failed = 0;
	if (u->stats.failed_rounds == 0)
		return;
	pthread_mutex_lock(&u->lock);
	u->stats.failed_rounds = 0;
	pthread_mutex_unlock(&u->lock);
}

/* ---- channels -------------------------------------------------------------------------------- */

void hr__flights_land(struct hr_uplink *u, struct hr__sending *s, uint64_t seq)
{
	while (s->n_flights && s->flights[s->first_flight].seq <= seq) {
		u->in_flight -= s->flights[s->first_flight].bytes;
		s->first_flight++;
		s->n_flights--;
	}
	if (!s->n_flights)
		s->first_flight = 0;
}

void hr__send_rewind(struct hr_uplink *u, struct hr__sending *s, uint64_t seq)
{
	hr__flights_land(u, s, UINT64_MAX);
	free(s->held);
	s->held = NULL;
	s->sent = seq;
}

void hr__channel_lost(struct hr_uplink *u, struct hr__sending *s)
{
	hr__send_rewind(u, s, s->acked);
	hr_spool_stream_rest(s->stream);
	if (s->channel) {
		if (u->used_channel == s->channel)
			u->used_channel = 0;
		u->channels--;
	}
	s->channel = 0;
}

void hr__send_message(struct hr_uplink *u, const Headrace__Wire *msg)
{
	if (u->link == HR__LINK_UP && hr_conn_send_now(u->conn, msg) < 0)
		hr__link_broken(u, "cannot send");
}

void hr__send_close(struct hr_uplink *u, struct hr__sending *s)
{
	Headrace__Close close = HEADRACE__CLOSE__INIT;

	if (!s->channel)
		return;
	close.channel = s->channel;
	hr__send_message(u, HR_WIRE(CLOSE, close, &close));
	hr__channel_lost(u, s);
}

/* Writes commands that a user can run for a job that no collector accepts; "": no memory. */
static void put_commands(const char *spool, const char *job, char *ret, size_t bytes)
{
	char program[4096] = "headraced"; /* replaced by its path, because it is not in PATH */
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *p, *s = hr_text_quote(spool), *j = hr_text_quote(job);

	if (n > 0)
		program[n] = '\0';
	p = hr_text_quote(program);
	*ret = '\0';
	if (p && s && j)
		snprintf(ret, bytes,
			 ". To query it: headrace query %s --job %s summary. To delete it: %s "
			 "uplink %s --discard %s",
			 s, j, p, s, j);
	free(p);
	free(s);
	free(j);
}

void hr__send_aside(struct hr_uplink *u, struct hr__sending *s, const char *reason,
		    const char *text)
{
	const Headrace__StreamStart *id = s->stream->id;
	char commands[1024];

	hr__send_close(u, s);
	s->state = HR__SENDING_ASIDE;
	s->aside_at = u->at;
	put_commands(hr_spool_path(u->c.spool), id->job, commands, sizeof(commands));
	pthread_mutex_lock(&u->lock);
	snprintf(u->stats.aside_text, sizeof(u->stats.aside_text),
		 "job %s of node %s is not sent (%s): %s; it stays in the spool%s", id->job,
		 id->node, reason, text, commands);
	pthread_mutex_unlock(&u->lock);
}
