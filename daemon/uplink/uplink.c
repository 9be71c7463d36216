/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink/uplink_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>

#include "daemon/base/loop.h"

#define TICK_MS 250u
/* Defaults of the configuration. */
#define SCAN_MS	   30000u
#define BETTER_MS  300000u
#define WAITING_MS 1000u
/* How long a collector may leave frames unanswered. Long, because a link can be slow. */
#define OWED_MS	      600000u
#define SEED_FALLBACK UINT64_C(0x9e3779b97f4a7c15)

/* ---- the thread ------------------------------------------------------------------------------ */

static void take_orders(struct hr_uplink *u, bool *ret_stop, struct hr_now_message **ret_now)
{
	pthread_mutex_lock(&u->lock);
	if (u->release)
		u->c.keep = false;
	*ret_stop = u->stop;
	*ret_now = u->now;
	u->now = NULL;
	pthread_mutex_unlock(&u->lock);
}

static void on_wake(uv_async_t *wake)
{
	struct hr_uplink *u = wake->data;
	struct hr_now_message *now;
	bool stop;

	take_orders(u, &stop, &now);
	if (stop) {
		hr_now_message_free(now);
		uv_close((uv_handle_t *)&u->wake, NULL);
		uv_close((uv_handle_t *)&u->tick, NULL);
		hr__link_close(u);
		return;
	}
	hr__send_now(u, now);
	hr__streams_wake(u);
	hr__send_pump(u);
	hr__streams_publish(u);
}

static void uplink_on_tick(uv_timer_t *tick)
{
	struct hr_uplink *u = tick->data;

	hr__link_tick(u);
	hr__send_tick(u);
	if (hr__uplink_now(u) >= u->scan_at_ms) {
		hr__streams_scan(u);
		u->scan_at_ms = hr__uplink_now(u) + u->c.scan_ms;
	}
	hr__streams_wake(u);
	hr__send_pump(u);
	hr__streams_publish(u);
}

/* Called by the appender thread or, at the end of the stream, by the loop thread. */
static void changed(void *arg)
{
	struct hr_uplink *u = arg;

	uv_async_send(&u->wake);
}

static void *uplink_run(void *arg)
{
	struct hr_uplink *u = arg;
	sigset_t pipe;

	/*
	 * libuv uses write() also for sockets: on a closed connection, write() must fail with
	 * EPIPE, without a signal.
	 */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	uplink_on_tick(&u->tick);
	hr__link_start(u);
	uv_run(&u->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* ---- functions that other threads call ------------------------------------------------------- */

static int copy_config(struct hr_uplink *u, const struct hr_uplink_config *c)
{
	struct hr_arena *a = &u->memory;

	u->c = *c;
	u->c.scan_ms = c->scan_ms ? c->scan_ms : SCAN_MS;
	u->c.better_ms = c->better_ms ? c->better_ms : BETTER_MS;
	u->c.waiting_ms = c->waiting_ms ? c->waiting_ms : WAITING_MS;
	u->c.owed_ms = c->owed_ms ? c->owed_ms : OWED_MS;
	u->c.collectors = hr_arena_copy(a, c->collectors, c->n_collectors * sizeof(*c->collectors));
	if (c->tls)
		u->tls_files = (struct hr_tls_files){.cert = hr_arena_text(a, c->tls->cert),
						     .key = hr_arena_text(a, c->tls->key),
						     .ca = hr_arena_text(a, c->tls->ca)};
	u->c.tls = c->tls ? &u->tls_files : NULL;
	u->c.software = hr_arena_text(a, c->software);
	u->c.node = hr_arena_text(a, c->node);
	u->c.boot_id = hr_arena_text(a, c->boot_id);
	if (a->failed)
		return -ENOMEM;
	if (getrandom(&u->backoff.random, sizeof(u->backoff.random), 0) < 0 || !u->backoff.random)
		u->backoff.random = SEED_FALLBACK;
	return 0;
}

static int open_loop(struct hr_uplink *u)
{
	int r = uv_loop_init(&u->loop);

	if (r)
		return r;
	u->wake.data = u->tick.data = u->redial.data = u;
	r = uv_async_init(&u->loop, &u->wake, on_wake);
	if (r) {
		uv_loop_close(&u->loop);
		return r;
	}
	uv_timer_init(&u->loop, &u->tick);
	uv_timer_init(&u->loop, &u->redial);
	return uv_timer_start(&u->tick, uplink_on_tick, TICK_MS, TICK_MS);
}

static void uplink_done(struct hr_uplink *u, bool loop)
{
	if (loop)
		hr_loop_close(&u->loop);
	hr__streams_free(u);
	hr_tls_unref(u->tls);
	pthread_mutex_destroy(&u->lock);
	hr_now_message_free(u->now);
	hr_arena_free(&u->memory);
	free(u);
}

int hr_uplink_new(const struct hr_uplink_config *config, struct hr_uplink **ret, char **ret_error)
{
	struct hr_uplink *u = calloc(1, sizeof(*u));
	bool loop = false;
	int r;

	*ret_error = NULL;
	if (!u)
		return -ENOMEM;
	pthread_mutex_init(&u->lock, NULL);
	r = copy_config(u, config);
	if (!r && config->tls && !config->tls_later)
		r = hr_tls_new(config->tls, false, &u->tls, ret_error);
	if (!r) {
		r = open_loop(u);
		loop = !r;
	}
	if (!r) {
		hr_spool_watch(u->c.spool, changed, u);
		r = -pthread_create(&u->thread, NULL, uplink_run, u);
	}
	if (r) {
		hr_spool_watch(config->spool, NULL, NULL);
		uplink_done(u, loop);
		return r;
	}
	*ret = u;
	return 0;
}

void hr_uplink_release(struct hr_uplink *u)
{
	pthread_mutex_lock(&u->lock);
	u->release = true;
	pthread_mutex_unlock(&u->lock);
	uv_async_send(&u->wake);
}

void hr_uplink_now(struct hr_uplink *u, struct hr_now_message *now)
{
	struct hr_now_message *old;

	pthread_mutex_lock(&u->lock);
	old = u->now;
	u->now = now;
	pthread_mutex_unlock(&u->lock);
	hr_now_message_free(old);
	uv_async_send(&u->wake);
}

void hr_uplink_stats(struct hr_uplink *u, struct hr_uplink_stats *ret)
{
	pthread_mutex_lock(&u->lock);
	*ret = u->stats;
	pthread_mutex_unlock(&u->lock);
}

void hr_uplink_free(struct hr_uplink *u)
{
	if (!u)
		return;
	hr_spool_watch(u->c.spool, NULL, NULL);
	pthread_mutex_lock(&u->lock);
	u->stop = true;
	pthread_mutex_unlock(&u->lock);
	uv_async_send(&u->wake);
	pthread_join(u->thread, NULL);
	uplink_done(u, true);
}
