/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the state of the node service. All functions run on the loop thread. */
#ifndef HEADRACE_DAEMON_SERVICE_INTERNAL_H
#define HEADRACE_DAEMON_SERVICE_INTERNAL_H

#include <uv.h>

#include "common/host.h"
#include "common/fdstore.h"
#include "daemon/private/kept.h"
#include "daemon/control/private.h"
#include "daemon/service/config.h"
#include "daemon/service/policy.h"
#include "daemon/service/worker.h"
#include "net/metrics.h"
#include "proto/abi.h"

#define JOB_BYTES    256u
#define JOB_PREFIX   20u
#define PENDING_MOST 1024u
#define HELLO_MS     1000u /* time until a pending connection without a hello is closed */
/* Maximum number of users' connections to control.sock; root may have as many more. */
#define CLIENTS_MOST 256u
#define CLIENTS_EACH 32u
#define REQUEST_MS   5000u /* a client that has sent no request is closed after this time */

/* The counters of a JobStatus that the metrics add up: X(FIELD). */
#define COUNTS(X)                                                                                  \
	X(events)                                                                                  \
	X(read_bytes)                                                                              \
	X(written_bytes)                                                                           \
	X(processes_total)                                                                         \
	X(stored_bytes)                                                                            \
	X(refused)                                                                                 \
	X(hostile)                                                                                 \
	X(ring_full) X(stray) X(detached) X(torn) X(given_up) /* counters of lost operations */

enum job_state {
	JOB_STARTING,
	JOB_RUNNING,
	JOB_ENDING,
	JOB_DRAINING,
	/* The recording process failed. Another one starts after a pause, or when the job ends. */
	JOB_FAILING,
	JOB_OFF, /* the policy excludes the job, so it has no recording process */
	JOB_STATES
};

struct service;

struct job {
	struct job *next;
	struct service *service;
	char id[JOB_BYTES]; /* the job id that users see: "123_4" */
	/* The job id in the environment of the job's processes: "127". It often equals `id`. */
	char scheduler[JOB_BYTES];
	char name[JOB_BYTES];
	uint32_t uid, attempt;
	uint64_t key; /* part of the names of the job's file and retained descriptors */
	bool registered;
	bool killed; /* a signal ended its script, so its state is "killed", not "ended" */
	enum hr_policy policy;
	enum job_state state;
	pid_t pid; /* the recording process; 0: none */
	int channel;
	int handoff;	  /* the sending socket of the hand-off queue; `kept` owns it */
	uv_poll_t *poll;  /* watches the channel */
	uint64_t limited; /* processes that a limit refused, not reported as a loss yet */
	/* Connections put into the hand-off queue since the recording process started. */
	uint64_t passed;
	struct hr_kept kept;
	unsigned restarts;
	uint64_t restarted_ms;
	bool recorded; /* it was recorded once, so the service retries until its end */
	char why[HR_WORKER_WHY_BYTES]; /* why the recording process failed; "": it has not */
	uint64_t failed_ms;	       /* when the recording process failed; 0: it has not */
	uint64_t retry_ms;
	Headrace__JobStatus *status; /* the last status of the job; empty at first */
	uint64_t status_ms;	     /* when `status` arrived; 0: none yet */
	bool resumed; /* an earlier service has already counted a part of the first status */
	bool shown;   /* the job has metrics of its own; otherwise, `others` has its counts */
	/* Since when the job has had no process; 0: it has processes. */
	uint64_t idle_since_ms;
	uint32_t level;
	/* The level after level_until_ms, and after a restart of the service. */
	uint32_t level_base;
	uint64_t level_until_ms; /* 0: no limit */
	bool probes;
	char *cgroup;	    /* cgroup with the processes that probes record; NULL: none */
	uint64_t cgroup_id; /* id of this cgroup; 0: not read yet */
	char end_state[16]; /* "": the job has not ended */
	uint64_t linger_ms, drain_ms;
};

struct pending {
	struct pending *next;
	struct service *service;
	uv_poll_t *poll; /* NULL: the service does not wait for the hello */
	int fd;		 /* -1: the connection was handled */
	bool queued;	 /* the connection is in the accept queue */
	uid_t uid;
	uint64_t since_ms;
};

struct client {
	struct client *next;
	struct service *service;
	uv_poll_t poll;
	int fd;
	uint32_t uid;
	pid_t pid;
	uint64_t since_ms;
	struct job *awaits_end;	  /* the client gets its answer when this job ends */
	struct job *awaits_start; /* the client gets its answer when this job is recorded */
};

/*
 * A recording process sends a status each second. If the last status is older than this, its rates
 * count as 0.
 */
#define STATUS_FRESH_MS 2500u

struct service {
	struct hr_service_config *c;
	const struct hr_config_source *from;
	uv_loop_t loop;
	uv_poll_t shim_poll, control_poll, notify_poll;
	uv_signal_t sigterm, sigint, sigchld, sighup;
	uv_timer_t tick;
	int shim_fd, control_fd, lock_fd;
	struct hr_notify notify;
	char exe[4096], node[HR_HOST_NAME_BYTES], boot_id[HR_HOST_BOOT_BYTES], jobs_folder[128];
	struct job *jobs;
	unsigned n_jobs;
	int accept_queue[2];
	struct pending *pending, **pending_last; /* oldest first */
	unsigned n_pending; /* number of connections in `pending` that are not handled */
	struct client *clients;
	unsigned n_clients;
	pid_t uplink; /* pid of the uplink for frames of ended jobs; 0: none */
	uint64_t uplink_ms;
	bool stopping;
	uint64_t started_ms;
	uint64_t spool_bytes; /* bytes of the spool, from the last status of any job */
	bool watchdog;	      /* systemd expects WATCHDOG=1 */
	uint64_t refused;     /* processes over a limit, or of another user than their job */
	uint64_t unplaced;    /* number of processes without a job */
	uint64_t limited;     /* part of `refused`: a limit of the user or the node was reached */
	uint64_t limited_reported; /* processes of `limited` that are also stored as a loss */
	/* Counts of all jobs since the start, and of those jobs that are not `shown`. */
	Headrace__JobStatus total, others;
	uint64_t restarts;	    /* how often killed recording processes were restarted */
	struct hr_metrics *metrics; /* NULL: the service has no metrics */
};

static inline struct hr_policy_rules hr__service_policy(const struct service *s)
{
	return (struct hr_policy_rules){.policy = s->c->policy,
					.partitions = s->c->policy_partitions,
					.users = s->c->policy_users};
}

static inline uint64_t hr__service_now_ms(const struct service *s)
{
	return uv_now(&s->loop);
}

/* job.c */
struct job_spec {
	const char *id, *scheduler, *name; /* `name` may be NULL */
	const char *ranks, *local_ranks;   /* may be NULL */
	const char *account, *partition;
	const char *cgroup; /* folder of a cgroup; may be NULL */
	uint32_t uid, attempt, ranks_expected, nodes_expected;
	int level;  /* enum hr_level; -1: policy and configuration decide */
	int probes; /* 0 or 1; -1: the configuration decides */
	bool registered;
};
#define ANY_ATTEMPT (-1)
/* Finds a job; with ANY_ATTEMPT, its latest attempt. Returns NULL if there is none. */
struct job *hr__service_job_find(struct service *s, const char *id, int64_t attempt);
/* Finds a registered job with this name, or else an unregistered one of user `uid`. NULL: none. */
struct job *hr__service_job_named(struct service *s, const char *name, uint32_t uid);
const char *hr__service_job_state(enum job_state state);
uint64_t hr__service_job_key(const char *id, uint32_t attempt);
/* Adds a job to the table. NULL: no memory. */
struct job *hr__service_job_add(struct service *s, const char *id, const char *scheduler,
				uint32_t uid, uint32_t attempt);
void hr__service_job_free(struct job *job); /* also removes it from the table */
/*
 * Opens the file of a job, which contains its configuration (private.h). Returns a descriptor, or
 * -errno.
 */
int hr__service_job_conf_open(const struct job *job);
void hr__service_job_unlink(const struct job *job); /* removes the file */
int hr__service_job_read(const struct job *job, struct hr_private_config *ret);
/* Replaces the file atomically: a kill leaves either the old or the new file. */
int hr__service_job_write(struct job *job, const struct hr_private_config *config);
/* Writes level, cgroup, end and registration of a job to its file, for the next service. */
void hr__service_job_note(struct job *job);
/* Writes the prefix of the job's names in systemd's descriptor store. */
void hr__service_job_prefix(const struct job *job, char ret[JOB_PREFIX]);
void hr__service_worker_send(struct job *job, hr_control_kind kind, const ProtobufCMessage *body);

/* jobs.c */
/* Begins a job and its recording process. Returns NULL and *ret_error (malloc'ed) if that fails. */
struct job *hr__service_job_begin(struct service *s, const struct job_spec *spec, char **ret_error);
/* Continues the jobs of an earlier service, with the retained descriptors of these jobs. */
void hr__service_jobs_resume(struct service *s, struct hr_inherited *list, size_t n);
/* Sets the level. After for_ms (0: never), the level returns to level_base. */
void hr__service_job_level(struct job *job, uint32_t level, uint64_t for_ms);
void hr__service_job_end(struct job *job, const char *state, uint64_t linger_ms, uint64_t drain_ms);
void hr__service_jobs_tick(struct service *s);
/*
 * Frees all jobs after the end of the loop. The next service continues them with their files and
 * retained descriptors.
 */
void hr__service_jobs_free(struct service *s);

/* cgroup.c */
struct cgroup_of {
	char job[JOB_BYTES]; /* "": the process is in no cgroup of Slurm */
	char folder[1024];   /* the job's cgroup of version 2; "": none */
};
bool hr__service_cgroup_of(pid_t pid, struct cgroup_of *ret);
/* Returns 0 if the job may have the cgroup of `spec`, else -errno. */
int hr__service_cgroup_check(const struct service *s, const struct job_spec *spec,
			     char **ret_error);
/* Makes probes record a cgroup, unless the job has no probes or already has a cgroup. */
int hr__service_cgroup_set(struct job *job, const char *path, char **ret_error);
void hr__service_cgroup_send(struct job *job);

/* workers.c */
int hr__service_worker_start(struct job *job);
/*
 * Call it if the recording process failed. Starts another one later, but removes a job that has
 * ended or was never recorded.
 */
void hr__service_worker_failed(struct job *job, const char *why);
/* Starts another recording process for a failing job. May remove the job. */
void hr__service_worker_retry(struct job *job);
void hr__service_workers_reap(struct service *s);
void hr__service_send_end(struct job *job);
void hr__service_send_level(struct job *job);
/*
 * Removes a job whose recording process has ended. `error`: why that failed, for clients that wait;
 * NULL: no failure.
 */
void hr__service_job_forget(struct job *job, const char *error);
void hr__service_on_notice(uv_poll_t *poll, int status, int events);
/* Makes all recording processes flush and exit, and waits for them. Called at the service's end. */
void hr__service_workers_pause(struct service *s);

/* limits.c */
#define WHY_BYTES 128u
/*
 * Returns whether one more process (or one more map of a process) would exceed a limit of the user
 * or the node.
 */
bool hr__service_limit_reached(const struct job *job, bool new_session, char ret_why[WHY_BYTES]);
/* Call it when a recording process starts. Sets `passed` to the length of its hand-off queue. */
void hr__service_limit_start(struct job *job, int handoff);

/* route.c */
void hr__service_on_shim(uv_poll_t *poll, int status, int events);
void hr__service_pending_tick(struct service *s);
/* Frees the pending connections. The accept queue keeps their sockets for the next service. */
void hr__service_pending_leave(struct service *s);
void hr__service_pending_resume(struct service *s);

/* requests.c */
void hr__service_on_client(uv_poll_t *poll, int status, int events);

/* clients.c */
void hr__service_client_close(struct client *a);
void hr__service_client_done(struct client *a); /* answers that the request is done */
void hr__service_client_refuse(struct client *a, int r, const char *text);
/* Forwards a message of the recording process to clients that wait for the job's end. */
void hr__service_clients_notify(struct job *job, const Headrace__Control *m);
void hr__service_clients_done(struct job *job, const char *error);
/* Answers clients that wait for the start. `error`: the start failed; NULL: the job is recorded. */
void hr__service_clients_begun(struct job *job, const char *error);
/* Closes connections that have been without a request for too long. */
void hr__service_clients_tick(struct service *s);
void hr__service_clients_leave(struct service *s); /* closes all clients without an answer */

/*
 * metrics.c: opens the socket for metrics. After a failure, logs it, and the service has no
 * metrics.
 */
void hr__service_metrics_open(struct service *s);
/* Adds what has grown since the job's status to the metrics. The caller then stores `now`. */
void hr__service_metrics_count(struct job *job, const Headrace__JobStatus *now);

#endif
