/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/server.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clickhouse/target.h"
#include "collector/alerting.h"
#include "collector/check.h"
#include "collector/listen.h"
#include "collector/metrics.h"
#include "collector/peers.h"
#include "collector/retention.h"
#include "store/store.h"
#include "common/host.h"
#include "common/log.h"
#include "common/text.h"
#include "common/fdstore.h"

#define TICK_MS	     1000u
#define STOP_MS	     10000u
#define STREAM_FILES 3u /* number of descriptors that an open stream needs */

/* A configuration from before a reload, whose texts threads may still use. */
struct past {
	struct past *next;
	struct hr_collector_config config;
};

struct server {
	struct hr_collector_config *config;
	const struct hr_config_source *from;
	struct past *past;
	uv_loop_t loop;
	uv_async_t answers;
	uv_timer_t tick, stop_timer;
	uv_signal_t signals[3]; /* SIGTERM, SIGINT, SIGHUP */
	char store[PATH_MAX];	/* absolute path, because children have another working directory */
	char spill[PATH_MAX];	/* folder for temporary files of queries; "": none */
	struct hr_ch_target target; /* where data goes instead, if config->sink is set */
	int hold_fd;		    /* descriptor that holds the lock of the store */
	/* the file system is read-only, and so is the lock (hr_store_hold_read_only) */
	bool read_only;
	bool holder_due;    /* the file with the name of the lock holder must still be written */
	bool spill_due;	    /* the folder `spill` must still be created */
	unsigned max_files; /* limit of descriptors; streams may use half of them */
	struct hr_tls *tls;
	struct hr_ingest *ingest;
	struct hr_queries *queries;
	struct hr_peers *peers;
	struct hr_listeners *listeners;
	struct hr_retention *retention;
	struct hr_metrics *metrics; /* NULL: no address for metrics */
	struct hr_alerting *alerting;
	bool stopping, queries_gone, dismissed;
	int status;
};

/* ---- shutdown and events ---- */

/* Starts the next step of the shutdown if the current step is complete. */
static void continue_stop(struct server *s)
{
	if (!s->dismissed && hr_ingest_stopped(s->ingest)) {
		s->dismissed = true;
		hr_peers_dismiss(s->peers);
	}
	if (s->dismissed && s->queries_gone && hr_alerting_idle(s->alerting) &&
	    hr_peers_count(s->peers) == 0)
		uv_stop(&s->loop);
}

static void on_queries_gone(void *self)
{
	struct server *s = self;

	s->queries_gone = true;
}

static void on_stop_timer(uv_timer_t *timer)
{
	struct server *s = timer->data;

	if (s->dismissed) { /* a peer, a query or a message about an alert did not end in time */
		uv_stop(&s->loop);
		return;
	}
	/* The disk hangs. Daemons still have all frames that were not acknowledged. */
	hr_log(HR_LOG_ERROR, "cannot write received data to disk in time; ending without it (nodes "
			     "will send it again)");
	_exit(EXIT_FAILURE);
}

static void begin_to_stop(struct server *s)
{
	if (s->stopping)
		return;
	s->stopping = true;
	hr_log(HR_LOG_INFO, "stopping");
	(void)hr_fdstore_notify("STOPPING=1");
	hr_listeners_close(s->listeners);
	s->listeners = NULL;
	hr_metrics_close(s->metrics);
	s->metrics = NULL;
	hr_alerting_stop(s->alerting);
	hr_peers_pause(s->peers);
	hr_queries_stop(s->queries, on_queries_gone, s);
	hr_ingest_stop(s->ingest);
	uv_timer_start(&s->stop_timer, on_stop_timer, STOP_MS, 0);
}

static void wake(void *self)
{
	struct server *s = self;

	uv_async_send(&s->answers);
}

static void on_answers(uv_async_t *handle)
{
	struct server *s = handle->data;

	hr_peers_answers(s->peers);
	if (s->stopping)
		continue_stop(s);
}

/* ---- a store that cannot be written ---- */

static bool is_unwritable(int error)
{
	return error == -EROFS || error == -ENOSPC || error == -EDQUOT;
}

static int write_holder(const struct server *s)
{
	char host[HR_HOST_NAME_BYTES], *line;
	int r;

	hr_host_name(host);
	if (asprintf(&line, "%s (pid %ld on %s)\n", hr_listeners_first(s->listeners),
		     (long)getpid(), host) < 0)
		return -ENOMEM;
	r = hr_store_write_holder(s->store, line);
	free(line);
	return r;
}

/* Locks a store that was read-only for writing. Returns false if that is not possible now. */
static bool hold_for_writing(struct server *s)
{
	int r = hr_store_hold_writable(s->store, &s->hold_fd);

	if (r == 0) {
		s->read_only = false;
		hr_log(HR_LOG_INFO, "the store %s is writable again", s->store);
		return true;
	}
	if (r == -EBUSY) {
		hr_log(HR_LOG_ERROR, "cannot use the store %s: %s", s->store, strerrordesc_np(-r));
		s->status = HR_EXIT_STORE;
		begin_to_stop(s);
	}
	return false;
}

static bool has_store(const struct server *s)
{
	return !hr_text_given(s->config->sink);
}

/* Repeats steps of the start that failed because the disk was read-only or full. */
static void settle_store(struct server *s)
{
	if (!has_store(s) || (s->read_only && !hold_for_writing(s)))
		return;
	s->holder_due = s->holder_due && write_holder(s) < 0;
	s->spill_due = s->spill_due && mkdir(s->spill, 0700) < 0 && errno != EEXIST;
}

static void server_on_tick(uv_timer_t *timer)
{
	struct server *s = timer->data;

	if (!s->stopping)
		hr_peers_tick(s->peers);
	if (!s->stopping)
		hr_alerting_tick(s->alerting);
	if (!s->stopping)
		settle_store(s);
}

static void on_check(uv_timer_t *timer)
{
	struct server *s = timer->data;

	continue_stop(s);
}

static struct hr_who_rules rules_of(const struct hr_collector_config *c)
{
	return (struct hr_who_rules){.operators = c->operators,
				     .munge = c->munge,
				     .munge_socket = c->munge_socket,
				     .plain_anywhere = c->plain == HR_PLAIN_YES};
}

static uint64_t server_written(void *self)
{
	struct server *s = self;
	struct hr_ingest_stats stats;

	hr_ingest_stats(s->ingest, &stats);
	return stats.bytes;
}

static int start_retention(struct server *s)
{
	const struct hr_retention_config retention = {
	    .store = s->store,
	    .age_ms = s->config->retention_age_ms,
	    .size_bytes = s->config->retention_size_bytes,
	    .silent_ms = s->config->silent_after_ms,
	    .forget_ms = s->config->forget_after_ms,
	    .written = server_written,
	    .self = s,
	};

	return hr_retention_start(&retention, &s->retention);
}

static int load_tls(const struct hr_collector_config *c, struct hr_tls **ret)
{
	const struct hr_tls_files files = {.cert = c->tls_cert, .key = c->tls_key, .ca = c->tls_ca};
	char *error = NULL;
	int r;

	*ret = NULL;
	if (!hr_text_given(c->tls_cert))
		return 0;
	r = hr_tls_new(&files, true, ret, &error);
	if (r < 0)
		hr_log(HR_LOG_ERROR, "%s", error ? error : strerrordesc_np(-r));
	free(error);
	return r;
}

static bool load_config(struct server *s)
{
	struct past *past = calloc(1, sizeof(*past));
	struct hr_collector_config *fresh = past ? &past->config : NULL, old;
	struct hr_tls *tls;

	if (!past)
		return false;
	if (hr_config_load(s->from, fresh) < 0 ||
	    !hr_collector_config_check(fresh, s->from->report) || load_tls(fresh, &tls) < 0) {
		hr_config_done(hr_collector_keys, hr_collector_n_keys, fresh);
		free(past);
		return false;
	}
	hr_config_keep_fixed(hr_collector_keys, hr_collector_n_keys, s->config, fresh,
			     s->from->report);
	old = *s->config;
	*s->config = *fresh;
	*fresh = old;
	past->next = s->past;
	s->past = past;
	hr_listeners_tls(s->listeners, tls);
	hr_tls_unref(s->tls);
	s->tls = tls;
	return true;
}

static void change_retention(struct server *s)
{
	const struct hr_collector_config *c = s->config;

	if (s->retention)
		hr_retention_change(s->retention, c->retention_age_ms, c->retention_size_bytes,
				    c->forget_after_ms);
	else if (has_store(s) && start_retention(s) < 0)
		hr_log(HR_LOG_ERROR, "cannot start retention: out of memory");
}

static void reload(struct server *s)
{
	const struct hr_collector_config *c = s->config;
	struct hr_who_rules rules;

	if (s->stopping)
		return;
	if (!load_config(s)) {
		hr_log(HR_LOG_ERROR,
		       "SIGHUP: cannot use the new configuration; keeping the previous one");
		return;
	}
	rules = rules_of(c);
	hr_peers_rules(s->peers, &rules);
	hr_alerting_change(s->alerting, c);
	change_retention(s);
	hr_log(HR_LOG_INFO, "reloaded configuration and certificates");
}

static void on_signal(uv_signal_t *signal, int number)
{
	struct server *s = signal->data;

	if (number == SIGHUP) {
		reload(s);
		return;
	}
	begin_to_stop(s);
	uv_timer_start(&s->tick, on_check, 20, 20);
}

/* ---- the beginning ---- */

static uint64_t at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int take_store(struct server *s)
{
	const char *store = s->config->store;
	char holder[512];
	int r = hr_store_hold(store, &s->hold_fd);

	if (r == -EROFS && hr_store_hold_read_only(store, &s->hold_fd) == 0) {
		s->read_only = true;
		r = 0;
		hr_log(HR_LOG_WARNING,
		       "the store %s is on a read-only file system: the collector answers queries, "
		       "and nodes keep their data until it is writable",
		       store);
	}
	if (r == -EBUSY) {
		if (!hr_store_holder(store, holder, sizeof(holder)) || !*holder)
			snprintf(holder, sizeof(holder), "another collector");
		hr_log(HR_LOG_ERROR, "the store %s is in use by %s", store, holder);
		return r;
	}
	if (r == 0 && !realpath(store, s->store))
		r = -errno;
	if (r < 0)
		hr_log(HR_LOG_ERROR, "cannot create the store %s: %s", store, strerrordesc_np(-r));
	return r;
}

/* Makes the folder for temporary files of queries, unless it is switched off. */
static int make_spill(struct server *s)
{
	const char *set = s->config->query_spill;
	char *folder;
	int r = 0;

	if (!has_store(s) || (set && strcmp(set, "none") == 0))
		return 0;
	if (asprintf(&folder, "%s%s", set && *set ? set : s->store, set && *set ? "" : "/spill") <
	    0)
		return -ENOMEM;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (is_unwritable(r) && folder[0] == '/') {
		snprintf(s->spill, sizeof(s->spill), "%s", folder);
		s->spill_due = true;
		r = 0;
	} else if (r < 0 || !realpath(folder, s->spill)) {
		r = -errno;
		hr_log(HR_LOG_ERROR, "cannot create the folder %s (query_spill): %s", folder,
		       strerrordesc_np(errno));
	}
	free(folder);
	return r;
}

static int make_queries(struct server *s)
{
	const struct hr_collector_config *c = s->config;
	int r = make_spill(s);
	const struct hr_queries_config queries = {
	    .store = has_store(s) ? s->store : NULL,
	    .exe = "/proc/self/exe",
	    .at_once = (unsigned)c->query_at_once,
	    .per_caller = (unsigned)c->query_per_caller,
	    .memory_bytes = c->query_memory_bytes,
	    .time_ms = c->query_time_ms,
	    .threads = (unsigned)c->query_threads,
	    .spill = s->spill[0] ? s->spill : NULL,
	    .spill_bytes = c->query_spill_bytes,
	    .silent_ms = c->silent_after_ms,
	};

	return r < 0 ? r : hr_queries_new(&s->loop, &queries, &s->queries);
}

static int make_peers(struct server *s)
{
	const struct hr_collector_config *c = s->config;
	const struct hr_peers_config peers = {
	    .rules = rules_of(c),
	    .max_connections = at_most(c->max_connections, (uint64_t)s->max_files * 2 / 5),
	    .max_frame_bytes = c->max_frame_bytes,
	    .window_bytes = c->window_bytes,
	    .memory_bytes = c->memory_bytes,
	    .ping_ms = c->ping_ms,
	};

	return hr_peers_new(&s->loop, &peers, s->ingest, s->queries, &s->peers);
}

static int make_parts(struct server *s)
{
	struct hr_ingest_config ingest = hr_ingest_defaults;
	int r;

	ingest.max_new = s->config->new_streams_per_user;
	ingest.max_streams = s->max_files / 2 / STREAM_FILES;
	ingest.store = s->store;
	ingest.clickhouse = has_store(s) ? NULL : &s->target;
	ingest.wake = wake;
	ingest.self = s;
	r = hr_ingest_new(&ingest, &s->ingest);
	if (r == 0)
		r = make_queries(s);
	if (r == 0)
		r = make_peers(s);
	if (r == 0 && has_store(s))
		r = start_retention(s);
	if (r < 0)
		hr_log(HR_LOG_ERROR, "cannot start: %s", strerrordesc_np(-r));
	return r;
}

static void write_metrics(void *self, FILE *out)
{
	const struct server *s = self;

	hr_collector_metrics_write(&(struct hr_collector_parts){.ingest = s->ingest,
								.peers = s->peers,
								.queries = s->queries,
								.retention = s->retention,
								.alerting = s->alerting},
				   out);
}

/* Opens the socket for metrics. Logs a failure, because the collector works without metrics. */
static void open_metrics(struct server *s)
{
	const struct hr_metrics_config config = {.address = s->config->metrics,
						 .component = "collector",
						 .version = HEADRACE_VERSION,
						 .write = write_metrics,
						 .self = s};

	s->metrics = hr_metrics_serve(&s->loop, &config);
}

static void start_handles(struct server *s)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

	uv_loop_init(&s->loop);
	uv_async_init(&s->loop, &s->answers, on_answers);
	uv_timer_init(&s->loop, &s->tick);
	uv_timer_init(&s->loop, &s->stop_timer);
	s->answers.data = s->tick.data = s->stop_timer.data = s;
	uv_timer_start(&s->tick, server_on_tick, TICK_MS, TICK_MS);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uv_signal_init(&s->loop, &s->signals[i]);
		s->signals[i].data = s;
		uv_signal_start(&s->signals[i], on_signal, numbers[i]);
	}
	signal(SIGPIPE, SIG_IGN);
}

static int server_start(struct server *s)
{
	int r = load_tls(s->config, &s->tls);

	if (r < 0)
		return r;
	r = make_parts(s);
	if (r == 0)
		r = hr_listeners_open(&s->loop, s->config, s->tls, s->peers, &s->listeners);
	if (r == 0)
		r = hr_alerting_new(&s->loop, s->peers, hr_listeners_first(s->listeners),
				    &s->alerting);
	if (r == 0)
		hr_alerting_change(s->alerting, s->config);
	s->holder_due = s->read_only;
	if (r == 0 && has_store(s) && !s->holder_due) {
		r = write_holder(s);
		s->holder_due = is_unwritable(r);
		if (r < 0)
			hr_log(s->holder_due ? HR_LOG_WARNING : HR_LOG_ERROR,
			       "cannot write to the store: %s", strerrordesc_np(-r));
		r = s->holder_due ? 0 : r;
	}
	if (r == 0 && s->config->plain == HR_PLAIN_YES)
		hr_log(
		    HR_LOG_WARNING,
		    "plain = yes: anyone who can connect can send streams, without identification");
	return r;
}

static void server_close_handles(struct server *s)
{
	uv_handle_t *own[] = {(uv_handle_t *)&s->answers,    (uv_handle_t *)&s->tick,
			      (uv_handle_t *)&s->stop_timer, (uv_handle_t *)&s->signals[0],
			      (uv_handle_t *)&s->signals[1], (uv_handle_t *)&s->signals[2]};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		uv_close(own[i], NULL);
	hr_listeners_close(s->listeners);
	hr_metrics_close(s->metrics);
}

static void server_done(struct server *s)
{
	/* Peers and children that have not ended end with this process. */
	bool left = s->stopping && (!s->queries_gone || !hr_alerting_idle(s->alerting) ||
				    hr_peers_count(s->peers) > 0);

	hr_retention_stop(s->retention);
	if (left)
		return;
	/* before the handle `answers` is closed, which threads of ingest use */
	hr_ingest_free(s->ingest);
	server_close_handles(s);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	hr_queries_free(s->queries);
	hr_alerting_free(s->alerting);
	hr_peers_free(s->peers);
	hr_tls_unref(s->tls);
	(void)uv_loop_close(&s->loop);
	while (s->past) {
		struct past *next = s->past->next;

		hr_config_done(hr_collector_keys, hr_collector_n_keys, &s->past->config);
		free(s->past);
		s->past = next;
	}
}

int hr_server_run(const struct hr_config_source *from, struct hr_collector_config *config)
{
	struct server s = {.config = config, .from = from, .hold_fd = -1};

	umask(077);
	s.max_files = hr_host_raise_files();
	if ((has_store(&s) ? take_store(&s) : hr_collector_take_sink(config->sink, &s.target)) <
	    0) {
		hr_ch_target_done(&s.target);
		return HR_EXIT_STORE;
	}
	start_handles(&s);
	if (server_start(&s) == 0) {
		open_metrics(&s);
		hr_listeners_log(s.listeners);
		(void)hr_fdstore_notify("READY=1");
		uv_run(&s.loop, UV_RUN_DEFAULT);
	} else {
		s.status = EXIT_FAILURE;
	}
	server_done(&s);
	if (has_store(&s)) {
		(void)hr_store_write_holder(s.store, "");
		close(s.hold_fd);
	}
	hr_ch_target_done(&s.target);
	return s.status;
}
