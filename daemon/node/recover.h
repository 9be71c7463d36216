/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - finishes the streams of a killed headraced in a store
 *
 * Skips streams that have a writer. Any thread, but in this process one call at a time per store.
 */
#ifndef HEADRACE_DAEMON_NODE_RECOVER_H
#define HEADRACE_DAEMON_NODE_RECOVER_H

#include <stdint.h>

/*
 * For each stream with a journal and no writer: replays the journal, ends the job as "killed",
 * seals the stream, removes the journal. Of a damaged journal it replays what precedes the damage,
 * and stores a Loss row (journal_damaged). *ret_note: a line per stream, malloc'ed; NULL: nothing
 * done. Returns 0, or the last error, which the note has, too: that journal stays, as do journals
 * of another version. -EPERM: another user owns, or may write to, a stream's folder or journal:
 * writes nothing there.
 */
int hr_store_recover(const char *store, char **ret_note);

/* The same for one stream, sealed even without a journal. -EBUSY: it has a writer. */
struct hr_stream_id;
int hr_stream_recover(const char *store, const struct hr_stream_id *id);

/*
 * The same for a stream that has not ended, and whose writer the caller has; `instance`: of its
 * hr_stream_id. Without the journal (it was in memory), only stores a Loss row and the end.
 */
struct hr_writer;
int hr_writer_recover(struct hr_writer *w, uint64_t instance);

#endif
