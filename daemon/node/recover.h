/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - finishes the streams of a killed headraced in a store
 *
 * Any thread, but one call at a time for a store in this process. Streams that have a writer are
 * skipped.
 */
#ifndef HEADRACE_DAEMON_NODE_RECOVER_H
#define HEADRACE_DAEMON_NODE_RECOVER_H

#include <stdint.h>

/*
 * For each stream of the store with a journal and no writer: replays the journal, ends the job with
 * state "killed", seals the stream, removes the journal. Of a damaged journal it replays what comes
 * before the damage, and stores a Loss row (journal_damaged). *ret_note: what was done, a line per
 * stream, malloc'ed; NULL: nothing. Returns 0, or the last error, which the note has, too: then the
 * journal stays. So does a journal of another version.
 * -EPERM: a stream's folder or journal belongs to another user, or other users may write to it:
 * recovery writes nothing there.
 */
int hr_store_recover(const char *store, char **ret_note);

/* The same for one stream, which is sealed also if it has no journal. -EBUSY: it has a writer. */
struct hr_stream_id;
int hr_stream_recover(const char *store, const struct hr_stream_id *id);

/*
 * The same for a stream that has not ended and whose writer the caller has. `instance`: of its
 * hr_stream_id. If its journal is gone (it was in memory), the stream only gets a Loss row and its
 * end.
 */
struct hr_writer;
int hr_writer_recover(struct hr_writer *w, uint64_t instance);

#endif
