/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace run - records CMD
 *
 *      store, job ──▶ private headraced (link.c) ──▶ CMD (child.c) ──▶ leave ──▶ summary
 *
 * If something fails before CMD starts, the exit status is 125; with --best-effort, CMD runs
 * unrecorded. Once CMD has started, the exit status is that of CMD, even if the recording fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/run/environment.h"
#include "cli/run/run.h"
#include "cli/run/job.h"
#include "cli/seccomp.h"
#include "cli/stores.h"
#include "cli/summary/summary.h"
#include "store/store.h"
#include "common/host.h"
#include "common/level.h"
#include "common/text.h"
#include "daemon/control/private.h"
#include "proto/abi.h"

#define FILES_MIN 48u /* smallest RLIMIT_NOFILE that is accepted */

/* ---- up to the start of CMD ---- */

/* Without such a call, headraced would hang, or end without a message that names the call. */
static int check_calls(void)
{
	int error;
	const char *call = hr_seccomp_forbidden(&error);

	if (call == NULL)
		return 0;
	hr_report("cannot start recording: a seccomp filter forbids the system call %s: %s" HR_HINT
		  "allow it in the filter of the container or sandbox, or run CMD unrecorded with "
		  "--best-effort",
		  call, strerrordesc_np(error));
	return -error;
}

static int find_parts(struct hr_run_state *run)
{
	const char *problem;

	run->library = hr_library_find();
	run->headraced = hr_part_find("headraced");
	run->python = hr_part_find("python/startup");
	if (run->library == NULL || run->headraced == NULL) {
		hr_report("cannot find %s" HR_HINT
			  "install headrace again, or set HEADRACE_LIBEXEC to the folder that "
			  "contains it",
			  run->library == NULL ? "libheadrace.so" : "headraced");
		return -ENOENT;
	}
	problem = hr_environment_problem(run->library);
	if (problem != NULL) {
		hr_report("cannot preload %s: %s" HR_HINT "install headrace in another folder",
			  run->library, problem);
		return -EINVAL;
	}
	return 0;
}

static int make_absolute(const char *option, const char *const *lists, char **ret)
{
	for (; *lists != NULL; lists++) {
		int r = hr_filter_absolute(*lists, ret++);

		if (r < 0) {
			hr_report("%s %s: %s", option, *lists,
				  r == -EINVAL
				      ? "cannot use a relative path, because the path of the "
					"working directory contains a comma or a wildcard" HR_HINT
					"use absolute paths"
				      : strerrordesc_np(-r));
			return r;
		}
	}
	return 0;
}

/* Makes the patterns absolute, and refuses more than the shim can hold. */
static int make_filters(struct hr_run_state *run)
{
	const struct hr_run_options *o = &run->options;
	int r = make_absolute("--exclude", o->exclude, run->exclude);

	if (r == 0)
		r = make_absolute("--include", o->include, run->include);
	if (r == 0)
		r = hr_filter_check("--exclude", "HEADRACE_EXCLUDE",
				    (const char *const *)run->exclude);
	return r < 0 ? r
		     : hr_filter_check("--include", "HEADRACE_INCLUDE",
				       (const char *const *)run->include);
}

/* Checks the limit of open files. headraced and its keeper need some, and two for each process. */
static int check_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max >= FILES_MIN)
		return 0;
	hr_report("cannot start recording: the limit of open files (ulimit -n) is %llu; headraced "
		  "needs at least %u",
		  (unsigned long long)files.rlim_max, FILES_MIN);
	return -EMFILE;
}

static int make_store(struct hr_run_state *run)
{
	char holder[512];
	int r;

	if (run->options.collectors != NULL) {
		r = hr_run_uplink_init(run->options.collectors, run->job.node, &run->uplink);
		if (r == 0)
			snprintf(run->store, sizeof(run->store), "%s", run->uplink.spool);
		return r;
	}
	r = hr_store_create(run->job.store);

	if (r == 0 && realpath(run->job.store, run->store) == NULL)
		r = -errno;
	if (r == 0 && strlen(run->store) > HR_STORE_PATH_MOST)
		r = -ENAMETOOLONG;
	if (r == 0 && (run->store_fd = open(run->store, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		r = -errno;
	if (r == -EBUSY && hr_store_holder(run->job.store, holder, sizeof(holder)) &&
	    holder[0] != '\0')
		hr_report("cannot use the store %s: the collector %s writes to it" HR_HINT
			  "send to that collector: -o %.*s",
			  run->job.store, holder, (int)strcspn(holder, " "), holder);
	else if (r < 0)
		hr_report("cannot create the store %s: %s" HR_HINT "%s", run->job.store,
			  hr_refusal_reason(r), hr_refusal_fix(r));
	else if (!hr_store_has_locks(run->job.store))
		hr_report("warning: the file system of %s has no file locks: if headraced is "
			  "killed, the job seems to run for ever, and its last seconds are "
			  "lost" HR_HINT "-o with a folder on another file system, such as /tmp",
			  run->job.store);
	return r;
}

static int check_file(const char *what, const char *file)
{
	int r = file != NULL ? hr_summary_check(file) : 0;

	if (r < 0)
		hr_report("cannot write the %s to %s: %s", what, file, strerrordesc_np(-r));
	return r;
}

/* Checks the files of --summary and --report after the store is made, because they may be in it. */
static int check_files(const struct hr_run_state *run)
{
	int r = check_file("summary", run->options.summary);

	if (r == 0 && run->options.report != NULL && run->uplink.collectors != NULL) {
		hr_report("--report needs a store in a folder" HR_HINT
			  "after the run: `headrace report %s --job JOB`",
			  run->uplink.collectors);
		r = -EINVAL;
	}
	return r < 0 ? r : check_file("report", run->options.report);
}

/* Chooses the job in a store that already has jobs, unless a scheduler or --job names the job. */
static int choose_job(struct hr_run_state *run)
{
	char former[HR_JOB_ID_BYTES];
	int r;

	if (run->options.collectors != NULL || run->options.job != NULL || hr_job_scheduled())
		return 0;
	r = hr_job_reuse(run->store, &run->job, former);
	if (r < 0)
		hr_report("cannot add a job to the store %s: %s" HR_HINT "name the job with --job",
			  run->job.store, strerrordesc_np(-r));
	else if (former[0] != '\0' && run->job.rank <= 0)
		hr_report(
		    "job %s in this store has ended, so this run is recorded as job %s" HR_HINT
		    "--job %s adds it to the ended job",
		    former, run->job.id, former);
	return r;
}

static void configure(struct hr_run_state *run)
{
	const struct hr_run_options *o = &run->options;
	uint64_t instance = 0;

	if (getrandom(&instance, sizeof(instance), 0) != (ssize_t)sizeof(instance))
		instance = (uint64_t)getpid();
	run->config.node = (struct hr_node_config){
	    .store = run->store,
	    .journal_dir = hr_private_journal_dir(run->store),
	    .id = {.cluster = "",
		   .job = run->job.id,
		   .attempt = run->job.attempt,
		   .node = run->job.node,
		   .boot_id = run->job.boot_id,
		   .instance = instance},
	    .uid = geteuid(),
	    .job_name = o->attach ? NULL : basename(o->command[0]),
	    .labels = o->labels,
	    .level = o->level,
	    .max_bytes = o->max_bytes,
	    .ranks = o->ranks,
	    .local_ranks = o->local_ranks,
	    .ranks_expected = run->job.ranks_expected,
	    .probes = o->probes,
	};
	run->config.collectors = run->uplink.collectors;
	run->config.tls_cert = run->uplink.tls.cert;
	run->config.tls_key = run->uplink.tls.key;
	run->config.tls_ca = run->uplink.tls.ca;
	run->config.spool_bytes = run->uplink.spool_bytes;
	run->config.drain_ms = o->drain_ns / 1000000u;
}

static bool same_text(const char *in_force, const char *option)
{
	return strcmp(in_force, option != NULL ? option : "") == 0;
}

/* Reports options that are ignored: the first run of a job on a node sets those of later runs. */
static void report_options_in_force(const struct hr_run_state *run)
{
	const struct hr_run_options *o = &run->options;
	const Headrace__Joined *j = run->link.last->joined;

	if (o->labels[0] != NULL && j->labels_id != hr_private_labels_id(o->labels))
		hr_report("the labels of this run are not stored: another run of this job on this "
			  "node has set them" HR_HINT
			  "--job NAME records this run as a separate job");
	if (j->collectors[0] != '\0' && !same_text(j->collectors, run->uplink.collectors))
		hr_report(
		    "this run sends to %s, which another run of this job on this node has chosen",
		    j->collectors);
	if (j->no_probes[0] != '\0')
		hr_report("recording without probes: %s", j->no_probes);
	if (j->probes_lack[0] != '\0')
		hr_report("probes: %s", j->probes_lack);
	if (j->level == (uint32_t)o->level && j->max_bytes == o->max_bytes &&
	    same_text(j->ranks, o->ranks) && same_text(j->local_ranks, o->local_ranks))
		return;
	hr_report(
	    "the options of another run of this job on this node apply to this run, too: --level "
	    "%s, --max-size %s, --ranks %s, --local-ranks %s",
	    hr_level_name(j->level), j->max_bytes > 0 ? hr_text_size(j->max_bytes).s : "none",
	    j->ranks[0] != '\0' ? j->ranks : "all",
	    j->local_ranks[0] != '\0' ? j->local_ranks : "all");
}

static int join_daemon(struct hr_run_state *run)
{
	char *error = NULL;
	int r = hr_link_open(&run->link, &run->config, run->job.rank, run->headraced, &error);

	if (r < 0)
		hr_report("cannot start recording: %s",
			  error != NULL ? error : strerrordesc_np(-r));
	else
		report_options_in_force(run);
	free(error);
	return r;
}

static int make_environment(struct hr_run_state *run)
{
	struct hr_environment e = {
	    .library = run->library,
	    .python = run->python,
	    .socket = run->config.names.shim, /* "" with --idle */
	    .store = run->options.idle ? NULL : run->store,
	    .job = run->job.id,
	    .exclude = (const char *const *)run->exclude,
	    .include = (const char *const *)run->include,
	    .full_cmdline = run->options.full_cmdline,
	    .functions = run->options.functions,
	    .no_stacks = run->options.no_stacks,
	};

	if (e.functions != NULL && hr_environment_python(run->python) != HR_PYTHON_USED)
		hr_report("no functions are recorded: Python's start-up module is off or cannot "
			  "be used" HR_HINT "`headrace doctor` shows why");
	run->environment = hr_environment_new(&e);
	if (run->environment != NULL)
		return 0;
	hr_report("out of memory");
	return -ENOMEM;
}

static int run_prepare(struct hr_run_state *run)
{
	int r = find_parts(run);

	hr_job_find(run->options.store, run->options.job, &run->job);
	if (r == 0)
		r = make_filters(run);
	if (r == 0)
		r = check_limits();
	if (r == 0)
		r = make_store(run);
	if (r == 0)
		r = check_files(run);
	if (r == 0)
		r = choose_job(run);
	if (r < 0)
		return r;
	configure(run);
	r = join_daemon(run);
	return r < 0 ? r : make_environment(run);
}

static void wait_for_command(struct hr_run_state *run)
{
	while (!run->child.ended) {
		struct pollfd fds[] = {{.fd = run->child.signal_fd, .events = POLLIN},
				       {.fd = run->link.fd, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents != 0)
			hr_link_read(&run->link);
		if (fds[0].revents != 0)
			hr_child_signals(&run->child);
	}
}

#define START_BYTES 34u /* limit of the names of store and job, so that the line fits 80 columns */

/* Once per job, reports on a terminal where the run is recorded and how to watch it. */
static void report_start(const struct hr_run_state *run)
{
	const char *store = run->uplink.collectors != NULL ? run->uplink.first : run->job.store;
	char *job = hr_text_quote(run->job.id);
	/* Without a job id, headrace top shows the only running job. */
	bool fits = job != NULL && strlen(store) + strlen(job) < START_BYTES;

	if (isatty(STDERR_FILENO) && run->job.rank <= 0)
		hr_report("recording into %s; watch: headrace top%s%s", store, fits ? " " : "",
			  fits ? job : "");
	free(job);
}

/* Prints the variables that the program sets for its later children, each with a NUL, and a NUL. */
static int print_variables(const struct hr_run_state *run)
{
	printf("HEADRACE_SOCKET=%s%c", run->config.names.shim, '\0');
	printf("HEADRACE_STORE=%s%c", run->store, '\0');
	printf("HEADRACE_JOB=%s%c%c", run->job.id, '\0', '\0');
	return fflush(stdout) == 0 ? 0 : -errno;
}

/*
 * For --attach, by which headrace.record() records a running program: prints how programs attach,
 * and waits until standard input has a byte or ends, the parent process ends, or a signal arrives.
 */
static int run_attach(struct hr_run_state *run)
{
	pid_t program = getppid();
	int pidfd = (int)syscall(SYS_pidfd_open, program, 0), r;
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = run->child.signal_fd, .events = POLLIN},
			       {.fd = run->link.fd, .events = POLLIN},
			       {.fd = pidfd, .events = POLLIN}};

	signal(SIGPIPE, SIG_IGN);
	hr_link_started(&run->link, program);
	r = print_variables(run);
	while (r == 0) {
		fds[2].fd = run->link.fd;
		if (poll(fds, 4, -1) < 0)
			continue;
		if (fds[2].revents != 0)
			hr_link_read(&run->link);
		if ((fds[0].revents | fds[1].revents | fds[3].revents) != 0)
			break;
	}
	if (pidfd >= 0)
		close(pidfd);
	hr_run_finish(run);
	return r < 0 ? HR_EXIT_STORE_FAILED : 0;
}

static int run_recorded(struct hr_run_state *run)
{
	int r = hr_child_init(&run->child);

	if (r == 0 && run->options.attach)
		return run_attach(run);
	if (r == 0)
		report_start(run);
	if (r == 0)
		r = hr_child_start(&run->child, run->options.command, run->environment);
	if (r < 0) {
		hr_link_leave(&run->link, 0, 0, -1);
		return hr_child_exec_status(run->options.command[0], -r);
	}
	/* A closed pipe at standard error must not change the exit status. */
	signal(SIGPIPE, SIG_IGN);
	hr_link_started(&run->link, run->child.pid);
	wait_for_command(run);
	hr_run_finish(run);
	return hr_child_exit_status(&run->child);
}

static void run_done(struct hr_run_state *run)
{
	hr_link_done(&run->link);
	hr_child_done(&run->child);
	hr_environment_free(run->environment);
	for (size_t i = 0; i < HR_RUN_FILTERS; i++) {
		free(run->exclude[i]);
		free(run->include[i]);
	}
	hr_run_uplink_done(&run->uplink);
	free(run->library);
	free(run->headraced);
	free(run->python);
	free(run);
}

/* For --idle: CMD is ready to be recorded. */
static int run_idle(struct hr_run_state *run)
{
	int r = find_parts(run);

	if (r == 0)
		r = make_filters(run);
	if (r == 0)
		r = make_environment(run);
	if (r < 0 && !run->options.best_effort)
		return HR_EXIT_STORE_FAILED;
	return hr_child_exec(run->options.command, r < 0 ? environ : run->environment);
}

static int run_or_exec(struct hr_run_state *run)
{
	const char *off = getenv("HEADRACE");
	char **command = run->options.command;
	int r;

	if (run->options.attach)
		return check_calls() < 0 || run_prepare(run) < 0 ? HR_EXIT_STORE_FAILED
								 : run_recorded(run);
	if (off != NULL && strcmp(off, "off") == 0)
		return hr_child_exec(command, environ);
	if (run->options.idle)
		return run_idle(run);
	r = check_calls();
	if (r == 0) {
		r = hr_host_find_program(command[0]);
		if (r < 0) /* a wrong CMD must not create a store */
			return hr_child_exec_status(command[0], -r);
		r = run_prepare(run);
	}
	if (r < 0) {
		if (!run->options.best_effort)
			return HR_EXIT_STORE_FAILED;
		hr_report("--best-effort: running %s unrecorded", command[0]);
		hr_link_close(&run->link);
		return hr_child_exec(command, environ);
	}
	return run_recorded(run);
}

int hr_run_main(int argc, char **argv)
{
	struct hr_run_state *run = calloc(1, sizeof(*run));
	int r, status;

	if (run == NULL)
		return HR_EXIT_STORE_FAILED;
	hr_child_prepare();
	run->link.fd = -1;
	run->child.signal_fd = -1;
	r = hr_run_options_parse(argc, argv, &run->options);
	if (r == 0)
		status = run_or_exec(run);
	else
		status = r > 0 ? EXIT_SUCCESS : HR_EXIT_USAGE;
	run_done(run);
	return status;
}
