/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - declarations that the files of the shim's core share; wrappers include core.h only
 *
 * Threads   Any thread, and signal handlers that interrupt any other part. The attach lock is the
 *           only lock, and is taken only with all signals blocked.
 * Lifetime  hr_shim_image  set by the constructor, copied by fork
 *           hr_wiped  zeroed by the kernel in every forked child (MADV_WIPEONFORK)
 *           hr_self   per thread; its ring is valid only while `nonce` equals hr_wiped.nonce
 *
 *      hr_self.nonce == hr_wiped.nonce ?
 *            yes -> hr_self.ring (NULL: this session has no ring for this thread)
 *            no  -> hr_ring_find(): not attached, a forked child, or a new thread
 */
#ifndef HEADRACE_SHIM_CORE_INTERNAL_H
#define HEADRACE_SHIM_CORE_INTERNAL_H

#include "shim/core/core.h"

/* ---- for the life of the image --------------------------------------------------------------- */

#define HR__PATH_MAX	 4096u /* longest path that is sent; its id is the hash of the whole path */
#define HR__ENV_BYTES	 12288u
#define HR__SOCKET_BYTES 108u

struct hr_shim_image {
	bool on; /* the shim intercepts calls */
	/* seccomp filters that exist or that threads install now; if not 0: no system calls */
	uint32_t quiet;
	bool seccomp_allowed;  /* HEADRACE_SECCOMP=allow */
	bool full_cmdline;     /* HEADRACE_CMDLINE=full */
	bool nvtx_off;	       /* HEADRACE_NVTX=off: regions of NVTX and ITT are not recorded */
	bool nvtx_all;	       /* HEADRACE_NVTX=all: also those of libraries */
	bool by_preload;       /* LD_PRELOAD in the initial environment names this library */
	bool by_socket;	       /* HEADRACE_SOCKET was in the initial environment */
	bool refused;	       /* headraced has another version */
	bool left;	       /* the process may have changed its user, root or namespaces */
	bool clock_switched;   /* the attach changed the clock and the unit of ticks */
	uint8_t on_full;       /* enum hr__on_full */
	uint32_t wait_ms;      /* HEADRACE_ON_FULL=wait:MS */
	int32_t controls;      /* pid of a process that has called hr_session_record(); 0: none */
	uint64_t parent_token; /* token of the latest session of this process, or of its ancestor */
	/*
	 * First map of the session of parent_token, or NULL. Forked children keep the head of this
	 * map mapped, and count their operations in its strays[] until they have a session.
	 */
	struct hr_map_hdr *strays;
	uint64_t retry_ns;	   /* no attach before this time; forked children inherit it */
	uint64_t no_wait_until_ns; /* after a time-out, attaches do not wait before this time */
	uint32_t failures;
	char *hint; /* the value of HEADRACE_ATTACH_FAILED in the environment, or NULL */
	char socket[HR__SOCKET_BYTES];
	uint64_t env_turn; /* counts changes of `env` */
	uint64_t env[HR__ENV_BYTES / 8];
	/* Shared memory of this session. A forked child covers it with private memory (fork.c). */
	uint32_t mapping_count;
	struct {
		void *addr;
		uint64_t bytes;
	} mappings[HR_SESSION_MAPS + 1]; /* maps and the node page */
};
extern struct hr_shim_image hr_shim_image;

enum hr__on_full { HR__FULL_WAIT, HR__FULL_DROP };

/* ---- for the life of the process ------------------------------------------------------------- */

#define HR__SENT_SLOTS 65536u
#define HR__REQUESTS   4096u
/* The third free bit of an hr_file. In hr_wiped.sent: type, device and mount were sent, too. */
#define HR__SENT_TYPED UINT64_C(4)
/* The same bit in the fd table: this session has sent the path. Wrappers do not see this bit. */
#define HR__FD_ANNOUNCED UINT64_C(4)

#if defined(__aarch64__)
#define HR__PAGE_ALIGN 65536 /* the largest page size of any kernel */
#else
#define HR__PAGE_ALIGN 4096
#endif

enum hr__born {
	HR__BORN_WIPED, /* a forked child before hr__fork_child() */
	HR__BORN_IMAGE, /* the constructor ran in this process */
	HR__BORN_FORKED
};

struct hr__request {
	struct hr_request asked;
	hr_file file;
	uint64_t start;
	uint64_t nonce;
};

/* An open region of ITT; `key` is the id that the program gave to the region. */
struct hr_shim_opened {
	uint64_t key; /* 0: free, 1: a thread is changing it */
	uint64_t span;
};

struct hr_wiped {
	uint64_t nonce; /* 0: no session; a release store after the fields below */
	uint32_t born;	/* enum hr__born; a release store after the fields below */
	int32_t pid;
	uint32_t lock; /* attach lock: 0 free, 1 held; threads wait by futex */
	uint32_t attempts;
	uint32_t image; /* for hr_hello.image; 0: no hello was built yet */
	uint32_t cwd_seq;
	uint32_t scratch;   /* path.c: a bit for each big buffer in use */
	uint32_t counting;  /* 1: counters[] is not empty */
	uint32_t map_count; /* a release store after that of maps[] */
	uint32_t announced;
	uint32_t span_gen; /* region.c: of the latest span, also of an earlier session */
	uint64_t token;
	/* No request for more rings before this time. The attach lock guards it. */
	uint64_t more_after_ns;
	uint64_t start_ticks;
	int64_t step, epoch; /* region.c: number XOR HR_REGION_NONE, so that 0 means none */
	uint64_t step_span, epoch_span;
	struct hr_shim_opened opened[HR_REGION_SPANS]; /* itt.c */
	const struct hr_node_page *node;
	struct hr_map_hdr *maps[HR_SESSION_MAPS];
	struct hr_map_hdr *common_map;
	struct hr_ring_hdr *common;	      /* NULL: none; release store after common_map */
	struct hr_lost counters[HR_OP_MAX];   /* totals of operations without a session */
	uint64_t excluded[HR_EXCLUDED_KINDS]; /* for hr_map_hdr.excluded, until a map exists */
	uint32_t request_count;		      /* number of used request_keys, approximately */
	/* Hash table of the files whose paths were sent. path.c allocates its pages all at once. */
	uint64_t sent[HR__SENT_SLOTS] __attribute__((aligned(HR__PAGE_ALIGN)));
	uint64_t request_keys[HR__REQUESTS]; /* request.c */
	struct hr__request requests[HR__REQUESTS];
} __attribute__((aligned(HR__PAGE_ALIGN)));
extern struct hr_wiped hr_wiped;

/*
 * Whether this process begins and ends its sessions itself. What happens without one is not kept.
 */
static inline bool hr__controls_sessions(void)
{
	int32_t controls = __atomic_load_n(&hr_shim_image.controls, __ATOMIC_RELAXED);

	return controls != 0 && controls == hr_wiped.pid;
}

/* ---- for the life of a thread ---------------------------------------------------------------- */

enum hr__vfork {
	HR__VFORK_NO,
	HR__VFORK_MARKED,
	HR__VFORK_CHILD,
	/* until the thread ends, a child uses this struct and this ring at the same time */
	HR__VFORK_SHARED
};

/* Reasons to leave the fast path. Signal handlers store some, so each has its own byte. */
enum hr__slow {
	HR__SLOW_RING,			    /* the thread has no ring */
	HR__SLOW_CLOCK,			    /* ticks are not the TSC */
	HR__SLOW_LEVEL,			    /* the level was off at the last check */
	HR__SLOW_AGGREGATE,		    /* an aggregate is open */
	HR__SLOW_VFORK,			    /* enum hr__vfork: this may be the child */
	HR__SLOW_BARE = HR_COVER_BARE,	    /* enum hr_bare; the probes read it */
	HR__SLOW_EXITING = HR_COVER_EXITING /* the probes read it */
};

/* The first cache line has all that a recorded operation reads. It begins like hr_cover. */
struct hr__thread {
	uint64_t nonce;
	union {
		uint8_t why[8]; /* indexed by enum hr__slow; 0: the reason does not apply */
		uint64_t any;
	} slow;
	struct hr_ring_hdr *ring;
	uint64_t limit;	 /* slots before this index need no hr__ring_room(); at most tail + slots */
	uint32_t mask;	 /* number of slots - 1 */
	uint32_t skip;	 /* operations until search_ns is compared with the time */
	uintptr_t frame; /* address of the struct hr_op in flight, which is only compared */
	const struct hr_map_hdr *map;
	/* value of `tail` when a wait failed: no wait until `tail` or the daemon's beat changes */
	uint64_t gave_up_tail;
	uint64_t gave_up_beat;
	uint64_t search_ns;   /* the thread searches for no ring before this time */
	uint64_t populate_at; /* the slots below this index have memory */
	uint64_t began;	      /* for a thread without a ring: start of its operation; 0: none */
	uint64_t bare_file;   /* with bare_fd, bare_op: the operation of `began`, for reenter.c */
	int32_t bare_fd;
	uint16_t bare_op;
	const char *path; /* argument of the latest hr_begin_path, which is only compared */
	int32_t tid;	  /* valid only if `common` */
	bool common;	  /* the thread has no ring, and writes to the common ring */
	bool child_fds;	  /* a vfork child has its own descriptors, which the table lacks */
	bool quiet_vfork; /* since a vfork after a filter: this may be the child, until it execs */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct hr__thread, nonce) == offsetof(struct hr_cover, nonce) &&
		   offsetof(struct hr__thread, slow) == offsetof(struct hr_cover, slow) &&
		   offsetof(struct hr__thread, ring) == offsetof(struct hr_cover, ring) &&
		   sizeof(struct hr_ring_hdr *) == sizeof(uint64_t),
	       "its head is a struct hr_cover");
#define HR__NONCE_NEVER (~UINT64_C(0)) /* this thread never searched for a ring */
extern __thread struct hr__thread hr_self __attribute__((tls_model("initial-exec")));

/* Records, for the probes, why this thread has no in-flight cell. */
static inline uint8_t hr__bare_enter(enum hr_bare what)
{
	uint8_t outer = hr_self.slow.why[HR__SLOW_BARE];

	hr_self.slow.why[HR__SLOW_BARE] = (uint8_t)what;
	return outer;
}

static inline void hr__bare_leave(uint8_t outer)
{
	hr_self.slow.why[HR__SLOW_BARE] = outer;
}

/* ---- ring.c: the thread's ring --------------------------------------------------------------- */

enum hr__seek {
	HR__SEEK_NONE,	/* do not attach */
	HR__SEEK_FIRST, /* attach if this process never tried, or not for some time */
	HR__SEEK_RETRY, /* attach again if retry_ns has passed; for slow calls */
	HR__SEEK_FORCE	/* attach now */
};

/* Returns the calling thread's ring. NULL: there is none; call hr__counters_add() instead. */
struct hr_ring_hdr *hr_ring_find(enum hr__seek seek);

/* The last time that headraced may be in reach: attaches if only this process has some totals. */
void hr__ring_last_chance(void);

/* Call it if the daemon refuses more maps: reserves a free ring for threads without a ring. */
void hr__ring_set_aside(void);
void hr__ring_common_set(struct hr_map_hdr *map, struct hr_ring_hdr *ring);

/* Makes room for n slots. Wakes the daemon, and waits as HEADRACE_ON_FULL specifies. */
bool hr__ring_room(struct hr_ring_hdr *ring, uint32_t n);

/* Writes a control record (HR_CTL_*) and n_text bytes of text. False: the record was dropped. */
bool hr_ring_control(const struct hr_record *head, const void *text, size_t n_text);

/* Writes a record, and `pair` unless it is NULL. Counts a record without room as lost. */
void hr__ring_record(struct hr_op *op, uint64_t end, int64_t ret, uint32_t flags, uint32_t bits,
		     const struct hr_pair *pair);
void hr__ring_aggregate_flush(void);
/* Writes the record of an operation that was in flight and will never return. */
void hr__ring_cut(struct hr_ring_hdr *ring, const struct hr_inflight *cell, uint64_t end);

/* Returns the ring for an operation on a tracked file. NULL: no ring, or level off (*ret_off). */
struct hr_ring_hdr *hr__ring_for_op(enum hr__seek seek, bool *ret_off);

/* Returns this thread's ring in this session, without a search. NULL: the thread has none. */
static inline struct hr_ring_hdr *hr_ring_current(void)
{
	/* Acquire: pairs with the release store of nonce. */
	if (hr_likely(hr_self.nonce == __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE)))
		return hr_self.ring;
	return NULL;
}

/* ---- reenter.c ---------------------------------------------------------------------------------- */

/*
 * Whether the original function of the operation in flight has called the wrapper of `op`, whose
 * call is then not recorded. Use this function only while an operation is in flight.
 */
bool hr__reentered(const struct hr_op *op, uint16_t outer, int32_t outer_fd, uint64_t outer_file);
/* Like hr__reentered, for hr_count(). `ring` is the thread's own ring, or NULL. */
bool hr__count_reentered(const struct hr_ring_hdr *ring, enum hr_op_id id, int fd, hr_file file);

/*
 * Returns the common ring, for a thread that found no ring of its own. NULL: the thread has a ring,
 * has never searched, or has no session. A thread that uses the common ring has no in-flight cell
 * and no aggregate, and its regions are counted as lost.
 */
static inline struct hr_ring_hdr *hr__ring_common(void)
{
	/* Acquire: as in hr_ring_current. */
	if (hr_self.common && hr_self.ring == NULL &&
	    hr_self.nonce == __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE))
		return __atomic_load_n(&hr_wiped.common, __ATOMIC_RELAXED);
	return NULL;
}

/* Returns the ring for the calling thread's records: its own, or the common ring. */
static inline struct hr_ring_hdr *hr__ring_any(void)
{
	struct hr_ring_hdr *ring = hr_ring_current();

	return hr_likely(ring != NULL) ? ring : hr__ring_common();
}

/* Map number i of the session, below map_count. A next session may store another one there. */
static inline struct hr_map_hdr *hr_session_map(uint32_t i)
{
	return __atomic_load_n(&hr_wiped.maps[i], __ATOMIC_RELAXED);
}

/* Whether the level of the map with this thread's ring, or with the common ring, is off. */
static inline bool hr_level_off(void)
{
	return __atomic_load_n(&hr_self.map->level, __ATOMIC_RELAXED) == HR_LEVEL_OFF;
}

static inline struct hr_ring_hdr *hr__map_ring(struct hr_map_hdr *map, uint32_t i)
{
	return (struct hr_ring_hdr *)((uint8_t *)map + hr_ring_offset(i, map->slots_log2));
}

/* ---- session.c, handshake.c: attach ---------------------------------------------------------- */

/* Whether the back-off after a failed attach has passed. */
bool hr__session_retry_due(void);
/* True: the caller can claim a ring. Blocks at most 50 ms or, if longer, MS of wait:MS. */
bool hr__session_attach(enum hr__seek seek);
bool hr__session_more_rings(uint32_t have_maps);
/*
 * With `socket`, the path of a daemon's socket, begins a session there: records from now on,
 * without what happened before. NULL: ends a session that this function began. -EALREADY: a session
 * exists; -ENOTSUP: this process is never recorded (HEADRACE=off, a deselected rank); -EPERM: the
 * shim must make no system calls (seccomp); -EBUSY, -ENAMETOOLONG; other errors: the daemon cannot
 * be reached.
 */
int hr_session_record(const char *socket);
/* Whether a seccomp filter may kill the program for a system call. `text`: scratch memory. */
bool hr__seccomp_forbids(char *text, size_t bytes);
/* Call it before the program closes these descriptors: an attach then does not use them further. */
void hr__session_fd_taken(unsigned first, unsigned last);
/* Closes the handshake's descriptors. In a forked child, these are copies of the parent's. */
void hr__session_fds_drop(void);

/* ---- fdtab.c: descriptors (path.h has the rest) ------------------------------------------------------ */

bool hr__fdtab_init(void);
hr_file hr__fd_resolve(int fd); /* for an entry that is HR_FILE_UNKNOWN */
/* Resolves all open descriptors; call it before seccomp. */
void hr__fdtab_resolve_open(void);
void hr__fd_open(int fd, hr_file file, const char *text, size_t bytes, bool announced);
/*
 * Sends the path of fd unless it was sent. Returns the file, which differs from `file` if the
 * function corrected it.
 */
hr_file hr__fd_announce(int fd, hr_file file);
void hr__fdtab_forget_announced(void); /* for a forked child: marks all paths as not sent */

/* The result of statx with AT_STATX_DONT_SYNC. If the mode is unknown, `mode` is 0. */
struct hr__stat {
	uint32_t mode;
	uint32_t nlink;
	int64_t device; /* HR_OFFSET_NONE: unknown */
	int64_t mount;	/* -1: unknown */
};
bool hr__stat_fd(int fd, struct hr__stat *ret); /* false: statx failed, and *ret is not set */
/* Whether the file is a pipe, socket, terminal or anonymous inode. These are never recorded. */
bool hr__stat_ignored(const struct hr__stat *st);

/* ---- fork.c, counters.c ---------------------------------------------------------------------- */

/* Maps private memory, which contains zeros, over shared memory that threads may still change. */
void hr__cover(void *addr, uint64_t bytes);
void hr__cover_mappings(void);
/* Initializes a forked child. Needs the attach lock, unless only one thread exists. */
void hr__fork_child(void);
void hr__announce_child(int pid, uint32_t vforked); /* pid 0: unknown */
/* Whether this is the child of a vfork. Call it only in a thread that called vfork. */
bool hr__vfork_child(void);

static inline bool hr__shared(void)
{
	return hr_unlikely(hr_self.slow.why[HR__SLOW_VFORK] == HR__VFORK_SHARED);
}

static inline bool hr_in_vfork_child(void)
{
	return hr_unlikely(hr_self.slow.why[HR__SLOW_VFORK] != HR__VFORK_NO) && hr__vfork_child();
}

void hr__requests_cut(void); /* call it at exit */
void hr__counters_add(uint16_t op, int64_t ret, uint64_t asked, uint32_t flags, uint64_t ticks);
uint64_t hr__counters_bytes(uint16_t op, int64_t ret, uint64_t asked, uint32_t flags);
/* Counts a region as lost, because the thread has no ring, or this is a vfork child. */
void hr_counters_region(void);
void hr__counters_to_session(void);   /* moves totals from before the session */
void hr__excluded_add(uint32_t kind); /* counts an open that a default filter excludes */
void hr__excluded_to_session(void);   /* same for excluded opens */
void hr_lost_add(struct hr_ring_hdr *ring, uint16_t op, uint64_t count, uint64_t bytes,
		 uint64_t ticks);

/* ---- init.c, real.c -------------------------------------------------------------------------- */

/* Initializes the shim from envp, which may be NULL. Call it once, before other threads exist. */
void hr__init(char **envp);
const char *hr__env_value(char *const envp[], const char *name);
bool hr__env_is(char *const envp[], const char *name, const char *value);
void hr__real_init(const char *preloaded); /* the value of LD_PRELOAD, or NULL */
/* Finds a function in the objects loaded after the shim, in any scope of the loader. NULL: none. */
void *hr_real_named(const char *name);
/* exec.c: stores the variables that load this library, because later programs need the same. */
void hr__exec_init(char *const envp[]);
/* Sends headraced a notice that the shim cannot work in this process. */
void hr__exec_unable(void);

/* Whether the shim keeps a variable: rank, job and HEADRACE_*. `text`: NAME=VALUE or NAME. */
bool hr__env_wanted(const char *text);
void hr__env_keep(const char *name, size_t name_bytes, const char *value);
/*
 * Copies the next kept "NAME=VALUE" that fits, with its NUL, and advances *at (first 0). Returns
 * the length without the NUL; 0 after the last one. If hr__env_turn has changed by then, read all
 * variables again, because another thread may have replaced one meanwhile.
 */
size_t hr__env_next(uint32_t *at, char *to, size_t cap);
uint64_t hr__env_turn(void);

#endif
