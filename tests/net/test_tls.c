/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tls.c - TLS between connections, with certificates of scripts/make-ca
 */
#include "tests/net/pair.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES 300000u

static char folder[] = "/tmp/headrace-tls-XXXXXX";

/* make-ca in a folder of ours. */
static void make_ca(const char *arguments)
{
	char command[512];

	snprintf(command, sizeof(command), HEADRACE_SOURCE "/scripts/make-ca %s/%s >/dev/null",
		 folder, arguments);
	assert_int_equal(system(command), 0);
}

static int begin_all(void **state)
{
	assert_non_null(mkdtemp(folder));
	make_ca("ca --collector localhost,127.0.0.1,::1,second --collector elsewhere,10.9.9.9 "
		"--node n1 --user alice");
	make_ca("other --collector localhost,127.0.0.1 --node n1");
	return 0;
}

static int end_all(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

/* Context of "collector/localhost" of authority `ours`, trusting `theirs`. */
static int context(const char *ours, const char *who, const char *theirs, bool server,
		   struct hr_tls **ret, char **ret_error)
{
	char cert[128], key[128], ca[128];
	struct hr_tls_files files = {cert, key, ca};

	snprintf(cert, sizeof(cert), "%s/%s/%s.pem", folder, ours, who);
	snprintf(key, sizeof(key), "%s/%s/%s.key", folder, ours, who);
	snprintf(ca, sizeof(ca), "%s/%s/ca.pem", folder, theirs);
	*ret_error = NULL;
	return hr_tls_new(&files, server, ret, ret_error);
}

static struct hr_tls *good(const char *ours, const char *who, bool server)
{
	struct hr_tls *t = NULL;
	char *error;

	if (context(ours, who, ours, server, &t, &error) < 0)
		fail_msg("%s", error);
	return t;
}

struct both {
	struct rig rig;
	struct hr_tls *client;
};

static void begin(struct both *b, const char *server, const char *client)
{
	rig_init(&b->rig);
	rig_listen(&b->rig, "tcp://127.0.0.1:0");
	b->rig.tls = good("ca", server, true);
	b->client = good("ca", client, false);
	b->rig.client.limit = b->rig.server.limit = 1u << 20;
}

static void end(struct both *b)
{
	rig_done(&b->rig);
	hr_tls_unref(b->rig.tls);
	hr_tls_unref(b->client);
}

static void send_some(struct hr_conn *c, unsigned n, size_t bytes)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(hr_conn_send(c, make_frame(bytes, i, 0), 16 + bytes), 0);
}

static void test_frames_and_names(void **state)
{
	static const size_t sizes[] = {0, 1, 100, 16352, 16368, 16384, 65000, BYTES};
	struct hr_conn_peer peer;
	struct both b;

	begin(&b, "collector/localhost", "node/n1");
	rig_connect(&b.rig, b.client);
	hr_conn_peer(b.rig.server.c, &peer);
	assert_true(peer.tls && peer.loopback && peer.uid_known);
	assert_string_equal(peer.cn, "n1");
	assert_string_equal(peer.ou, "headrace-node");
	hr_conn_peer(b.rig.client.c, &peer);
	assert_true(peer.tls);
	assert_string_equal(peer.cn, "localhost");
	assert_string_equal(peer.ou, "headrace-collector");
	for (unsigned i = 0; i < 400; i++) {
		size_t bytes = sizes[i % 8];

		hr_conn_send(b.rig.client.c, make_frame(bytes, i, 0), 16 + bytes);
		hr_conn_send(b.rig.server.c, make_frame(i, i, HR_FRAME_CONTROL), 16 + i);
	}
	RUN_UNTIL(&b.rig, b.rig.server.n == 400 && b.rig.client.n == 400);
	for (unsigned i = 0; i < 400; i++) {
		assert_frame(&b.rig.server, i, sizes[i % 8], i, 0);
		assert_frame(&b.rig.client, i, i, i, HR_FRAME_CONTROL);
	}
	RUN_UNTIL(&b.rig, b.rig.client.drained > 0);
	assert_int_equal(hr_conn_queued(b.rig.client.c), 0);
	end(&b);
}

static void test_pause(void **state)
{
	struct both b;

	begin(&b, "collector/localhost", "node/n1");
	b.rig.server.pause_after = 3;
	rig_connect(&b.rig, b.client);
	send_some(b.rig.client.c, 10, 100); /* all in one record */
	send_some(b.rig.client.c, 90, BYTES);
	RUN_UNTIL(&b.rig, b.rig.server.n == 3);
	rig_run_for(&b.rig, 100);
	assert_int_equal(b.rig.server.n, 3);
	assert_true(hr_conn_queued(b.rig.client.c) > 40 * BYTES);
	assert_int_equal(b.rig.client.drained, 0);
	hr_conn_pause(b.rig.server.c, false);
	RUN_UNTIL(&b.rig, b.rig.server.n == 100 && b.rig.client.drained > 0);
	assert_frame(&b.rig.server, 99, BYTES, 89, 0);
	end(&b);
}

static void test_close_sends_what_is_queued(void **state)
{
	struct both b;

	begin(&b, "collector/localhost", "node/n1");
	assert_int_equal(hr_conn_connect(&b.rig.loop, &b.rig.at, b.client, &end_events,
					 &b.rig.client, &b.rig.client.c),
			 0);
	send_some(b.rig.client.c, 20, BYTES); /* before there is a connection */
	RUN_UNTIL(&b.rig, b.rig.client.ready);
	hr_conn_close(b.rig.client.c, false);
	RUN_UNTIL(&b.rig, b.rig.client.closed && b.rig.server.closed);
	assert_int_equal(b.rig.client.error, 0);
	assert_int_equal(b.rig.server.error, 0);
	assert_int_equal(b.rig.server.n, 20);
	end(&b);
}

/* A process that dies says no goodbye. That matters only within a frame. */
static void test_end_without_goodbye(void **state)
{
	struct both b;

	begin(&b, "collector/localhost", "node/n1");
	rig_connect(&b.rig, b.client);
	send_some(b.rig.client.c, 1, 1000);
	RUN_UNTIL(&b.rig, b.rig.server.n == 1);
	hr_conn_close(b.rig.client.c, true);
	RUN_UNTIL(&b.rig, b.rig.server.closed);
	assert_int_equal(b.rig.server.error, 0);
	end(&b);

	begin(&b, "collector/localhost", "node/n1");
	b.rig.server.limit = HR_FRAME_MAX_BYTES;
	rig_connect(&b.rig, b.client);
	send_some(b.rig.client.c, 1, 40u << 20);
	rig_run_for(&b.rig, 2);
	hr_conn_close(b.rig.client.c, true);
	RUN_UNTIL(&b.rig, b.rig.server.closed);
	assert_int_equal(b.rig.server.error, -ECONNRESET);
	end(&b);
}

/* In the callback that accepted it. */
static void refuse(uv_stream_t *listener, int status)
{
	struct rig *rig = listener->data;

	assert_int_equal(status, 0);
	assert_int_equal(
	    hr_conn_accept(listener, rig->tls, false, &end_events, &rig->server, &rig->server.c),
	    0);
	assert_int_equal(hr_conn_send(rig->server.c, make_frame(5, 1, HR_FRAME_CONTROL), 21), 0);
	hr_conn_close(rig->server.c, false);
	assert_int_equal(hr_conn_send(rig->server.c, make_frame(5, 1, 0), 21), -EPIPE);
}

static void test_refused_when_accepted(void **state)
{
	struct both b;

	begin(&b, "collector/localhost", "node/n1");
	b.rig.listener.stream.connection_cb = refuse;
	assert_int_equal(hr_conn_connect(&b.rig.loop, &b.rig.at, b.client, &end_events,
					 &b.rig.client, &b.rig.client.c),
			 0);
	RUN_UNTIL(&b.rig, b.rig.client.closed && b.rig.server.closed);
	assert_false(b.rig.server.ready);
	assert_int_equal(b.rig.client.n, 1);
	end(&b);
}

/* A reload: the new context is for new connections, the old one lives as long as its sessions. */
static void test_renewed(void **state)
{
	struct both b;

	begin(&b, "collector/localhost", "node/n1");
	rig_connect(&b.rig, b.client);
	hr_tls_unref(b.rig.tls);
	hr_tls_unref(b.client);
	b.rig.tls = good("ca", "collector/localhost", true);
	b.client = good("ca", "user/alice", false);
	send_some(b.rig.client.c, 3, BYTES);
	RUN_UNTIL(&b.rig, b.rig.server.n == 3);
	end(&b);
}

/* ---- refusals ------------------------------------------------------------------------------------ */

/* Both contexts are this function's to end. */
static void no_match(struct hr_tls *server, struct hr_tls *client, const char *host,
		     const char *client_says, const char *server_says)
{
	struct rig rig;

	rig_init(&rig);
	rig_listen(&rig, "tcp://127.0.0.1:0");
	rig.tls = server;
	snprintf(rig.at.host, sizeof(rig.at.host), "%s", host);
	assert_int_equal(
	    hr_conn_connect(&rig.loop, &rig.at, client, &end_events, &rig.client, &rig.client.c),
	    0);
	RUN_UNTIL(&rig, rig.client.closed && rig.server.closed);
	assert_true(!rig.server.ready || !server);
	assert_int_not_equal(rig.server.error, 0);
	assert_int_not_equal(rig.client.error, 0);
	if (!strstr(rig.client.why, client_says))
		assert_string_equal(rig.client.why, client_says);
	if (!strstr(rig.server.why, server_says))
		assert_string_equal(rig.server.why, server_says);
	rig_done(&rig);
	hr_tls_unref(server);
	hr_tls_unref(client);
}

static void test_other_hosts(void **state)
{
	no_match(good("ca", "collector/elsewhere", true), good("ca", "node/n1", false), "localhost",
		 "the certificate of elsewhere is for elsewhere, 10.9.9.9, not for localhost",
		 "refuses the certificate");
	no_match(good("ca", "collector/elsewhere", true), good("ca", "node/n1", false), "127.0.0.1",
		 "the certificate of elsewhere is for elsewhere, 10.9.9.9, not for 127.0.0.1",
		 "refuses the certificate");
	/* A node is no server. */
	no_match(good("ca", "node/n1", true), good("ca", "node/n1", false), "localhost",
		 "the certificate of n1 is not valid: unsuitable certificate purpose",
		 "refuses the certificate");
	/* And a collector no client. */
	no_match(good("ca", "collector/localhost", true), good("ca", "collector/localhost", false),
		 "localhost", "refuses the certificate",
		 "the certificate of localhost is not valid: unsuitable certificate purpose");
}

static struct hr_tls *trusting(const char *ours, const char *who, const char *theirs, bool server)
{
	struct hr_tls *t = NULL;
	char *error;

	assert_int_equal(context(ours, who, theirs, server, &t, &error), 0);
	return t;
}

static void test_other_authorities(void **state)
{
	no_match(good("other", "collector/localhost", true),
		 trusting("other", "node/n1", "ca", false), "localhost",
		 "the certificate of localhost is signed by", "refuses the certificate");
	no_match(good("ca", "collector/localhost", true), trusting("other", "node/n1", "ca", false),
		 "localhost", "refuses the certificate", "the certificate of n1 is signed by");
}

/* `from` of authority ca, with a change, signed again, as `to`. */
static void make_changed(const char *from, const char *to, void (*change)(X509 *cert))
{
	char path[128], ours[128], key[128];
	EVP_PKEY *authority;
	X509 *cert;
	FILE *f;

	snprintf(path, sizeof(path), "%s/ca/%s.pem", folder, from);
	f = fopen(path, "re");
	assert_non_null(f);
	cert = PEM_read_X509(f, NULL, NULL, NULL);
	fclose(f);
	snprintf(path, sizeof(path), "%s/ca/ca.key", folder);
	f = fopen(path, "re");
	assert_non_null(f);
	authority = PEM_read_PrivateKey(f, NULL, NULL, NULL);
	fclose(f);
	assert_true(cert && authority);
	change(cert);
	assert_true(X509_sign(cert, authority, EVP_sha256()) > 0);
	snprintf(path, sizeof(path), "%s/ca/%s.pem", folder, to);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(PEM_write_X509(f, cert), 1);
	fclose(f);
	X509_free(cert);
	EVP_PKEY_free(authority);
	snprintf(ours, sizeof(ours), "%s/ca/%s.key", folder, from);
	snprintf(key, sizeof(key), "%s/ca/%s.key", folder, to);
	assert_int_equal(link(ours, key), 0);
}

static void expire(X509 *cert)
{
	ASN1_TIME_set_string(X509_getm_notBefore(cert), "20200101000000Z");
	ASN1_TIME_set_string(X509_getm_notAfter(cert), "20210102000000Z");
}

static void add_entry(X509 *cert, const char *field, const char *value)
{
	X509_NAME *name = X509_NAME_dup(X509_get_subject_name(cert));

	assert_non_null(name);
	assert_int_equal(X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC,
						    (const unsigned char *)value, -1, -1, 0),
			 1);
	assert_int_equal(X509_set_subject_name(cert, name), 1);
	X509_NAME_free(name);
}

static void add_name(X509 *cert)
{
	add_entry(cert, "CN", "n2");
}

static void add_role(X509 *cert)
{
	add_entry(cert, "OU", "headrace-user");
}

/* Of two names, or two roles, none counts. */
static void test_ambiguous_names(void **state)
{
	struct hr_conn_peer peer;
	struct both b;

	make_changed("node/n1", "node/names", add_name);
	begin(&b, "collector/localhost", "node/names");
	rig_connect(&b.rig, b.client);
	hr_conn_peer(b.rig.server.c, &peer);
	assert_string_equal(peer.cn, "");
	assert_string_equal(peer.ou, "headrace-node");
	end(&b);
	make_changed("node/n1", "node/roles", add_role);
	begin(&b, "collector/localhost", "node/roles");
	rig_connect(&b.rig, b.client);
	hr_conn_peer(b.rig.server.c, &peer);
	assert_string_equal(peer.cn, "n1");
	assert_string_equal(peer.ou, "");
	end(&b);
}

static void bad_files(const char *who, int error, const char *says)
{
	struct hr_tls *t = NULL;
	char *text;

	assert_int_equal(context("ca", who, "ca", true, &t, &text), error);
	assert_null(t);
	assert_non_null(text);
	if (!strstr(text, says))
		assert_string_equal(text, says);
	free(text);
}

static void test_files(void **state)
{
	char path[128], to[128];
	FILE *f;

	bad_files("node/nobody", -ENOENT, "cannot read the certificate ");
	make_changed("node/n1", "node/old", expire);
	bad_files("node/old", -EKEYEXPIRED, "node/old.pem expired on 2021-01-02");
	snprintf(path, sizeof(path), "%s/ca/node/old.key", folder);
	assert_int_equal(chmod(path, 0644), 0);
	bad_files("node/old", -EACCES, "node/old.key may be read by others");
	assert_int_equal(chmod(path, 0640), 0); /* as packages do that have a group for it */
	bad_files("node/old", -EKEYEXPIRED, "expired");
	snprintf(to, sizeof(to), "%s/ca/node/mixed.key", folder);
	snprintf(path, sizeof(path), "%s/ca/user/alice.key", folder);
	assert_int_equal(link(path, to), 0);
	bad_files("node/mixed", -ENOENT, "node/mixed.pem");
	snprintf(to, sizeof(to), "%s/ca/node/mixed.pem", folder);
	snprintf(path, sizeof(path), "%s/ca/node/n1.pem", folder);
	assert_int_equal(link(path, to), 0);
	bad_files("node/mixed", -EBADMSG, "node/mixed.key is not the key of the certificate");
	unlink(to);
	f = fopen(to, "we");
	assert_non_null(f);
	fputs("nothing", f);
	fclose(f);
	bad_files("node/mixed", -EBADMSG, "node/mixed.pem contains no PEM certificate");
}

/* ---- peers without TLS, and broken ones ---------------------------------------------------------- */

static void test_one_side_is_plain(void **state)
{
	struct both b;
	struct rig rig;
	int fd;

	no_match(NULL, good("ca", "node/n1", false), "localhost", "the other side does not use TLS",
		 "");
	begin(&b, "collector/localhost", "node/n1");
	assert_int_equal(hr_conn_connect(&b.rig.loop, &b.rig.at, NULL, &end_events, &b.rig.client,
					 &b.rig.client.c),
			 0);
	send_some(b.rig.client.c, 1, 100);
	RUN_UNTIL(&b.rig, b.rig.server.closed && b.rig.client.closed);
	assert_int_equal(b.rig.server.error, -EPROTO);
	assert_non_null(strstr(b.rig.server.why, "does not use TLS"));
	assert_int_equal(b.rig.client.error, -EPROTONOSUPPORT);
	assert_non_null(strstr(b.rig.client.why, "uses TLS"));
	end(&b);
	/* The plain side knows what it sees. */
	rig_init(&rig);
	rig_listen(&rig, "tcp://127.0.0.1:0");
	fd = rig_raw(&rig);
	assert_int_equal(write(fd, "\x16\x03\x01", 3), 3);
	RUN_UNTIL(&rig, rig.server.closed);
	assert_int_equal(rig.server.error, -EPROTONOSUPPORT);
	assert_non_null(strstr(rig.server.why, "uses TLS"));
	close(fd);
	rig_done(&rig);
}

/* One connects and says nothing. */
static void test_no_handshake(void **state)
{
	struct both b;

	begin(&b, "collector/localhost", "node/n1");
	hr_conn_setup_ms = 200;
	assert_int_equal(hr_conn_connect(&b.rig.loop, &b.rig.at, NULL, &end_events, &b.rig.client,
					 &b.rig.client.c),
			 0);
	RUN_UNTIL(&b.rig, b.rig.server.closed);
	assert_int_equal(b.rig.server.error, -ETIMEDOUT);
	end(&b);
}

/* Moves what one session says to the other, `piece` bytes at a time. */
static int move(struct hr_tls_session *from, struct hr_tls_session *to, size_t piece)
{
	uint8_t buf[64];
	size_t n;
	int r = 0;

	while (r == 0 && (n = hr_tls_out(from, buf, piece)) > 0)
		r = hr_tls_in(to, buf, n);
	return r;
}

static void test_sessions_by_the_byte(void **state)
{
	struct hr_tls *server = good("ca", "collector/localhost", true);
	struct hr_tls *client = good("ca", "node/n1", false);
	struct hr_tls_session *s, *c;
	uint8_t buf[64];

	assert_int_equal(hr_tls_session_new(server, NULL, &s), 0);
	assert_int_equal(hr_tls_session_new(client, "::1", &c), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(move(c, s, 1), 0);
		assert_int_equal(move(s, c, 1), 0);
	}
	assert_true(hr_tls_ready(s) && hr_tls_ready(c));
	assert_int_equal(hr_tls_read(s, buf, sizeof(buf)), -EAGAIN);
	assert_int_equal(hr_tls_write(c, (const uint8_t *)"hello", 5), 0);
	assert_int_equal(move(c, s, 1), 0);
	assert_int_equal(hr_tls_read(s, buf, 3), 3);
	assert_int_equal(hr_tls_read(s, buf, sizeof(buf)), 2);
	hr_tls_end(c);
	assert_int_equal(move(c, s, 64), 0);
	assert_int_equal(hr_tls_read(s, buf, sizeof(buf)), -EPIPE);
	/* A bit that fell over. */
	assert_int_equal(hr_tls_write(s, (const uint8_t *)"hello", 5), 0);
	assert_true(hr_tls_out(s, buf, sizeof(buf)) > 10);
	buf[9] ^= 4;
	assert_int_equal(hr_tls_in(c, buf, sizeof(buf)), 0);
	assert_int_equal(hr_tls_read(c, buf, sizeof(buf)), -EPROTO);
	assert_true(strlen(hr_tls_error(c)) > 0);
	hr_tls_session_free(s);
	hr_tls_session_free(c);
	hr_tls_session_free(NULL);
	hr_tls_unref(server);
	hr_tls_unref(client);
}

/* TLS 1.2 is refused, also from a client with a good certificate. */
static void test_older_tls(void **state)
{
	struct hr_tls *server = good("ca", "collector/localhost", true);
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct hr_tls_session *s;
	uint8_t buf[4096];
	int n;
	SSL *ssl;

	SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
	ssl = SSL_new(ctx);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(ssl);
	assert_int_equal(SSL_do_handshake(ssl), -1);
	n = BIO_read(SSL_get_wbio(ssl), buf, sizeof(buf));
	assert_true(n > 0);
	assert_int_equal(hr_tls_session_new(server, NULL, &s), 0);
	assert_int_equal(hr_tls_in(s, buf, (size_t)n), -EPROTO);
	assert_non_null(strstr(hr_tls_error(s), "does not use TLS 1.3"));
	assert_true(hr_tls_out(s, buf, sizeof(buf)) > 0); /* it is told, too */
	hr_tls_session_free(s);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	hr_tls_unref(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_frames_and_names),
	    cmocka_unit_test(test_pause),
	    cmocka_unit_test(test_close_sends_what_is_queued),
	    cmocka_unit_test(test_end_without_goodbye),
	    cmocka_unit_test(test_refused_when_accepted),
	    cmocka_unit_test(test_renewed),
	    cmocka_unit_test(test_other_hosts),
	    cmocka_unit_test(test_other_authorities),
	    cmocka_unit_test(test_ambiguous_names),
	    cmocka_unit_test(test_files),
	    cmocka_unit_test(test_one_side_is_plain),
	    cmocka_unit_test(test_no_handshake),
	    cmocka_unit_test(test_sessions_by_the_byte),
	    cmocka_unit_test(test_older_tls),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
