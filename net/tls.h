/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS 1.3 with certificates on both sides
 *
 * Purpose   A thin layer over OpenSSL's memory buffers: bytes from the socket go in, plain bytes come out, and the other way
 *           round. It knows no sockets; conn.c moves the bytes.
 * Owner     A context is made once from files and shared by the sessions made with it (counted: a reload makes a new one, and
 *           the old one lives as long as its sessions). A session belongs to one connection.
 * Threads   A context is used from one thread; a session too.
 *
 * What a certificate says (scripts/make-ca makes such):
 *      subject  OU = "headrace-node"        may stream as node CN (first label or whole name)
 *               OU = "headrace-collector"   is a collector; its names are in subjectAltName
 *               OU = "headrace-user"        asks as user CN
 */
#ifndef HEADRACE_NET_TLS_H
#define HEADRACE_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hr_tls_files {
	const char *cert; /* PEM, chain allowed */
	const char *key;  /* PEM; others may not read it (its group may) */
	const char *ca;	  /* PEM: who may have signed the peer's */
};

struct hr_tls; /* a context, counted */

#define HR_TLS_RECORD_BYTES (16u << 10) /* plain bytes of a whole one */

/* *ret_error is malloc'ed and names the file and what is wrong with it. */
int hr_tls_new(const struct hr_tls_files *files, bool server, struct hr_tls **ret,
	       char **ret_error);
struct hr_tls *hr_tls_ref(struct hr_tls *t);
void hr_tls_unref(struct hr_tls *t); /* accepts NULL */

/* Our own certificate: its file (the context's), and until when it is good, in seconds since 1970. */
void hr_tls_own(const struct hr_tls *t, const char **ret_file, int64_t *ret_until);

struct hr_tls_session;

/* `host`: what the server's certificate must be for; NULL on the server's side. -ENOMEM. */
int hr_tls_session_new(struct hr_tls *t, const char *host, struct hr_tls_session **ret);
void hr_tls_session_free(struct hr_tls_session *s); /* accepts NULL */

/*
 * Takes bytes that came from the peer, all of them. Then the caller calls hr_tls_read until it says -EAGAIN, and takes what is to
 * be sent with hr_tls_out. -EPROTO: the peer broke the protocol or shows no good certificate (hr_tls_error says which).
 */
int hr_tls_in(struct hr_tls_session *s, const uint8_t *buf, size_t bytes);
/* Plain bytes: their number; -EAGAIN none now, -EPIPE the peer has closed, -EPROTO. */
int hr_tls_read(struct hr_tls_session *s, uint8_t *buf, size_t bytes);
/* Encrypts all of it; it is in hr_tls_out then. Only when ready. -EPROTO, -ENOMEM. */
int hr_tls_write(struct hr_tls_session *s, const uint8_t *buf, size_t bytes);
/* Says goodbye: the peer then knows that nothing was cut off. In hr_tls_out, too. */
void hr_tls_end(struct hr_tls_session *s);
/* What must go to the peer: its number of bytes taken, 0 when there is nothing. After -EPROTO it says why, too. */
size_t hr_tls_out(struct hr_tls_session *s, uint8_t *buf, size_t bytes);
size_t hr_tls_out_bytes(const struct hr_tls_session *s); /* how much there is */
/* The handshake is done and the peer's certificate is good. */
bool hr_tls_ready(const struct hr_tls_session *s);
const char *hr_tls_error(const struct hr_tls_session *s); /* of the last -EPROTO; the session's */

/*
 * Of the peer's certificate, once ready; "" when absent, given twice, too long or with control characters. Of several OU the one that
 * begins with "headrace-".
 */
void hr_tls_peer(const struct hr_tls_session *s, char *cn, size_t cn_bytes, char *ou,
		 size_t ou_bytes);

/* Until when that is good, in seconds since 1970; 0 before ready. */
int64_t hr_tls_peer_until(const struct hr_tls_session *s);

#endif
