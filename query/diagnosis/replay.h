/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - how long a loop over a DataLoader would take with other settings
 *
 * The replay simulates a recorded loop with other workers. Steps of the training and the making of
 * batches take as long as recorded. The workers make batches in torch's order: each worker first
 * gets `prefetch` batches, and another one whenever the training thread has received a batch. The
 * recording does not show how the job behaves with more load, so the result is a range.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_REPLAY_H
#define HEADRACE_QUERY_DIAGNOSIS_REPLAY_H

#include "query/diagnosis/diagnosis.h"

#define HR_REPLAY_SAME UINT32_MAX

/* Limits of a factor: something takes this many times as long as recorded. */
struct hr_multiple {
	double low, high;
};

struct hr_setting {
	uint32_t workers, prefetch; /* HR_REPLAY_SAME: as recorded */
	bool persistent;	    /* true: persistent_workers=True; false: as recorded */
	double cores;		    /* cores of the rank; 0: as recorded */
	double batch;		    /* the new batch size divided by the recorded one */
	struct hr_multiple io;	    /* time of operations that the kernel's caches did not serve */
	struct hr_multiple cached;  /* time of operations that the kernel's caches served */
	struct hr_multiple later;   /* a further factor of `io` in later passes */
};
#define HR_SETTING_SAME                                                                            \
	((struct hr_setting){HR_REPLAY_SAME, HR_REPLAY_SAME, false, 0, 1, {1, 1}, {1, 1}, {1, 1}})

enum hr_replay_refusal {
	HR_REPLAY_OK,
	HR_REPLAY_NO_LOOP,	 /* no loop over a DataLoader is a training loop */
	HR_REPLAY_UNKNOWN_FETCH, /* the fetches of some batches were not recorded */
	HR_REPLAY_HIDDEN,	 /* an accelerator worked until the end of some waits */
	/* an IterableDataset: each worker has its own data, which depends on their number */
	HR_REPLAY_SHARDS,
	HR_REPLAY_NO_MOUNT, /* workers used no files of one of the two mounts */
	HR_REPLAY_NO_PASS,  /* each loader has a single pass, so its data is read once */
	HR_REPLAY_NO_BATCH,
	HR_REPLAY_LOAD, /* unknown: how the storage reacts to load */
	HR_REPLAY_STEP, /* unknown: the time of a step with another batch size */
	HR_REPLAY_MAIN, /* unknown: how much of its time the training thread computes */
	/* A replay with the recorded settings differs from the recorded time by more than 5 %. */
	HR_REPLAY_DIFFERS
};

/* The result for all training loops of a process. Times are in seconds. */
struct hr_replayed {
	enum hr_replay_refusal refusal;
	/* Why only the limits `low` and `high` are known; HR_REPLAY_OK: `predicted` is known. */
	enum hr_replay_refusal doubt;
	uint32_t loops;
	uint32_t workers, prefetch; /* in the replay; prefetch is 0 without workers */
	bool persistent;
	/* The recorded time, and the time of a replay with the recorded settings. */
	double recorded, replayed;
	double predicted; /* time of a replay with the changed settings */
	double low, high; /* limits of `predicted` */
};

/* Settings whose effect depends on the files that the job read; 0 or NULL: as recorded. */
struct hr_storage {
	const char *mounts; /* "A=B": the files of mount A are on mount B instead */
	double cached;	    /* size of a cache in bytes */
	double reads;	    /* bytes of a read */
	double batch;	    /* samples of a batch */
};

/* Changes *s by the effect of these settings on the job of a training process. */
enum hr_replay_refusal hr_setting_storage(const struct hr_diagnosis *d,
					  const struct hr_train_life *life,
					  const struct hr_storage *storage, struct hr_setting *s);

/*
 * The input of replays of a training process. Several threads may share it. The caller of
 * hr_recorded_new frees it, also after a failure. -ENOMEM.
 */
struct hr_recorded_life;
int hr_recorded_new(const struct hr_diagnosis *d, const struct hr_train_life *life,
		    struct hr_recorded_life **ret);
void hr_recorded_free(struct hr_recorded_life *r);

/* Replays a training process with a setting. `range`: also computes the limits. -ENOMEM. */
int hr_replay(const struct hr_recorded_life *life, const struct hr_setting *setting, bool range,
	      struct hr_replayed *ret);

#endif
