/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the service's state, shared by service.c (life), jobs.c (the table), cgroup.c, workers.c (processes), route.c (shims),
 * requests.c (people and hooks) and metrics.c (Prometheus)
 *
 * All functions on the loop's thread.
 */
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
#define PENDING_MOST 1024u /* connections of shims that have not said hello */
#define HELLO_MS     1000u
#define CLIENTS_MOST 256u  /* connections to control.sock, and as many of root */
#define CLIENTS_EACH 32u   /* of one user */
#define REQUEST_MS   5000u /* for saying what is asked */

/* Fields of a JobStatus that only grow: the metrics add them up. */
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
	JOB_FAILING, /* its worker cannot go on; another is tried in a while, and at its end */
	JOB_OFF,     /* known, and not recorded: it has no worker */
	JOB_STATES
};

struct service;

struct job {
	struct job *next;
	struct service *service;
	char id[JOB_BYTES]; /* as people know it: "123_4" */
	char scheduler
	    [JOB_BYTES]; /* as its processes' environment names it: "127"; often the same */
	char name[JOB_BYTES];
	uint32_t uid, attempt;
	uint64_t key; /* names its file */
	bool registered;
	bool killed; /* a signal ended its script: what an end that knows of no failure is */
	enum hr_policy policy;
	enum job_state state;
	/* its worker */
	pid_t pid; /* 0: none */
	int channel;
	int handoff;	   /* our end: of kept */
	uv_poll_t *poll;   /* of the channel */
	uint64_t kept_out; /* by a limit; its process has no answer yet */
	uint64_t passed;   /* connections put into the hand-off queue, for the present worker */
	struct hr_kept kept;
	unsigned restarts;
	uint64_t restarted_ms;
	bool recorded; /* some worker was ready once: it is not given up before its end */
	char why[HR_WORKER_WHY_BYTES]; /* its worker failed; "": it has not, or another goes on */
	uint64_t failed_ms;	       /* since when; 0: it has not, or another goes on */
	uint64_t retry_ms;
	Headrace__JobStatus *status; /* the last that its worker sent, for good; before: empty */
	uint64_t status_ms;	     /* of its arrival; 0: none yet */
	bool resumed;		     /* an earlier service counted a part of its first status */
	bool shown;		     /* has metrics of its own, else it is among `others` */
	uint64_t idle_since_ms;	     /* no process since; 0: there are some */
	uint32_t level;		     /* that it is to have */
	uint32_t level_base;	     /* when level_until_ms is over, or this service */
	uint64_t level_until_ms;     /* 0: for good */
	bool probes;		     /* are asked for */
	char *cgroup;		     /* whose processes are the job's, for probes; NULL: none */
	uint64_t cgroup_id;	     /* of the folder as it was last seen; 0: not looked at yet */
	/* its end */
	char end_state[16];
	uint64_t linger_ms, drain_ms;
};

struct pending {
	struct pending *next;
	struct service *service;
	uv_poll_t *poll; /* NULL: nothing was waited for */
	int fd;		 /* -1: done with */
	bool queued;
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
	struct job *awaits_end;	  /* for its end */
	struct job *awaits_start; /* for its beginning */
};

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
	unsigned n_pending;			 /* not done with */
	struct client *clients;
	unsigned n_clients;
	pid_t uplink;	    /* sends what earlier workers left; 0: none */
	uint64_t uplink_ms; /* of its last start */
	bool stopping;
	uint64_t started_ms;
	uint64_t spool_bytes;	    /* as a worker saw it last */
	bool watchdog;		    /* systemd waits for signs of life */
	uint64_t refused, unplaced; /* shims: by a limit or another's job; without a job */
	uint64_t limited;	    /* of `refused`: of a user's or the node's sessions */
	uint64_t limited_reported;  /* of `limited`: counted by a job's worker as well */
	/* counts of all jobs since the start, and of those not `shown` */
	Headrace__JobStatus total, others;
	uint64_t restarts;	    /* of workers that were killed */
	struct hr_metrics *metrics; /* NULL: none are asked for */
};

/* service.c */
struct hr_policy_rules hr__service_policy(const struct service *s);
uint64_t hr__service_now_ms(const struct service *s);

/* jobs.c */
struct job_spec { /* of a job that is to begin */
	const char *id, *scheduler, *name;
	const char *ranks, *local_ranks;
	const char *account, *partition; /* may be NULL, as ranks */
	const char *cgroup;		 /* a folder, or NULL */
	uint32_t uid, attempt, ranks_expected, nodes_expected;
	int level;  /* enum hr_level; -1: as policy and configuration say */
	int probes; /* 0, 1; -1: as the configuration says */
	bool registered;
};
#define ANY_ATTEMPT (-1)
/* Of several attempts the latest. */
struct job *hr__service_job_find(struct service *s, const char *id, int64_t attempt);
/* "starting", "running", ...: of job_state. */
const char *hr__service_job_state(enum job_state state);
/* Opens its file (a private configuration, private.h) for reading. The descriptor, or -errno. */
int hr__service_job_conf_open(const struct job *job);
/* What systemd calls its descriptors begins with this. */
void hr__service_job_prefix(const struct job *job, char ret[JOB_PREFIX]);
/* The job of a process of `uid` that says so: the announced one of that name, else one of that user's own. */
struct job *hr__service_job_named(struct service *s, const char *name, uint32_t uid);
/* The job, with a worker; NULL with *ret_error (malloc'ed). */
struct job *hr__service_job_begin(struct service *s, const struct job_spec *spec, char **ret_error);
/* Jobs of an earlier service, with the descriptors that systemd has kept for them. */
void hr__service_jobs_resume(struct service *s, struct hr_inherited *list, size_t n);
/* `for_ms` 0: for good. */
void hr__service_job_level(struct job *job, uint32_t level, uint64_t for_ms);
/* Writes down what a later service has to know: level, cgroup, end. */
void hr__service_job_note(struct job *job);
/* A signal has ended its script. */
void hr__service_job_killed(struct job *job);
void hr__service_job_end(struct job *job, const char *state, uint64_t linger_ms, uint64_t drain_ms);
/* Its worker is gone for good. NULL: it has ended as it should; else what is to be said to who waits for that. */
void hr__service_job_forget(struct job *job, const char *error);
void hr__service_jobs_tick(struct service *s);

/* cgroup.c */
struct cgroup_of {
	char job[JOB_BYTES]; /* "": it is in none of Slurm's */
	char folder[1024];   /* the job's, of version 2; "": it has none there */
};
bool hr__service_cgroup_of(pid_t pid, struct cgroup_of *ret);
/* Whether the job can have the cgroup that it asks for. */
int hr__service_cgroup_check(const struct service *s, const struct job_spec *spec,
			     char **ret_error);
/* Who is in that folder is the job's from now on; the first folder stays, should it be another. Nothing happens without probes. */
int hr__service_cgroup_set(struct job *job, const char *path, char **ret_error);
void hr__service_cgroup_send(struct job *job); /* its worker */

/* workers.c */
int hr__service_worker_start(struct job *job);
/* The worker is gone, or could not be started, for this reason: the job is tried again, or (at its end) forgotten. */
void hr__service_worker_failed(struct job *job, const char *why);
/* Of a job that is failing: another worker. The job may be forgotten then. */
void hr__service_worker_retry(struct job *job);
void hr__service_workers_reap(struct service *s);
/* Its worker is ready: what was said meanwhile. */
void hr__service_job_ready(struct job *job);
void hr__service_worker_send(struct job *job, hr_control_kind kind, const ProtobufCMessage *body);
void hr__service_on_notice(uv_poll_t *poll, int status, int events);
/* Lets all of them flush, and waits; for the end of the service. */
void hr__service_workers_pause(struct service *s);

/* limits.c */
#define WHY_BYTES 128u
/* One more process of the job (or, of one that is in, one more map) would pass a limit of its user, or of the node. */
bool hr__service_limit_reached(const struct job *job, bool new_session, char ret_why[WHY_BYTES]);
/* A worker starts: connections in its hand-off queue are still to come. */
void hr__service_limit_start(struct job *job, int handoff);

/* route.c */
/* Counts the connections in it whose process will not connect again. */
void hr__service_handoff_close(struct job *job);
void hr__service_on_shim(uv_poll_t *poll, int status, int events);
void hr__service_pending_tick(struct service *s);
/* All of them: the next service finds them in the accept queue. */
void hr__service_pending_leave(struct service *s);
void hr__service_pending_resume(struct service *s);

/* requests.c */
void hr__service_on_client(uv_poll_t *poll, int status, int events);
/* Forwards a message of the worker to clients that wait for this job's end. */
void hr__service_clients_notify(struct job *job, const Headrace__Control *m);
void hr__service_clients_done(struct job *job, const char *error);
/* Who waits for its beginning: it is being recorded (NULL), or why it is not. */
void hr__service_clients_begun(struct job *job, const char *error);
void hr__service_clients_tick(struct service *s);
void hr__service_clients_leave(struct service *s); /* all, unanswered */

/* metrics.c: a failure is said, and is no reason not to record. */
void hr__service_metrics_open(struct service *s);
/* Before `now` replaces the job's status: adds what it has counted since. */
void hr__service_metrics_count(struct job *job, const Headrace__JobStatus *now);

#endif
