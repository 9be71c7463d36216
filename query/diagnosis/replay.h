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

/* Something takes a multiple of its time, which lies between these. */
struct hr_multiple {
	double low, high;
};

struct hr_setting {
	uint32_t workers, prefetch; /* HR_REPLAY_SAME: as recorded */
	bool persistent;	    /* workers are not started again for each loop */
	double cores;		    /* of the rank; 0: as recorded */
	double batch;		    /* multiple of the batch size */
	struct hr_multiple io;	    /* I/O of fetches that the kernel's caches do not serve, */
	struct hr_multiple cached;  /* and that which they serve */
	struct hr_multiple later;   /* I/O of passes after the first, in addition to `io` */
};
#define HR_SETTING_SAME                                                                            \
	((struct hr_setting){HR_REPLAY_SAME, HR_REPLAY_SAME, false, 0, 1, {1, 1}, {1, 1}, {1, 1}})

enum hr_replay_refusal {
	HR_REPLAY_OK,
	HR_REPLAY_NO_LOOP,	 /* no loop over a DataLoader trains */
	HR_REPLAY_UNKNOWN_FETCH, /* the fetches of some batches are not recorded */
	HR_REPLAY_SHARDS,	 /* with other numbers of workers, each would have other data */
	HR_REPLAY_NO_MOUNT,	 /* no worker used files of one of two mounts */
	HR_REPLAY_NO_PASS,	 /* each loader has one pass, so that its data are read once */
	HR_REPLAY_NO_BATCH,	 /* the batch size is not known */
	HR_REPLAY_LOAD,		 /* not known: how the storage reacts to load */
	HR_REPLAY_STEP,		 /* not known: the time of a step with another batch size */
	HR_REPLAY_MAIN,		 /* not known: how much of its time the training thread computes */
	HR_REPLAY_DIFFERS /* with the recorded settings, it takes more than 5 % longer or shorter */
};

/* Seconds of all training loops of a life. */
struct hr_replayed {
	enum hr_replay_refusal refusal;
	enum hr_replay_refusal doubt; /* not known, so that only the range is; HR_REPLAY_OK: none */
	uint32_t loops;
	uint32_t workers, prefetch; /* of the setting; prefetch 0: there are no workers */
	bool persistent;
	double recorded, replayed; /* with the recorded settings */
	double predicted;	   /* with the other ones */
	double low, high;	   /* its limits */
};

/* Settings whose effect depends on what the job read; 0 or NULL: as recorded. */
struct hr_storage {
	const char *mounts; /* "A=B": the files of mount A lie on mount B */
	double cached;	    /* bytes of memory that keep what was read */
	double reads;	    /* size of a read, in bytes */
	double batch;	    /* samples of a batch */
};

/* Adds them to *s, for the job of a life. */
enum hr_replay_refusal hr_setting_storage(const struct hr_diagnosis *d,
					  const struct hr_train_life *life,
					  const struct hr_storage *storage, struct hr_setting *s);

/*
 * A life, read for replays. Threads may share it. The caller of hr_recorded_new frees it, also after
 * a failure. -ENOMEM.
 */
struct hr_recorded_life;
int hr_recorded_new(const struct hr_diagnosis *d, const struct hr_train_life *life,
		    struct hr_recorded_life **ret);
void hr_recorded_free(struct hr_recorded_life *r);
/* How long the life stalled for other ranks, in ns. */
double hr_recorded_stall(const struct hr_recorded_life *r);

/* Without `range`, which takes longer, the limits are the most probable time, too. -ENOMEM. */
int hr_replay(const struct hr_recorded_life *life, const struct hr_setting *setting, bool range,
	      struct hr_replayed *ret);

#endif
