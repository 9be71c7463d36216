/* SPDX-License-Identifier: Apache-2.0 */
/* Who a peer is: what transport, kernel and MUNGE say, and nothing that the peer says. */
#include <stdbool.h>

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/who.h"
#include "net/munge.h"
#include "tests/unit.h"

#define NOBODY 65534u

/* Instead of the library's: there is no munged in a test. "uid:N" is good. */
int hr_munge_decode(const char *socket, const char *credential, uint32_t *ret_uid,
		    uint32_t *ret_gid, char **ret_error)
{
	if (strncmp(credential, "uid:", 4) != 0) {
		*ret_error = strdup("Invalid credential");
		return -EACCES;
	}
	*ret_uid = *ret_gid = (uint32_t)strtoul(credential + 4, NULL, 10);
	return 0;
}

static struct hr_who accepted(const struct hr_who_rules *rules, struct hr_conn_peer peer,
			      const char *credential)
{
	struct hr_who w;
	char *error;

	assert_int_equal(hr_who_decide(rules, &peer, credential, &w, &error), 0);
	assert_null(error);
	return w;
}

static void refused(const struct hr_who_rules *rules, struct hr_conn_peer peer,
		    const char *credential, const char *says)
{
	struct hr_who w;
	char *error;

	assert_int_equal(hr_who_decide(rules, &peer, credential, &w, &error), -EACCES);
	assert_non_null(error);
	assert_non_null(strstr(error, says));
	free(error);
}

static struct hr_conn_peer certificate(const char *cn, const char *ou)
{
	struct hr_conn_peer p = {.tls = true};

	snprintf(p.cn, sizeof(p.cn), "%s", cn);
	snprintf(p.ou, sizeof(p.ou), "%s", ou);
	return p;
}

static struct hr_conn_peer local(uint32_t uid)
{
	return (struct hr_conn_peer){.loopback = true, .uid_known = true, .uid = uid};
}

static void test_certificates(void **state)
{
	struct hr_who_rules rules = {0};
	struct hr_who w = accepted(&rules, certificate("n1.cluster", "headrace-node"), "");

	assert_true(w.one_node && !w.any_node && !w.user && !w.operator_ && !w.anonymous);
	assert_string_equal(w.text, "node n1.cluster");
	assert_true(hr_who_is_node(&w, "n1.cluster"));
	assert_true(hr_who_is_node(&w, "n1"));
	assert_false(hr_who_is_node(&w, "n1.clust"));
	assert_false(hr_who_is_node(&w, "n"));
	assert_false(hr_who_is_node(&w, "n2"));
	assert_false(hr_who_is_node(&w, ""));
	w = accepted(&rules, certificate("nobody", "headrace-user"), "");
	assert_true(w.user && !w.operator_ && !w.any_node);
	assert_int_equal(w.uid, NOBODY);
	refused(&rules, certificate("no-such-user", "headrace-user"), "", "no-such-user");
	refused(&rules, certificate("n1", ""), "", "headrace-node");
	refused(&rules, certificate("", "headrace-node"), "", "headrace-node");
}

static void test_local(void **state)
{
	struct hr_who_rules rules = {0};
	struct hr_who w = accepted(&rules, local(NOBODY), "");

	assert_true(w.user && !w.operator_ && !w.any_node && !w.one_node && !w.anonymous);
	assert_string_equal(w.text, "user nobody (65534)");
	w = accepted(&rules, local(0), "");
	assert_true(w.user && w.operator_ && w.any_node);
	assert_string_equal(w.text, "operator root (0)");
	w = accepted(&rules, local(geteuid()), "");
	assert_true(w.operator_ && w.any_node);
	w = accepted(&rules, local(4000000), "");
	assert_true(w.user && !w.operator_);
	assert_string_equal(w.text, "user 4000000");
}

static void test_operators(void **state)
{
	struct passwd *nobody = getpwnam("nobody");
	struct group *own = nobody ? getgrgid(nobody->pw_gid) : NULL;
	struct hr_who_rules rules = {.operators = own ? own->gr_name : "nogroup"};
	struct hr_who w;

	w = accepted(&rules, local(NOBODY), "");
	assert_true(w.operator_ && !w.any_node);
	assert_string_equal(w.text, "operator nobody (65534)");
	rules.operators = "root";
	assert_false(accepted(&rules, local(NOBODY), "").operator_);
	rules.operators = "no-such-group";
	assert_false(accepted(&rules, local(NOBODY), "").operator_);
}

static void test_plain(void **state)
{
	struct hr_who_rules rules = {0};
	struct hr_conn_peer far = {0}, unknown = {.loopback = true};
	struct hr_who w;

	refused(&rules, far, "", "plain = yes");
	refused(&rules, unknown, "", "plain = yes");
	rules.plain_anywhere = true;
	w = accepted(&rules, far, "");
	assert_true(w.anonymous && !w.user && !w.any_node && !w.one_node && !w.operator_);
	assert_true(accepted(&rules, unknown, "").anonymous);
}

static void test_munge(void **state)
{
	struct hr_who_rules rules = {.munge = true};
	struct hr_conn_peer far = {0};
	struct hr_who w = accepted(&rules, local(0), "uid:65534");

	assert_true(w.user && !w.operator_);
	assert_int_equal(w.uid, NOBODY);
	w = accepted(&rules, certificate("root", "headrace-user"), "uid:65534");
	assert_int_equal(w.uid, NOBODY);
	/* A user of node n1, behind its certificate; its root is n1, and no operator. */
	w = accepted(&rules, certificate("n1", "headrace-node"), "uid:65534");
	assert_true(w.user && !w.one_node && !w.any_node);
	assert_int_equal(w.uid, NOBODY);
	w = accepted(&rules, certificate("n1", "headrace-node"), "uid:0");
	assert_true(w.one_node && !w.user && !w.any_node && !w.operator_);
	refused(&rules, certificate("n1", "headrace-node"), "nonsense", "Invalid credential");
	w = accepted(&rules, certificate("login1", "headrace-client"), "uid:65534");
	assert_true(w.user && !w.one_node);
	refused(&rules, certificate("login1", "headrace-client"), "", "MUNGE");
	refused(&rules, local(0), "nonsense", "Invalid credential");
	refused(&rules, far, "uid:65534", "plain = yes");
	rules.plain_anywhere = true;
	w = accepted(&rules, far, "uid:65534");
	assert_true(w.user && !w.anonymous);
	rules.munge = false; /* a credential that nobody asked for says nothing */
	assert_int_equal(accepted(&rules, local(0), "nonsense").uid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_certificates), cmocka_unit_test(test_local),
	    cmocka_unit_test(test_operators),	 cmocka_unit_test(test_plain),
	    cmocka_unit_test(test_munge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
