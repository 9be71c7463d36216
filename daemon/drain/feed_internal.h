/* SPDX-License-Identifier: Apache-2.0 */
/* feed_internal.h - shared by feed.c (images), feed_names.c (files), feed_slots.c, feed_sums.c */
#ifndef HEADRACE_DAEMON_DRAIN_FEED_INTERNAL_H
#define HEADRACE_DAEMON_DRAIN_FEED_INTERNAL_H

#include "daemon/drain/drain_internal.h"
#include "daemon/drain/feed.h"
#include "daemon/engine/kernel.h"
#include "common/map64.h"
#include "common/ranks.h"
#include "common/path_filter.h"

/* A file that programs have named. It stays until a newer file needs its slot. */
struct feed_name {
	uint64_t name; /* 0: unused */
	uint64_t hash;
	int64_t device; /* as in HR_CTL_PATH */
	int64_t mount;
	uint32_t mode;
	uint32_t bytes;
	char *path; /* NULL: not needed */
	enum hr__verdict verdict;
	bool written; /* its path is in a RECORDS entry */
};

/* An image may have sums this long after its end. */
#define HR__FEED_FORGET_NS UINT64_C(5000000000)

enum feed_state { FEED_WAITING, FEED_PROBED, FEED_ATTACHED };

struct feed_image {
	uint64_t image; /* 0: unused */
	uint64_t proc;	/* 0: no process yet */
	uint64_t token;
	uint64_t first_ns; /* time of the first record that waits */
	uint64_t ended_ns; /* 0: it has not ended */
	uint64_t index;	   /* index of the next slot */
	enum feed_state state;
	struct hr_probed probed; /* what its session states about the hello */
	uint32_t next_unused;	 /* while the slot is unused */
	uint32_t tgid;
	bool left_out; /* it is deselected, so it is not recorded */
	bool end_due;  /* the feed has to write its END entry */
	char exit[16];
	struct hr_probe_image *who; /* its first record, while it waits; NULL: unknown */
	struct hr_probe_op *waiting;
	uint32_t n_waiting, room_waiting;
	struct hr_record *slots; /* the slots of the current sweep */
	uint32_t n_slots, room_slots;
};

struct feed_sum {
	uint64_t proc;	       /* 0: unknown */
	struct hr_sum_key key; /* if this is a tally: the key of the sum in it */
	struct hr_sum sum;
	struct hr_tally *tally; /* NULL: this is a plain sum */
	uint64_t taken_ns;
};

struct hr_feed {
	struct hr_drain *d;
	struct hr_probes *probes;
	/* HR_PROBE_NAMES entries; the index is the lower bits of the name's number. */
	struct feed_name *names;
	struct hr__filter *filter;
	bool filter_known;
	/*
	 * The loss between the probes of a previous daemon and these probes is not journaled yet.
	 */
	bool continued;
	struct feed_image *images;
	uint32_t n_images, room_images;
	uint32_t unused;	  /* 1 + index, chained by `next_unused`; 0: none */
	struct hr_map64 by_image; /* index in images */
	struct feed_sum *sums;
	uint32_t n_sums, room_sums;
	struct hr_kernel_sums rows; /* rows of the next KERNEL entries */
	uint64_t last_name;	    /* number of the newest name */
	uint64_t turned_name;	    /* last_name when the sums were last taken */
	uint64_t missed;	    /* operations that are lost because their process is unknown */
	uint64_t missed_noted;
	uint64_t compat_noted; /* processes of 32-bit programs that were counted as lost */
	uint64_t turned_ns;    /* when the sums were last taken */
	uint64_t salt;	       /* part of the tokens of probed processes */
};

/* Finds an image, or makes it if `make`. NULL: unknown, or no memory. */
struct feed_image *hr__feed_image(struct hr_feed *f, uint64_t image, bool make);

/* Switches the sides of the maps, and writes the sums whose process is known. */
void hr__feed_sums(struct hr_feed *f, uint64_t now_ns);
/* Counts sums that still wait as missed, because no further records follow. */
void hr__feed_sums_end(struct hr_feed *f);
void hr__feed_sums_done(struct hr_feed *f);
/*
 * Adds an operation of a known process to the audit. `shims`: the shim also records it. Returns its
 * cause (enum hr_cause); HR_CAUSE_LOST: the table of names no longer has its file.
 */
uint16_t hr__feed_sum_op(struct hr_feed *f, const struct feed_image *img,
			 const struct hr_probe_op *r, bool shims);

/* feed_names.c */
void hr__feed_name(struct hr_feed *f, const struct hr_probe_name *r, size_t bytes);
/* NULL: the name is no longer in the table. */
struct feed_name *hr__feed_name_get(struct hr_feed *f, uint64_t name);
/* Makes the filter from an image's environment. The caller has checked the sizes of its texts. */
void hr__feed_filter(struct hr_feed *f, const struct hr_probe_image *r);
/* Makes a path from components (leaf first, each with its NUL). Returns its length; 0: none. */
size_t hr__feed_unwalk(const char *text, size_t bytes, char *to, size_t room);

/* feed_slots.c */
/* Whether operations on this file are recorded. */
bool hr__feed_recorded(const struct feed_name *n);
/* Writes the path of a name, unless it was written before. */
void hr__feed_path(struct feed_image *img, struct feed_name *n);
void hr__feed_op(struct hr_feed *f, struct feed_image *img, const struct hr_probe_op *r);
void hr__feed_flush(struct hr_feed *f, struct feed_image *img);
/* Makes a process without a session. False: the journal has no room now. */
bool hr__feed_attach(struct hr_feed *f, struct feed_image *img);

/* The texts after an IMAGE record, whose size the caller has checked. */
static inline const char *hr__feed_text(const struct hr_probe_image *r)
{
	return (const char *)(r + 1);
}

#endif
