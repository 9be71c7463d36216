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

#define HR_ABI_MAGIC UINT64_C(0x3145434152445248)
#ifndef HR_ABI_VERSION /* tests/service/test_upgrade.py builds the next version */
#define HR_ABI_VERSION 1u
#endif

/* With these seals (fcntl.h), no process can change the size of a map or of the node page. */
#define HR_SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define HR_PAGE_BYTES	   4096u
#define HR_SLOT_BYTES	   64u
#define HR_OP_MAX	   512u /* limit of op ids */
#define HR_SESSION_MAPS	   64u	/* limit of the maps of a session */
#define HR_RING_SLOTS_LOG2 12	/* default: a ring has 4096 slots, 256 KiB */
#define HR_MAP_RINGS	   4u	/* default: number of rings in a map */
/* HR_TORN_NS for the common ring, whose writers may wait for a processor */
#define HR_TORN_COMMON_NS UINT64_C(5000000000)
/* same for an offer: larger, because the daemon may read it late; unused pages cost nothing */
#define HR_OFFER_SLOTS_LOG2 14
#define HR_RING_EARLY	    64u /* slots (one page) that have memory from the start */
#define HR_TORN_NS	    UINT64_C(200000000)
/* Limits of each of HEADRACE_EXCLUDE, _INCLUDE, _DEFAULT_EXCLUDE. Further patterns are ignored. */
#define HR_FILTER_PATTERNS 1024u
#define HR_FILTER_BYTES	   65536u
/* Each default exclude has a counter, as far as the texts fit. Others share the last counter. */
#define HR_EXCLUDED_KINDS 16u
#define HR_EXCLUDED_TEXT  1024u

/* ---- record ---------------------------------------------------------------------------------- */

#define HR_OFFSET_NONE INT64_MIN  /* the call has no offset; the daemon tracks the file position */
#define HR_RET_NONE    INT64_MIN  /* the call did not return */
#define HR_ASKED_NONE  UINT64_MAX /* the call has no size */

/* Bits of hr_record.bits. */
#define HR_REC_RUNTIME	 UINT32_C(1)  /* scope 'runtime' (Python's own files), otherwise 'data' */
#define HR_REC_PAIR	 UINT32_C(2)  /* the next slot is a struct hr_pair with the second file */
#define HR_REC_AGGREGATE UINT32_C(4)  /* one record for `asked` calls; `ret` is the sum of bytes */
#define HR_REC_CUT	 UINT32_C(8)  /* the call never returned: siglongjmp, or its thread died */
#define HR_REC_VFORK	 UINT32_C(16) /* a vfork child made the call, on its parent's ring */
#define HR_REC_DIR	 UINT32_C(32) /* the file is a directory */

/*
 * One operation. `ret` is the call's result, or -errno. If the call returns a pointer, it is the
 * count or descriptor that calls.def describes. `file` is hr_path_id() of the path; 0: no file.
 * The comment of a field begins with the offset of the field.
 */
struct hr_record {
	uint64_t start_ticks; /*  0 ticks: TSC, or ns of CLOCK_MONOTONIC (hr_ack.flags) */
	uint64_t file;	      /*  8 */
	int64_t offset;	      /* 16 in bytes, or HR_OFFSET_NONE */
	int64_t ret;	      /* 24 */
	uint64_t asked;	      /* 32 in bytes, or HR_ASKED_NONE */
	uint32_t dur_lo;      /* 40 duration in ticks: 48 bits, or the largest value */
	uint16_t dur_hi;      /* 44 */
	uint16_t op;	      /* 46 enum hr_op_id or enum hr_ctl_id */
	int32_t fd;	      /* 48 -1: none */
	uint32_t flags;	      /* 52 open flags, whence, prot, item size: see calls.def */
	uint32_t seq;  /* 56 low 32 bits of index + 1: the commit word, stored last with release */
	uint32_t bits; /* 60 HR_REC_* */
};

/* The slot after a record with HR_REC_PAIR. `op` is HR_CTL_PAIR. */
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

/* Values of `op` in control records. Ids of operations start at HR_OP_FIRST. */
enum hr_ctl_id {
	HR_CTL_NONE = 0,
	/* the next records of the ring are from the thread `fd` (in the process's pid namespace) */
	HR_CTL_THREAD = 1,
	HR_CTL_PATH = 2, /* a path (described below) */
	HR_CTL_PAIR = 3, /* the second slot of a record with HR_REC_PAIR */
	HR_CTL_ENV = 5,	 /* a rank variable was set: asked = length of the text "NAME=VALUE" */
	/* a new child: fd = pid in the parent's namespace or 0, flags = 1 for vfork */
	HR_CTL_FORK = 6,
	HR_CTL_REGION_KEY = 7, /* the name of regions (described below) */
	HR_CTL_REGION = 8,     /* a region that has ended (described below) */
	HR_CTL_LIBRARY = 9,    /* only as a count of losses: a library with a libc of its own */
	HR_CTL_PROGRAM = 10,   /* the same: a program that cannot reach the daemon's socket */
	HR_OP_FIRST = 16
};

/*
 * HR_CTL_PATH: file = id, asked = bytes of the text (1..4096; the text of a longer path is cut, but
 * the id is the hash of the whole path), fd = number of text slots that follow, offset = device
 * (major << 32 | minor) or HR_OFFSET_NONE, ret = mount id (mountinfo, first column) or -1, flags =
 * st_mode & S_IFMT or 0, bits = HR_REC_RUNTIME | HR_REC_DIR. Then ceil(asked / 56) text slots
 * follow. One addition reserves all slots of a control record. The first slot is committed last.
 */
struct hr_text {
	uint8_t text[56]; /* 0; a text slot has no field `op`, so the text uses its place */
	uint32_t seq;	  /* 56 */
	uint32_t spare;	  /* 60 */
};
#define HR_TEXT_BYTES 56u

/*
 * HR_CTL_REGION_KEY: file = hr_path_id() of the text, flags = HR_REGION_KIND, asked = bytes of the
 * text that follows: a NUL, the kind as a letter from 'A' on, domain NUL category NUL name.
 *
 * HR_CTL_REGION: file = key, offset = step and ret = epoch of the process (HR_REGION_NONE: none),
 * flags = HR_REGION_*. fd = depth of nesting; for a span, the tid of the thread that began the
 * span. asked = number of regions of which this is the sum (start_ticks is that of the first one);
 * with HR_REGION_HAS_ARGS, bytes of a JSON text that follows. Kinds: common/region.h.
 */
#define HR_REGION_NONE	     INT64_MIN
#define HR_REGION_IS_OPEN    UINT32_C(1) /* the thread ended before the region */
#define HR_REGION_HAS_ARGS   UINT32_C(2)
#define HR_REGION_IS_SPAN    UINT32_C(4)
#define HR_REGION_KIND_SHIFT 8
#define HR_REGION_KIND(kind) ((uint32_t)(kind) << HR_REGION_KIND_SHIFT)
#define HR_REGION_TEXT	     4096u /* limit of the name's text, and of the args */

/* Whether ceil(asked / HR_TEXT_BYTES) text slots follow. */
static inline bool hr_record_has_text(const struct hr_record *r)
{
	return r->op == HR_CTL_PATH || r->op == HR_CTL_ENV || r->op == HR_CTL_REGION_KEY ||
	       (r->op == HR_CTL_REGION && (r->flags & HR_REGION_HAS_ARGS));
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* Totals of operations without a record, per op. Any thread adds to them atomically. */
struct hr_lost {
	uint64_t count;
	uint64_t bytes;
	uint64_t ticks;
};

/*
 * An open region. A ring has the regions of its thread, the innermost last: the first
 * `region_depth` cells are valid, except those with key 0. The head of a session's first map has
 * spans, which any thread may end. In these cells, key 0 means free, and key 1 that a thread is
 * changing the cell. A region's record is committed before its cell is cleared. So the reader
 * ignores the cell of a dead thread if a record has the same key and start_ticks.
 */
struct hr_region_cell {
	uint64_t key;
	uint64_t start_ticks;
	int64_t step, epoch;
	uint32_t flags; /* HR_REGION_KIND */
	uint32_t stack; /* interface that began the range, and must end it */
	uint32_t tid;
	uint32_t gen;
	uint64_t payload; /* the shim records it at the end of the region */
	uint32_t payload_type;
	uint32_t spare;
};
#define HR_REGION_DEPTH	  32u	     /* deeper regions are counted as lost */
#define HR_REGION_DEEPEST (1u << 20) /* limit of region_depth */
#define HR_REGION_SPANS	  56u	     /* limit of spans that are open at once */
#define HR_REGION_SHORTS  16u

/*
 * The sum of ranges that are shorter than hr_map_hdr.short_ticks, and have the same key, depth,
 * step and epoch. It becomes one record, which is committed before `count` becomes 0 (release). So
 * the reader ignores the cell of a dead thread if that record exists, as for hr_region_cell.
 */
struct hr_region_short {
	uint64_t key;
	uint64_t start_ticks; /* start of the first range */
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
 * Head of a map. The maker of the map writes the first 64 bytes before it sends the map; later the
 * daemon changes `level` and `short_ticks`. A forked child keeps the head of its parent's first
 * map, and counts its operations in `strays` until it has a session. Some children never get one
 * (chroot, setuid, no free descriptor, an inherited seccomp filter). `excluded`: opens by parent
 * and children of files that default filters exclude, by position in HR_ITEM_DEFAULTS.
 */
struct hr_map_hdr {
	uint64_t magic;
	uint32_t abi;
	uint32_t index;	  /* number of this map in its session */
	uint64_t session; /* token of the session */
	uint32_t ring_count;
	uint32_t slots_log2;
	uint32_t level; /* enum hr_level; the daemon changes it (all accesses relaxed) */
	/* HR_SHORT_NS in ticks; 0: no range is short; relaxed, like `level` */
	uint32_t short_ticks;
	uint32_t spare[6];
	/* sum of strays[]; each addition (release) follows that to strays[] */
	uint64_t stray_total;
	uint64_t spare2[7];
	uint64_t excluded[HR_EXCLUDED_KINDS]; /* all threads add, relaxed */
	struct hr_region_cell spans[HR_REGION_SPANS];
	uint8_t pad[HR_PAGE_BYTES - 128 - 8 * HR_EXCLUDED_KINDS - 64 * HR_REGION_SPANS];
	struct hr_lost strays[HR_OP_MAX];
};
/* Size of the part that the maker of a map writes. All other bytes are zero. */
#define HR_MAP_HEAD_BYTES offsetof(struct hr_map_hdr, stray_total)

enum hr_level { HR_LEVEL_OFF = 0, HR_LEVEL_COUNTERS = 1, HR_LEVEL_TRACE = 2 };

/*
 * The operation in which the ring's owner is. `op` is stored last and cleared with release; 0:
 * none. The record is committed before the cell is cleared. So the reader ignores the cell of a
 * dead thread if a record has the same op and start_ticks. `file` is 0 for calls with a path, which
 * the shim reads only after the call. The first operation of a session starts before the attach.
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
 * The sum of calls that are too cheap for a record each (getc, putc). It becomes one record with
 * HR_REC_AGGREGATE when file or op changes, or after HR_AGGREGATE_CALLS (or more, if signal
 * handlers add calls). `flags` of the record is `gen`. If no record has the gen of a dead thread's
 * cell, the reader counts the cell.
 */
#define HR_AGGREGATE_CALLS 65536u
struct hr_aggregate {
	uint64_t file;
	uint64_t start_ticks; /* start of the first call */
	uint64_t ticks;	      /* sum of durations; 0 if the calls are not timed */
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
	/* first cache line: the owner writes it */
	uint64_t head;	       /* reserved slots; the owner adds atomically, others load relaxed */
	uint32_t owner_tid;    /* 0: the ring is free; claimed by compare-and-swap */
	uint32_t waiting;      /* 1: the owner sleeps until `tail` changes */
	uint64_t lost_total;   /* sum of lost[]; each addition (release) follows that to lost[] */
	uint32_t region_depth; /* stored with release, after the cell */
	uint16_t short_busy;   /* the owner updates a short cell, so its signal handlers must not */
	uint16_t short_hand;   /* the cell of shorts[] whose age is checked next */
	/*
	 * 1: this is the common ring, which no thread claims. Threads without a ring of their own
	 * reserve its slots by locked instructions, each time with an HR_CTL_THREAD first.
	 * In-flight cell, aggregate and regions are not used.
	 */
	uint32_t common;
	uint32_t spare0[7];
	/* second cache line: the daemon writes it */
	uint64_t tail; /* slots that the daemon has read; release, acquire; futex on its low word */
	uint64_t spare1[7];
	struct hr_inflight inflight;
	struct hr_aggregate aggregate;
	struct hr_region_cell regions[HR_REGION_DEPTH];
	struct hr_region_short shorts[HR_REGION_SHORTS];
	uint8_t pad[HR_PAGE_BYTES - 256 - 64 * (HR_REGION_DEPTH + HR_REGION_SHORTS)];
	/* operations that got no slot, of the owner or of threads without a ring */
	struct hr_lost lost[HR_OP_MAX];
};

#define HR_PAGE_PENDING 960u /* connections accepted but not yet answered */

/*
 * A page that clients can only read. The daemon stores, shims load (relaxed; `sleeping` acquire).
 * `pending`, `accepting` and `taken` are for the next daemon. `pending`: pids of clients whose
 * connection this daemon has accepted but not journaled. 0: free. -1: the pid is unknown. `taken`
 * is where accept4 stores the client's address, which is AF_UNIX, so it is not 0 from the moment in
 * which the kernel takes a connection out of the backlog until `pending[accepting]` has the pid.
 */
struct hr_node_page {
	uint64_t magic;
	uint32_t abi;
	uint32_t sleeping; /* 1: the drain thread waits on `bell`, or is about to */
	uint32_t bell;	   /* futex with which shims wake the daemon; they never write it */
	uint16_t accepting, taken;
	uint64_t beat; /* number of sweeps; if it stops, a shim does not wait for room */
	int32_t pending[HR_PAGE_PENDING];
	uint8_t pad[HR_PAGE_BYTES - 32 - 4 * HR_PAGE_PENDING];
};

/* ---- handshake: SOCK_SEQPACKET, one message each way ----------------------------------------- */

enum hr_hello_kind {
	HR_HELLO_ATTACH = 1,
	HR_HELLO_MORE_RINGS = 2,
	/* a second message after ATTACH or MORE_RINGS, with a map's descriptor */
	HR_HELLO_OFFER = 3,
	HR_HELLO_EXEC = 4 /* a notice: the process starts a program without the shim */
};

/* Bits of hr_hello.flags. */
#define HR_HELLO_FORKED	   UINT32_C(1)	/* forked, with no exec since: parent_session is valid */
#define HR_HELLO_TICKS_TSC UINT32_C(2)	/* the unit of counters and start_ticks is the TSC */
#define HR_HELLO_SPAWNED   UINT32_C(4)	/* EXEC: in a child of the sender, whose pid is unknown */
#define HR_HELLO_AGAIN	   UINT32_C(16) /* an earlier connection was closed without an answer */
#define HR_HELLO_UNABLE	   UINT32_C(8) /* EXEC: the program is the sender, whose shim cannot work */
#define HR_HELLO_STATIC	   UINT32_C(32) /* EXEC: the program is statically linked */
#define HR_HELLO_32BIT	   UINT32_C(64) /* EXEC: the program is a 32-bit program */

#define HR_HELLO_MAX_BYTES 65536u

struct hr_hello {
	uint64_t magic;
	uint32_t abi;
	uint16_t word_bytes; /* sizeof(void *) */
	uint16_t kind;
	uint32_t bytes; /* length of the whole message */
	uint32_t flags;
	int32_t pid; /* in the process's pid namespace */
	int32_t ppid;
	int32_t tid;
	uint32_t image;		 /* the same in all hellos of an image; fork and exec change it */
	uint64_t session;	 /* MORE_RINGS, OFFER: token */
	uint64_t parent_session; /* FORKED: token of the parent's session; 0: it had none */
	uint64_t start_ticks;	 /* time of this message */
	/* Items follow: u16 kind, u16 bytes, bytes... MORE_RINGS has only items of kind ENV. */
};

/*
 * An offer is a hello of kind OFFER without items. Its map is sealed (HR_SIZE_SEALS), and has
 * HR_MAP_RINGS rings, index 0 and the token as `session`. After an ATTACH, the map has
 * 2^HR_OFFER_SLOTS_LOG2 slots, level TRACE and a random token. Such a session has no node page, so
 * it rings no doorbell, and waits for room only after the daemon has read a slot. After a
 * MORE_RINGS, the map has 2^HR_RING_SLOTS_LOG2 slots, and level and token of the first map.
 */

/*
 * A notice (EXEC) has items of kind ENV, and an EXE with the program as the call names it. It is
 * valid when the kernel closes the connection at the exec. If the exec fails, a second message of
 * any bytes withdraws the notice. A notice gets no answer. parent_session is the session of the
 * sender (of a vfork child: that of its parent) or, without one, of its parent; 0: none.
 * A shim that cannot work in its process sends a notice with the flag UNABLE, and closes the
 * connection.
 */

enum hr_item_kind {
	HR_ITEM_EXE = 1,  /* path of the executable */
	HR_ITEM_ARGV = 2, /* arguments, each with its NUL; cut after 4096 bytes */
	HR_ITEM_ENV = 3,  /* one NAME=VALUE: rank or job (env_names.def), or HEADRACE_* */
	HR_ITEM_CWD = 4,
	HR_ITEM_COUNTERS = 5, /* struct hr_counter[]: operations and regions before the session */
	HR_ITEM_COVER = 7,    /* struct hr_item_cover, for the probes */
	HR_ITEM_DEFAULTS = 6  /* patterns that are counted in `excluded`, each with its NUL */
};

/*
 * Where the probes find the struct hr_cover of a thread: `thread` bytes after the thread pointer,
 * in all threads. The process attaches at the end of an operation, which started at `began_ticks`
 * (0: none). From this time on, the shim records the thread.
 */
struct hr_item_cover {
	int64_t thread;
	uint64_t began_ticks;
};

/*
 * The first bytes of the shim's thread-local memory, which the probes read. slow[]: reasons why the
 * shim cannot use its fast path. `ring`: address of a struct hr_ring_hdr, whose cell `inflight` has
 * the call that makes the current system calls; 0: none.
 */
struct hr_cover {
	uint64_t nonce;
	uint8_t slow[8];
	uint64_t ring;
};
#define HR_COVER_BARE	 6 /* index in slow[]: enum hr_bare */
#define HR_COVER_EXITING 7 /* not 0: the process is exiting, and stdio writes its buffers */

/* What the shim does in a thread whose in-flight cell does not show it. */
enum hr_bare {
	HR_BARE_NOT,
	HR_BARE_CALL, /* a call without a ring, which is recorded or counted as lost at its end */
	HR_BARE_OWN,  /* a system call of the shim: no operation, even if the cell is not empty */
	HR_BARE_STDIO /* for a single character, stdio reads or writes the buffer of a stream */
};

struct hr_item_hdr {
	uint16_t kind;
	uint16_t bytes; /* size of the value that follows */
};

struct hr_counter {
	uint16_t op;
	uint16_t spare[3];
	struct hr_lost total;
};

/* Ticks are those of the TSC (common/tsc.h), on aarch64 of the generic timer. */
#define HR_ACK_CLOCK_TSC UINT32_C(1)

/* If status is 0, the message has descriptors of the map and, after an ATTACH, of the node page. */
struct hr_ack {
	uint64_t magic;
	uint32_t abi;
	int32_t status; /* 0; -EPROTO: version, -EACCES, -ENOSPC: a limit, -ECANCELED: deselected */
	uint64_t session;
	uint32_t flags;
	uint32_t index; /* number of the map in the session */
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

/* Size of a ring, size of a map, and offset of ring i in its map. */
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
