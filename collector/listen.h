/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.h - where a collector can be reached
 *
 * Purpose   Opens the addresses of `listen`. With certificates TCP speaks TLS; unless plain = no, also plain with those who
 *           begin so (who.h lets in those of this machine alone). Local sockets are always plain, because the kernel says who is
 *           at the other end.
 * Owner     The server; hr_listeners_close gives it to the loop, which frees it.
 * Threads   The loop's.
 */
#ifndef HEADRACE_COLLECTOR_LISTEN_H
#define HEADRACE_COLLECTOR_LISTEN_H

#include "collector/config.h"
#include "collector/peers.h"

struct hr_listeners;

/* All addresses, or none. Says what goes wrong. */
int hr_listeners_open(uv_loop_t *loop, const struct hr_collector_config *config, struct hr_tls *tls,
		      struct hr_peers *peers, struct hr_listeners **ret);
void hr_listeners_tls(struct hr_listeners *l, struct hr_tls *tls); /* for new connections */
void hr_listeners_log(const struct hr_listeners *l);		   /* "listening on tcp://..." */
const char *hr_listeners_first(const struct hr_listeners *l);
void hr_listeners_close(struct hr_listeners *l); /* accepts NULL */

#endif
