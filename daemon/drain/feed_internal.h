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

/* A file that the programs have given a name. It stays until a newer file has the same index. */
struct feed_name {
	uint64_t name; /* number of the name; 0: unused */
	uint64_t hash;
	int64_t device; /* device number as in HR_CTL_PATH */
	int64_t mount;
	uint32_t mode;
	uint32_t bytes;
	char *path; /* NULL: the path is not needed */
	enum hr_verdict verdict;
	bool written; /* a RECORDS entry has the path */
};

/* How long after its end an image may still get sums. */
#define HR__FEED_FORGET_NS UINT64_C(5000000000)

enum feed_state { FEED_WAITING, FEED_PROBED, FEED_ATTACHED };

struct feed_image {
	uint64_t image; /* id of the struct hr_image; 0: unused */
	uint64_t proc;	/* process number; 0: none yet */
	uint64_t token;
	uint64_t first_ns; /* when the first of the waiting records came */
	uint64_t ended_ns; /* when the image ended; 0: it has not */
	uint64_t index;	   /* number of the next slot */
	enum feed_state state;
	struct hr_probed probed;
	uint32_t next_unused; /* used if this element is unused */
	uint32_t tgid;
	bool left_out; /* the image is deselected, so not recorded */
	bool end_due;  /* the feed must write the END entry of the process */
	char exit[16];
	struct hr_probe_image *who; /* the IMAGE record, as long as records wait; NULL: unknown */
	struct hr_probe_op *waiting;
	uint32_t n_waiting, room_waiting;
	struct hr_record *slots; /* slots for the next RECORDS entry */
	uint32_t n_slots, room_slots;
};

struct feed_sum {
	uint64_t proc;	       /* process number; 0: unknown */
	struct hr_sum_key key; /* key of the sum or, for a tally, of the sum in it */
	struct hr_sum sum;
	struct hr_tally *tally; /* NULL: a sum without a tally */
	uint64_t taken_ns;
};

struct hr_feed {
	struct hr_drain *d;
	struct hr_probes *probes;
	/* HR_PROBE_NAMES elements. The index is the lower bits of the name's number. */
	struct feed_name *names;
	struct hr_filter *filter;
	bool filter_known;
	/* Not journaled yet: the loss between a previous daemon's probes and these probes. */
	bool continued;
	struct feed_image *images;
	uint32_t n_images, room_images;
	uint32_t unused;	  /* first unused index + 1 (see next_unused); 0: none */
	struct hr_map64 by_image; /* index in `images`, by id */
	struct feed_sum *sums;
	uint32_t n_sums, room_sums;
	struct hr_kernel_sums rows; /* rows for the next KERNEL entries */
	uint64_t last_name;
	uint64_t turned_name; /* last_name at the last switch of the sides */
	uint64_t missed;      /* operations of unknown processes, which are lost */
	uint64_t missed_noted;
	uint64_t compat_noted; /* 32-bit processes that were already counted as lost */
	uint64_t turned_ns;    /* when the sides were last switched */
	uint64_t salt;	       /* part of the tokens of processes without a session */
};

/* Switches the sides of the maps, and writes the sums of known processes. */
void hr__feed_sums(struct hr_feed *f, uint64_t now_ns);
/* Counts the sums that still wait as missed, because no records follow. */
void hr__feed_sums_end(struct hr_feed *f);
void hr__feed_sums_done(struct hr_feed *f);
/*
 * Adds an operation of a known process to the audit. `shims`: the shim also records it. Returns the
 * cause (enum hr_cause); HR_CAUSE_LOST: the file's name was dropped from the table.
 */
uint16_t hr__feed_sum_op(struct hr_feed *f, const struct feed_image *img,
			 const struct hr_probe_op *r, bool shims);

/* feed_names.c */
void hr__feed_name(struct hr_feed *f, const struct hr_probe_name *r, size_t bytes);
/* Returns NULL if the name was dropped from the table. */
struct feed_name *hr__feed_name_get(struct hr_feed *f, uint64_t name);
/* Returns whether operations on this file are recorded. */
bool hr__feed_recorded(const struct feed_name *n);
/* Makes the path filter from a process's environment. The caller has checked the sizes. */
void hr__feed_filter(struct hr_feed *f, const struct hr_probe_image *r);
/* Makes a path from its components (the last first, each with NUL). Returns the length; 0: none. */
size_t hr__feed_unwalk(const char *text, size_t bytes, char *to, size_t room);

/* feed_slots.c */
/* Finds an image, or makes it if `make`. Returns NULL if it is unknown, or memory is short. */
struct feed_image *hr__feed_image(struct hr_feed *f, uint64_t image, bool make);
/* Writes the path of a named file, unless the path is already written. */
void hr__feed_path(struct feed_image *img, struct feed_name *n);
void hr__feed_op(struct hr_feed *f, struct feed_image *img, const struct hr_probe_op *r);
void hr__feed_flush(struct hr_feed *f, struct feed_image *img);
/* Makes a process that has no session. Returns false if the journal has no room now. */
bool hr__feed_attach(struct hr_feed *f, struct feed_image *img);

/* Returns the texts after an IMAGE record, whose size the caller has checked. */
static inline const char *hr__feed_text(const struct hr_probe_image *r)
{
	return (const char *)(r + 1);
}

#endif
