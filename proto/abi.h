/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - the contract between libheadrace.so (the shim) and headraced (the daemon)
 *
 * Everything between a recorded process and the daemon of its node: the handshake on the shim
 * socket, the shared memory of a session, and the 64-byte record. Terms: docs/glossary.md.
 *
 * Owner     The daemon makes, seals and keeps the memfds. If it does not answer in time, the shim
 *           makes and seals one, and offers it. After the attach the shim keeps no descriptor. All
 *           memory is little-endian and fixed-width, without pointers.
 * Trust     Every byte that the shim can write is hostile input, so the daemon copies a record
 *           once, then checks the copy. Clients have a read-only descriptor of the node page, and
 *           cannot write to it. The page is not sealed against writing, because the next daemon
 *           writes to it.
 *
 * Actors
 *
 *      shim (any thread)                      daemon: attach thread         daemon: drain thread
 *      -----------------                      ---------------------         --------------------
 *      connect, hr_hello  ------------------> SO_PEERCRED, pidfd_open
 *      map, close fds     <------------------ hr_ack, {map, node page} ---> sweeps the session
 *        or, without an answer in time:
 *      make, seal, map; OFFER + {map} ------> adopts it, at any time -----> sweeps the session
 *      close fds
 *      claim ring (CAS owner_tid)
 *      real call; head += n; fill; seq = i+1 (release) ----------------> seq == i+1 (acquire)? copy
 *      head - tail == slots?                                    <---------- tail = i+1 (release)
 *
 * A client gets an answer, or its offer is adopted, never both. When the daemon has read the hello,
 * it shuts its socket for reading, and then reads once more. It adopts an offer that was sent
 * before that, even if the sender has exited, because the kernel keeps messages and descriptors of
 * a connection. A later offer fails with EPIPE, and the client gets the answer.
 *
 * Ring slot states (slot i mod slots, absolute index i counts from 0)
 *
 *      free      --(shim: head += n)-->            reserved    not yet readable
 *      reserved  --(shim: seq = i+1, release)-->   committed   readable
 *      committed --(daemon: tail = i+1, release)-> free        the index is now i + slots
 *      reserved  --(daemon: owner dead, or a later slot committed for HR_TORN_NS)-->
 *                                                  free        counted as `torn`
 *
 * A map, in bytes
 *
 *      0      +------------------------------+
 *             | struct hr_map_hdr            |   first page: daemon writes, shim reads
 *             |         excluded[]           |   opens of files excluded by default: shim adds
 *             |         spans[]              |   regions that any thread may end: shim
 *      4096   |         strays[]             |   forked children without a session add
 *      16384  +------------------------------+
 *             | ring 0: struct hr_ring_hdr   |   16384
 *             |         slots[]              |   64 << slots_log2
 *             +------------------------------+
 *             | ring 1 ...                   |
 */
#ifndef HEADRACE_ABI_H
#define HEADRACE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_ABI_MAGIC UINT64_C(0x3145434152445248) /* "HRDRACE1" */
#ifndef HR_ABI_VERSION /* tests/service/test_upgrade.py builds the version after this one */
#define HR_ABI_VERSION 1u
#endif

/* Seals of maps and of the node page (fcntl.h): no process can change the size of the file. */
#define HR_SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define HR_PAGE_BYTES	   4096u
#define HR_SLOT_BYTES	   64u
#define HR_OP_MAX	   512u /* op ids are below this */
#define HR_SESSION_MAPS	   64u	/* maximum number of maps of one session */
#define HR_RING_SLOTS_LOG2 12	/* default: 4096 slots, 256 KiB */
#define HR_MAP_RINGS	   4u	/* default: rings in a map */
/* as HR_TORN_NS, but for the common ring, whose writers may wait for processors */
#define HR_TORN_COMMON_NS UINT64_C(5000000000)
/* slots of an offer: many, because it may be read late; unused pages cost nothing */
#define HR_OFFER_SLOTS_LOG2 14
#define HR_RING_EARLY	    64u /* slots (a page) whose memory is allocated with the map */
#define HR_TORN_NS	    UINT64_C(200000000)
/* Limits of each of HEADRACE_EXCLUDE, _INCLUDE, _DEFAULT_EXCLUDE; patterns beyond are ignored. */
#define HR_FILTER_PATTERNS 1024u
#define HR_FILTER_BYTES	   65536u
/* Default excludes whose text fits have a counter each; the last counter is for all others. */
#define HR_EXCLUDED_KINDS 16u
#define HR_EXCLUDED_TEXT  1024u

/* ---- record ---------------------------------------------------------------------------------- */

#define HR_OFFSET_NONE INT64_MIN  /* `offset`: the call has none; the daemon tracks the position */
#define HR_RET_NONE    INT64_MIN  /* `ret`: the call did not return (cut short) */
#define HR_ASKED_NONE  UINT64_MAX /* `asked`: the call has no size */

/* hr_record.bits */
#define HR_REC_RUNTIME	 UINT32_C(1)  /* scope = 'runtime' (Python's own files), else 'data' */
#define HR_REC_PAIR	 UINT32_C(2)  /* the next slot is a struct hr_pair: the second file */
#define HR_REC_AGGREGATE UINT32_C(4)  /* `asked` calls in one record; `ret` = bytes in all */
#define HR_REC_CUT	 UINT32_C(8)  /* the call did not return: siglongjmp, or its thread died */
#define HR_REC_VFORK	 UINT32_C(16) /* made by a vfork child on its parent's ring */
#define HR_REC_DIR	 UINT32_C(32) /* the file is a directory */

/*
 * One operation. `ret` is the call's return value, or -errno. If the call returns a pointer, it is
 * the count or descriptor that calls.def states. `file` is hr_path_id() of the path; 0: no file.
 */
struct hr_record {
	uint64_t start_ticks; /*  0 session clock: TSC, or ns of CLOCK_MONOTONIC (hr_ack.flags) */
	uint64_t file;	      /*  8 */
	int64_t offset;	      /* 16 bytes; HR_OFFSET_NONE */
	int64_t ret;	      /* 24 */
	uint64_t asked;	      /* 32 bytes; HR_ASKED_NONE */
	uint32_t dur_lo;      /* 40 duration in ticks, 48 bits, saturating */
	uint16_t dur_hi;      /* 44 */
	uint16_t op;	      /* 46 enum hr_op_id, or a control id */
	int32_t fd;	      /* 48 -1: none */
	uint32_t flags;	      /* 52 open flags, whence, prot, item size: calls.def */
	uint32_t seq;  /* 56 low 32 bits of index + 1: the commit word, stored last with release */
	uint32_t bits; /* 60 HR_REC_* */
};

/* The slot after a record with HR_REC_PAIR; `op` is HR_CTL_PAIR. */
struct hr_pair {
	uint64_t file;	    /*  0 */
	int64_t offset;	    /*  8 */
	int32_t fd;	    /* 16 */
	uint32_t bits;	    /* 20 HR_REC_RUNTIME of the second file */
	uint64_t spare0[2]; /* 24 */
	uint32_t spare1;    /* 40 */
	uint16_t spare2;    /* 44 */
	uint16_t op;	    /* 46 */
	uint64_t spare3;    /* 48 */
	uint32_t seq;	    /* 56 */
	uint32_t spare4;    /* 60 */
};

/* Control ids in the field `op`; ids of operations start at HR_OP_FIRST. */
enum hr_ctl_id {
	HR_CTL_NONE = 0,
	/* the next records are of thread `fd` (in the process's pid namespace) */
	HR_CTL_THREAD = 1,
	HR_CTL_PATH = 2, /* a path: see below */
	HR_CTL_PAIR = 3, /* second slot of a record with HR_REC_PAIR */
	HR_CTL_ENV = 5, /* a rank variable was set: asked = length of "NAME=VALUE", which follows */
	HR_CTL_FORK = 6, /* a new child: fd = pid in the parent's namespace, flags = 1 for vfork */
	HR_CTL_REGION_KEY = 7, /* the name of regions: see below */
	HR_CTL_REGION = 8,     /* an ended region: see below */
	HR_OP_FIRST = 16
};

/*
 * HR_CTL_PATH: file = id, asked = bytes of the text (1..4096; the hash is of the whole path, the
 * text of a longer path is cut), fd = text slots that follow, offset = device (major << 32 | minor)
 * or HR_OFFSET_NONE, ret = mount id (mountinfo, first column) or -1, flags = st_mode & S_IFMT or 0,
 * bits = HR_REC_RUNTIME | HR_REC_DIR. Then ceil(asked / 56) text slots. One add reserves all slots
 * of a control record. Its first slot is committed last.
 */
struct hr_text {
	uint8_t text[56]; /* 0; includes the place of `op`, which only the first slot has */
	uint32_t seq;	  /* 56 */
	uint32_t spare;	  /* 60 */
};
#define HR_TEXT_BYTES 56u

/*
 * HR_CTL_REGION_KEY: file = hr_path_id() of the text, flags = HR_REGION_KIND, asked = bytes of the
 * text that follows: a NUL, kind as a letter from 'A' on, domain NUL category NUL name.
 *
 * HR_CTL_REGION: file = key, offset = step and ret = epoch of the process (HR_REGION_NONE), flags =
 * HR_REGION_*. fd = depth of nesting; for a span, the tid of the thread that began it. asked =
 * number of regions summed up here (start_ticks is the first one's); with HR_REGION_HAS_ARGS,
 * bytes of a JSON text that follows. Kinds: common/region.h.
 */
#define HR_REGION_NONE	     INT64_MIN
#define HR_REGION_IS_OPEN    UINT32_C(1) /* its thread ended before the region */
#define HR_REGION_HAS_ARGS   UINT32_C(2)
#define HR_REGION_IS_SPAN    UINT32_C(4)
#define HR_REGION_KIND_SHIFT 8 /* of flags */
#define HR_REGION_KIND(kind) ((uint32_t)(kind) << HR_REGION_KIND_SHIFT)
#define HR_REGION_TEXT	     4096u /* maximum bytes of a key's text, and of arguments */

/* True: ceil(asked / HR_TEXT_BYTES) text slots follow. */
static inline bool hr_record_has_text(const struct hr_record *r)
{
	return r->op == HR_CTL_PATH || r->op == HR_CTL_ENV || r->op == HR_CTL_REGION_KEY ||
	       (r->op == HR_CTL_REGION && (r->flags & HR_REGION_HAS_ARGS));
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* Totals of operations without a record, per op. Any thread adds atomically; they only grow. */
struct hr_lost {
	uint64_t count;
	uint64_t bytes;
	uint64_t ticks;
};

/*
 * An open region. A ring has the regions of its thread, innermost last: the first `region_depth`
 * cells are valid, except those with key 0. The head of a session's first map has spans, which any
 * thread may end; key 0: free, 1: a thread is changing the cell. The record is committed before the
 * cell is cleared. So if a record has the key and start_ticks of a dead owner's cell, the reader
 * drops the cell.
 */
struct hr_region_cell {
	uint64_t key;
	uint64_t start_ticks;
	int64_t step, epoch;
	uint32_t flags; /* HR_REGION_KIND */
	uint32_t stack; /* the API that opened it; only this API ends the range */
	uint32_t tid;
	uint32_t gen;
	uint64_t payload; /* recorded at the end of the region; only the shim uses it */
	uint32_t payload_type;
	uint32_t spare;
};
#define HR_REGION_DEPTH	  32u	     /* deeper regions are counted as lost */
#define HR_REGION_DEEPEST (1u << 20) /* upper bound of region_depth */
#define HR_REGION_SPANS	  56u	     /* open at a time */
#define HR_REGION_SHORTS  16u

/*
 * Sum of ranges that are shorter than hr_map_hdr.short_ticks, and have equal key, depth, step and
 * epoch. They get one record, which is committed before `count` becomes 0 (release). So the reader
 * of a dead owner's ring drops a cell as in hr_region_cell.
 */
struct hr_region_short {
	uint64_t key;
	uint64_t start_ticks; /* of the first range */
	int64_t step, epoch;
	uint64_t ticks; /* sum of durations */
	uint32_t count; /* stored last, with release; 0: the cell is free */
	uint32_t depth;
	uint32_t flags; /* HR_REGION_KIND */
	uint32_t spare0;
	uint64_t spare1;
};
#define HR_SHORT_NS UINT64_C(100000)

/*
 * Head of each map. Its maker writes the first 64 bytes before it sends the map; later the daemon
 * changes `level` and `short_ticks`. A forked child keeps the head of its parent's first map, and
 * counts its operations in `strays` until it has a session. Some children never attach (chroot,
 * setuid, no free descriptor, an inherited seccomp filter). `excluded`: opens of files excluded by
 * default, of parent and children, by position in HR_ITEM_DEFAULTS.
 */
struct hr_map_hdr {
	uint64_t magic;
	uint32_t abi;
	uint32_t index;	  /* of this map in its session */
	uint64_t session; /* token, also in hr_ack */
	uint32_t ring_count;
	uint32_t slots_log2;
	uint32_t level; /* enum hr_level; daemon: relaxed store, shim: relaxed load */
	/* HR_SHORT_NS in ticks; 0: no range is short; accessed like `level` */
	uint32_t short_ticks;
	uint32_t spare[6];
	/* sum of strays[]; atomic add with release, after the add to strays[] */
	uint64_t stray_total;
	uint64_t spare2[7];
	uint64_t excluded[HR_EXCLUDED_KINDS]; /* any thread: relaxed adds; they never decrease */
	struct hr_region_cell spans[HR_REGION_SPANS];
	uint8_t pad[HR_PAGE_BYTES - 128 - 8 * HR_EXCLUDED_KINDS - 64 * HR_REGION_SPANS];
	struct hr_lost strays[HR_OP_MAX];
};
/* the part that the maker of a map writes; all other bytes are zero */
#define HR_MAP_HEAD_BYTES offsetof(struct hr_map_hdr, stray_total)

enum hr_level { HR_LEVEL_OFF = 0, HR_LEVEL_COUNTERS = 1, HR_LEVEL_TRACE = 2 };

/*
 * The operation that the owner is in. `op` is stored last and cleared with release; 0: none. The
 * record is committed before the cell is cleared. So if a record has the op and start_ticks of a
 * dead owner's cell, the reader drops the cell. `file` is 0 for calls with a path, which the shim
 * reads only after the call. The first operation of a session starts before the attach.
 */
struct hr_inflight {
	uint64_t start_ticks;
	uint64_t file;
	int64_t offset;
	uint64_t asked;
	int32_t fd;
	uint32_t flags;
	uint32_t bits;
	uint16_t op;
	uint16_t spare;
	uint64_t spare2[2];
};

/*
 * Sum of calls that are too cheap for a record each (getc, putc). It becomes one HR_REC_AGGREGATE
 * record when file or op changes, or after HR_AGGREGATE_CALLS (or more, if signal handlers add
 * calls). The record has `gen` as `flags`. If no record has the gen of a dead owner's cell, the
 * reader counts the cell.
 */
#define HR_AGGREGATE_CALLS 65536u
struct hr_aggregate {
	uint64_t file;
	uint64_t start_ticks; /* of the first call */
	uint64_t ticks;	      /* sum of durations; 0 if calls are not timed */
	uint64_t count;
	uint64_t bytes;
	int32_t fd;
	uint32_t gen;
	uint32_t bits;
	uint16_t op;
	uint16_t spare;
	uint64_t spare2;
};

struct hr_ring_hdr {
	/* line 0: written by the owner */
	uint64_t head; /* slots reserved; signal-atomic add of the owner, relaxed load elsewhere */
	uint32_t owner_tid;    /* 0: free; claimed by compare-and-swap */
	uint32_t waiting;      /* owner sleeps on `tail` */
	uint64_t lost_total;   /* sum of lost[]; atomic add with release, after the add to lost[] */
	uint32_t region_depth; /* stored with release, after the cell */
	uint16_t short_busy;   /* the owner updates a short cell, so its signal handlers must not */
	uint16_t short_hand;   /* the cell whose age is checked next */
	/*
	 * 1: the common ring, which no thread claims. Threads without a ring of their own take its
	 * slots by locked instructions, each time with an HR_CTL_THREAD first. In-flight cell,
	 * aggregate and regions stay unused.
	 */
	uint32_t common;
	uint32_t spare0[7];
	/* line 1: written by the daemon */
	uint64_t tail; /* slots consumed; release store, acquire load; futex on its low word */
	uint64_t spare1[7];
	struct hr_inflight inflight;
	struct hr_aggregate aggregate;
	struct hr_region_cell regions[HR_REGION_DEPTH];
	struct hr_region_short shorts[HR_REGION_SHORTS];
	uint8_t pad[HR_PAGE_BYTES - 256 - 64 * (HR_REGION_DEPTH + HR_REGION_SHORTS)];
	/* operations that got no slot, of the owner or of threads without a ring */
	struct hr_lost lost[HR_OP_MAX];
};

#define HR_PAGE_PENDING 960u /* connections that the daemon has accepted and not answered */

/*
 * One page, read-only for clients. The daemon stores, shims load (relaxed; `sleeping` acquire).
 * `pending` is for the next daemon: pids of clients whose connection this daemon has accepted but
 * not journaled. 0: a free place; -1: the daemon has been accepting a connection since `accept_ns`.
 */
struct hr_node_page {
	uint64_t magic;
	uint32_t abi;
	uint32_t sleeping; /* 1: the drain thread is in FUTEX_WAIT on `bell`, or about to be */
	uint32_t bell;	   /* futex word; shims wake the daemon by it, but never write it */
	uint32_t spare;
	uint64_t beat;	    /* number of sweeps; if it stops, a shim that waits for room gives up */
	uint64_t accept_ns; /* CLOCK_BOOTTIME */
	int32_t pending[HR_PAGE_PENDING];
	uint8_t pad[HR_PAGE_BYTES - 40 - 4 * HR_PAGE_PENDING];
};

/* ---- handshake: SOCK_SEQPACKET, one message each way ----------------------------------------- */

enum hr_hello_kind {
	HR_HELLO_ATTACH = 1,
	HR_HELLO_MORE_RINGS = 2,
	/* a second message after one of the kinds above, with a map's descriptor */
	HR_HELLO_OFFER = 3,
	HR_HELLO_EXEC = 4 /* a notice: the process starts a program without the shim */
};

/* hr_hello.flags */
#define HR_HELLO_FORKED	   UINT32_C(1) /* same image as its parent: parent_session is valid */
#define HR_HELLO_TICKS_TSC UINT32_C(2) /* counters and start_ticks were taken with the TSC */
#define HR_HELLO_SPAWNED   UINT32_C(4) /* EXEC: in a child of the sender, whose pid is unknown */

#define HR_HELLO_MAX_BYTES 65536u

struct hr_hello {
	uint64_t magic;
	uint32_t abi;
	uint16_t word_bytes; /* sizeof(void *) */
	uint16_t kind;	     /* enum hr_hello_kind */
	uint32_t bytes;	     /* whole message */
	uint32_t flags;	     /* HR_HELLO_* */
	int32_t pid;	     /* in the pid namespace of the process */
	int32_t ppid;
	int32_t tid;
	int32_t spare0;
	uint64_t session;	 /* MORE_RINGS, OFFER: token of the session */
	uint64_t parent_session; /* FORKED: token of the parent's session; 0: the parent had none */
	uint64_t start_ticks;	 /* now */
	/* items to the end: u16 kind, u16 bytes, bytes...; MORE_RINGS has ENV items only */
};

/*
 * An offer is a hello of kind OFFER without items. Its map is sealed (HR_SIZE_SEALS), and has
 * HR_MAP_RINGS rings, index 0 and the token as `session`.
 * After an ATTACH, it has 2^HR_OFFER_SLOTS_LOG2 slots, level TRACE and a random token. This session
 * has no node page, so it rings no doorbell, and waits for room only after the daemon has read a
 * slot. After a MORE_RINGS, it has 2^HR_RING_SLOTS_LOG2 slots, and level and token of the first
 * map.
 */

/*
 * A notice (EXEC) has the items ENV and EXE, the program as the call names it. It is valid when the
 * kernel closes the connection at the exec. If the exec fails, a second message of any bytes
 * withdraws the notice. A notice gets no answer. parent_session: the session of the sender (or, of
 * a vfork child, its parent's) or of its parent; 0: none.
 */

enum hr_item_kind {
	HR_ITEM_EXE = 1,  /* path of the executable */
	HR_ITEM_ARGV = 2, /* arguments, each with its NUL; cut at 4096 bytes */
	HR_ITEM_ENV = 3,  /* one NAME=VALUE: ranks and jobs (env_names.def), and HEADRACE_* */
	HR_ITEM_CWD = 4,
	HR_ITEM_COUNTERS = 5, /* struct hr_counter[]: operations, HR_CTL_REGION, while detached */
	HR_ITEM_COVER = 7,    /* struct hr_item_cover: for probes (docs/probes.md) */
	HR_ITEM_DEFAULTS = 6  /* patterns of the counters in `excluded`, each with its NUL */
};

/*
 * Where probes find the struct hr_cover of a thread: `thread` bytes after the thread pointer, in
 * all threads. `began_ticks`: start of the operation at whose end the process attaches (0: none).
 * From this start on, the shim records the thread.
 */
struct hr_item_cover {
	int64_t thread;
	uint64_t began_ticks;
};

/*
 * The head of the shim's thread-local memory, for programs in the kernel. It describes only its own
 * process. slow[]: reasons why the shim cannot use its fast path. `ring`: address of a struct
 * hr_ring_hdr, whose cell `inflight` has the call that makes the system calls; 0: none.
 */
struct hr_cover {
	uint64_t nonce;
	uint8_t slow[8];
	uint64_t ring;
};
#define HR_COVER_BARE	 6 /* of slow[]: enum hr_bare */
#define HR_COVER_EXITING 7 /* not 0: the process is exiting, and stdio writes its buffers */

/* What the shim does in this thread, if no cell shows it. */
enum hr_bare {
	HR_BARE_NOT,
	HR_BARE_CALL, /* a call without a ring; at its end it is recorded, or counted as lost */
	HR_BARE_OWN,  /* a system call of the shim: no operation, whatever the cell contains */
	HR_BARE_STDIO /* a read or write of the buffer of a stream, for a single character */
};

struct hr_item_hdr {
	uint16_t kind;
	uint16_t bytes; /* of the value that follows, unpadded */
};

struct hr_counter {
	uint16_t op;
	uint16_t spare[3];
	struct hr_lost total;
};

/* ticks of the TSC (common/tsc.h), on aarch64 of the generic timer */
#define HR_ACK_CLOCK_TSC UINT32_C(1)

/* With status 0, the message has descriptors of the map and, for an ATTACH, the node page. */
struct hr_ack {
	uint64_t magic;
	uint32_t abi;
	int32_t status; /* 0; -EPROTO: version, -EACCES, -ENOSPC: a limit, -ECANCELED: deselected */
	uint64_t session;
	uint32_t flags; /* HR_ACK_* */
	uint32_t index; /* of the map */
	uint32_t ring_count;
	uint32_t slots_log2;
	uint32_t level;
	uint32_t spare0;
	uint64_t map_bytes;
	uint64_t spare1;
};

#define HR_ASSERT(e) _Static_assert(e, #e)
HR_ASSERT(sizeof(struct hr_record) == HR_SLOT_BYTES);
HR_ASSERT(sizeof(struct hr_pair) == HR_SLOT_BYTES);
HR_ASSERT(sizeof(struct hr_text) == HR_SLOT_BYTES);
HR_ASSERT(offsetof(struct hr_record, op) == 46 && offsetof(struct hr_pair, op) == 46);
HR_ASSERT(offsetof(struct hr_record, seq) == 56 && offsetof(struct hr_pair, seq) == 56);
HR_ASSERT(offsetof(struct hr_text, seq) == 56 && HR_TEXT_BYTES == 56);
HR_ASSERT(offsetof(struct hr_record, bits) == 60);
HR_ASSERT(offsetof(struct hr_map_hdr, level) == 32 &&
	  offsetof(struct hr_map_hdr, stray_total) == 64);
HR_ASSERT(offsetof(struct hr_map_hdr, excluded) == 128);
HR_ASSERT(offsetof(struct hr_map_hdr, strays) == HR_PAGE_BYTES &&
	  sizeof(struct hr_map_hdr) == 16384);
HR_ASSERT(sizeof(struct hr_region_cell) == 64 && offsetof(struct hr_map_hdr, spans) == 256);
HR_ASSERT(sizeof(struct hr_region_short) == 64 && offsetof(struct hr_region_short, count) == 40);
HR_ASSERT(sizeof(struct hr_inflight) == 64 && sizeof(struct hr_aggregate) == 64);
HR_ASSERT(offsetof(struct hr_ring_hdr, tail) == 64 &&
	  offsetof(struct hr_ring_hdr, inflight) == 128);
HR_ASSERT(offsetof(struct hr_ring_hdr, aggregate) == 192 &&
	  offsetof(struct hr_ring_hdr, lost) == 4096);
HR_ASSERT(sizeof(struct hr_ring_hdr) == 16384 && sizeof(struct hr_lost) == 24);
HR_ASSERT(sizeof(struct hr_node_page) == HR_PAGE_BYTES &&
	  offsetof(struct hr_node_page, bell) == 16);
HR_ASSERT(sizeof(struct hr_hello) == 64 && offsetof(struct hr_hello, session) == 40);
HR_ASSERT(sizeof(struct hr_item_cover) == 16 && sizeof(struct hr_cover) == 24 &&
	  offsetof(struct hr_cover, ring) == 16);
HR_ASSERT(sizeof(struct hr_ack) == 64 && sizeof(struct hr_item_hdr) == 4 &&
	  sizeof(struct hr_counter) == 32);

/* Bytes of a ring, bytes of a map, and offset of ring i in its map. */
static inline uint64_t hr_ring_bytes(uint32_t slots_log2)
{
	return sizeof(struct hr_ring_hdr) + ((uint64_t)HR_SLOT_BYTES << slots_log2);
}

static inline uint64_t hr_map_bytes(uint32_t ring_count, uint32_t slots_log2)
{
	return sizeof(struct hr_map_hdr) + ring_count * hr_ring_bytes(slots_log2);
}

static inline uint64_t hr_ring_offset(uint32_t i, uint32_t slots_log2)
{
	return sizeof(struct hr_map_hdr) + i * hr_ring_bytes(slots_log2);
}

#endif
