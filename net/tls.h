/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS 1.3 with certificates on both sides
 *
 * A layer over OpenSSL's memory buffers, which converts bytes of the socket to plain bytes, and
 * plain bytes to bytes for the socket. conn.c reads and writes the socket.
 *
 * Owner     A context is made from files. Its sessions share it, and hold references. A reload
 *           makes a new context. A session belongs to one connection.
 * Threads   One thread for a context, and one for a session.
 *
 * Subjects of certificates (made by scripts/make-ca):
 *      OU = "headrace-node"        may stream as node CN (first label or whole name)
 *      OU = "headrace-collector"   is a collector; its names are in subjectAltName
 *      OU = "headrace-user"        queries as user CN
 */
#ifndef HEADRACE_NET_TLS_H
#define HEADRACE_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hr_tls_files {
	const char *cert; /* PEM; may contain a chain */
	const char *key;  /* PEM; only the file's owner and group may have access */
	const char *ca;	  /* PEM: authorities that may have signed the peer's certificate */
};

struct hr_tls; /* a TLS context with a reference count */

#define HR_TLS_RECORD_BYTES (16u << 10) /* payload of a full TLS record */

/* On failure, *ret_error (malloc'ed) names the file and the problem. */
int hr_tls_new(const struct hr_tls_files *files, bool server, struct hr_tls **ret,
	       char **ret_error);
struct hr_tls *hr_tls_ref(struct hr_tls *t);
void hr_tls_unref(struct hr_tls *t); /* accepts NULL */

/* Returns the file of our certificate (owned by the context), and its end in seconds since 1970. */
void hr_tls_own(const struct hr_tls *t, const char **ret_file, int64_t *ret_until);

struct hr_tls_session;

/* `host`: the name that the server's certificate must have. NULL on the server's side. -ENOMEM. */
int hr_tls_session_new(struct hr_tls *t, const char *host, struct hr_tls_session **ret);
void hr_tls_session_free(struct hr_tls_session *s); /* accepts NULL */

/*
 * Processes bytes from the peer. Afterwards, call hr_tls_read until it returns -EAGAIN, and send
 * the bytes of hr_tls_out. -EPROTO: wrong protocol or certificate (see hr_tls_error).
 */
int hr_tls_in(struct hr_tls_session *s, const uint8_t *buf, size_t bytes);
/* Decrypts; returns the number of bytes. -EAGAIN: none now; -EPIPE: the peer's end; -EPROTO. */
int hr_tls_read(struct hr_tls_session *s, uint8_t *buf, size_t bytes);
/* Encrypts all bytes for hr_tls_out. Call it only if hr_tls_ready(). -EPROTO, -ENOMEM. */
int hr_tls_write(struct hr_tls_session *s, const uint8_t *buf, size_t bytes);
/* Adds the message that ends the session to hr_tls_out. It proves that no data is missing. */
void hr_tls_end(struct hr_tls_session *s);
/* Returns the number of bytes to send to the peer. After -EPROTO, they contain the reason. */
size_t hr_tls_out(struct hr_tls_session *s, uint8_t *buf, size_t bytes);
size_t hr_tls_out_bytes(const struct hr_tls_session *s); /* number of bytes that hr_tls_out has */
/* Whether the handshake is complete and the peer's certificate is valid. */
bool hr_tls_ready(const struct hr_tls_session *s);
/* text of the last -EPROTO, which the session owns */
const char *hr_tls_error(const struct hr_tls_session *s);

/*
 * Returns names of the peer's certificate, if hr_tls_ready(), and when it expires, in seconds since
 * 1970. "": missing, duplicate, too long, or with control characters. Of several OU, the one that
 * begins with "headrace-" counts.
 */
void hr_tls_peer(const struct hr_tls_session *s, char *cn, size_t cn_bytes, char *ou,
		 size_t ou_bytes, int64_t *ret_until);

#endif
