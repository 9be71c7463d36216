/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.h - the addresses at which a collector listens
 *
 * If the collector has certificates, TCP uses TLS. Unless plain = no, a peer may also connect
 * without TLS, and who.h decides which peers are accepted. Local sockets are plain, because the
 * kernel identifies the peer. hr_listeners_close frees the listeners when the loop runs.
 */
#ifndef HEADRACE_COLLECTOR_LISTEN_H
#define HEADRACE_COLLECTOR_LISTEN_H

#include "collector/config.h"
#include "collector/peers.h"

struct hr_listeners;

/* Listens on all configured addresses. After a failure, which it logs, it listens on none. */
int hr_listeners_open(uv_loop_t *loop, const struct hr_collector_config *config, struct hr_tls *tls,
		      struct hr_peers *peers, struct hr_listeners **ret);
/* sets the certificates for new connections */
void hr_listeners_tls(struct hr_listeners *l, struct hr_tls *tls);
void hr_listeners_log(const struct hr_listeners *l);
const char *hr_listeners_first(const struct hr_listeners *l);
void hr_listeners_close(struct hr_listeners *l); /* accepts NULL */

#endif
