/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages: what is put in comes out, and nothing hostile gets through. */
#include "daemon/control/control.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit.h"

static int pair[2];

static int open_pair(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
}

static int close_pair(void **state)
{
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void test_round_trip(void **state)
{
	Headrace__JobRequest request = HEADRACE__JOB_REQUEST__INIT;
	Headrace__Control *m = NULL;

	request.job = "a\nb\\c=d";
	request.has_attempt = true;
	request.linger_ms = UINT64_MAX;
	assert_int_equal(hr_control_send(pair[0], HR_CONTROL(END_JOB), &request.base), 0);
	assert_int_equal(hr_control_recv(pair[1], &m), 0);
	assert_int_equal(m->kind_case, HR_CONTROL(END_JOB));
	assert_string_equal(m->end_job->job, "a\nb\\c=d");
	assert_true(m->end_job->has_attempt);
	assert_int_equal(m->end_job->attempt, 0);
	assert_true(m->end_job->linger_ms == UINT64_MAX);
	assert_string_equal(m->end_job->state, "");
	assert_false(m->end_job->has_uid);
	hr_control_free(m);
}

static void test_kind_without_fields(void **state)
{
	Headrace__Control *m = NULL;

	assert_int_equal(hr_control_send(pair[0], HR_CONTROL(PAUSE), NULL), 0);
	assert_int_equal(hr_control_recv(pair[1], &m), 0);
	assert_int_equal(m->kind_case, HR_CONTROL(PAUSE));
	assert_non_null(m->pause);
	hr_control_free(m);
}

static void test_descriptor(void **state)
{
	Headrace__Control *m = NULL;
	int carried = -1;

	assert_int_equal(hr_control_send_fd(pair[0], HR_CONTROL(DONE), NULL, STDIN_FILENO), 0);
	assert_int_equal(hr_control_recv_fd(pair[1], &m, &carried), 0);
	assert_true(carried > STDERR_FILENO);
	close(carried);
	hr_control_free(m);
	assert_int_equal(hr_control_send(pair[0], HR_CONTROL(DONE), NULL), 0);
	assert_int_equal(hr_control_recv_fd(pair[1], &m, &carried), 0);
	assert_int_equal(carried, -1);
	hr_control_free(m);
}

static void test_too_long(void **state)
{
	static char big[HR_CONTROL_BYTES];

	memset(big, 'x', sizeof(big) - 1);
	assert_int_equal(hr_control_send_error(pair[0], 1, big), -EMSGSIZE);
}

static void assert_refused(const void *bytes, size_t n)
{
	Headrace__Control *m = NULL;

	assert_int_equal(send(pair[0], bytes, n, 0), n);
	assert_int_equal(hr_control_recv(pair[1], &m), -EBADMSG);
	assert_null(m);
}

static void test_hostile(void **state)
{
	static char big[HR_CONTROL_BYTES + 1];

	assert_refused("join\nversion=1\n", 15); /* text */
	assert_refused("\x0a\x05", 2);		 /* a body that is cut */
	assert_refused("\xf8\x07\x01", 3);	 /* a field that does not exist */
	memset(big, '\n', sizeof(big));
	assert_refused(big, sizeof(big));
}

static void take_node(void *arg, Headrace__Control *m)
{
	Headrace__NodeStatus **node = arg;

	if (m->kind_case != HR_CONTROL(NODE_STATUS))
		return;
	*node = m->node_status;
	hr_control_keep(m);
}

static void test_ask(void **state)
{
	Headrace__NodeStatus node = HEADRACE__NODE_STATUS__INIT, *kept = NULL;
	char *refusal = NULL;

	node.node = "n1";
	hr_control_send(pair[1], HR_CONTROL(NODE_STATUS), &node.base);
	hr_control_send(pair[1], HR_CONTROL(DONE), NULL);
	assert_int_equal(
	    hr_control_request(pair[0], 1000, HR_CONTROL(GET_STATUS), NULL, take_node, &kept, NULL),
	    0);
	assert_string_equal(kept->node, "n1");
	headrace__node_status__free_unpacked(kept, NULL);
	hr_control_send_error(pair[1], EPERM, "no");
	assert_int_equal(
	    hr_control_request(pair[0], 1000, HR_CONTROL(GET_STATUS), NULL, NULL, NULL, &refusal),
	    -EREMOTEIO);
	assert_string_equal(refusal, "no");
	free(refusal);
	assert_int_equal(
	    hr_control_request(pair[0], 0, HR_CONTROL(GET_STATUS), NULL, NULL, NULL, NULL),
	    -ETIMEDOUT);
}

static void test_sockets(void **state)
{
	char path[] = "/tmp/headrace-control-test-XXXXXX", name[80];
	int listening, client, server;
	Headrace__Control *m = NULL;

	assert_non_null(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/control", path);
	assert_int_equal(hr_control_connect(name, &client), -ENOENT);
	assert_int_equal(hr_control_listen(name, &listening), 0);
	assert_int_equal(hr_control_connect(name, &client), 0);
	server = accept(listening, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(hr_control_wait(server, 0, &m), -ETIMEDOUT);
	assert_int_equal(hr_control_send(client, HR_CONTROL(GET_STATUS), NULL), 0);
	assert_int_equal(hr_control_wait(server, 1000, &m), 0);
	assert_int_equal(m->kind_case, HR_CONTROL(GET_STATUS));
	hr_control_free(m);
	close(client);
	assert_int_equal(hr_control_wait(server, 1000, &m), -ECONNRESET);
	assert_true(hr_control_send(server, HR_CONTROL(DONE), NULL) < 0);
	close(server);
	close(listening);
	assert_int_equal(hr_control_connect(name, &client), -ECONNREFUSED);
	unlink(name);
	rmdir(path);
}

static void test_long_socket_path(void **state)
{
	char path[200];
	int fd;

	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(hr_control_connect(path, &fd), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_round_trip, open_pair, close_pair),
	    cmocka_unit_test_setup_teardown(test_kind_without_fields, open_pair, close_pair),
	    cmocka_unit_test_setup_teardown(test_descriptor, open_pair, close_pair),
	    cmocka_unit_test_setup_teardown(test_too_long, open_pair, close_pair),
	    cmocka_unit_test_setup_teardown(test_hostile, open_pair, close_pair),
	    cmocka_unit_test_setup_teardown(test_ask, open_pair, close_pair),
	    cmocka_unit_test(test_sockets),
	    cmocka_unit_test(test_long_socket_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
