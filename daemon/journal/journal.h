/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - what the daemon took from rings and has not stored yet, kept where kill -9 cannot reach it
 *
 * Purpose   A file (private mode) or memfd of two halves. Entries (entry.h) are appended to one half and
 *           committed by one release store of its head; ring positions are published after that, so a record is
 *           either in its ring or in the journal, whenever the daemon dies.
 * Owner     The node; of a daemon that is gone, recover.c, which reads a private copy. The file is removed when its job ends.
 * Threads   Appending: attach and drain thread, under the journal's lock. Retiring: the appender thread.
 *           Reading back: before any thread runs.
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
 *      free    --(begin: head = 0, snapshot, then gen = last + 1)-->  active    entries are appended
 *      active  --(the other half becomes active)-->                   full      its frames are on their way
 *      full    --(all its frames are in the store: gen = 0)-->        free
 *
 * At recovery the halves with a gen are replayed, the older first. Space is reserved when the file is made: a full disk
 * fails the opening, and never raises SIGBUS later.
 *
 * Checksums. crc of an entry is the CRC-32C of the gen of its half, its offset there, and all of the entry but crc. So
 * it fails for an entry that was damaged, moved, never reached the disk, or is left from an earlier gen of the half.
 * Replay ends at the first entry that fails, whatever head says:
 *   - entries past head that check out were complete when the daemon was killed;
 *   - an entry before head that fails is damage (hr_journal_damaged).
 * The last entry before the damage may lack the KNOWN entry that names its files, and replay would number these anew. In a
 * half that begins with a snapshot, replay therefore leaves out a last entry that uses files.
 */
#ifndef HEADRACE_DAEMON_JOURNAL_JOURNAL_H
#define HEADRACE_DAEMON_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/journal/entry.h"

#define HR_JOURNAL_MAGIC      UINT64_C(0x314c4e524a5248) /* "HRJRNL1" */
#define HR_JOURNAL_VERSION    9u /* of entries, and of which frames are made of them */
#define HR_JOURNAL_HALF_BYTES (16u << 20)
#define HR_JOURNAL_SLACK                                                                           \
	(UINT64_C(4) *                                                                             \
	 (HR_HELLO_MAX_BYTES + 512u)) /* the drain thread leaves it to ATTACH entries */
#define HR_KNOWN_SLACK (1u << 20)     /* everybody leaves it to KNOWN entries */

struct hr_journal_hdr {
	uint64_t magic;
	uint32_t version;
	uint32_t crc; /* of half_bytes */
	uint64_t half_bytes;
	uint64_t last_gen; /* set after that of its half: one of them has it, or is damaged */
	uint64_t end_seq;  /* hr_journal_note_end; 0: not yet */
	uint8_t pad[HR_PAGE_BYTES - 40];
};
_Static_assert(sizeof(struct hr_journal_hdr) == HR_PAGE_BYTES, "journal header");

struct hr_half {
	uint64_t gen;  /* 0: free */
	uint64_t head; /* bytes of committed entries; release store, acquire load */
	uint64_t pad[6];
	uint8_t entries[];
};
_Static_assert(sizeof(struct hr_half) == 64, "journal half");

struct hr_journal;

/*
 * Opens the journal in the file `fd`, which it closes in any case, or makes it with two free halves; -1 makes one in memory.
 * *ret_found: there was one, and it holds entries. Errors: -EPROTONOSUPPORT (another version's), -EBADMSG (not a journal),
 * -ENOSPC...
 */
int hr_journal_open(int fd, uint64_t half_bytes, struct hr_journal **ret, bool *ret_found);

/*
 * For replay only: a private copy of the journal in the file `fd`, of this version. The file is not changed, and
 * `fd` stays open. Errors as of hr_journal_open, and -ENODATA: no entry was ever committed.
 */
int hr_journal_read(int fd, struct hr_journal **ret);

/*
 * Recovery ends the stream with frames that no entry made, from `seq` on, and is about to store them. Should it be killed, the next
 * one finds frames in the store that the journal in the file `fd` does not account for, and needs this number to know where they
 * come from.
 */
int hr_journal_note_end(int fd, uint64_t seq);
uint64_t hr_journal_end_seq(const struct hr_journal *j);

void hr_journal_close(struct hr_journal *j); /* keeps the file; accepts NULL */

void hr_journal_lock(struct hr_journal *j);
void hr_journal_unlock(struct hr_journal *j);

/* Under the lock. Room for an entry in the active half, with `slack` bytes to spare behind it, or NULL. */
void *hr_journal_reserve(struct hr_journal *j, uint64_t bytes, uint64_t slack);
/* Under the lock. The entry just reserved counts from now on: sets its header, trims it to `bytes`. */
void hr_journal_commit(struct hr_journal *j, uint32_t kind, uint64_t bytes);

/* Under the lock. Makes the free half active; its gen counts only from hr_journal_begun on. -EBUSY: not free. */
int hr_journal_begin(struct hr_journal *j);
void hr_journal_begun(struct hr_journal *j);

uint64_t hr_journal_gen(const struct hr_journal *j); /* of the active half */
uint64_t hr_journal_head(const struct hr_journal *j);
uint64_t hr_journal_capacity(const struct hr_journal *j); /* bytes of entries in a half */
bool hr_journal_spare_free(const struct hr_journal *j);
void hr_journal_retire(struct hr_journal *j, uint64_t gen); /* any thread */

/* Checks all entries. Gens to replay, oldest first; returns how many (0..2). Makes the newest active. */
unsigned hr_journal_replay(struct hr_journal *j, uint64_t ret_gens[2]);

/* Entry at *offset of a half, and moves *offset on; NULL at the end: the committed one, or where the first entry fails. */
const struct hr_entry *hr_journal_next(const struct hr_journal *j, uint64_t gen, uint64_t *offset);

/* What hr_journal_replay found: bytes of a half's committed entries that replay does not reach. */
uint64_t hr_journal_damaged(const struct hr_journal *j, uint64_t gen);
/* The same: the newest half has lost its header, so that what it held is not known. */
bool hr_journal_headless(const struct hr_journal *j);

/*
 * To count what damage costs: the next entry at or after *offset that checks out; moves *offset past it. NULL: none up to head, or
 * the search has read several times the bytes of a half.
 */
const struct hr_entry *hr_journal_salvage(struct hr_journal *j, uint64_t gen, uint64_t *offset);

#endif
