/* SPDX-License-Identifier: Apache-2.0 */
/* test_metrics.c - what a Prometheus server reads, and what becomes of clients that are none */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "net/address.h"
#include "net/http.h"
#include "net/metrics.h"
#include "tests/unit.h"

#define GOOD	 "GET /metrics HTTP/1.1\r\nHost: n1\r\n\r\n"
#define ROUNDS	 300000 /* of the loop, a millisecond each when nothing happens */
#define BIG_TEXT 300000

struct rig {
	uv_loop_t loop;
	struct hr_metrics *metrics;
	unsigned asked;
	bool big;
};

static void write_some(void *self, FILE *out)
{
	struct rig *rig = self;

	rig->asked++;
	hr_metric_single(out, "asked_total", HR_METRIC_COUNTER, "Times.", rig->asked);
	for (int i = 0; rig->big && i < BIG_TEXT / 10; i++)
		fputs("#########\n", out);
}

static void start_at(struct rig *rig, const char *address, uint64_t limit_ms)
{
	const struct hr_metrics_config config = {.address = address,
						 .component = "test",
						 .version = "1.2",
						 .limit_ms = limit_ms,
						 .write = write_some,
						 .self = rig};
	char *error = NULL;

	memset(rig, 0, sizeof(*rig));
	assert_int_equal(uv_loop_init(&rig->loop), 0);
	assert_int_equal(hr_metrics_open(&rig->loop, &config, &rig->metrics, &error), 0);
}

static void start(struct rig *rig)
{
	start_at(rig, "tcp://127.0.0.1:0", 0);
}

static void stop(struct rig *rig)
{
	hr_metrics_close(rig->metrics);
	assert_int_equal(uv_run(&rig->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&rig->loop), 0);
}

static void turn(struct rig *rig)
{
	uv_run(&rig->loop, UV_RUN_NOWAIT);
	usleep(1000);
}

static int client(struct rig *rig)
{
	struct hr_address a;
	struct sockaddr_storage s = {0};
	size_t n = 0;
	int fd;

	assert_int_equal(hr_address_parse(hr_metrics_address(rig->metrics), &a), 0);
	assert_int_equal(hr_address_resolve(&a, false, &s, 1, &n), 0);
	fd = socket(s.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&s,
				 s.ss_family == AF_UNIX ? sizeof(struct sockaddr_un)
							: sizeof(struct sockaddr_in)),
			 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void say(int fd, const char *text, size_t n)
{
	assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* All that comes until the end. False: it ended with an error. */
static bool hear(struct rig *rig, int fd, char *ret, size_t room)
{
	size_t n = 0;

	for (int i = 0; i < ROUNDS; i++) {
		ssize_t got = recv(fd, ret + n, room - 1 - n, 0);

		if (got > 0) {
			n += (size_t)got;
			continue;
		}
		ret[n] = '\0';
		if (got == 0 || errno != EAGAIN)
			return got == 0;
		turn(rig);
	}
	fail_msg("no end came");
	return false;
}

static void ask(struct rig *rig, const char *request, char *ret, size_t room)
{
	int fd = client(rig);

	say(fd, request, strlen(request));
	assert_true(hear(rig, fd, ret, room));
	close(fd);
}

/* ---- the text ------------------------------------------------------------------------------------ */

static void test_text(void **state)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	hr_metric_single(out, "a_bytes", HR_METRIC_GAUGE, "Of it.", 1099511627776.0);
	hr_metric_value(out, "b", 0.25, "job", "a\"b\\c\n\xff", "user", "", NULL);
	fclose(out);
	assert_string_equal(text,
			    "# HELP a_bytes Of it.\n# TYPE a_bytes gauge\na_bytes 1099511627776\n"
			    "b{job=\"a\\\"b\\\\\\\\c\\\\x0A\\\\xFF\",user=\"\"} 0.25\n");
	free(text);
}

/* ---- requests ------------------------------------------------------------------------------------ */

/* The HTTP status for the bytes received so far; 0: incomplete. */
static int status_of(const char *request, size_t bytes)
{
	struct hr_http_request r;
	int status = hr_http_parse(request, bytes, &r);

	return status == 200 && !hr_http_target_is(&r, "/metrics") ? 404 : status;
}

static void test_judge(void **state)
{
	static const struct {
		const char *request;
		int status;
	} rows[] = {
	    {GOOD, 200},
	    {"GET /metrics?a=b HTTP/1.0\r\n\r\n", 200},
	    {"GET /metricsx HTTP/1.1\r\n\r\n", 404},
	    {"GET / HTTP/1.1\r\n\r\n", 404},
	    {"GET  HTTP/1.1\r\n\r\n", 404},
	    {"POST /metrics HTTP/1.1\r\n\r\n", 405},
	    {"get /metrics HTTP/1.1\r\n\r\n", 405},
	    {"GET /metrics HTTP/2.0\r\n\r\n", 400},
	    {"GET /metrics\r\n\r\n", 400},
	    {" /metrics HTTP/1.1\r\n\r\n", 400},
	    {"\r\n\r\n", 400},
	    {"\x16\x03\x01\r\n\r\n", 400},
	};
	char full[HR_HTTP_REQUEST_MOST];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(status_of(rows[i].request, strlen(rows[i].request)),
				 rows[i].status);
	for (size_t n = 0; n < strlen(GOOD); n++)
		assert_int_equal(status_of(GOOD, n), 0);
	memset(full, 'x', sizeof(full));
	assert_int_equal(status_of(full, sizeof(full) - 1), 0);
	assert_int_equal(status_of(full, sizeof(full)), 431);
}

static void test_answers(void **state)
{
	const double before_s = (double)time(NULL);
	struct rig rig;
	char text[4096], *body;
	double start_s;
	size_t length;

	start(&rig);
	ask(&rig, GOOD, text, sizeof(text));
	body = strstr(text, "\r\n\r\n") + 4;
	assert_int_equal(sscanf(strstr(text, "Content-Length: "), "Content-Length: %zu", &length),
			 1);
	assert_int_equal(strlen(body), length);
	assert_true(strncmp(text, "HTTP/1.1 200 OK\r\n", 17) == 0);
	assert_non_null(strstr(text, "\r\nContent-Type: text/plain; version=0.0.4"));
	assert_non_null(
	    strstr(body, "headrace_build_info{component=\"test\",version=\"1.2\"} 1\n"));
	assert_non_null(strstr(body, "\nasked_total 1\n"));
	assert_int_equal(sscanf(strstr(body, "\nheadrace_start_time_seconds{"),
				"\nheadrace_start_time_seconds{component=\"test\"} %lf", &start_s),
			 1);
	assert_true(start_s >= before_s - 10); /* it has nine digits */
	assert_true(start_s <= (double)time(NULL) + 10);
	ask(&rig, "GET / HTTP/1.1\r\n\r\n", text, sizeof(text));
	assert_true(strncmp(text, "HTTP/1.1 404 ", 13) == 0);
	ask(&rig, "PUT /metrics HTTP/1.1\r\n\r\n", text, sizeof(text));
	assert_non_null(strstr(text, "\r\nAllow: GET\r\n"));
	assert_int_equal(rig.asked, 1);
	stop(&rig);
}

static void test_local_socket(void **state)
{
	struct rig rig;
	char folder[] = "/tmp/headrace-metrics-XXXXXX", address[128], text[4096];
	struct sockaddr_un s = {.sun_family = AF_UNIX};
	struct stat st;
	int left = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_non_null(mkdtemp(folder));
	snprintf(s.sun_path, sizeof(s.sun_path), "%s/m.sock", folder);
	snprintf(address, sizeof(address), "unix://%s", s.sun_path);
	assert_int_equal(bind(left, (struct sockaddr *)&s, sizeof(s)), 0);
	close(left); /* of one that was killed */
	start_at(&rig, address, 0);
	assert_int_equal(stat(s.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	ask(&rig, GOOD, text, sizeof(text));
	assert_non_null(strstr(text, "\nasked_total 1\n"));
	stop(&rig);
	assert_int_equal(stat(s.sun_path, &st), -1);
	assert_int_equal(rmdir(folder), 0);
}

static void test_address_in_use(void **state)
{
	struct hr_metrics_config config = {.write = write_some};
	struct hr_metrics *second = NULL;
	struct rig rig;
	char *error = NULL;

	start(&rig);
	config.address = hr_metrics_address(rig.metrics);
	assert_int_equal(hr_metrics_open(&rig.loop, &config, &second, &error), -EADDRINUSE);
	assert_non_null(strstr(error, config.address));
	free(error);
	stop(&rig);
}

/* ---- clients that are none ------------------------------------------------------------------------ */

static void test_in_pieces(void **state)
{
	struct rig rig;
	char text[4096];
	int fd;

	start(&rig);
	fd = client(&rig);
	for (size_t i = 0; i < strlen(GOOD); i++) {
		say(fd, GOOD + i, 1);
		turn(&rig);
	}
	assert_true(hear(&rig, fd, text, sizeof(text)));
	assert_non_null(strstr(text, "\nasked_total 1\n"));
	close(fd);
	stop(&rig);
}

/* It sends no more, and still reads: all of an answer that fills the socket. */
static void test_half_closed(void **state)
{
	static char text[BIG_TEXT * 2];
	struct rig rig;
	int fd;

	start(&rig);
	rig.big = true;
	fd = client(&rig);
	say(fd, GOOD, strlen(GOOD));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_true(hear(&rig, fd, text, sizeof(text)));
	assert_true(strlen(text) > BIG_TEXT);
	close(fd);
	stop(&rig);
}

static void test_gone_in_the_middle(void **state)
{
	struct rig rig;
	char text[4096];

	start(&rig);
	rig.big = true;
	for (size_t n = 0; n <= strlen(GOOD); n++) {
		int fd = client(&rig);

		say(fd, GOOD, n);
		if (n % 2)
			turn(&rig);
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER,
					    &(struct linger){.l_onoff = n % 3 == 0},
					    sizeof(struct linger)),
				 0);
		close(fd);
	}
	rig.big = false;
	ask(&rig, GOOD, text, sizeof(text));
	assert_non_null(strstr(text, "\nasked_total "));
	stop(&rig);
}

/* It hears why, though it has not stopped sending. */
static void test_long_request(void **state)
{
	static char much[20 * HR_HTTP_REQUEST_MOST];
	struct rig rig;
	char text[4096];
	int fd;

	start(&rig);
	fd = client(&rig);
	memset(much, 'a', sizeof(much));
	say(fd, "GET /", 5);
	say(fd, much, sizeof(much));
	assert_true(hear(&rig, fd, text, sizeof(text)));
	assert_true(strncmp(text, "HTTP/1.1 431 ", 13) == 0);
	close(fd);
	stop(&rig);
}

static void test_many_wait(void **state)
{
	int fds[3 * HR_HTTP_CLIENTS];
	struct rig rig;
	char text[4096];
	unsigned sent_away = 0;

	start(&rig);
	for (size_t i = 0; i < 3 * HR_HTTP_CLIENTS; i++) {
		fds[i] = client(&rig);
		turn(&rig);
	}
	ask(&rig, GOOD, text, sizeof(text));
	assert_non_null(strstr(text, "\nasked_total 1\n"));
	for (size_t i = 0; i < 3 * HR_HTTP_CLIENTS; i++) {
		char byte;

		if (recv(fds[i], &byte, 1, 0) == 0) {
			assert_int_equal(i, sent_away); /* the oldest ones */
			sent_away++;
		}
		close(fds[i]);
	}
	assert_int_equal(sent_away, 2 * HR_HTTP_CLIENTS + 1);
	stop(&rig);
}

static void test_time_is_over(void **state)
{
	struct rig rig;
	char text[4096];
	int fd;

	start_at(&rig, "tcp://127.0.0.1:0", 20);
	fd = client(&rig);
	say(fd, GOOD, 10);
	assert_true(hear(&rig, fd, text, sizeof(text)));
	assert_string_equal(text, "");
	close(fd);
	stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_text),	   cmocka_unit_test(test_judge),
	    cmocka_unit_test(test_answers),	   cmocka_unit_test(test_local_socket),
	    cmocka_unit_test(test_address_in_use), cmocka_unit_test(test_in_pieces),
	    cmocka_unit_test(test_half_closed),	   cmocka_unit_test(test_gone_in_the_middle),
	    cmocka_unit_test(test_long_request),   cmocka_unit_test(test_many_wait),
	    cmocka_unit_test(test_time_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
