/* SPDX-License-Identifier: Apache-2.0 */
/* tls_names.c - reads certificates, and explains what is wrong with them */
#include "net/tls_internal.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

void hr__tls_date(const ASN1_TIME *t, char ret[HR__TLS_DATE_BYTES])
{
	struct tm tm;

	if (ASN1_TIME_to_tm(t, &tm) != 1 || strftime(ret, HR__TLS_DATE_BYTES, "%F", &tm) == 0)
		snprintf(ret, HR__TLS_DATE_BYTES, "?");
}

int64_t hr__tls_seconds(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? timegm(&tm) : 0;
}

/* Gets the text of an entry. False: it is empty, too long, or has control characters. */
static bool entry_text(const X509_NAME *name, int at, char *ret, size_t bytes)
{
	const ASN1_STRING *value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
	unsigned char *text = NULL;
	int n = ASN1_STRING_to_UTF8(&text, value);
	bool good = n > 0 && (size_t)n < bytes;

	for (int i = 0; good && i < n; i++)
		good = !iscntrl(text[i]);
	if (good) {
		memcpy(ret, text, (size_t)n);
		ret[n] = '\0';
	}
	OPENSSL_free(text);
	return good;
}

/* Finds the only entry that begins with `prefix`. If there is not exactly one, *ret is "". */
static void only_entry(const X509 *cert, int nid, const char *prefix, char *ret, size_t bytes)
{
	const X509_NAME *name = X509_get_subject_name(cert);
	char text[512];
	unsigned n = 0;

	ret[0] = '\0';
	for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;) {
		if (!entry_text(name, at, text, sizeof(text)) ||
		    strncmp(text, prefix, strlen(prefix)) != 0)
			continue;
		n++;
		if (strlen(text) < bytes)
			memcpy(ret, text, strlen(text) + 1);
	}
	if (n > 1)
		ret[0] = '\0';
}

void hr_tls_peer(const struct hr_tls_session *s, char *cn, size_t cn_bytes, char *ou,
		 size_t ou_bytes, int64_t *ret_until)
{
	const X509 *cert = s->ready ? SSL_get0_peer_certificate(s->ssl) : NULL;

	cn[0] = ou[0] = '\0';
	*ret_until = 0;
	if (!cert)
		return;
	only_entry(cert, NID_commonName, "", cn, cn_bytes);
	only_entry(cert, NID_organizationalUnitName, "headrace-", ou, ou_bytes);
	*ret_until = hr__tls_seconds(X509_get0_notAfter(cert));
}

static void all_names(const X509 *cert, char *ret, size_t bytes)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	size_t at = 0;

	ret[0] = '\0';
	for (int i = 0; i < sk_GENERAL_NAME_num(names) && at < bytes; i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		char text[INET6_ADDRSTRLEN] = "";
		const char *show = text;
		int n;

		if (name->type == GEN_DNS) {
			show = (const char *)ASN1_STRING_get0_data(name->d.dNSName);
		} else if (name->type == GEN_IPADD) {
			n = ASN1_STRING_length(name->d.iPAddress);
			inet_ntop(n == 4 ? AF_INET : AF_INET6,
				  n == 4 || n == 16 ? ASN1_STRING_get0_data(name->d.iPAddress)
						    : (const unsigned char[16]){0},
				  text, sizeof(text));
		} else {
			continue;
		}
		at += (size_t)snprintf(ret + at, bytes - at, "%s%s", at > 0 ? ", " : "", show);
	}
	GENERAL_NAMES_free(names);
	if (at == 0)
		snprintf(ret, bytes, "no host");
}

static void explain_certificate(struct hr_tls_session *s, const X509 *leaf, const X509 *cert,
				int error)
{
	char cn[256] = "", names[200], date[HR__TLS_DATE_BYTES], issuer[128] = "";

	if (leaf)
		only_entry(leaf, NID_commonName, "", cn, sizeof(cn));
	if (cn[0] == '\0')
		snprintf(cn, sizeof(cn), "%s", s->host[0] ? s->host : "the other side");
	if (cert &&
	    (error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH)) {
		all_names(cert, names, sizeof(names));
		snprintf(s->error, sizeof(s->error),
			 "the certificate of %s is for %s, not for %s: use one of its names, or "
			 "add this name to its subjectAltName",
			 cn, names, s->host);
	} else if (cert && error == X509_V_ERR_CERT_HAS_EXPIRED) {
		hr__tls_date(X509_get0_notAfter(cert), date);
		snprintf(
		    s->error, sizeof(s->error),
		    "the certificate of %s expired on %s: create a new one (make-ca, docs/tls.md)",
		    cn, date);
	} else if (cert && (error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
			    error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
			    error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT)) {
		X509_NAME_oneline(X509_get_issuer_name(cert), issuer, sizeof(issuer));
		snprintf(s->error, sizeof(s->error),
			 "the certificate of %s is signed by %s, which is not in %s: add this CA "
			 "to the file if you trust it",
			 cn, issuer, s->tls->ca);
	} else {
		snprintf(s->error, sizeof(s->error), "the certificate of %s is not valid: %s", cn,
			 X509_verify_cert_error_string(error));
	}
}

int hr__tls_verify(int good, X509_STORE_CTX *store)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct hr_tls_session *s = SSL_get_app_data(ssl);

	if (!good && s->error[0] == '\0')
		explain_certificate(s, X509_STORE_CTX_get0_cert(store),
				    X509_STORE_CTX_get_current_cert(store),
				    X509_STORE_CTX_get_error(store));
	return good;
}

static bool about_certificate(int alert)
{
	switch (alert) {
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_UNKNOWN_CA:
	case SSL_AD_ACCESS_DENIED:
		return true;
	default:
		return false;
	}
}

static const char *alert_advice(int alert)
{
	switch (alert) {
	case SSL_AD_UNKNOWN_CA:
		return " (add its CA certificate to the CA file of the other side)";
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
		return " (it is for another use: make-ca has --user, --client, --node, "
		       "--collector)";
	case SSL_AD_CERTIFICATE_EXPIRED:
		return " (create a new one: make-ca, docs/tls.md)";
	default:
		return "";
	}
}

static void explain_alert(struct hr_tls_session *s, int alert)
{
	bool certificate = about_certificate(alert);

	snprintf(s->error, sizeof(s->error), "the other side refuses%s%s: %s%s",
		 certificate ? " the certificate " : "", certificate ? s->tls->cert : "",
		 SSL_alert_desc_string_long(alert), alert_advice(alert));
}

void hr__tls_explain(struct hr_tls_session *s)
{
	unsigned long e = ERR_peek_error();
	int reason = ERR_GET_REASON(e);
	const char *text = ERR_reason_error_string(e);

	ERR_clear_error();
	if (s->error[0] != '\0')
		return;
	if (reason > SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + UINT8_MAX)
		explain_alert(s, reason - SSL_AD_REASON_OFFSET);
	else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		snprintf(s->error, sizeof(s->error), "the other side sent no certificate");
	else if (!s->ready)
		snprintf(s->error, sizeof(s->error), "the other side does not use TLS 1.3: %s",
			 text ? text : "unknown");
	else
		snprintf(s->error, sizeof(s->error), "TLS: %s", text ? text : "unknown");
}
