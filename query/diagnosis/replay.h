/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - how long a loop over a DataLoader would take with other settings
 *
 * The replay repeats a recorded loop. Between waits, the training thread works as long as it did,
 * and each fetch takes as long as it did, but other workers make the batches, in torch's order:
 * each worker first gets `prefetch` batches, then another one whenever the training thread has
 * received a batch. The replay does not know what the recorded loop did not do, so the result is a
 * range.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_REPLAY_H
#define HEADRACE_QUERY_DIAGNOSIS_REPLAY_H

#include "query/diagnosis/diagnosis.h"

#define HR_REPLAY_SAME UINT32_MAX

/* Something takes a multiple of its recorded time. The multiple lies between these limits. */
struct hr_multiple {
	double low, high;
};

struct hr_setting {
	uint32_t workers, prefetch; /* HR_REPLAY_SAME: as recorded */
	bool persistent;	    /* true: workers are not started again for each loop */
	double cores;		    /* cores of the rank; 0: as recorded */
	double batch;		    /* multiple of the batch size */
	struct hr_multiple io;	    /* I/O of fetches that the kernel's caches did not serve */
	struct hr_multiple cached;  /* I/O of fetches that the kernel's caches served */
	struct hr_multiple later;   /* I/O of passes after the first: multiplies `io` */
};
#define HR_SETTING_SAME                                                                            \
	((struct hr_setting){HR_REPLAY_SAME, HR_REPLAY_SAME, false, 0, 1, {1, 1}, {1, 1}, {1, 1}})

enum hr_replay_refusal {
	HR_REPLAY_OK,
	HR_REPLAY_NO_LOOP,	 /* no loop over a DataLoader trains */
	HR_REPLAY_UNKNOWN_FETCH, /* the fetches of some batches were not recorded */
	HR_REPLAY_SHARDS,   /* with another number of workers, each worker would have other data */
	HR_REPLAY_NO_MOUNT, /* no worker used files of one of the two mounts */
	HR_REPLAY_NO_PASS,  /* each loader has one pass, so that its data are read once */
	HR_REPLAY_NO_BATCH, /* the batch size is not known */
	HR_REPLAY_LOAD,	    /* unknown: how the storage reacts to load */
	HR_REPLAY_STEP,	    /* unknown: the time of a step with another batch size */
	HR_REPLAY_MAIN,	    /* unknown: how much of its time the training thread computes */
	/* A replay with the recorded settings takes more than 5 % longer or shorter. */
	HR_REPLAY_DIFFERS
};

/* The result for all training loops of a life. Times in seconds. */
struct hr_replayed {
	enum hr_replay_refusal refusal;
	/* Why `predicted` means little, and only the range is known; HR_REPLAY_OK: no doubt. */
	enum hr_replay_refusal doubt;
	uint32_t loops;
	uint32_t workers, prefetch; /* values of the setting; prefetch is 0 without workers */
	bool persistent;
	/* Time as it was recorded, and time in a replay with the recorded settings. */
	double recorded, replayed;
	double predicted; /* time in a replay with the other settings */
	double low, high; /* limits of `predicted` */
};

/* Settings whose effect depends on what the job read; 0 or NULL: as recorded. */
struct hr_storage {
	const char *mounts; /* "A=B": as if the files of mount A were on mount B */
	double cached;	    /* bytes of memory that keep data after it was read */
	double reads;	    /* size of a read, in bytes */
	double batch;	    /* samples of a batch */
};

/* Adds the effect of these settings on the job of a life to *s. */
enum hr_replay_refusal hr_setting_storage(const struct hr_diagnosis *d,
					  const struct hr_train_life *life,
					  const struct hr_storage *storage, struct hr_setting *s);

/*
 * What replays need of a life. Threads may share it. The caller of hr_recorded_new frees it, also
 * after a failure. -ENOMEM.
 */
struct hr_recorded_life;
int hr_recorded_new(const struct hr_diagnosis *d, const struct hr_train_life *life,
		    struct hr_recorded_life **ret);
void hr_recorded_free(struct hr_recorded_life *r);
/* How long the life stalled for other ranks, in ns. */
double hr_recorded_stall(const struct hr_recorded_life *r);

/*
 * Replays a life with other settings. `range`: also computes the limits, which takes longer.
 * Otherwise, only the most probable case is replayed. -ENOMEM.
 */
int hr_replay(const struct hr_recorded_life *life, const struct hr_setting *setting, bool range,
	      struct hr_replayed *ret);

#endif
