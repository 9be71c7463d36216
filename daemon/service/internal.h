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
#define HELLO_MS     1000u /* a pending connection without a hello is closed after this */
#define CLIENTS_MOST 256u  /* connections to control.sock; root may have as many more */
#define CLIENTS_EACH 32u   /* of one user */
#define REQUEST_MS   5000u /* a client without a request is closed after this */

/* Counters of a JobStatus: the metrics add them up. */
#define COUNTS(X)                                                                                  \
	X(events)                                                                                  \
	X(read_bytes)                                                                              \
	X(written_bytes)                                                                           \
	X(processes_total)                                                                         \
	X(stored_bytes)                                                                            \
	X(refused)                                                                                 \
	X(hostile)                                                                                 \
	X(ring_full) X(stray) X(detached) X(torn) X(given_up) /* operations that are lost */

enum job_state {
	JOB_STARTING,
	JOB_RUNNING,
	JOB_ENDING,
	JOB_DRAINING,
	JOB_FAILING, /* its worker failed; another starts after a pause, and at the end */
	JOB_OFF,     /* not recorded, by policy: it has no worker */
	JOB_STATES
};

struct service;

struct job {
	struct job *next;
	struct service *service;
	char id[JOB_BYTES];	   /* for people: "123_4" */
	char scheduler[JOB_BYTES]; /* in its processes' environment: "127"; often the same */
	char name[JOB_BYTES];
	uint32_t uid, attempt;
	uint64_t key;	 /* names its file and retained descriptors */
	bool registered; /* by a prolog */
	bool killed;	 /* a signal ended its script: a job that would be "ended" is "killed" */
	enum hr_policy policy;
	enum job_state state;
	pid_t pid; /* 0: none */
	int channel;
	int handoff;	  /* the service's end of the hand-off queue; in `kept` */
	uv_poll_t *poll;  /* of the channel */
	uint64_t limited; /* processes refused by a limit, which no worker has counted yet */
	uint64_t passed;  /* connections that the hand-off queue got for the present worker */
	struct hr_kept kept;
	unsigned restarts;
	uint64_t restarted_ms;
	bool recorded; /* a worker was ready once: the service retries until the job ends */
	char why[HR_WORKER_WHY_BYTES]; /* why its worker failed; "": it works */
	uint64_t failed_ms;	       /* when its worker failed; 0: it works */
	uint64_t retry_ms;
	Headrace__JobStatus *status; /* the last one of its workers; at first an empty one */
	uint64_t status_ms;	     /* when it arrived; 0: none yet */
	bool resumed;		     /* an earlier service counted a part of its first status */
	bool shown;		     /* has its own metrics; else `others` includes it */
	uint64_t idle_since_ms;	     /* without processes since then; 0: it has some */
	uint32_t level;		     /* the present one */
	uint32_t level_base;	     /* after level_until_ms, and after a restart of the service */
	uint64_t level_until_ms;     /* 0: no limit */
	bool probes;		     /* are requested */
	char *cgroup;		     /* probes record its processes; NULL: none */
	uint64_t cgroup_id;	     /* of that folder; 0: not read yet */
	char end_state[16];	     /* "": it has not ended */
	uint64_t linger_ms, drain_ms;
};

struct pending {
	struct pending *next;
	struct service *service;
	uv_poll_t *poll; /* NULL: it does not wait for its hello */
	int fd;		 /* -1: processed */
	bool queued;	 /* in the accept queue */
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
	struct job *awaits_end;	  /* gets its answer when this job ends */
	struct job *awaits_start; /* gets its answer when this job is recorded */
};

/* A recording worker sends a status each second: rates of an older one are 0. */
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
	struct pending *pending, **pending_last; /* the oldest first */
	unsigned n_pending;			 /* not yet processed */
	struct client *clients;
	unsigned n_clients;
	pid_t uplink;	    /* sends frames of ended workers; 0: none */
	uint64_t uplink_ms; /* its last start */
	bool stopping;
	uint64_t started_ms;
	uint64_t spool_bytes;	   /* in the last status of a worker */
	bool watchdog;		   /* systemd expects WATCHDOG=1 */
	uint64_t refused;	   /* processes: by a limit, or the job is another user's */
	uint64_t unplaced;	   /* processes without a job */
	uint64_t limited;	   /* of `refused`: by a limit of user or node */
	uint64_t limited_reported; /* of `limited`: a worker has counted them, too */
	/* counts of all jobs since the start, and of those not `shown` */
	Headrace__JobStatus total, others;
	uint64_t restarts;	    /* of workers that were killed */
	struct hr_metrics *metrics; /* NULL: not configured */
};

/* service.c */
struct hr_policy_rules hr__service_policy(const struct service *s);
uint64_t hr__service_now_ms(const struct service *s);

/* jobs.c */
struct job_spec { /* of a new job */
	const char *id, *scheduler, *name;
	const char *ranks, *local_ranks;
	const char *account, *partition; /* may be NULL, as may ranks */
	const char *cgroup;		 /* a folder, or NULL */
	uint32_t uid, attempt, ranks_expected, nodes_expected;
	int level;  /* enum hr_level; -1: from policy and configuration */
	int probes; /* 0, 1; -1: from the configuration */
	bool registered;
};
#define ANY_ATTEMPT (-1)
/* The latest of several attempts. */
struct job *hr__service_job_find(struct service *s, const char *id, int64_t attempt);
/* "starting", "running", ...: of job_state. */
const char *hr__service_job_state(enum job_state state);
/* Opens its file (a private configuration, private.h) for reading. A descriptor, or -errno. */
int hr__service_job_conf_open(const struct job *job);
/* The prefix of its descriptors in systemd's descriptor store. */
void hr__service_job_prefix(const struct job *job, char ret[JOB_PREFIX]);
/* A registered job of that name, else an unregistered one of user `uid`. NULL: none. */
struct job *hr__service_job_named(struct service *s, const char *name, uint32_t uid);
/* Begins a job, and starts its worker. NULL with *ret_error (malloc'ed). */
struct job *hr__service_job_begin(struct service *s, const struct job_spec *spec, char **ret_error);
/* Continues the jobs of an earlier service, with their retained descriptors. */
void hr__service_jobs_resume(struct service *s, struct hr_inherited *list, size_t n);
/* Sets the level; after for_ms (0: no limit) it returns to level_base. */
void hr__service_job_level(struct job *job, uint32_t level, uint64_t for_ms);
/* Writes level, cgroup and end to the job's file, for a later service. */
void hr__service_job_note(struct job *job);
void hr__service_job_end(struct job *job, const char *state, uint64_t linger_ms, uint64_t drain_ms);
/* Removes a job whose worker has ended. `error`: for clients that wait; NULL: a normal end. */
void hr__service_job_forget(struct job *job, const char *error);
void hr__service_jobs_tick(struct service *s);
/* Frees all after the loop. Files and retained descriptors stay for the next service. */
void hr__service_jobs_free(struct service *s);

/* cgroup.c */
struct cgroup_of {
	char job[JOB_BYTES]; /* "": not in a cgroup of Slurm */
	char folder[1024];   /* the job's cgroup, version 2; "": none */
};
bool hr__service_cgroup_of(pid_t pid, struct cgroup_of *ret);
/* 0: the job can have the cgroup of `spec`. */
int hr__service_cgroup_check(const struct service *s, const struct job_spec *spec,
			     char **ret_error);
/* Probes record that cgroup's processes. Does nothing without probes, or with another cgroup. */
int hr__service_cgroup_set(struct job *job, const char *path, char **ret_error);
void hr__service_cgroup_send(struct job *job); /* to its worker */

/* workers.c */
int hr__service_worker_start(struct job *job);
/* The worker failed, or did not start: retries later, or forgets a job that has ended. */
void hr__service_worker_failed(struct job *job, const char *why);
/* Starts another worker for a failing job. May forget the job. */
void hr__service_worker_retry(struct job *job);
void hr__service_workers_reap(struct service *s);
/* Its worker is ready: sends it what has changed meanwhile. */
void hr__service_job_ready(struct job *job);
void hr__service_worker_send(struct job *job, hr_control_kind kind, const ProtobufCMessage *body);
void hr__service_on_notice(uv_poll_t *poll, int status, int events);
/* Empties the hand-off queue; counts the connections whose process does not connect again. */
void hr__service_handoff_close(struct job *job);
/* At the end of the service: makes all workers flush and exit, and waits. */
void hr__service_workers_pause(struct service *s);

/* limits.c */
#define WHY_BYTES 128u
/* Whether one more process (or map of a process) would exceed a limit of user or node. */
bool hr__service_limit_reached(const struct job *job, bool new_session, char ret_why[WHY_BYTES]);
/* A worker starts: connections in its hand-off queue count as passed. */
void hr__service_limit_start(struct job *job, int handoff);

/* route.c */
void hr__service_on_shim(uv_poll_t *poll, int status, int events);
void hr__service_pending_tick(struct service *s);
/* Frees all. The accept queue keeps their connections for the next service. */
void hr__service_pending_leave(struct service *s);
void hr__service_pending_resume(struct service *s);

/* requests.c */
void hr__service_on_client(uv_poll_t *poll, int status, int events);
/* Forwards a worker's message to clients that wait for the job's end. */
void hr__service_clients_notify(struct job *job, const Headrace__Control *m);
void hr__service_clients_done(struct job *job, const char *error);
/* Answers clients that wait for its start. NULL: it is recorded; else why not. */
void hr__service_clients_begun(struct job *job, const char *error);
void hr__service_clients_tick(struct service *s);
void hr__service_clients_leave(struct service *s); /* closes all, without an answer */

/* metrics.c: a failure is logged, and the service records without metrics. */
void hr__service_metrics_open(struct service *s);
/* Adds to the metrics what `now` has more. Call it before `now` replaces the job's status. */
void hr__service_metrics_count(struct job *job, const Headrace__JobStatus *now);

#endif
