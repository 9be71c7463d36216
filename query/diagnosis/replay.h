/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - how long a loop over a DataLoader would take with other settings
 *
 * The replay repeats a recorded loop: the training thread works between waits as long as it did,
 * and each fetch takes as long as it did, but other workers make the batches, in torch's order:
 * each worker gets `prefetch` batches, and the next one when the training thread has received one.
 * It knows nothing of what the loop did not do: the result is a range.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_REPLAY_H
#define HEADRACE_QUERY_DIAGNOSIS_REPLAY_H

#include "query/diagnosis/diagnosis.h"

#define HR_REPLAY_SAME UINT32_MAX

struct hr_setting {
	uint32_t workers, prefetch; /* HR_REPLAY_SAME: as recorded */
	bool persistent;	    /* workers are not started again for each loop */
	double cores;		    /* of the rank; 0: as recorded */
	double io;		    /* I/O of fetches takes this multiple of its time, */
	double cached;		    /* and operations that the kernel's caches serve, this one */
};
#define HR_SETTING_SAME ((struct hr_setting){HR_REPLAY_SAME, HR_REPLAY_SAME, false, 0, 1, 1})

enum hr_replay_refusal {
	HR_REPLAY_OK,
	HR_REPLAY_NO_LOOP,	 /* no loop over a DataLoader trains */
	HR_REPLAY_UNKNOWN_FETCH, /* the fetches of some batches are not recorded */
	HR_REPLAY_DIFFERS /* with the recorded settings, it takes more than 5 % longer or shorter */
};

/* Seconds of all training loops of a life. */
struct hr_replayed {
	enum hr_replay_refusal refusal;
	uint32_t loops;
	uint32_t workers, prefetch; /* of the setting; prefetch 0: there are no workers */
	bool persistent;
	double recorded, replayed; /* with the recorded settings */
	double low, high;	   /* with the other ones */
};

/* The cores that a life's process may use: its share of those of its node; 0: unknown. */
double hr_life_cores(const struct hr_diagnosis *d, const struct hr_train_life *life);

/* -ENOMEM. */
int hr_replay(const struct hr_diagnosis *d, const struct hr_train_life *life,
	      const struct hr_setting *setting, struct hr_replayed *ret);

#endif
