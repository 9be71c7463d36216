/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/environment.h"
#include "cli/seccomp.h"
#include "cli/service/service_link.h"
#include "cli/stores.h"
#include "query/duckdb/duckdb_api.h"
#include "store/store.h"
#include "common/tsc.h"
#include "daemon/control/private.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define REINSTALL "install headrace again, or set HEADRACE_LIBEXEC to the folder that contains it"

void hr_check_set(struct hr_check *c, enum hr_health health, const char *fix, const char *format,
		  ...)
{
	va_list args;

	va_start(args, format);
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is one line above
	vsnprintf(c->found, sizeof(c->found), format, args);
	va_end(args);
	snprintf(c->fix, sizeof(c->fix), "%s", fix != NULL ? fix : "");
	c->health = health;
}

/* Reads the first line of a file, without the newline. Returns false on failure. */
static bool read_line(const char *path, char *out, size_t bytes)
{
	FILE *f = fopen(path, "re");
	bool read = f != NULL && fgets(out, (int)bytes, f) != NULL;

	if (f != NULL)
		fclose(f);
	if (read)
		out[strcspn(out, "\n")] = '\0';
	return read;
}

/* Reads the value of a "Name:\tvalue" line of /proc/self/status. */
static bool read_status(const char *name, char *out, size_t bytes)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t n = strlen(name);
	char line[256];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
		found = strncmp(line, name, n) == 0 && line[n] == ':';
		if (found)
			snprintf(out, bytes, "%s", line + n + 1 + strspn(line + n + 1, " \t"));
	}
	if (f != NULL)
		fclose(f);
	out[found ? strcspn(out, "\n") : 0] = '\0';
	return found;
}

/* Runs a shell with the library preloaded. `errors` receives ld.so's messages. */
static int run_preloaded(const char *library, char *errors, size_t bytes)
{
	int out[2], status = -1;
	size_t used = 0;
	ssize_t n;
	pid_t child;

	if (pipe2(out, O_CLOEXEC) != 0)
		return -1;
	child = fork();
	if (child == 0) {
		dup2(out[1], STDERR_FILENO);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
		/* NOLINTBEGIN(concurrency-mt-unsafe): doctor has one thread */
		setenv("LD_PRELOAD", library, 1);
		unsetenv("HEADRACE");
		/* NOLINTEND(concurrency-mt-unsafe) */
		execl("/bin/sh", "sh", "-c", ":", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	while (used + 1 < bytes && (n = read(out[0], errors + used, bytes - 1 - used)) > 0)
		used += (size_t)n;
	errors[used] = '\0';
	errors[strcspn(errors, "\n")] = '\0';
	close(out[0]);
	return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

void hr_check_preload(const struct hr_doctor *d, struct hr_check *c)
{
	char errors[200] = "";
	int status;

	if (d->library == NULL) {
		hr_check_set(c, HR_HEALTH_FAIL, REINSTALL, "cannot find libheadrace.so");
		return;
	}
	status = run_preloaded(d->library, errors, sizeof(errors));
	if (status == 0 && errors[0] == '\0')
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s", d->library);
	else
		hr_check_set(c, HR_HEALTH_FAIL,
			     "make the library readable, and build it for the libc of this machine",
			     "cannot load %s: %s", d->library, errors);
}

void hr_check_daemon(const struct hr_doctor *d, struct hr_check *c)
{
	if (d->headraced != NULL && access(d->headraced, X_OK) == 0)
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s", d->headraced);
	else
		hr_check_set(c, HR_HEALTH_FAIL, REINSTALL, "cannot find headraced");
}

void hr_check_python(const struct hr_doctor *d, struct hr_check *c)
{
	char path[PATH_MAX];
	bool readable;

	snprintf(path, sizeof(path), "%s/sitecustomize.py", d->python != NULL ? d->python : "");
	readable = d->python != NULL && access(path, R_OK) == 0;
	switch (hr_environment_python(readable ? d->python : NULL)) {
	case HR_PYTHON_USED:
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s", d->python);
		break;
	case HR_PYTHON_OFF:
		hr_check_set(
		    c, HR_HEALTH_OK, NULL,
		    "off (HEADRACE_PYTHON=off): input waits and steps of PyTorch are not recorded");
		break;
	case HR_PYTHON_ABSENT:
		hr_check_set(c, HR_HEALTH_WARN, REINSTALL,
			     "input waits and steps of PyTorch are not recorded: cannot find "
			     "python/startup");
		break;
	default:
		hr_check_set(c, HR_HEALTH_WARN,
			     "install headrace in a folder without a colon in its path",
			     "input waits and steps of PyTorch are not recorded: PYTHONPATH cannot "
			     "contain %s",
			     d->python);
	}
}

void hr_check_socket(const struct hr_doctor *d, struct hr_check *c)
{
	struct hr_private_names names;
	char *error = NULL;

	(void)d;
	if (hr_private_names("/", "doctor", &names, &error) == 0) {
		*strrchr(names.control, '/') = '\0';
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s", names.control);
	} else {
		hr_check_set(c, HR_HEALTH_FAIL, "set TMPDIR to a folder of yours with a short path",
			     "%s", error != NULL ? error : "cannot create a folder for sockets");
	}
	free(error);
}

void hr_check_memfd(const struct hr_doctor *d, struct hr_check *c)
{
	int fd = memfd_create("headrace-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)d;
	if (fd < 0 || ftruncate(fd, 4096) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		hr_check_set(c, HR_HEALTH_FAIL,
			     "use Linux 3.17 or newer, without a filter on memfd_create",
			     "cannot create sealed shared memory (memfd_create): %s",
			     strerrordesc_np(errno));
	else if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0)
		hr_check_set(
		    c, HR_HEALTH_WARN,
		    "use Linux 5.1 or newer, to prevent clients from writing to the node page",
		    "the kernel has no F_SEAL_FUTURE_WRITE");
	else
		hr_check_set(c, HR_HEALTH_OK, NULL, "memfd_create with all seals");
	if (fd >= 0)
		close(fd);
}

void hr_check_wipeonfork(const struct hr_doctor *d, struct hr_check *c)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)d;
	if (page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0)
		hr_check_set(c, HR_HEALTH_OK, NULL, "MADV_WIPEONFORK");
	else
		hr_check_set(c, HR_HEALTH_FAIL,
			     "use Linux 4.14 or newer; on this kernel headrace cannot identify "
			     "forked workers",
			     "MADV_WIPEONFORK: %s", strerrordesc_np(errno));
	if (page != MAP_FAILED)
		munmap(page, 4096);
}

void hr_check_statx(const struct hr_doctor *d, struct hr_check *c)
{
	struct statx stx;
	bool works = statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &stx) == 0;

	(void)d;
	if (works && (stx.stx_mask & STATX_MNT_ID) != 0)
		hr_check_set(c, HR_HEALTH_OK, NULL, "statx returns mount ids");
	else
		hr_check_set(
		    c, HR_HEALTH_WARN,
		    "use Linux 5.8 or newer; on this kernel headrace finds mounts by device",
		    "%s%s", works ? "statx returns no mount ids" : "statx: ",
		    works ? "" : strerrordesc_np(errno));
}

void hr_check_pidfd(const struct hr_doctor *d, struct hr_check *c)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)d;
	if (fd >= 0) {
		close(fd);
		hr_check_set(c, HR_HEALTH_OK, NULL, "pidfd_open");
	} else {
		hr_check_set(c, HR_HEALTH_FAIL,
			     "use Linux 5.3 or newer; on this kernel headraced cannot see the end "
			     "of a process",
			     "pidfd_open: %s", strerrordesc_np(errno));
	}
}

void hr_check_clock(const struct hr_doctor *d, struct hr_check *c)
{
	char source[64] = "unknown";

	(void)d;
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		  sizeof(source));
	if (!hr_tsc_is_invariant()) {
		hr_check_set(c, HR_HEALTH_WARN,
			     "nothing to do: recording an operation costs about 25 ns more",
			     "no invariant TSC; clock source %s", source);
		return;
	}
#ifdef __x86_64__
	if (strcmp(source, "tsc") != 0 && strcmp(source, "kvm-clock") != 0 &&
	    strcmp(source, "hyperv_clocksource_tsc_page") != 0) {
		hr_check_set(c, HR_HEALTH_WARN,
			     "find out why the kernel does not use the TSC: `dmesg | grep -i tsc`",
			     "invariant TSC, but the clock source is %s", source);
		return;
	}
#endif
	hr_check_set(c, HR_HEALTH_OK, NULL, "clock source %s", source);
}

void hr_check_seccomp(const struct hr_doctor *d, struct hr_check *c)
{
	char mode[16] = "";
	int error;
	const char *call = hr_seccomp_forbidden(&error);

	(void)d;
	if (call != NULL)
		hr_check_set(c, HR_HEALTH_FAIL,
			     "allow it in the filter of the container or sandbox",
			     "a seccomp filter forbids the system call %s: %s", call,
			     strerrordesc_np(error));
	else if (!read_status("Seccomp", mode, sizeof(mode)) || strcmp(mode, "0") == 0)
		hr_check_set(c, HR_HEALTH_OK, NULL, "no filter");
	else
		hr_check_set(c, HR_HEALTH_WARN,
			     "if the filter allows socket, connect and mmap (those of containers "
			     "do), set HEADRACE_SECCOMP=allow",
			     "a seccomp filter is active: programs are not recorded");
}

void hr_check_files(const struct hr_doctor *d, struct hr_check *c)
{
	struct rlimit limit;

	(void)d;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= 4096)
		hr_check_set(c, HR_HEALTH_OK, NULL, "up to %llu open files",
			     (unsigned long long)limit.rlim_max);
	else
		hr_check_set(
		    c, HR_HEALTH_WARN,
		    "raise the hard limit (ulimit -Hn, limits.conf) to 4096 or more",
		    "at most %llu open files: headraced needs one or two per process of a job",
		    (unsigned long long)limit.rlim_max);
}

/* Sets `out` to `store` if it exists, otherwise to the folder in which it would be created. */
static void store_place(const char *store, char *out, size_t bytes)
{
	char *slash;

	snprintf(out, bytes, "%s", store);
	if (access(out, F_OK) == 0)
		return;
	slash = strrchr(out, '/');
	if (slash == NULL)
		snprintf(out, bytes, ".");
	else
		slash[slash == out] = '\0';
}

void hr_check_store(const struct hr_doctor *d, struct hr_check *c)
{
	const char *store = d->store != NULL ? d->store : "headrace-doctor", *journal;
	const char *shown = d->store != NULL ? d->store : "a store in this folder";
	const char *is = "is on";
	struct hr_fs_kind kind = {.name = "unknown"};
	char place[PATH_MAX], hint[PATH_MAX + 64] = "";
	int r = d->no_store ? 0 : hr_store_check(store);

	if (d->no_store)
		return;
	if (r < 0) {
		hr_check_set(c, HR_HEALTH_FAIL, hr_refusal_fix(r), "%s: %s", shown,
			     hr_refusal_reason(r));
		return;
	}
	store_place(store, place, sizeof(place));
	if (d->store != NULL && access(store, F_OK) != 0) {
		is = "would be created on";
		if (strchr(store, '/') == NULL) /* the user may mean a host */
			snprintf(hint, sizeof(hint), " (for a collector, write tcp://%s)", store);
	}
	hr_fs_kind(place, &kind);
	journal = hr_private_journal_dir(place);
	if (journal != NULL)
		hr_check_set(c, HR_HEALTH_WARN,
			     "nothing to do; but if the node crashes, data that is only in the "
			     "journal is lost",
			     "%s %s %s, a network file system, so the journal will be in %s%s",
			     shown, is, kind.name, journal, hint);
	else
		hr_check_set(c, HR_HEALTH_OK, NULL, "%s %s %s%s", shown, is, kind.name, hint);
}

void hr_check_cgroup(const struct hr_doctor *d, struct hr_check *c)
{
	(void)d;
	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0)
		hr_check_set(c, HR_HEALTH_OK, NULL, "version 2");
	else if (access("/sys/fs/cgroup/unified/cgroup.procs", R_OK) == 0)
		hr_check_set(c, HR_HEALTH_OK, NULL,
			     "version 1, with version 2 at /sys/fs/cgroup/unified");
	else
		hr_check_set(c, HR_HEALTH_WARN,
			     "nothing to do: headrace identifies jobs by process tree",
			     "no version 2 hierarchy");
}

void hr_check_duckdb(const struct hr_doctor *d, struct hr_check *c)
{
	char *error = NULL;

	(void)d;
	if (hr_duckdb_load(&error) == 0)
		hr_check_set(c, HR_HEALTH_OK, NULL, "DuckDB %s", hr_duckdb.library_version());
	else
		hr_check_set(c, HR_HEALTH_WARN, error, "`headrace query` cannot use DuckDB");
	free(error);
}

/* ---- headraced of this node: it serves all jobs, and can record them ------------------------- */

#define ANSWER_MS 2000u

struct service_answer {
	char node[256];
	unsigned jobs;
};

static void doctor_service_take(void *arg, Headrace__Control *m)
{
	struct service_answer *s = arg;

	if (m->kind_case != HR_CONTROL(NODE_STATUS))
		return;
	snprintf(s->node, sizeof(s->node), "%s", m->node_status->node);
	s->jobs = m->node_status->jobs;
}

void hr_check_service(const struct hr_doctor *d, struct hr_check *c)
{
	const char *socket = hr_service_socket(NULL);
	struct service_answer status = {.node = "?"};
	int r = hr_service_status(socket, ANSWER_MS, doctor_service_take, &status);

	(void)d;
	if (r == -ENOENT) {
		hr_check_set(c, HR_HEALTH_OK, NULL,
			     "no service on this node: `headrace run` does not need it");
	} else if (r == -ECONNREFUSED) {
		hr_check_set(c, HR_HEALTH_WARN, "systemctl start headraced",
			     "the headraced service is not running (%s)", socket);
	} else if (r < 0) {
		hr_check_set(c, HR_HEALTH_WARN, "journalctl -u headraced",
			     "the headraced service does not answer at %s: %s", socket,
			     strerrordesc_np(-r));
	} else {
		hr_check_set(c, HR_HEALTH_OK, NULL,
			     "node %s, %u jobs now: `headrace status` shows them", status.node,
			     status.jobs);
	}
}
