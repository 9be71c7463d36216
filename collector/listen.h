/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.h - the addresses at which a collector listens
 *
 * With certificates, TCP uses TLS; unless plain = no, a peer may begin without TLS, and who.h then
 * accepts only peers of this machine. Local sockets are always plain: the kernel identifies the
 * peer. After hr_listeners_close the loop frees the listeners.
 */
#ifndef HEADRACE_COLLECTOR_LISTEN_H
#define HEADRACE_COLLECTOR_LISTEN_H

#include "collector/config.h"
#include "collector/peers.h"

struct hr_listeners;

/* Opens all addresses or none. Logs errors. */
int hr_listeners_open(uv_loop_t *loop, const struct hr_collector_config *config, struct hr_tls *tls,
		      struct hr_peers *peers, struct hr_listeners **ret);
void hr_listeners_tls(struct hr_listeners *l, struct hr_tls *tls); /* for new connections */
void hr_listeners_log(const struct hr_listeners *l);
const char *hr_listeners_first(const struct hr_listeners *l);
void hr_listeners_close(struct hr_listeners *l); /* accepts NULL */

#endif
