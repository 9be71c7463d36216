/* SPDX-License-Identifier: Apache-2.0 */
/* feed_internal.h - shared by feed.c (images, records, sums), feed_names.c (files) and feed_slots.c (entries) */
#ifndef HEADRACE_DAEMON_DRAIN_FEED_INTERNAL_H
#define HEADRACE_DAEMON_DRAIN_FEED_INTERNAL_H

#include "daemon/drain/drain_internal.h"
#include "daemon/drain/feed.h"
#include "daemon/engine/kernel.h"
#include "common/map64.h"
#include "common/ranks.h"
#include "common/path_filter.h"

/* A file that programs have named, until as many others have been since. */
struct feed_name {
	uint64_t name; /* 0: unused */
	uint64_t hash;
	int64_t device; /* as in HR_CTL_PATH */
	int64_t mount;
	uint32_t mode;
	uint32_t bytes;
	char *path; /* NULL where nobody asks for it (any more) */
	enum hr__verdict verdict;
	bool said; /* its path is in a RECORDS entry */
};

#define HR__FEED_FORGET_NS UINT64_C(5000000000) /* sums of what has ended may come so late */

enum feed_state { FEED_WAITING, FEED_PROBED, FEED_ATTACHED };

struct feed_image {
	uint64_t image; /* 0: unused */
	uint64_t proc;	/* 0: waiting */
	uint64_t token;
	uint64_t first_ns; /* of what waits */
	uint64_t ended_ns; /* 0: lives */
	uint64_t index;	   /* of the next slot */
	enum feed_state state;
	struct hr_probed probed; /* of the session */
	uint32_t next_unused;	 /* while it is */
	uint32_t tgid;
	bool left_out; /* deselected: nothing of it is recorded */
	bool end_due;  /* an END of our own is to be written */
	char exit[16];
	struct hr_probe_image *who; /* while it waits; NULL: not known yet */
	struct hr_probe_op *waiting;
	uint32_t n_waiting, room_waiting;
	struct hr_record *slots; /* of this sweep */
	uint32_t n_slots, room_slots;
};

/* A sum or tally, for the entries of its process: as soon as that is known. */
struct feed_sum {
	uint64_t proc;	       /* 0: not known yet */
	struct hr_sum_key key; /* of a tally, what its sum would have */
	struct hr_sum sum;
	struct hr_tally *tally; /* NULL: a sum */
	uint64_t taken_ns;
};

struct hr_feed {
	struct hr_drain *d;
	struct hr_probes *probes;
	struct feed_name *names; /* HR_PROBE_NAMES of them, by the lower bits of their number */
	struct hr__filter *filter;
	bool filter_known;
	bool continued; /* another daemon's stream, which is not said yet */
	struct feed_image *images;
	uint32_t n_images, room_images;
	uint32_t unused;	  /* 1 + index, chained by `next_unused`; 0: none */
	struct hr_map64 by_image; /* index in images */
	struct feed_sum *sums;
	uint32_t n_sums, room_sums;
	struct hr_kernel_sums rows; /* for KERNEL entries */
	uint64_t last_name;	    /* the newest */
	uint64_t turned_name;	    /* when sums were last taken */
	uint64_t missed; /* operations that cannot be recorded: their process is not known */
	uint64_t missed_noted;
	uint64_t compat_noted; /* processes of 32-bit programs */
	uint64_t turned_ns;    /* sums were last taken */
	uint64_t salt;	       /* of the tokens that we make */
};

/* feed.c: NULL: not known, or no memory to make it */
struct feed_image *hr__feed_image(struct hr_feed *f, uint64_t image, bool make);

/* feed_sums.c: turns the sides, and writes what can be written */
void hr__feed_sums(struct hr_feed *f, uint64_t now_ns);
/* Nothing more is to come: what waits is missed. */
void hr__feed_sums_end(struct hr_feed *f);
void hr__feed_sums_done(struct hr_feed *f);
/*
 * Adds an operation of a known process to the audit; `shims`: the shim records it, too. Returns its
 * cause (enum hr_cause), HR_CAUSE_LOST if its file is no longer known.
 */
uint16_t hr__feed_sum_op(struct hr_feed *f, const struct feed_image *img,
			 const struct hr_probe_op *r, bool shims);

/* feed_names.c */
void hr__feed_name(struct hr_feed *f, const struct hr_probe_name *r, size_t bytes);
struct feed_name *hr__feed_name_get(struct hr_feed *f,
				    uint64_t name); /* NULL: not known any more */
/* The caller has checked the sizes of its texts. */
void hr__feed_filter(struct hr_feed *f, const struct hr_probe_image *r);
/* Writes components (leaf first, NUL-ended) as an absolute path; returns its length, 0: none. */
size_t hr__feed_unwalk(const char *text, size_t bytes, char *to, size_t room);

/* feed_slots.c */
/* Whether operations on it are recorded. */
bool hr__feed_recorded(const struct feed_name *n);
/* Its path, where that was not said before. */
void hr__feed_path(struct feed_image *img, struct feed_name *n);
void hr__feed_op(struct hr_feed *f, struct feed_image *img, const struct hr_probe_op *r);
void hr__feed_flush(struct hr_feed *f, struct feed_image *img);
/* A process of our own. False: there was no room, later perhaps. */
bool hr__feed_attach(struct hr_feed *f, struct feed_image *img);

/* The texts behind the head of an IMAGE: the caller has checked its size. */
static inline const char *hr__feed_text(const struct hr_probe_image *r)
{
	return (const char *)(r + 1);
}

#endif
