/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - finishing what a killed daemon left in a store
 *
 * Any thread, but one call at a time for a store in this process; streams that another writer holds are left alone.
 */
#ifndef HEADRACE_DAEMON_NODE_RECOVER_H
#define HEADRACE_DAEMON_NODE_RECOVER_H

#include <stdint.h>

/*
 * For every stream of the store whose daemon is gone and left a journal: replays it, ends the job with state "killed", seals
 * the stream, removes the journal. Of a damaged journal it replays what comes before the damage, and stores a Loss row
 * (journal_damaged). *ret_note: what was done, one line per stream, malloc'ed; NULL when there was nothing.
 * Returns 0, or the last error (what could not be stored stays in its journal, and so does another version's; the note has it).
 * -EPERM: a stream's folder or journal belongs to another user, or other users may write to it: recovery writes nothing there.
 */
int hr_store_recover(const char *store, char **ret_note);

/* The same for one stream, which is sealed in any case. -EBUSY: it has a writer. */
struct hr_stream_id;
int hr_stream_recover(const char *store, const struct hr_stream_id *id);

/*
 * The same for a stream whose writer is the caller's, and which has not ended (`instance`: of its hr_stream_id). Where its journal is gone (it was in memory), the
 * stream ends with a Loss row alone.
 */
struct hr_writer;
int hr_writer_recover(struct hr_writer *w, uint64_t instance);

#endif
