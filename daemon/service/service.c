/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/host.h"
#include "common/log.h"
#include "common/text.h"
#include "common/fdstore.h"
#include "daemon/base/loop.h"
#include "daemon/base/passfd.h"
#include "daemon/service/internal.h"

#define TICK_MS		1000u
#define UPLINK_AGAIN_MS 10000u
#define UPLINK_RECOVER	"60s"
#define SHIM_BACKLOG	4096
#define LOCK_MOMENTS	100
#define LOCK_MOMENT_NS	20000000
#define EXIT_USAGE	2

/* ---- the uplink for frames of ended workers -------------------------------------------------- */

static void become_uplink(const struct service *s)
{
	/*
	 * After a kill of all processes, the uplink waits for UPLINK_RECOVER, so that new recording
	 * processes can continue their streams.
	 */
	char *argv[16] = {(char[]){"headraced"},
			  (char[]){"uplink"},
			  s->c->spool,
			  (char[]){"--follow"},
			  (char[]){"--recover-after"},
			  (char[]){UPLINK_RECOVER},
			  (char[]){"--collector"},
			  s->c->collectors};
	int n = 8;
	sigset_t none;

	if (hr_text_given(s->c->tls_cert)) {
		argv[n++] = (char[]){"--tls-cert"};
		argv[n++] = s->c->tls_cert;
		argv[n++] = (char[]){"--tls-key"};
		argv[n++] = s->c->tls_key;
		argv[n++] = (char[]){"--tls-ca"};
		argv[n++] = s->c->tls_ca;
	}
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	execv(s->exe, argv);
	_exit(HR_KEPT_FAILED);
}

static void keep_uplink(struct service *s)
{
	uint64_t now = hr__service_now_ms(s);

	if (s->uplink != 0 || !hr_text_given(s->c->collectors) ||
	    (s->uplink_ms != 0 && now - s->uplink_ms < UPLINK_AGAIN_MS) ||
	    access(s->c->spool, F_OK) < 0)
		return;
	s->uplink_ms = now;
	s->uplink = fork();
	if (s->uplink == 0)
		become_uplink(s);
	if (s->uplink < 0)
		s->uplink = 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void accept_clients(struct service *s)
{
	uv_poll_start(&s->control_poll, UV_READABLE, hr__service_on_client);
	uv_poll_start(&s->shim_poll, UV_READABLE, hr__service_on_shim);
}

static void service_on_tick(uv_timer_t *timer)
{
	struct service *s = timer->data;

	accept_clients(s);
	if (s->watchdog)
		hr_fdstore_notify("WATCHDOG=1");
	hr__service_pending_tick(s);
	hr__service_clients_tick(s);
	hr__service_jobs_tick(s);
	keep_uplink(s);
}

static void on_child(uv_signal_t *handle, int signum)
{
	(void)signum;
	hr__service_workers_reap(handle->data);
}

static void on_stop(uv_signal_t *handle, int signum)
{
	struct service *s = handle->data;

	(void)signum;
	s->stopping = true;
	uv_stop(&s->loop);
}

/* Reads the configuration again, for later jobs and requests. Running jobs keep theirs. */
static void on_reload(uv_signal_t *handle, int signum)
{
	struct service *s = handle->data;
	struct hr_service_config fresh = {0}, old;

	(void)signum;
	hr_fdstore_notify("RELOADING=1");
	if (hr_config_load(s->from, &fresh) < 0 ||
	    !hr_service_config_check(&fresh, s->from->report)) {
		hr_log(HR_LOG_ERROR,
		       "SIGHUP: cannot use the new configuration; keeping the previous one");
	} else {
		hr_service_config_settle(&fresh);
		hr_config_keep_fixed(hr_service_keys, hr_service_n_keys, s->c, &fresh,
				     s->from->report);
		old = *s->c;
		*s->c = fresh;
		fresh = old;
		hr_log(HR_LOG_INFO,
		       "SIGHUP: the new configuration applies to jobs that start from now on");
		if (s->uplink != 0)
			kill(s->uplink, SIGTERM);
		/* the next tick starts an uplink with the new configuration */
		s->uplink_ms = 0;
	}
	hr_config_done(hr_service_keys, hr_service_n_keys, &fresh);
	hr_fdstore_notify("READY=1");
}

static void watch(struct service *s, uv_poll_t *poll, int fd, uv_poll_cb cb)
{
	poll->data = s;
	uv_poll_init(&s->loop, poll, fd);
	uv_poll_start(poll, UV_READABLE, cb);
}

static void watch_signal(struct service *s, uv_signal_t *handle, int signum, uv_signal_cb cb)
{
	handle->data = s;
	uv_signal_init(&s->loop, handle);
	uv_signal_start(handle, cb, signum);
}

static int service_start_loop(struct service *s)
{
	int r = uv_loop_init(&s->loop);

	if (r < 0)
		return r;
	s->started_ms = uv_now(&s->loop);
	watch(s, &s->notify_poll, s->notify.fd, hr__service_on_notice);
	watch(s, &s->control_poll, s->control_fd, hr__service_on_client);
	watch(s, &s->shim_poll, s->shim_fd, hr__service_on_shim);
	watch_signal(s, &s->sigchld, SIGCHLD, on_child);
	watch_signal(s, &s->sigterm, SIGTERM, on_stop);
	watch_signal(s, &s->sigint, SIGINT, on_stop);
	watch_signal(s, &s->sighup, SIGHUP, on_reload);
	s->tick.data = s;
	uv_timer_init(&s->loop, &s->tick);
	return uv_timer_start(&s->tick, service_on_tick, 0, TICK_MS);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int service_fail(int r, const char *what, const char *name)
{
	hr_log(HR_LOG_ERROR, "%s %s: %s", what, name, strerrordesc_np(-r));
	return r;
}

static int take_socket(struct hr_inherited *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		int fd = list[i].fd;

		if (fd < 0 || strcmp(list[i].name, name) != 0)
			continue;
		list[i].fd = -1;
		return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0 ? fd : -1;
	}
	return -1;
}

/* Takes a socket from systemd. If there is none, makes one to which all users may connect. */
static int open_socket(const struct service *s, struct hr_inherited *list, size_t n,
		       const char *name, int *ret_fd)
{
	char path[HR_PRIVATE_PATH];
	int r;

	snprintf(path, sizeof(path), "%s/%s.sock", s->c->runtime, name);
	*ret_fd = take_socket(list, n, name);
	if (*ret_fd >= 0)
		return 0;
	r = hr_control_listen(path, ret_fd);
	if (r == 0 && chmod(path, 0666) < 0)
		r = -errno;
	return r < 0 ? service_fail(r, "cannot listen at", path) : 0;
}

static int open_accept_queue(struct service *s, struct hr_inherited *list, size_t n)
{
	static const char *const names[2] = {"landing.out", "landing.in"};
	int r;

	for (int i = 0; i < 2; i++)
		s->accept_queue[i] = take_socket(list, n, names[i]);
	if (s->accept_queue[0] >= 0 && s->accept_queue[1] >= 0)
		return 0;
	r = hr_passfd_open(s->accept_queue);
	for (int i = 0; i < 2 && r == 0; i++)
		hr_fdstore_push(names[i], s->accept_queue[i]);
	return r < 0 ? service_fail(r, "cannot open", "the accept queue") : 0;
}

static int make_folder(const char *path, mode_t mode)
{
	return mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/*
 * Locks the folder, because a second service would take the sockets and jobs of the first. Tries
 * for two seconds, because children of a killed service hold its lock until their exec.
 */
static int lock_runtime(struct service *s)
{
	const struct timespec moment = {.tv_nsec = LOCK_MOMENT_NS};
	char path[HR_PRIVATE_PATH];

	snprintf(path, sizeof(path), "%s/lock", s->c->runtime);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return service_fail(-errno, "cannot make", path);
	for (int i = 0; i < LOCK_MOMENTS; i++) {
		if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		(void)nanosleep(&moment, NULL);
	}
	hr_log(HR_LOG_ERROR, "another headraced uses %s: `headrace status` shows it",
	       s->c->runtime);
	return -EBUSY;
}

static int open_folders(struct service *s)
{
	int r = make_folder(s->c->runtime, 0755);

	/* The umask is 077, but all users must reach the sockets in this folder. */
	if (r == 0 && chmod(s->c->runtime, 0755) < 0 && errno != EPERM)
		r = -errno;
	if (r < 0)
		return service_fail(r, "cannot make", s->c->runtime);
	r = lock_runtime(s);
	if (r < 0)
		return r;
	snprintf(s->jobs_folder, sizeof(s->jobs_folder), "%s/jobs", s->c->runtime);
	r = make_folder(s->jobs_folder, 0700);
	return r < 0 ? service_fail(r, "cannot make", s->jobs_folder) : 0;
}

static void name_node(struct service *s)
{
	ssize_t n = readlink("/proc/self/exe", s->exe, sizeof(s->exe) - 1);

	s->exe[n > 0 ? n : 0] = '\0';
	hr_host_boot_id(s->boot_id);
	if (hr_text_given(s->c->node))
		snprintf(s->node, sizeof(s->node), "%s", s->c->node);
	else
		hr_host_name(s->node);
}

static int service_start(struct service *s)
{
	struct hr_inherited *list = NULL;
	size_t n = 0;
	int r = open_folders(s);

	(void)hr_host_raise_files();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* ignored until the loop handles it */
	signal(SIGCHLD, SIG_DFL);
	if (r == 0 && hr_fdstore_inherit(&list, &n) < 0)
		n = 0;
	if (r == 0)
		r = open_socket(s, list, n, "shim", &s->shim_fd);
	if (r == 0)
		r = open_socket(s, list, n, "control", &s->control_fd);
	/* After listen(), this process is the peer. Shims check whether their peer is stopped. */
	if (r == 0 && (listen(s->shim_fd, SHIM_BACKLOG) < 0 || listen(s->control_fd, 64) < 0))
		r = service_fail(-errno, "cannot listen at", s->c->runtime);
	if (r == 0)
		r = open_accept_queue(s, list, n);
	if (r == 0) {
		r = hr_notify_open(&s->notify);
		if (r < 0)
			service_fail(r, "cannot open", "the notify socket for workers");
	}
	if (r == 0)
		r = service_start_loop(s);
	if (r == 0) {
		hr__service_jobs_resume(s, list, n);
		hr__service_pending_resume(s);
	}
	hr_fdstore_inherited_free(list, n);
	return r;
}

/* Stops the service. Files and retained descriptors stay for the next service. */
static void service_stop(struct service *s)
{
	hr__service_workers_pause(s);
	hr__service_pending_leave(s);
	hr__service_clients_leave(s);
	hr_metrics_close(s->metrics);
	hr_loop_close(&s->loop);
	hr__service_jobs_free(s);
}

/* Runs until SIGTERM or SIGINT. Returns the exit status, and logs failures. */
static int service_run(const struct hr_config_source *from, struct hr_service_config *config)
{
	struct service *s = calloc(1, sizeof(*s));
	int status = EXIT_FAILURE;

	if (!s)
		return EXIT_FAILURE;
	s->c = config;
	s->from = from;
	s->pending_last = &s->pending;
	headrace__job_status__init(&s->total);
	headrace__job_status__init(&s->others);
	s->shim_fd = s->control_fd = s->notify.fd = s->lock_fd = -1;
	s->watchdog = getenv("WATCHDOG_USEC") != NULL;
	name_node(s);
	if (service_start(s) == 0) {
		hr__service_metrics_open(s);
		hr_fdstore_notify("READY=1");
		hr_log(HR_LOG_INFO, "headraced %s on node %s, %u jobs", HEADRACE_VERSION, s->node,
		       s->n_jobs);
		uv_run(&s->loop, UV_RUN_DEFAULT);
		hr_fdstore_notify("STOPPING=1");
		service_stop(s);
		status = EXIT_SUCCESS;
	}
	hr_notify_close(&s->notify);
	free(s);
	return status;
}

/* ---- the command headraced service ----------------------------------------------------------- */

static void help(void)
{
	puts("Usage: headraced service [OPTION...]\n\n"
	     "Records all jobs of this node. systemd starts it; to record a single program, use\n"
	     "`headrace run`.\n\n"
	     "Example: headraced service --spool /var/spool/headrace --collectors "
	     "tcp://collector\n\n"
	     "  --config FILE      read this configuration file (default: " HR_SERVICE_CONFIG_FILE
	     ", if it exists)\n"
	     "  --check-config     check configuration file and options, report mistakes, and end");
	hr_config_help(hr_service_keys, hr_service_n_keys, stdout);
}

static void log_mistake(const char *text)
{
	hr_log(HR_LOG_ERROR, "%s", text);
}

int hr_service_main(int argc, char **argv)
{
	const struct hr_config_source from = {
	    .keys = hr_service_keys,
	    .n = hr_service_n_keys,
	    .file = HR_SERVICE_CONFIG_FILE,
	    .argc = argc - 1,
	    .argv = argv + 1,
	    .help = "headraced service --help",
	    .report = log_mistake,
	};
	struct hr_service_config config = {0};
	int status = EXIT_USAGE;
	bool good;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			help();
			return EXIT_SUCCESS;
		}
	}
	good = hr_config_load(&from, &config) == 0;
	good &= hr_service_config_check(&config, log_mistake);
	if (hr_config_asks_check(&from)) {
		bool works = hr_service_check(&config, log_mistake);

		if (good)
			status = works ? EXIT_SUCCESS : EXIT_FAILURE;
	} else if (good) {
		hr_service_config_settle(&config);
		status = service_run(&from, &config);
	}
	hr_config_done(hr_service_keys, hr_service_n_keys, &config);
	return status;
}
