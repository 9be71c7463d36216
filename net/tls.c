/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/tls_internal.h"

/* Makes a buffer. A read from an empty buffer must not report the end of the data. */
static BIO *new_buffer(void)
{
	BIO *b = BIO_new(BIO_s_mem());

	if (b)
		BIO_set_mem_eof_return(b, -1);
	return b;
}

/* Sets the name that the server's certificate must have, and which the server gets (SNI). */
static int expect(struct hr_tls_session *s, const char *host)
{
	X509_VERIFY_PARAM *rules = SSL_get0_param(s->ssl);
	struct in6_addr address;

	/* Leaves out the zone of fe80::1%eth0, which is only valid on this machine. */
	snprintf(s->host, sizeof(s->host), "%.*s", (int)strcspn(host, "%"), host);
	X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
						   X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (inet_pton(AF_INET, s->host, &address) == 1 ||
	    inet_pton(AF_INET6, s->host, &address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(rules, s->host) == 1 ? 0 : -ENOMEM;
	return X509_VERIFY_PARAM_set1_host(rules, s->host, 0) == 1 &&
		       SSL_set_tlsext_host_name(s->ssl, s->host) == 1
		   ? 0
		   : -ENOMEM;
}

/* Sends an alert to a peer that does not use TLS. OpenSSL would only end the connection. */
static void send_alert(struct hr_tls_session *s)
{
	static const uint8_t alert[] = {0x15, 3, 3, 0, 2, SSL3_AL_FATAL, SSL_AD_PROTOCOL_VERSION};

	if (hr_tls_out_bytes(s) == 0)
		(void)BIO_write(s->out, alert, sizeof(alert));
}

/* Returns 0 if the handshake is complete or waits for data of the peer. */
static int shake(struct hr_tls_session *s)
{
	int r, e;

	ERR_clear_error();
	r = SSL_do_handshake(s->ssl);
	s->ready = r == 1;
	if (s->ready)
		return 0;
	e = SSL_get_error(s->ssl, r);
	if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
		return 0;
	hr__tls_explain(s);
	send_alert(s);
	return -EPROTO;
}

int hr_tls_session_new(struct hr_tls *t, const char *host, struct hr_tls_session **ret)
{
	struct hr_tls_session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->tls = hr_tls_ref(t);
	s->ssl = SSL_new(t->ctx);
	s->in = new_buffer();
	s->out = new_buffer();
	if (!s->ssl || !s->in || !s->out) {
		BIO_free(s->in);
		BIO_free(s->out);
		s->in = s->out = NULL;
		hr_tls_session_free(s);
		return -ENOMEM;
	}
	SSL_set_bio(s->ssl, s->in, s->out);
	SSL_set_app_data(s->ssl, s);
	if (t->server)
		SSL_set_accept_state(s->ssl);
	else
		SSL_set_connect_state(s->ssl);
	/* The client sends first. */
	if (!t->server && (expect(s, host) < 0 || shake(s) < 0)) {
		hr_tls_session_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void hr_tls_session_free(struct hr_tls_session *s)
{
	if (!s)
		return;
	SSL_free(s->ssl);
	hr_tls_unref(s->tls);
	free(s);
}

int hr_tls_in(struct hr_tls_session *s, const uint8_t *buf, size_t bytes)
{
	size_t written;

	if (bytes > 0 && BIO_write_ex(s->in, buf, bytes, &written) != 1) {
		snprintf(s->error, sizeof(s->error), "out of memory");
		return -EPROTO;
	}
	return s->ready ? 0 : shake(s);
}

int hr_tls_read(struct hr_tls_session *s, uint8_t *buf, size_t bytes)
{
	int r;

	if (!s->ready)
		return -EAGAIN;
	ERR_clear_error();
	r = SSL_read(s->ssl, buf, bytes > INT_MAX ? INT_MAX : (int)bytes);
	if (r > 0)
		return r;
	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return -EPIPE;
	default:
		hr__tls_explain(s);
		return -EPROTO;
	}
}

int hr_tls_write(struct hr_tls_session *s, const uint8_t *buf, size_t bytes)
{
	size_t written;

	ERR_clear_error();
	if (bytes == 0 || SSL_write_ex(s->ssl, buf, bytes, &written) == 1)
		return 0;
	hr__tls_explain(s);
	return -EPROTO;
}

void hr_tls_end(struct hr_tls_session *s)
{
	if (s->ready && s->error[0] == '\0')
		(void)SSL_shutdown(s->ssl);
	ERR_clear_error();
}

size_t hr_tls_out(struct hr_tls_session *s, uint8_t *buf, size_t bytes)
{
	size_t n;

	return BIO_read_ex(s->out, buf, bytes, &n) == 1 ? n : 0;
}

size_t hr_tls_out_bytes(const struct hr_tls_session *s)
{
	return BIO_ctrl_pending(s->out);
}

bool hr_tls_ready(const struct hr_tls_session *s)
{
	return s->ready;
}

const char *hr_tls_error(const struct hr_tls_session *s)
{
	return s->error;
}
