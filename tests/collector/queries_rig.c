/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/collector/queries_rig.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/stream_state.h"
#include "tests/query/fixture.h"

char rig_spill[] = "/tmp/headrace-queries-XXXXXX"; /* where queries spill */
static char *store, spill_option[64];
struct server server;

int rig_setup(void **state)
{
	struct hr_stream_state of = {.uid_known = true, .uid = 1001, .connected = true};
	char pattern[128];
	glob_t found;
	int fd;

	store = fixture_make();
	snprintf(pattern, sizeof(pattern), "%s/jobs/8/*", store);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	fd = open(found.gl_pathv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(hr_stream_state_write(fd, &of, false), 0);
	close(fd);
	globfree(&found);
	assert_non_null(mkdtemp(rig_spill));
	snprintf(spill_option, sizeof(spill_option), "spill=%s", rig_spill);
	return 0;
}

int rig_teardown(void **state)
{
	assert_int_equal(rmdir(rig_spill), 0); /* nothing is left in it */
	build_remove(store);
	return 0;
}

void rig_start(const char *first, const char *second)
{
	const char *const options[] = {
	    spill_option, "memory=536870912", "per_caller=8", "time=600000", first, second, NULL};

	server_start(&server, store, options);
}

int rig_start_usual(void **state)
{
	rig_start(NULL, NULL);
	return 0;
}

int rig_stop_usual(void **state)
{
	server_stop(&server);
	return 0;
}

void rig_wait_for_no_child(void)
{
	for (unsigned i = 0; server_children(&server) > 0; i++) {
		assert_true(i < 30000);
		usleep(10000);
	}
}
