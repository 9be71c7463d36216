/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - records that the daemon took from rings and has not stored yet, safe from kill -9
 *
 * Purpose   A file (or memfd, if the disk is full) of two halves. Threads append entries
 *           (entry.h) to one half, and commit each by a release store of its head. Only then do
 *           they publish new ring positions. So, whenever the daemon dies, a record is in its ring
 *           or in the journal.
 * Owner     The node; after a kill recover.c, which reads a copy. The file is removed with its job.
 * Threads   The attach and drain threads append, under the journal's lock. The appender thread
 *           retires halves. Replay reads before any thread runs.
 *
 *      0       +--------------------------------+
 *              | struct hr_journal_hdr     4096 |
 *      4096    +--------------------------------+
 *              | half 0: struct hr_half      64 |   gen 0: free
 *              |         entries ... head       |
 *      + half  +--------------------------------+
 *              | half 1                         |
 *              +--------------------------------+
 *
 * States of a half
 *      free    --(begin: head = 0, snapshot, gen = last + 1)-->      active    entries are appended
 *      active  --(the other half becomes active)-->                  full      frames are sent
 *      full    --(all its frames are in the store: gen = 0)-->       free
 *
 * Recovery replays the halves with a gen, the older first. hr_journal_open reserves the space: it
 * fails if the disk is full, so that no later write raises SIGBUS.
 *
 * Checksums. crc is the CRC-32C of the gen of the half, the offset of the entry there, and the
 * entry without crc. An entry fails the check if it was damaged, moved, not written, or left from
 * an earlier gen. Replay ends at the first entry that fails, whatever head is:
 * - valid entries after head were complete when the daemon was killed;
 * - an invalid entry before head, or a head beyond the half, is damage (hr_journal_damaged).
 * A KNOWN entry has the ids of the files of the entry before it. If damage destroyed KNOWN, replay
 * would give these files new ids. So, in a half that begins with a snapshot, replay skips the last
 * entry before the damage if this entry uses files.
 */
#ifndef HEADRACE_DAEMON_JOURNAL_JOURNAL_H
#define HEADRACE_DAEMON_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/journal/entry.h"

#define HR_JOURNAL_MAGIC UINT64_C(0x314c4e524a5248) /* "HRJRNL1" */
/* Version of the entries, and of the frames that the engine makes from them. */
#define HR_JOURNAL_VERSION    10u
#define HR_JOURNAL_HALF_BYTES (16u << 20)
/* The drain thread leaves this much room in a half for ATTACH entries. */
#define HR_JOURNAL_SLACK (UINT64_C(4) * (HR_HELLO_MAX_BYTES + 512u))
#define HR_KNOWN_SLACK	 (1u << 20) /* all threads leave this much room for KNOWN entries */

struct hr_journal_hdr {
	uint64_t magic;
	uint32_t version;
	uint32_t crc; /* checksum of half_bytes */
	uint64_t half_bytes;
	/*
	 * Generation of the newest half, set after hr_half.gen. If no half has this gen, the newest
	 * half is damaged.
	 */
	uint64_t last_gen;
	uint64_t end_seq; /* set by hr_journal_note_end; 0: not set */
	uint8_t pad[HR_PAGE_BYTES - 40];
};
_Static_assert(sizeof(struct hr_journal_hdr) == HR_PAGE_BYTES, "journal header");

struct hr_half {
	uint64_t gen;  /* generation; 0: the half is free */
	uint64_t head; /* bytes of committed entries; written with release, read with acquire */
	uint64_t pad[6];
	uint8_t entries[];
};
_Static_assert(sizeof(struct hr_half) == 64, "journal half");

struct hr_journal;

/*
 * Opens the journal in the file `fd`. If the file is empty, makes a journal with two free halves in
 * it; if `fd` is -1, in memory. Always closes `fd`. *ret_found: the journal has entries. Errors:
 * -EPROTONOSUPPORT (another version), -EBADMSG (not a journal), -ENOSPC...
 */
int hr_journal_open(int fd, uint64_t half_bytes, struct hr_journal **ret, bool *ret_found);

/*
 * Opens a private copy of a journal, for replay only. The file does not change, and `fd` stays
 * open. Returns the errors of hr_journal_open, or -ENODATA if no entry was ever committed.
 */
int hr_journal_read(int fd, struct hr_journal **ret);

/*
 * Writes a number into the journal `fd`: the number of the first frame that recovery adds to end
 * the stream. These frames come from no entry. Recovery calls this function before it stores them.
 * If recovery is killed, the next recovery recognizes the frames by this number.
 */
int hr_journal_note_end(int fd, uint64_t seq);
uint64_t hr_journal_end_seq(const struct hr_journal *j);

void hr_journal_close(struct hr_journal *j); /* keeps the file; accepts NULL */

void hr_journal_lock(struct hr_journal *j);
void hr_journal_unlock(struct hr_journal *j);

/*
 * Reserves an entry, if `slack` bytes remain free in the half after it. NULL: there is no room.
 * Call it under the lock.
 */
void *hr_journal_reserve(struct hr_journal *j, uint64_t bytes, uint64_t slack);
/* Commits the reserved entry: writes its header, and cuts it to `bytes`. Call it under the lock. */
void hr_journal_commit(struct hr_journal *j, uint32_t kind, uint64_t bytes);

/* Makes the free half active. -EBUSY: no half is free. Call it under the lock. */
int hr_journal_begin(struct hr_journal *j);
/* Makes the gen of the new half valid. Call it under the lock, after the snapshot is written. */
void hr_journal_begun(struct hr_journal *j);

uint64_t hr_journal_gen(const struct hr_journal *j);
uint64_t hr_journal_head(const struct hr_journal *j);
uint64_t hr_journal_capacity(const struct hr_journal *j);
bool hr_journal_spare_free(const struct hr_journal *j);
void hr_journal_retire(struct hr_journal *j, uint64_t gen); /* makes a half free; any thread */

/*
 * Checks all entries, and makes the newest half active. Returns the number of gens to replay;
 * ret_gens has the older one first.
 */
unsigned hr_journal_replay(struct hr_journal *j, uint64_t ret_gens[2]);

/* Returns the entry at *offset, and advances *offset. NULL: the end, or an invalid entry. */
const struct hr_entry *hr_journal_next(const struct hr_journal *j, uint64_t gen, uint64_t *offset);

/* Returns whether replay cannot reach all committed bytes of the half. Call after the replay. */
bool hr_journal_damaged(const struct hr_journal *j, uint64_t gen);
/* Returns whether the newest half has lost its header, so that its contents are unknown. */
bool hr_journal_headless(const struct hr_journal *j);

/*
 * Finds the next valid entry from *offset on, and advances *offset, to count what damage lost.
 * NULL: none is before `head`, or the searches have read too many bytes.
 */
const struct hr_entry *hr_journal_salvage(struct hr_journal *j, uint64_t gen, uint64_t *offset);

#endif
