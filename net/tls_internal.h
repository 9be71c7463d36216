/* SPDX-License-Identifier: Apache-2.0 */
/* tls_internal.h - for tls_context.c, tls.c (sessions) and tls_names.c (explanations) */
#ifndef HEADRACE_NET_TLS_INTERNAL_H
#define HEADRACE_NET_TLS_INTERNAL_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls.h"

#define HR__TLS_DATE_BYTES 16

struct hr_tls {
	unsigned refs;
	bool server;
	SSL_CTX *ctx;
	char *cert, *ca; /* paths of the files, for messages */
};

struct hr_tls_session {
	struct hr_tls *tls;
	SSL *ssl;
	BIO *in, *out; /* `ssl` owns them */
	bool ready;
	char host[256]; /* "" on the server's side */
	char error[1024];
};

/* tls_names.c */
int64_t hr__tls_seconds(const ASN1_TIME *t); /* seconds since 1970 */
void hr__tls_date(const ASN1_TIME *t, char ret[HR__TLS_DATE_BYTES]);
/* OpenSSL's callback for each certificate. Stores what is wrong with the certificate. */
int hr__tls_verify(int good, X509_STORE_CTX *store);
/* After a failure, stores OpenSSL's reason, unless a reason is already stored. */
void hr__tls_explain(struct hr_tls_session *s);

#endif
