/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `headrace run` works out before it starts anything: job and store, options, the environment
 * of CMD.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/environment.h"
#include "cli/run/job.h"
#include "cli/run/run_options.h"
#include "daemon/control/private.h"
#include "proto/abi.h"
#include "tests/unit.h"

/* An environment of just these variables ("NAME=value"), and a PATH. */
static void set_environment(const char *const *variables)
{
	clearenv();
	setenv("PATH", "/bin", 1);
	for (; *variables != NULL; variables++) {
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*variables, "="), *variables);
		setenv(name, strchr(*variables, '=') + 1, 1);
	}
}
#define ENVIRONMENT(...) set_environment((const char *const[]){__VA_ARGS__, NULL})

static void assert_job(const char *store, const char *name, const char *want_store,
		       const char *want_id)
{
	struct hr_job job;

	hr_job_find(store, name, &job);
	assert_string_equal(job.store, want_store);
	assert_string_equal(job.id, want_id);
}

static void test_job_ids(void **state)
{
	ENVIRONMENT("SLURM_JOB_ID=17", "SLURM_ARRAY_JOB_ID=12", "SLURM_ARRAY_TASK_ID=4");
	assert_job(NULL, NULL, "./headrace-12_4", "12_4");
	ENVIRONMENT("SLURM_JOB_ID=17");
	assert_job(NULL, NULL, "./headrace-17", "17");
	assert_job("/x/shared", NULL, "/x/shared", "17");
	assert_job("/x/shared", "mine", "/x/shared", "mine");
	ENVIRONMENT("PBS_JOBID=123[4].pbs01");
	assert_job(NULL, NULL, "./headrace-123_4", "123_4");
	ENVIRONMENT("PBS_JOBID=123.pbs01.site");
	assert_job(NULL, NULL, "./headrace-123", "123");
	ENVIRONMENT("PBS_JOBID=.pbs01"); /* nobody's id, and yet a name */
	assert_job("/x/shared", NULL, "/x/shared", ".pbs01");
	ENVIRONMENT("LSB_JOBID=9", "LSB_JOBINDEX=0");
	assert_job(NULL, NULL, "./headrace-9", "9");
	ENVIRONMENT("LSB_JOBID=9", "LSB_JOBINDEX=3");
	assert_job(NULL, NULL, "./headrace-9_3", "9_3");
	ENVIRONMENT("JOB_ID=5", "SGE_TASK_ID=undefined");
	assert_job(NULL, NULL, "./headrace-5", "5");
	ENVIRONMENT("JOB_ID=5"); /* anybody's variable, not SGE's */
	assert_job("/x/run7/", NULL, "/x/run7/", "run7");
	ENVIRONMENT("FLUX_JOB_ID=f3");
	assert_job(NULL, NULL, "./headrace-f3", "f3");
}

static void test_no_scheduler(void **state)
{
	struct hr_job job;
	int year, pid;

	ENVIRONMENT("HOME=/root");
	hr_job_find(NULL, NULL, &job);
	assert_int_equal(sscanf(job.store, "./headrace-%4d%*4dT%*6dZ-%d", &year, &pid), 2);
	assert_int_equal(pid, getpid());
	assert_string_equal(job.id, job.store + 2);
	assert_int_equal(job.rank, -1);
	assert_job(".", NULL, ".", "job");
	assert_job("runs/a", NULL, "runs/a", "a");
}

static void test_ranks(void **state)
{
	struct hr_job job;

	ENVIRONMENT("SLURM_PROCID=0", "SLURM_NTASKS=1", "OMPI_COMM_WORLD_RANK=3",
		    "OMPI_COMM_WORLD_SIZE=8", "SLURM_RESTART_COUNT=2", "SLURMD_NODENAME=n7");
	hr_job_find(NULL, "j", &job);
	assert_int_equal(job.rank, 3);
	assert_int_equal(job.ranks_expected, 8);
	assert_int_equal(job.attempt, 2);
	assert_string_equal(job.node, "n7");
	ENVIRONMENT("SLURM_PROCID=0", "SLURM_NTASKS=1");
	hr_job_find(NULL, "j", &job);
	assert_int_equal(job.rank, 0);
	assert_int_equal(job.ranks_expected, 0);
}

/*
 * ---- options ------------------------------------------------------------------------------------
 */

static struct hr_run_options options;

static int parse(const char *const *words)
{
	int argc = 0;

	while (words[argc] != NULL)
		argc++;
	return hr_run_options_parse(argc, (char **)(uintptr_t)words, &options);
}
#define PARSE(...) parse((const char *const[]){"run", __VA_ARGS__, NULL})

static void test_options(void **state)
{
	assert_int_equal(PARSE("-o", "S", "--job=j", "--label", "a=1", "--label",
			       "b=", "--level=counters", "--exclude", "/x,/y", "--max-size",
			       "10GiB", "--linger=250ms", "--ranks", "0-47,64", "--best-effort",
			       "--", "cmd", "-o", "T"),
			 0);
	assert_string_equal(options.store, "S");
	assert_string_equal(options.job, "j");
	assert_string_equal(options.labels[1], "b=");
	assert_null(options.labels[2]);
	assert_int_equal(options.level, HR_LEVEL_COUNTERS);
	assert_string_equal(options.exclude[0], "/x,/y");
	assert_true(options.max_bytes == UINT64_C(10) << 30);
	assert_true(options.linger_ns == 250000000);
	assert_true(options.best_effort);
	assert_string_equal(options.command[0], "cmd");
	assert_string_equal(options.command[2], "T");
	assert_int_equal(PARSE("-oS", "cmd", "--level", "nonsense"),
			 0); /* the second option is CMD's */
	assert_string_equal(options.store, "S");
	assert_string_equal(options.command[1], "--level");
	assert_true(options.linger_ns == UINT64_C(5000000000));
	assert_true(options.drain_ns == UINT64_C(30000000000));
	assert_int_equal(options.level, HR_LEVEL_TRACE);
}

static void test_bad_options(void **state)
{
	assert_int_equal(parse((const char *const[]){"run", NULL}), -1);
	assert_int_equal(PARSE("--"), -1);
	assert_int_equal(PARSE("--nonsense", "cmd"), -1);
	assert_int_equal(PARSE("-x", "cmd"), -1);
	assert_int_equal(PARSE("-o"), -1);
	assert_int_equal(PARSE("--best-effort=yes", "cmd"), -1);
	assert_int_equal(PARSE("--level", "verbose", "cmd"), -1);
	assert_int_equal(PARSE("--label", "novalue", "cmd"), -1);
	assert_int_equal(PARSE("--max-size", "big", "cmd"), -1);
	assert_int_equal(PARSE("--max-size", "0", "cmd"), -1);
	assert_int_equal(PARSE("--linger", "soon", "cmd"), -1);
	assert_int_equal(PARSE("--ranks", "1-", "cmd"), -1);
	assert_int_equal(PARSE("--job", "", "cmd"), -1);
}

/*
 * ---- environment --------------------------------------------------------------------------------
 */

static const char *value_of(char **environment, const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name), times = 0;

	for (; *environment != NULL; environment++) {
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=') {
			found = *environment + n + 1;
			times++;
		}
	}
	assert_true(times <= 1);
	return found;
}

static char **environment(const char *exclude)
{
	const char *const excludes[] = {exclude, NULL}, *const none[] = {NULL};
	struct hr_environment e = {.library = "/opt/libheadrace.so",
				   .socket = "/run/s",
				   .store = "/abs/store",
				   .job = "7",
				   .exclude = excludes,
				   .include = none};
	char **made = hr_environment_new(&e);

	assert_non_null(made);
	return made;
}

static void test_environment(void **state)
{
	char **made;

	ENVIRONMENT("HEADRACE_SOCKET=/old", "X=1");
	made = environment("/a,/b");
	assert_string_equal(value_of(made, "LD_PRELOAD"), "/opt/libheadrace.so");
	assert_string_equal(value_of(made, "HEADRACE_SOCKET"), "/run/s");
	assert_string_equal(value_of(made, "HEADRACE_STORE"), "/abs/store");
	assert_string_equal(value_of(made, "HEADRACE_JOB"), "7");
	assert_string_equal(value_of(made, "HEADRACE_EXCLUDE"), "/a,/b");
	assert_null(value_of(made, "HEADRACE_INCLUDE"));
	assert_string_equal(value_of(made, "HEADRACE_ON_FULL"), "wait:1000");
	assert_string_equal(value_of(made, "HEADRACE_ATTACH_FAILED"), "00000000000000000000");
	assert_string_equal(value_of(made, "X"), "1");
	assert_string_equal(value_of(made, "NVTX_INJECTION64_PATH"), "/opt/libheadrace.so");
	assert_string_equal(value_of(made, "INTEL_LIBITTNOTIFY64"), "/opt/libheadrace.so");
	hr_environment_free(made);
}

/* Another tool stays; a headrace of another place gives way, as its library would be a second one. */
static void test_environment_of_tools(void **state)
{
	char **made;

	ENVIRONMENT("NVTX_INJECTION64_PATH=/opt/nsys/libToolsInjection64.so",
		    "INTEL_LIBITTNOTIFY64=/usr/libexec/headrace/libheadrace.so");
	made = environment(NULL);
	assert_string_equal(value_of(made, "NVTX_INJECTION64_PATH"),
			    "/opt/nsys/libToolsInjection64.so");
	assert_string_equal(value_of(made, "INTEL_LIBITTNOTIFY64"), "/opt/libheadrace.so");
	hr_environment_free(made);
	ENVIRONMENT("HEADRACE_NVTX=off");
	made = environment(NULL);
	assert_null(value_of(made, "NVTX_INJECTION64_PATH"));
	assert_null(value_of(made, "INTEL_LIBITTNOTIFY64"));
	hr_environment_free(made);
}

/* The folder comes first, and once; an empty entry would be the working directory. */
static void test_environment_of_python(void **state)
{
	static const char *const none[] = {NULL};
	static const char *const rows[][2] = {{"PYTHONPATH=/u", "/opt/py:/u"},
					      {"PYTHONPATH=", "/opt/py"},
					      {"PYTHONPATH=/u:/opt/py", "/u:/opt/py"},
					      {"X=1", "/opt/py"}};
	const struct hr_environment e = {.library = "/opt/libheadrace.so",
					 .python = "/opt/py",
					 .socket = "/run/s",
					 .exclude = none,
					 .include = none};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char **made;

		ENVIRONMENT(rows[i][0]);
		made = hr_environment_new(&e);
		assert_non_null(made);
		assert_string_equal(value_of(made, "PYTHONPATH"), rows[i][1]);
		hr_environment_free(made);
	}
}

static void test_environment_is_kept(void **state)
{
	char **made;

	ENVIRONMENT("LD_PRELOAD=/lib/a.so /lib/b.so", "HEADRACE_EXCLUDE=/z",
		    "HEADRACE_ON_FULL=drop");
	made = environment("/a");
	assert_string_equal(value_of(made, "LD_PRELOAD"),
			    "/lib/a.so /lib/b.so:/opt/libheadrace.so");
	assert_string_equal(value_of(made, "HEADRACE_EXCLUDE"), "/z,/a");
	assert_string_equal(value_of(made, "HEADRACE_ON_FULL"), "drop");
	hr_environment_free(made);
	ENVIRONMENT("LD_PRELOAD=/opt/libheadrace.so:/lib/a.so"); /* a run inside a run */
	made = environment(NULL);
	assert_string_equal(value_of(made, "LD_PRELOAD"), "/opt/libheadrace.so:/lib/a.so");
	assert_null(value_of(made, "HEADRACE_EXCLUDE"));
	hr_environment_free(made);
	assert_null(hr_environment_problem("/opt/libheadrace.so"));
	assert_non_null(hr_environment_problem("/opt/my programs/libheadrace.so"));
}

/*
 * ---- private names and configuration ------------------------------------------------------------
 */

static void test_names(void **state)
{
	struct hr_private_names a, b, c, d;
	char folder[] = "/tmp/headrace-names-XXXXXX", runtime[64];
	char *error = NULL;
	int lock, other;

	assert_non_null(mkdtemp(folder));
	snprintf(runtime, sizeof(runtime), "XDG_RUNTIME_DIR=%s", folder);
	ENVIRONMENT(runtime);
	assert_int_equal(hr_private_names(folder, "j", &a, &error), 0);
	assert_int_equal(hr_private_names("/tmp", "j", &b, &error), 0);
	assert_int_equal(hr_private_names(folder, "k", &c, &error), 0);
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(hr_private_names(".", "j", &d, &error), 0);
	assert_memory_equal(a.control, folder, strlen(folder));
	assert_string_not_equal(a.control, b.control);
	assert_string_not_equal(a.control, c.control);
	assert_string_equal(a.control, d.control); /* the folder counts, not what it was called */
	assert_int_equal(hr_private_lock(&a, &lock), 0);
	assert_int_equal(hr_private_trylock(&a, &other), -EWOULDBLOCK);
	hr_private_remove(&a);
	assert_int_equal(hr_private_trylock(&a, &other),
			 0); /* a new file: the old lock guards nothing */
	close(lock);
	close(other);
	assert_int_equal(hr_private_names("/nonexistent", "j", &a, &error), -ENOENT);
	assert_non_null(strstr(error, "/nonexistent"));
	free(error);
	hr_private_remove(&d);
	assert_int_equal(chdir("/"), 0);
}

static void test_config(void **state)
{
	const char *labels[] = {"a=1", "b=x\ny", NULL};
	struct hr_private_config config = {.node = {.store = "/s\\x",
						    .id = {.cluster = "",
							   .job = "12_4",
							   .node = "n",
							   .boot_id = "b",
							   .attempt = 3,
							   .instance = UINT64_MAX - 1},
						    .labels = labels,
						    .level = HR_LEVEL_TRACE,
						    .max_bytes = UINT64_C(1) << 40,
						    .local_ranks = "0-1",
						    .max_sessions = 12,
						    .max_ring_bytes = UINT64_C(3) << 32,
						    .privacy = {.paths = HR_PATHS_CUT, .keep = 3}},
					   .spool_bytes = UINT64_C(5) << 32,
					   .drain_ms = 700,
					   .registered = true,
					   .names = {.control = "/c", .shim = "/h", .lock = "/l"}},
				 back;
	static char big[HR_CONTROL_BYTES];
	FILE *file = tmpfile();

	assert_int_equal(hr_private_config_write(&config, fileno(file)), 0);
	assert_int_equal(hr_private_config_read(fileno(file), &back), 0);
	assert_string_equal(back.node.store, "/s\\x");
	assert_string_equal(back.node.id.job, "12_4");
	assert_true(back.node.id.instance == UINT64_MAX - 1);
	assert_int_equal(back.node.id.attempt, 3);
	assert_true(back.node.max_bytes == UINT64_C(1) << 40);
	assert_null(back.node.ranks);
	assert_string_equal(back.node.local_ranks, "0-1");
	assert_int_equal(back.node.max_sessions, 12);
	assert_true(back.node.max_ring_bytes == UINT64_C(3) << 32);
	assert_int_equal(back.node.privacy.paths, HR_PATHS_CUT);
	assert_int_equal(back.node.privacy.keep, 3);
	assert_true(back.spool_bytes == UINT64_C(5) << 32);
	assert_int_equal(back.drain_ms, 700);
	assert_true(back.registered);
	assert_false(back.killed);
	assert_string_equal(back.node.labels[1], "b=x\ny");
	assert_null(back.node.labels[2]);
	assert_string_equal(back.node.shim_socket, "/h");
	hr_private_config_done(&back);
	config.node.job_name = big;
	memset(big, 'x', sizeof(big) - 1);
	assert_int_equal(hr_private_config_write(&config, fileno(file)), -EMSGSIZE);
	rewind(file);
	fputs("nonsense\n", file);
	assert_int_equal(ftruncate(fileno(file), 9), 0);
	fflush(file);
	assert_int_equal(hr_private_config_read(fileno(file), &back), -EBADMSG);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_job_ids),
	    cmocka_unit_test(test_no_scheduler),
	    cmocka_unit_test(test_ranks),
	    cmocka_unit_test(test_options),
	    cmocka_unit_test(test_bad_options),
	    cmocka_unit_test(test_environment),
	    cmocka_unit_test(test_environment_of_tools),
	    cmocka_unit_test(test_environment_of_python),
	    cmocka_unit_test(test_environment_is_kept),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
