/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's plugin with stand-ins for Slurm: a task's environment is that of this process. */
#include <slurm/slurm.h>
#include <slurm/spank.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit.h"

static char folder[64], library[96], socket_path[96], settings[96];
static struct spank_option *option;

/* ---- Slurm ----------------------------------------------------------------------------------- */

spank_context_t spank_context(void)
{
	return S_CTX_REMOTE;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *opt)
{
	option = opt;
	return ESPANK_SUCCESS;
}

spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len)
{
	const char *value = getenv(var);

	if (value == NULL)
		return ESPANK_ENV_NOEXIST;
	return snprintf(buf, (size_t)len, "%s", value) < len ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite)
{
	if (getenv(var) != NULL && !overwrite)
		return ESPANK_ENV_EXISTS;
	return setenv(var, val, 1) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_unsetenv(spank_t spank, const char *var)
{
	return unsetenv(var) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_job_control_setenv(spank_t sp, const char *name, const char *value, int overwrite)
{
	return spank_setenv(sp, name, value, overwrite);
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	(void)spank, (void)item;
	return ESPANK_ERROR;
}

const char *spank_strerror(spank_err_t err)
{
	return "error";
}

void slurm_debug(const char *format, ...)
{
}

void slurm_error(const char *format, ...)
{
}

/* ---- a node ---------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(folder, sizeof(folder), "/tmp/headrace-spank-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(library, sizeof(library), "%s/libheadrace.so", folder);
	snprintf(socket_path, sizeof(socket_path), "%s/shim.sock", folder);
	snprintf(settings, sizeof(settings), "%s/environment", folder);
	write_file(library, "");
	write_file(settings,
		   "# comment\nHEADRACE_ON_FULL=drop\nHEADRACE_EXCLUDE=/a,/b\nPATH=/nowhere\n");
	memcpy(addr.sun_path, socket_path, strlen(socket_path));
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	clearenv();
	setenv("HEADRACE_ON_FULL", "wait:5", 1);
	setenv("LD_PRELOAD", "own.so", 1);
	return 0;
}

static int teardown(void **state)
{
	unlink(library);
	unlink(socket_path);
	unlink(settings);
	return rmdir(folder);
}

/* Starts a task of a step for which srun has this value of --headrace; NULL: none. */
static void start_task(const char *headrace)
{
	char words[3][128], *arguments[] = {words[0], words[1], words[2]};

	snprintf(words[0], sizeof(words[0]), "library=%s", library);
	snprintf(words[1], sizeof(words[1]), "socket=%s", socket_path);
	snprintf(words[2], sizeof(words[2]), "settings=%s", settings);
	assert_int_equal(slurm_spank_init(NULL, 3, arguments), 0);
	if (headrace != NULL)
		assert_int_equal(option->cb(0, headrace, 1), 0);
	assert_int_equal(slurm_spank_task_init(NULL, 3, arguments), 0);
}

static void assert_env(const char *name, const char *value)
{
	if (value == NULL)
		assert_null(getenv(name));
	else
		assert_string_equal(getenv(name), value);
}

static void the_user_has_precedence_over_the_site(void **state)
{
	char preload[128];

	start_task(NULL);
	snprintf(preload, sizeof(preload), "own.so:%s", library);
	assert_env("LD_PRELOAD", preload);
	assert_env("HEADRACE_ON_FULL", "wait:5");
	assert_env("HEADRACE_EXCLUDE", "/a,/b");
	assert_env("PATH", NULL);
	assert_env("NVTX_INJECTION64_PATH", library);
	assert_env("HEADRACE", NULL);
}

static void without_a_service_nothing_changes(void **state)
{
	unlink(socket_path);
	start_task(NULL);
	assert_env("LD_PRELOAD", "own.so");
	assert_env("HEADRACE_EXCLUDE", NULL);
	assert_env("NVTX_INJECTION64_PATH", NULL);
}

/* In a step of a recorded job, which has inherited the library. Last, because the choice stays. */
static void off_takes_it_away(void **state)
{
	char preload[128];

	snprintf(preload, sizeof(preload), "%s:own.so", library);
	setenv("LD_PRELOAD", preload, 1);
	setenv("NVTX_INJECTION64_PATH", library, 1);
	start_task("off");
	assert_env("HEADRACE", "off");
	assert_env("LD_PRELOAD", "own.so");
	assert_env("NVTX_INJECTION64_PATH", NULL);
	assert_env("HEADRACE_EXCLUDE", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_user_has_precedence_over_the_site, setup, teardown),
	    cmocka_unit_test_setup_teardown(without_a_service_nothing_changes, setup, teardown),
	    cmocka_unit_test_setup_teardown(off_takes_it_away, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
