/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/job_status.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/now.h"
#include "daemon/attach/attach.h"
#include "daemon/spool/appender.h"

#define MEASURE_MS 900u /* less than a second, because a timer may fire early */

void hr_job_status_measure(struct hr_job_status *s, const struct hr_node_stats *now,
			   uint64_t now_ms)
{
	uint64_t ms = now_ms - s->measured_ms;

	if (s->measured_ms != 0 && ms < MEASURE_MS)
		return;
	if (s->measured_ms != 0) {
		s->events_per_s = (now->engine.records - s->events) * 1000 / ms;
		s->bytes_per_s = (now->engine.bytes_moved - s->bytes) * 1000 / ms;
		s->steps_per_ks = (now->engine.steps - s->steps) * 1000000 / ms;
	}
	s->measured_ms = now_ms;
	s->events = now->engine.records;
	s->bytes = now->engine.bytes_moved;
	s->steps = now->engine.steps;
}

static void fill_counts(const struct hr_node_stats *n, Headrace__JobStatus *ret)
{
	const struct hr_engine_stats *e = &n->engine;

	ret->processes_total = e->processes_total;
	ret->events = e->records;
	ret->bytes_moved = e->bytes_moved;
	ret->read_bytes = e->read_bytes;
	ret->written_bytes = e->written_bytes;
	ret->stored_bytes = n->stored_bytes;
	ret->has_input_wait = n->input_wait >= 0;
	ret->input_wait = ret->has_input_wait ? (uint32_t)n->input_wait : 0;
	ret->steps = e->steps;
	ret->since_ms = e->start_ns > 0 ? (hr_boot_ns() - e->start_ns) / 1000000 : 0;
	ret->lost = e->lost + e->torn;
	ret->ring_full = e->lost - e->stray - e->detached;
	ret->stray = e->stray;
	ret->detached = e->detached;
	ret->torn = e->torn;
	ret->hostile = e->hostile;
	ret->refused = n->refused;
	ret->store_error = n->store_error;
	ret->kernel_ops = e->kernel_ops;
	ret->kernel_added = e->kernel_added;
	ret->kernel_lost = e->kernel_lost;
}

static void fill_hang(struct hr_job_status *s, const struct hr_job_hang *h,
		      Headrace__JobStatus *ret)
{
	if (h->processes == 0)
		return;
	memcpy(s->hang_line, h->line, sizeof(s->hang_line));
	headrace__job_hang__init(&s->hang);
	s->hang.ms = (hr_boot_ns() - h->since_ns) / 1000000;
	s->hang.processes = h->processes;
	s->hang.pid = h->pid;
	s->hang.rank_plus1 = h->rank_plus1;
	s->hang.worker_plus1 = h->worker_plus1;
	s->hang.line = s->hang_line;
	ret->hang = &s->hang;
}

static void fill_sending(struct hr_job_status *s, Headrace__JobStatus *ret)
{
	hr_uplink_stats(s->uplink->uplink, &s->sending);
	ret->collectors = hr_control_text(s->config->collectors);
	ret->collector = s->sending.collector;
	ret->connected = s->sending.connected;
	ret->unsent_frames = s->sending.frames;
	ret->unsent_ms = s->sending.oldest_ns / 1000000;
}

void hr_job_status_fill(struct hr_job_status *s, const struct hr_node_stats *now,
			Headrace__JobStatus *ret)
{
	const struct hr_node_config *config = &s->config->node;
	const char *no_probes = hr_node_probes_error(s->node);
	struct hr_attach_use use;

	hr_node_use(s->node, &use);
	ret->id = hr_control_text(config->id.job);
	ret->attempt = config->id.attempt;
	ret->uid = config->uid;
	if (config->job_name)
		ret->name = hr_control_text(config->job_name);
	ret->pid = getpid();
	ret->level = hr_node_level(s->node);
	ret->processes = use.sessions;
	ret->ring_bytes = use.ring_bytes;
	ret->connections_served = use.served;
	ret->events_per_s = s->events_per_s;
	ret->bytes_per_s = s->bytes_per_s;
	ret->steps_per_ks = s->steps_per_ks;
	ret->probes = hr_node_probes(s->node);
	if (no_probes)
		ret->no_probes = hr_control_text(no_probes);
	fill_counts(now, ret);
	fill_hang(s, &now->hang, ret);
	if (s->uplink)
		fill_sending(s, ret);
}

static void answer_status(struct hr_job_status *s, int fd)
{
	Headrace__JobStatus status = HEADRACE__JOB_STATUS__INIT;
	struct hr_node_stats stats;

	hr_node_stats(s->node, &stats);
	hr_job_status_fill(s, &stats, &status);
	status.state = (char[]){"running"};
	status.store = hr_control_text(s->config->node.store);
	hr_control_send(fd, HR_CONTROL(JOB_STATUS), &status.base);
	hr_control_send(fd, HR_CONTROL(DONE), NULL);
}

bool hr_private_answer(struct hr_job_status *s, struct hr_live_link *live,
		       const Headrace__Control *m, int fd)
{
	int copy;

	if (m->kind_case == HR_CONTROL(GET_STATUS)) {
		answer_status(s, fd);
		return true;
	}
	if (m->kind_case != HR_CONTROL(GET_LIVE))
		return false;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		hr_live_link_take(live, s->node, m->get_live, copy);
	return true;
}

/* ---- notices --------------------------------------------------------------------------------- */

static void store_notice(int error, bool spool, char *ret, size_t bytes)
{
	const char *what = spool ? "spool" : "store";

	if (error != 0)
		snprintf(ret, bytes,
			 "cannot write to the %s (%s): headraced keeps up to %u MiB in memory and "
			 "tries again every second; beyond that, events are lost",
			 what, strerrordesc_np(-error), HR_KEPT_BYTES >> 20);
	else
		snprintf(ret, bytes, "headraced can write to the %s again", what);
}

static bool first_time(bool now, bool *reported)
{
	bool first = now && !*reported;

	*reported = *reported || now;
	return first;
}

bool hr_health_next_notice(struct hr_reported *reported, const struct hr_node_stats *now,
			   bool spool, char *ret, size_t bytes)
{
	const char *text;

	if (now->store_error != reported->store_error) {
		reported->store_error = now->store_error;
		store_notice(now->store_error, spool, ret, bytes);
		return true;
	}
	if (first_time(now->counters_only, &reported->counters_only))
		text = "the store reached --max-size: from now on headraced keeps counters, but no "
		       "events";
	else if (first_time(now->journal_in_memory, &reported->journal_in_memory))
		text =
		    "no room on disk for the journal, so headraced keeps it in memory: a kill of "
		    "headraced would lose events that are not stored yet; free some space";
	else if (first_time(now->refused > 0, &reported->refused))
		text = "some processes or threads are not recorded: there are too many, or too "
		       "little memory for their rings; the table losses counts them (limit)";
	else
		return false;
	snprintf(ret, bytes, "%s", text);
	return true;
}
