/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - finishes the streams of a killed headraced in a store
 *
 * Skips streams that have a writer. Any thread, but only one at a time per store in this process.
 */
#ifndef HEADRACE_DAEMON_NODE_RECOVER_H
#define HEADRACE_DAEMON_NODE_RECOVER_H

#include <stdint.h>

/*
 * Handles each stream that has a journal and no writer: replays the journal, ends the job as
 * "killed", seals the stream, and removes the journal. If a journal is damaged, replays the entries
 * before the damage, and stores a Loss row (journal_damaged). *ret_note: a line for each stream
 * (malloc'ed); NULL: there was nothing to do. Returns 0, or the last error, which is also in the
 * note. After an error, the journal stays; journals of another version also stay. -EPERM: another
 * user owns, or may write to, the folder or journal of a stream. Then it writes nothing there.
 */
int hr_store_recover(const char *store, char **ret_note);

/* Recovers one stream, and seals it even if it has no journal. -EBUSY: a process writes it. */
struct hr_stream_id;
int hr_stream_recover(const char *store, const struct hr_stream_id *id);

/*
 * Recovers the stream that `w` writes. The stream has not ended; `instance` is from its
 * hr_stream_id. If its journal was in memory, only stores a Loss row and the end of the stream.
 */
struct hr_writer;
int hr_writer_recover(struct hr_writer *w, uint64_t instance);

#endif
