/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/text.h"

/* All are secure. AES with 128 bits is first, because it takes a third less time than 256 bits. */
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

static const char *reason(void)
{
	unsigned long e = ERR_peek_last_error();
	const char *text = ERR_reason_error_string(e);

	return text ? text : "unknown error";
}

static int check_readable(const char *path, const char *what, struct stat *ret, char **ret_error)
{
	FILE *f = path ? fopen(path, "re") : NULL;
	int r;

	if (!path)
		return hr_text_fail(-EINVAL, ret_error, "TLS needs %s", what);
	r = f && fstat(fileno(f), ret) == 0 ? 0 : -errno;
	if (f)
		(void)fclose(f);
	return r < 0 ? hr_text_fail(
			   r, ret_error, "cannot read %s %s: %s%s", what, path, strerrordesc_np(-r),
			   r == -EACCES
			       ? " (its owner can allow a group to read it: chgrp, chmod 640)"
			       : "")
		     : 0;
}

static int check_files(const struct hr_tls_files *files, char **ret_error)
{
	struct stat st = {0};
	int r = check_readable(files->cert, "the certificate", &st, ret_error);

	if (r == 0)
		r = check_readable(files->ca, "the CA certificate", &st, ret_error);
	if (r == 0)
		r = check_readable(files->key, "the key", &st, ret_error);
	if (r == 0 && (st.st_mode & (S_IRWXO | S_IWGRP)))
		r = hr_text_fail(-EACCES, ret_error,
				 "the key %s may be read by others or written by its group (mode "
				 "%04o): chmod 600 %s",
				 files->key, st.st_mode & 07777, files->key);
	return r;
}

/* Checks our own certificate, because this error is clearer than a refusal of the peer. */
static int check_dates(SSL_CTX *ctx, const char *path, char **ret_error)
{
	const X509 *cert = SSL_CTX_get0_certificate(ctx);
	char date[HR__TLS_DATE_BYTES];

	if (X509_cmp_current_time(X509_get0_notAfter(cert)) <= 0) {
		hr__tls_date(X509_get0_notAfter(cert), date);
		return hr_text_fail(
		    -EKEYEXPIRED, ret_error,
		    "the certificate %s expired on %s: create a new one (make-ca, docs/tls.md)",
		    path, date);
	}
	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
		hr__tls_date(X509_get0_notBefore(cert), date);
		return hr_text_fail(-EKEYREJECTED, ret_error,
				    "the certificate %s is not valid before %s", path, date);
	}
	return 0;
}

static int tls_context_load(SSL_CTX *ctx, const struct hr_tls_files *files, char **ret_error)
{
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ctx, files->cert) != 1)
		return hr_text_fail(-EBADMSG, ret_error, "%s contains no PEM certificate: %s",
				    files->cert, reason());
	if (SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1)
		return hr_text_fail(-EBADMSG, ret_error,
				    "%s is not the key of the certificate %s: %s", files->key,
				    files->cert, reason());
	if (SSL_CTX_load_verify_file(ctx, files->ca) != 1)
		return hr_text_fail(-EBADMSG, ret_error, "%s contains no PEM certificate: %s",
				    files->ca, reason());
	return check_dates(ctx, files->cert, ret_error);
}

/* Allows only TLS 1.3, requires a certificate of the peer, and disables session resumption. */
static int set_rules(SSL_CTX *ctx)
{
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, hr__tls_verify);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
		       SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
		       SSL_CTX_set_ciphersuites(ctx, SUITES) == 1 &&
		       SSL_CTX_set_num_tickets(ctx, 0) == 1
		   ? 0
		   : -ENOTSUP;
}

int hr_tls_new(const struct hr_tls_files *files, bool server, struct hr_tls **ret, char **ret_error)
{
	struct hr_tls *t;
	int r = check_files(files, ret_error);

	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return hr_text_fail(-ENOMEM, ret_error, "out of memory");
	t->refs = 1;
	t->server = server;
	t->cert = strdup(files->cert);
	t->ca = strdup(files->ca);
	t->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (!t->cert || !t->ca || !t->ctx)
		r = hr_text_fail(-ENOMEM, ret_error, "out of memory");
	else if (set_rules(t->ctx) < 0)
		r = hr_text_fail(-ENOTSUP, ret_error, "this OpenSSL does not support TLS 1.3");
	else
		r = tls_context_load(t->ctx, files, ret_error);
	if (r < 0) {
		hr_tls_unref(t);
		return r;
	}
	*ret = t;
	return 0;
}

void hr_tls_own(const struct hr_tls *t, const char **ret_file, int64_t *ret_until)
{
	*ret_file = t->cert;
	*ret_until = hr__tls_seconds(X509_get0_notAfter(SSL_CTX_get0_certificate(t->ctx)));
}

struct hr_tls *hr_tls_ref(struct hr_tls *t)
{
	t->refs++;
	return t;
}

void hr_tls_unref(struct hr_tls *t)
{
	if (!t || --t->refs > 0)
		return;
	SSL_CTX_free(t->ctx);
	free(t->cert);
	free(t->ca);
	free(t);
}
