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
#define PENDING_MOST 1024u /* pending connections of shims */
#define HELLO_MS     1000u /* after this time, a pending connection without a hello is closed */
/* Connections of users to control.sock; root may have as many in addition. */
#define CLIENTS_MOST 256u
#define CLIENTS_EACH 32u   /* connections of one user */
#define REQUEST_MS   5000u /* after this time, a client without a request is closed */

/* Counters of a JobStatus that the metrics add up. */
#define COUNTS(X)                                                                                  \
	X(events)                                                                                  \
	X(read_bytes)                                                                              \
	X(written_bytes)                                                                           \
	X(processes_total)                                                                         \
	X(stored_bytes)                                                                            \
	X(refused)                                                                                 \
	X(hostile)                                                                                 \
	X(ring_full) X(stray) X(detached) X(torn) X(given_up) /* lost operations */

enum job_state {
	JOB_STARTING,
	JOB_RUNNING,
	JOB_ENDING,
	JOB_DRAINING,
	/* Its worker failed; another worker starts after a pause, or when the job ends. */
	JOB_FAILING,
	JOB_OFF, /* not recorded because of the policy; it has no worker */
	JOB_STATES
};

struct service;

struct job {
	struct job *next;
	struct service *service;
	char id[JOB_BYTES]; /* the id that users see: "123_4" */
	/* The id in the environment of its processes: "127"; often equal to `id`. */
	char scheduler[JOB_BYTES];
	char name[JOB_BYTES];
	uint32_t uid, attempt;
	uint64_t key;	 /* part of the names of its file and its retained descriptors */
	bool registered; /* a prolog has registered it */
	bool killed;	 /* a signal ended its script, so its state is "killed", not "ended" */
	enum hr_policy policy;
	enum job_state state;
	pid_t pid; /* 0: none */
	int channel;
	int handoff;	  /* the service's socket of the hand-off queue; `kept` owns it */
	uv_poll_t *poll;  /* watches the channel */
	uint64_t limited; /* processes that a limit refused, and that no worker has counted yet */
	/* Connections that were put into the hand-off queue since its worker started. */
	uint64_t passed;
	struct hr_kept kept;
	unsigned restarts;
	uint64_t restarted_ms;
	bool recorded; /* a worker was ready once, so the service retries until the job ends */
	char why[HR_WORKER_WHY_BYTES]; /* why its worker failed; "": it works */
	uint64_t failed_ms;	       /* when its worker failed; 0: it works */
	uint64_t retry_ms;
	Headrace__JobStatus *status; /* the last status of a worker; empty at first */
	uint64_t status_ms;	     /* when `status` arrived; 0: none yet */
	bool resumed; /* an earlier service has already counted a part of the first status */
	bool shown;   /* the job has its own metrics; otherwise, `others` includes it */
	/* The time since which the job has had no process; 0: it has processes. */
	uint64_t idle_since_ms;
	uint32_t level; /* the current level */
	/* The level after level_until_ms, and after a restart of the service. */
	uint32_t level_base;
	uint64_t level_until_ms; /* 0: no limit */
	bool probes;		 /* probes are requested */
	char *cgroup;		 /* the cgroup whose processes probes record; NULL: none */
	uint64_t cgroup_id;	 /* id of this cgroup; 0: not read yet */
	char end_state[16];	 /* "": it has not ended */
	uint64_t linger_ms, drain_ms;
};

struct pending {
	struct pending *next;
	struct service *service;
	uv_poll_t *poll; /* NULL: the service does not wait for its hello */
	int fd;		 /* -1: processed */
	bool queued;	 /* the accept queue has it */
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
	struct job *awaits_end;	  /* the service answers when this job ends */
	struct job *awaits_start; /* the service answers when this job is recorded */
};

/*
 * A worker that records sends a status each second. If its last status is older than this, the
 * rates in it count as 0.
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
	int accept_queue[2];			 /* route.c */
	struct pending *pending, **pending_last; /* the oldest is first */
	unsigned n_pending; /* pending connections that are not processed yet */
	struct client *clients;
	unsigned n_clients;
	pid_t uplink;	    /* the process that sends frames of ended workers; 0: none */
	uint64_t uplink_ms; /* when the uplink was last started */
	bool stopping;
	uint64_t started_ms;
	uint64_t spool_bytes; /* bytes of the spool, from the last status of a worker */
	bool watchdog;	      /* systemd expects WATCHDOG=1 */
	uint64_t refused; /* processes that a limit refused, or whose job belongs to another user */
	uint64_t unplaced; /* processes without a job */
	uint64_t limited;  /* the part of `refused` that a limit of the user or the node refused */
	uint64_t limited_reported; /* the part of `limited` that a worker has also counted */
	/* The counts of all jobs since the start, and of the jobs that are not `shown`. */
	Headrace__JobStatus total, others;
	uint64_t restarts;	    /* number of restarts of workers that were killed */
	struct hr_metrics *metrics; /* NULL: metrics are not configured */
};

/* service.c */
struct hr_policy_rules hr__service_policy(const struct service *s);
uint64_t hr__service_now_ms(const struct service *s);

/* jobs.c */
struct job_spec {			   /* describes a new job */
	const char *id, *scheduler, *name; /* `name` may be NULL */
	const char *ranks, *local_ranks;   /* may be NULL */
	const char *account, *partition;   /* may be NULL */
	const char *cgroup;		   /* a folder; may be NULL */
	uint32_t uid, attempt, ranks_expected, nodes_expected;
	int level;  /* enum hr_level; -1: from policy and configuration */
	int probes; /* 0, 1; -1: from the configuration */
	bool registered;
};
#define ANY_ATTEMPT (-1)
/* Finds a job; with ANY_ATTEMPT the latest attempt. NULL: none. */
struct job *hr__service_job_find(struct service *s, const char *id, int64_t attempt);
/* The name of a state: "starting", "running"... */
const char *hr__service_job_state(enum job_state state);
/*
 * Opens the file of a job, which contains its configuration (private.h). Returns a descriptor, or
 * -errno.
 */
int hr__service_job_conf_open(const struct job *job);
/* Writes the prefix that a job's descriptors have in systemd's descriptor store. */
void hr__service_job_prefix(const struct job *job, char ret[JOB_PREFIX]);
/* Finds a registered job with this name, or else an unregistered job of user `uid`. NULL: none. */
struct job *hr__service_job_named(struct service *s, const char *name, uint32_t uid);
/*
 * Begins a job, and starts its worker. After a failure, returns NULL with *ret_error (malloc'ed).
 */
struct job *hr__service_job_begin(struct service *s, const struct job_spec *spec, char **ret_error);
/* Continues the jobs of an earlier service, with their retained descriptors. */
void hr__service_jobs_resume(struct service *s, struct hr_inherited *list, size_t n);
/* Sets the level for the time for_ms (0: no limit). Then the level returns to level_base. */
void hr__service_job_level(struct job *job, uint32_t level, uint64_t for_ms);
/* Writes the level, the cgroup and the end to the job's file, for the next service. */
void hr__service_job_note(struct job *job);
void hr__service_job_end(struct job *job, const char *state, uint64_t linger_ms, uint64_t drain_ms);
/*
 * Removes a job whose worker has ended. `error`: why it failed, for clients that wait; NULL: it did
 * not fail.
 */
void hr__service_job_forget(struct job *job, const char *error);
void hr__service_jobs_tick(struct service *s);
/*
 * Frees all jobs after the end of the loop. Files and retained descriptors stay for the next
 * service.
 */
void hr__service_jobs_free(struct service *s);

/* cgroup.c */
struct cgroup_of {
	char job[JOB_BYTES]; /* "": the process is not in a cgroup of Slurm */
	char folder[1024];   /* the job's cgroup, version 2; "": none */
};
bool hr__service_cgroup_of(pid_t pid, struct cgroup_of *ret);
/* Returns 0 if the job can have the cgroup of `spec`, else -errno. */
int hr__service_cgroup_check(const struct service *s, const struct job_spec *spec,
			     char **ret_error);
/* Makes probes record a cgroup. Does nothing without probes, or if the job has a cgroup. */
int hr__service_cgroup_set(struct job *job, const char *path, char **ret_error);
void hr__service_cgroup_send(struct job *job); /* sends the job's cgroup to its worker */

/* workers.c */
int hr__service_worker_start(struct job *job);
/*
 * Call it if the worker failed. Retries later, but removes a job that has ended or was never
 * recorded.
 */
void hr__service_worker_failed(struct job *job, const char *why);
/* Starts another worker for a failing job. May remove the job. */
void hr__service_worker_retry(struct job *job);
void hr__service_workers_reap(struct service *s);
/* Call it when the worker is ready. Sends the worker what has changed since its start. */
void hr__service_job_ready(struct job *job);
void hr__service_worker_send(struct job *job, hr_control_kind kind, const ProtobufCMessage *body);
void hr__service_on_notice(uv_poll_t *poll, int status, int events);
/* Empties the hand-off queue. Counts those connections whose process will not connect again. */
void hr__service_handoff_close(struct job *job);
/* Call it at the end of the service. Makes all workers flush and exit, and waits for them. */
void hr__service_workers_pause(struct service *s);

/* limits.c */
#define WHY_BYTES 128u
/*
 * Returns whether another process (or another map of a process) would exceed a limit of the user or
 * the node.
 */
bool hr__service_limit_reached(const struct job *job, bool new_session, char ret_why[WHY_BYTES]);
/*
 * Call it when a worker starts. Counts the connections in `handoff`, its hand-off queue, as passed.
 */
void hr__service_limit_start(struct job *job, int handoff);

/* route.c */
void hr__service_on_shim(uv_poll_t *poll, int status, int events);
void hr__service_pending_tick(struct service *s);
/* Frees pending connections. The accept queue keeps their sockets for the next service. */
void hr__service_pending_leave(struct service *s);
void hr__service_pending_resume(struct service *s);

/* requests.c */
void hr__service_on_client(uv_poll_t *poll, int status, int events);
/* Forwards a worker's message to clients that wait for the job's end. */
void hr__service_clients_notify(struct job *job, const Headrace__Control *m);
void hr__service_clients_done(struct job *job, const char *error);
/* Answers clients that wait for the start. `error`: why it failed; NULL: the job is recorded. */
void hr__service_clients_begun(struct job *job, const char *error);
void hr__service_clients_tick(struct service *s);
void hr__service_clients_leave(struct service *s); /* closes all clients without an answer */

/*
 * metrics.c: opens the socket for metrics. After a failure, which is logged, the service records
 * without metrics.
 */
void hr__service_metrics_open(struct service *s);
/* Adds to the metrics what has grown since the job's status, which `now` replaces afterwards. */
void hr__service_metrics_count(struct job *job, const Headrace__JobStatus *now);

#endif
