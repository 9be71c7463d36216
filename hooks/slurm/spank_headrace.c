/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spank_headrace.c - Slurm's plugin: srun, sbatch and salloc --headrace=trace|counters|off
 *
 * It adds an option, and does the work of the task prolog. It never fails a job, and writes errors
 * to Slurm's debug log. srun, sbatch and salloc refuse an unknown value of the option.
 *
 *      process                            work
 *      srun, sbatch, salloc               checks the option; passes the level to the prolog
 *                                         (SPANK_HEADRACE_LEVEL)
 *      slurmstepd, as the user            sends the level to headraced, because the job may have
 *                                         begun before; makes probes follow processes of the step
 *      a task, as the user, before exec   sets LD_PRELOAD and HEADRACE in its environment
 *      a task's end                       reports to headraced if a signal ended the job's script,
 *                                         because the epilog cannot detect this
 *
 * Threads   One in each of these processes.
 */
#include <slurm/slurm.h>
#include <slurm/spank.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "proto/abi.h"

/* Slurm defines the signatures of these functions. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PRELOAD_BYTES 8192u
#define ANSWER_MS     200  /* maximum time that a step waits for headraced */
#define KILLED_MS     2000 /* the same at the end of a killed script, whose state would be wrong */
#define LIBRARY	      "/usr/libexec/headrace/libheadrace.so"
#define SHIM_SOCKET   "/run/headrace/shim.sock"
#define SETTINGS      "/etc/headrace/environment"

SPANK_PLUGIN(headrace, 1)

enum choice { UNSET, OFF, COUNTERS, TRACE };

static const char *const choices[] = {"", "off", "counters", "trace"};

static enum choice chosen;

static enum choice find_choice(const char *text)
{
	for (int i = OFF; text && i <= TRACE; i++)
		if (strcmp(text, choices[i]) == 0)
			return (enum choice)i;
	return UNSET;
}

static int take_option(int val, const char *text, int remote)
{
	enum choice choice = find_choice(text);

	if (choice != UNSET)
		chosen = choice;
	else if (remote)
		slurm_debug("headrace: --headrace=%s: unknown value", text ? text : "");
	else
		slurm_error("--headrace: must be trace, counters or off, not \"%s\"",
			    text ? text : "");
	return choice == UNSET && !remote ? -1 : 0;
}

static struct spank_option option = {
    .name = (char[]){"headrace"},
    .arginfo = (char[]){"trace|counters|off"},
    .usage = (char[]){"record the I/O of this job: every operation, counters, or nothing"},
    .has_arg = 1,
    .cb = take_option,
};

/* Returns the value of the argument "NAME=VALUE" in plugstack.conf, or `otherwise`. */
static const char *argument(int argc, char **argv, const char *name, const char *otherwise)
{
	size_t n = strlen(name);

	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
			return argv[i] + n + 1;
	return otherwise;
}

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
	enum spank_context context = spank_context();

	if ((context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR || context == S_CTX_REMOTE) &&
	    spank_option_register(sp, &option) != ESPANK_SUCCESS)
		slurm_debug("headrace: cannot register the option --headrace");
	return 0;
}

/* ---- where the job is submitted -------------------------------------------------------------- */

/* Returns the choice in the environment, which scripts use: HEADRACE_LEVEL=trace sbatch ... */
static enum choice choice_of_environment(void)
{
	const char *off = getenv("HEADRACE"), *level = getenv("HEADRACE_LEVEL");

	return off && strcmp(off, "off") == 0 ? OFF : find_choice(level);
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	enum choice choice = chosen != UNSET ? chosen : choice_of_environment();

	if (spank_context() == S_CTX_REMOTE)
		return 0;
	/* Child processes inherit the variable, for example an srun in the shell of a salloc. */
	if (choice != UNSET)
		// NOLINTNEXTLINE(concurrency-mt-unsafe): srun has no other thread yet
		setenv("HEADRACE", choice == OFF ? "off" : "on", 1);
	if ((choice == COUNTERS || choice == TRACE) &&
	    spank_job_control_setenv(sp, "HEADRACE_LEVEL", choices[choice], 1) != ESPANK_SUCCESS)
		slurm_debug("headrace: cannot pass --headrace to the prolog");
	return 0;
}

/* ---- on the nodes ---------------------------------------------------------------------------- */

/* Sends a request about this job, and logs a failure. `level` 0: the request has no level. */
static void send_request(spank_t sp, const char *socket, hr_control_kind kind, int level)
{
	Headrace__JobRequest request = HEADRACE__JOB_REQUEST__INIT;
	char id[16], *refusal = NULL;
	uint32_t job = 0;
	int ms = kind == HR_CONTROL(JOB_KILLED) ? KILLED_MS : ANSWER_MS;
	uid_t uid = 0;
	int fd, r;

	if (spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS)
		return;
	snprintf(id, sizeof(id), "%u", job);
	request.job = id;
	request.has_uid = true;
	request.uid = uid;
	request.has_level = level != 0;
	request.level = (uint32_t)level;
	r = hr_control_connect_within(socket, ms, &fd);
	if (r == 0) {
		r = hr_control_request(fd, ms, kind, &request.base, NULL, NULL, &refusal);
		close(fd);
	}
	if (r < 0)
		slurm_debug("headrace: request %d to headraced: %s", (int)kind,
			    refusal ? refusal : strerrordesc_np(-r));
	free(refusal);
}

/* Runs as the owner of the job, once for each step and node, before the tasks start. */
int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
	const char *control = argument(argc, argv, "control", HR_SERVICE_CONTROL);

	if (chosen == COUNTERS || chosen == TRACE)
		send_request(sp, control, HR_CONTROL(SET_LEVEL),
			     chosen == TRACE ? HR_LEVEL_TRACE : HR_LEVEL_COUNTERS);
	/* slurmstepd starts the tasks, so probes also record tasks without the shim. */
	if (chosen != OFF)
		send_request(sp, control, HR_CONTROL(FOLLOW), 0);
	return 0;
}

static bool is_off(spank_t sp, const char *variable)
{
	char text[8];

	return spank_getenv(sp, variable, text, sizeof(text)) == ESPANK_SUCCESS &&
	       strcmp(text, "off") == 0;
}

static bool can_record(int argc, char **argv)
{
	struct stat st;

	return access(argument(argc, argv, "library", LIBRARY), R_OK) == 0 &&
	       stat(argument(argc, argv, "socket", SHIM_SOCKET), &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Copies a preload list without this library. If `with`, appends the library. */
static void compose(const char *list, const char *library, bool with, char ret[PRELOAD_BYTES])
{
	size_t bytes = 0, own = strlen(library);

	for (const char *at = list; *at;) {
		size_t n = strcspn(at, ": ");

		if (n > 0 && (n != own || memcmp(at, library, n) != 0)) {
			if (bytes > 0)
				ret[bytes++] = ':';
			memcpy(ret + bytes, at, n);
			bytes += n;
		}
		at += n + (at[n] != '\0');
	}
	if (with) {
		if (bytes > 0)
			ret[bytes++] = ':';
		memcpy(ret + bytes, library, own);
		bytes += own;
	}
	ret[bytes] = '\0';
}

/* If not `with`, removes the library from an inherited list: ld.so could complain about it. */
static void set_preload(spank_t sp, const char *library, bool with)
{
	char list[PRELOAD_BYTES] = "", fresh[PRELOAD_BYTES];
	int r = spank_getenv(sp, "LD_PRELOAD", list, sizeof(list));

	if (r == ESPANK_ENV_NOEXIST)
		list[0] = '\0';
	if ((r != ESPANK_SUCCESS && r != ESPANK_ENV_NOEXIST) ||
	    strlen(list) + 1 + strlen(library) >= sizeof(fresh)) {
		slurm_debug("headrace: LD_PRELOAD stays as it is");
		return;
	}
	compose(list, library, with, fresh);
	if (fresh[0] != '\0')
		r = spank_setenv(sp, "LD_PRELOAD", fresh, 1);
	else if (list[0] != '\0')
		r = spank_unsetenv(sp, "LD_PRELOAD");
	else
		r = ESPANK_SUCCESS;
	if (r != ESPANK_SUCCESS)
		slurm_debug("headrace: LD_PRELOAD: %s", spank_strerror((spank_err_t)r));
}

/* Registers the library as tool of NVTX and ITT, unless another is set or HEADRACE_NVTX=off. */
static void set_tools(spank_t sp, const char *library, bool with)
{
	static const char *const names[] = {"NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"};
	char value[PRELOAD_BYTES] = "";

	with = with && !is_off(sp, "HEADRACE_NVTX");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (with)
			(void)spank_setenv(sp, names[i], library, 0);
		else if (spank_getenv(sp, names[i], value, sizeof(value)) == ESPANK_SUCCESS &&
			 strcmp(value, library) == 0) /* inherited from an outer step */
			(void)spank_unsetenv(sp, names[i]);
	}
}

/* Sets the variables of the site's file (lines HEADRACE_NAME=VALUE) that the user has not set. */
static void set_settings(spank_t sp, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *value;
	size_t room = 0;

	while (file && getline(&line, &room, file) >= 0) {
		line[strcspn(line, "\r\n")] = '\0';
		value = strchr(line, '=');
		if (!value || strncmp(line, "HEADRACE_", 9) != 0)
			continue;
		*value++ = '\0';
		(void)spank_setenv(sp, line, value, 0);
	}
	free(line);
	if (file)
		(void)fclose(file);
}

static bool has_entry(const char *list, const char *entry)
{
	size_t n = strlen(entry);

	for (; list; list = strchr(list, ':')) {
		list += *list == ':';
		if (strncmp(list, entry, n) == 0 && (list[n] == ':' || list[n] == '\0'))
			return true;
	}
	return false;
}

/* Puts the folder of the Python start-up module (next to the library) first on Python's path. */
static void set_python(spank_t sp, const char *library)
{
	char own[PRELOAD_BYTES] = "", folder[PATH_MAX], fresh[PRELOAD_BYTES];
	const char *slash = strrchr(library, '/');
	struct stat st;
	int n;

	n = snprintf(folder, sizeof(folder), "%.*s/python/startup",
		     slash ? (int)(slash - library) : 0, library);
	if (n < 0 || (size_t)n >= sizeof(folder) || stat(folder, &st) < 0 || !S_ISDIR(st.st_mode) ||
	    is_off(sp, "HEADRACE_PYTHON"))
		return;
	if (spank_getenv(sp, "PYTHONPATH", own, sizeof(own)) != ESPANK_SUCCESS)
		own[0] = '\0';
	n = snprintf(fresh, sizeof(fresh), "%s%s%s", folder, own[0] ? ":" : "", own);
	if (n > 0 && (size_t)n < sizeof(fresh) && !has_entry(own, folder))
		(void)spank_setenv(sp, "PYTHONPATH", fresh, 1);
}

int slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
	const char *library = argument(argc, argv, "library", LIBRARY);
	bool with;

	if (chosen != UNSET)
		spank_setenv(sp, "HEADRACE", chosen == OFF ? "off" : "on", 1);
	with = !is_off(sp, "HEADRACE") && can_record(argc, argv);
	set_preload(sp, library, with);
	if (with)
		set_settings(sp, argument(argc, argv, "settings", SETTINGS));
	/* After the site's settings, which may set HEADRACE_NVTX=off. */
	set_tools(sp, library, with);
	if (with)
		set_python(sp, library);
	return 0;
}

/* Reports a killed script: after a cancel or a time-out, the epilog gets the code 0. */
int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	uint32_t step = 0;
	int status = 0;

	if (spank_get_item(sp, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
	    step == SLURM_BATCH_SCRIPT &&
	    spank_get_item(sp, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS &&
	    WIFSIGNALED(status))
		send_request(sp, argument(argc, argv, "control", HR_SERVICE_CONTROL),
			     HR_CONTROL(JOB_KILLED), 0);
	return 0;
}
