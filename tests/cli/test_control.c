/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages: what is put in comes out, and nothing hostile gets through. */
#include "daemon/control/control.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct hr_message m, other;

static void test_round_trip(void **state)
{
	char text[64];

	(void)state;
	hr_message_init(&m, "join");
	hr_message_add(&m, "store", "/a\nb\\c=d");
	hr_message_add(&m, "empty", "");
	hr_message_add_int(&m, "n", INT64_MIN);
	assert_int_equal(hr_message_check(&m), 0);
	assert_true(hr_message_is(&m, "join"));
	assert_false(hr_message_is(&m, "joi"));
	assert_int_equal(hr_message_get(&m, "store", text, sizeof(text)), 0);
	assert_string_equal(text, "/a\nb\\c=d");
	assert_int_equal(hr_message_get(&m, "empty", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_true(hr_message_get_int(&m, "n", 0) == INT64_MIN);
	assert_int_equal(hr_message_get(&m, "stor", text, sizeof(text)), -ENOENT);
	assert_int_equal(hr_message_get(&m, "store", text, 4), -ENOSPC);
	assert_int_equal(hr_message_get_int(&m, "store", 7), 7);
}

static void test_too_long(void **state)
{
	char *big = malloc(HR_CONTROL_BYTES);

	(void)state;
	memset(big, 'x', HR_CONTROL_BYTES - 1);
	big[HR_CONTROL_BYTES - 1] = '\0';
	hr_message_init(&m, "join");
	hr_message_add(&m, "big", big);
	hr_message_add(&m, "small", "y");
	assert_int_equal(hr_control_send(-1, &m), -EMSGSIZE);
	free(big);
}

static void assert_refused(const char *bytes, size_t n)
{
	memcpy(m.text, bytes, n);
	m.bytes = n;
	assert_int_equal(hr_message_check(&m), -EBADMSG);
}

static void test_hostile(void **state)
{
	char text[16];

	(void)state;
	assert_refused("", 0);
	assert_refused("join", 4);
	assert_refused("join\nkey=va\0lue\n", 16);
	strcpy(m.text, "join\nnonsense\n=\nkey=\\x4\n");
	m.bytes = strlen(m.text);
	assert_int_equal(hr_message_check(&m), 0);
	assert_int_equal(hr_message_get(&m, "nonsense", text, sizeof(text)), -ENOENT);
	assert_int_equal(hr_message_get(&m, "key", text, sizeof(text)), -EBADMSG);
}

static void test_sockets(void **state)
{
	char path[] = "/tmp/headrace-control-test-XXXXXX", name[80];
	int listening, client, server;

	(void)state;
	assert_non_null(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/control", path);
	assert_int_equal(hr_control_connect(name, &client), -ENOENT);
	assert_int_equal(hr_control_listen(name, &listening), 0);
	assert_int_equal(hr_control_connect(name, &client), 0);
	server = accept(listening, NULL, NULL);
	assert_true(server >= 0);
	hr_message_init(&m, "join");
	assert_int_equal(hr_control_wait(server, 0, &other), -ETIMEDOUT);
	assert_int_equal(hr_control_send(client, &m), 0);
	assert_int_equal(hr_control_wait(server, 1000, &other), 0);
	assert_true(hr_message_is(&other, "join"));
	close(client);
	assert_int_equal(hr_control_wait(server, 1000, &other), -ECONNRESET);
	assert_true(hr_control_send(server, &m) < 0);
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

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(hr_control_connect(path, &fd), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip),	     cmocka_unit_test(test_too_long),
	    cmocka_unit_test(test_hostile),	     cmocka_unit_test(test_sockets),
	    cmocka_unit_test(test_long_socket_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
