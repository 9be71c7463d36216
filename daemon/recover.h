/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - finishing what a killed daemon left in a store
 *
 * Any thread, but one call at a time for a store in this process; streams that another writer holds are left alone.
 */
#ifndef HEADRACE_DAEMON_RECOVER_H
#define HEADRACE_DAEMON_RECOVER_H

/*
 * For every stream of the store whose daemon is gone and left a journal: replays it, ends the job with state "killed", seals
 * the stream, removes the journal. *ret_note: what was done, one line per stream, malloc'ed; NULL when there was nothing.
 * Returns 0, or the last error (what could not be stored stays in its journal, and the note says so).
 */
int hr_store_recover(const char *store, char **ret_note);

/* The same for one stream, which is sealed in any case. -EBUSY: it has a writer. */
struct hr_stream_id;
int hr_stream_recover(const char *store, const struct hr_stream_id *id);

#endif
