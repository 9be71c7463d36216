/* SPDX-License-Identifier: Apache-2.0 */
/* The table `replays`: how long each rank's training loops would take with other settings. */
#include <errno.h>
#include <stdlib.h>

#include "common/text.h"
#include "query/tables/each.h"
#include "query/diagnosis/replay.h"
#include "query/tables/rows.h"

static const char *const parameters[] = {"workers", "prefetch", "persistent", "cores",
					 "io",	    "mount",	"cached",     "reads",
					 "batch",   "search",	NULL};
enum { WORKERS, PREFETCH, PERSISTENT, CORES, IO, MOUNT, CACHED, READS, BATCH, SEARCH };

/* A search tries all combinations of these values, with and without persistent workers. */
static const uint32_t tried_workers[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
static const uint32_t tried_prefetch[] = {2, 4, 8};
#define N_OF(list) (sizeof(list) / sizeof((list)[0]))

struct replays {
	const struct hr_diagnosis *d;
	struct hr_setting settings[1 + 2 * N_OF(tried_workers) * N_OF(tried_prefetch)];
	size_t n_settings;
	const char *const *parameters;
	struct hr_replayed *list; /* for each training process, one element for each setting */
};

static bool is_number(const char *text, double least, double most)
{
	char *end;
	double value = text != NULL ? strtod(text, &end) : least;

	return text == NULL || (*text != '\0' && *end == '\0' && value >= least && value <= most);
}

static bool is_size(const char *text)
{
	uint64_t bytes;

	return text == NULL || (hr_text_parse_size(text, &bytes) == 0 && bytes > 0);
}

static bool is_pair(const char *text)
{
	const char *to = text != NULL ? strchr(text, '=') : NULL;

	return text == NULL || (to != NULL && to > text && to[1] != '\0');
}

static const char *replay_check(const char *const *p)
{
	if (!is_number(p[WORKERS], 0, 1024))
		return "hr_replays: `workers` must be a number from 0 to 1024";
	if (!is_number(p[PREFETCH], 1, 1024))
		return "hr_replays: `prefetch` must be a number from 1 to 1024";
	if (p[PERSISTENT] != NULL && strcmp(p[PERSISTENT], "true") != 0 &&
	    strcmp(p[PERSISTENT], "false") != 0)
		return "hr_replays: `persistent` must be true or false";
	if (p[SEARCH] != NULL && strcmp(p[SEARCH], "true") != 0 && strcmp(p[SEARCH], "false") != 0)
		return "hr_replays: `search` must be true or false";
	if (!is_number(p[CORES], 1, 65536))
		return "hr_replays: `cores` must be a number from 1 to 65536";
	if (!is_number(p[IO], 0, 1000000))
		return "hr_replays: `io` must be a number from 0 to 1000000";
	if (!is_pair(p[MOUNT]))
		return "hr_replays: `mount` must be two mount points, for example /data=/scratch";
	if (!is_size(p[CACHED]) || !is_size(p[READS]))
		return "hr_replays: `cached` and `reads` must be sizes, for example 64GiB or 1MiB";
	if (!is_number(p[BATCH], 1, 1e9))
		return "hr_replays: `batch` must be a number from 1 to 1000000000";
	return NULL;
}

static double number(const char *text, double absent)
{
	return text != NULL ? strtod(text, NULL) : absent;
}

static bool is_true(const char *text)
{
	return text != NULL && strcmp(text, "true") == 0;
}

/* Adds the settings that a search tries. A setting that is given as a parameter keeps its value. */
static void add_settings(struct replays *all, const char *const *p)
{
	const struct hr_setting given = all->settings[0];

	for (size_t w = 0; w < (p[WORKERS] == NULL ? N_OF(tried_workers) : 1); w++) {
		for (size_t k = 0; k < (p[PREFETCH] == NULL ? N_OF(tried_prefetch) : 1); k++) {
			for (int stay = 0; stay < (p[PERSISTENT] == NULL ? 2 : 1); stay++) {
				struct hr_setting s = given;

				if (p[WORKERS] == NULL)
					s.workers = tried_workers[w];
				if (p[PREFETCH] == NULL)
					s.prefetch = tried_prefetch[k];
				if (p[PERSISTENT] == NULL)
					s.persistent = stay;
				if (s.workers > 0 || (k == 0 && stay == 0))
					all->settings[all->n_settings++] = s;
			}
		}
	}
}

static double size(const char *text)
{
	uint64_t bytes = 0;

	return text != NULL && hr_text_parse_size(text, &bytes) == 0 ? (double)bytes : 0;
}

static int replay_life_all(void *data, size_t life)
{
	struct replays *all = data;
	const char *const *p = all->parameters;
	const struct hr_train_life *l = &all->d->lives.list[life];
	struct hr_storage storage = {.mounts = p[MOUNT],
				     .cached = size(p[CACHED]),
				     .reads = size(p[READS]),
				     .batch = number(p[BATCH], 0)};
	struct hr_recorded_life *recorded;
	int r = hr_recorded_new(all->d, l, &recorded);

	for (size_t i = 0; r == 0 && i < all->n_settings; i++) {
		struct hr_setting s = all->settings[i];
		struct hr_replayed *ret = &all->list[life * all->n_settings + i];
		enum hr_replay_refusal refusal = hr_setting_storage(all->d, l, &storage, &s);

		r = hr_replay(recorded, &s, true, ret);
		if (ret->refusal == HR_REPLAY_OK)
			ret->refusal = refusal;
	}
	hr_recorded_free(recorded);
	return r;
}

static int replay_all(struct replays *all)
{
	all->list = calloc(all->d->lives.n * all->n_settings + 1, sizeof(*all->list));
	if (all->list == NULL)
		return -ENOMEM;
	return hr_each(all->d->q->threads, all->d->lives.n, replay_life_all, all);
}

static const char *const refusals[] = {
    [HR_REPLAY_NO_LOOP] = "no loop over a PyTorch DataLoader trains",
    [HR_REPLAY_UNKNOWN_FETCH] = "the fetches of some batches were not recorded",
    [HR_REPLAY_HIDDEN] =
	"an accelerator hid waits, and how long it works for each step is not known",
    [HR_REPLAY_SHARDS] =
	"each worker of an IterableDataset has its own data, which other numbers of workers change",
    [HR_REPLAY_NO_MOUNT] =
	"the workers used no files of one of the mounts, so that its speed is not known",
    [HR_REPLAY_NO_PASS] = "each DataLoader has one pass, so that a cache would not be used",
    [HR_REPLAY_NO_BATCH] = "the batch size of the recording is not known",
    [HR_REPLAY_LOAD] =
	"how the storage reacts to more load was not seen: record with another number of workers",
    [HR_REPLAY_STEP] = "how long a step takes with batches of another size is not known",
    [HR_REPLAY_MAIN] = "how much of its time the training thread computes was not recorded",
    [HR_REPLAY_DIFFERS] = "with the recorded settings, the replay differs by more than 5 %",
};

static uint64_t checkpoint_ns(const struct hr_part_sums *sums)
{
	uint64_t ns = 0;

	for (unsigned phase = 0; phase <= HR_PHASE_END; phase++)
		ns += sums->ns[phase][HR_PART_CHECKPOINT];
	return ns;
}

/* Returns seconds as ns; -1: unknown. */
static int64_t known_ns(bool known, double seconds)
{
	return known ? (int64_t)(seconds * 1e9) : -1;
}

static int add_row(struct hr_rows *rows, const struct replays *all, size_t life, size_t setting)
{
	const struct hr_replayed *r = &all->list[life * all->n_settings + setting];
	const struct hr_train_life *l = &all->d->lives.list[life];
	struct hr_replay_row *row = hr_rows_add(rows, sizeof(*row));
	bool ok = r->refusal == HR_REPLAY_OK;
	bool replayed = r->refusal != HR_REPLAY_NO_LOOP && r->refusal != HR_REPLAY_UNKNOWN_FETCH &&
			r->refusal != HR_REPLAY_HIDDEN;

	if (row == NULL)
		return -ENOMEM;
	*row = (struct hr_replay_row){
	    .of = {&rows->q->streams[l->stream], l->proc},
	    .setting = (int64_t)setting,
	    .workers = replayed ? (int64_t)r->workers : -1,
	    .prefetch = replayed && r->prefetch != 0 ? (int64_t)r->prefetch : -1,
	    .persistent = replayed ? r->persistent : -1,
	    .loops = replayed ? (int64_t)r->loops : -1,
	    .recorded_ns = known_ns(replayed, r->recorded),
	    .replayed_ns = known_ns(replayed, r->replayed),
	    .predicted_ns = known_ns(ok && r->doubt == HR_REPLAY_OK, r->predicted),
	    .low_ns = known_ns(ok, r->low),
	    .high_ns = known_ns(ok, r->high),
	    .doubt = ok ? refusals[r->doubt] : NULL,
	    .refusal = refusals[r->refusal],
	    .wall_ns = l->to - l->from,
	    .checkpoint_ns = (int64_t)checkpoint_ns(&all->d->sums[life]),
	    .stall_ns = (int64_t)all->d->cycles[life].stall,
	};
	return 0;
}

static int replay_gather(struct hr_rows *rows, uint64_t want)
{
	const char *const *p = rows->parameters;
	struct hr_setting setting = HR_SETTING_SAME;
	struct replays all = {.parameters = p, .n_settings = 1};
	int r;

	(void)want;
	setting.workers = (uint32_t)number(p[WORKERS], HR_REPLAY_SAME);
	setting.prefetch = (uint32_t)number(p[PREFETCH], HR_REPLAY_SAME);
	setting.persistent = is_true(p[PERSISTENT]);
	setting.cores = number(p[CORES], 0);
	setting.io = (struct hr_multiple){number(p[IO], 1), number(p[IO], 1)};
	all.settings[0] = setting;
	if (is_true(p[SEARCH]))
		add_settings(&all, p);
	r = hr_diagnosis_shared(rows->q, &all.d);
	if (r == 0)
		r = replay_all(&all);
	for (size_t i = 0; r == 0 && i < all.d->lives.n; i++)
		for (size_t k = 0; r == 0 && k < all.n_settings; k++)
			r = add_row(rows, &all, i, k);
	free(all.list);
	return r;
}

static const void *replay_row(const struct hr_rows *rows, size_t row)
{
	return (const struct hr_replay_row *)rows->data + row;
}

const struct hr_row_kind hr_replays_kind = {
    .table = HR_TABLE_REPLAYS,
    .all = true,
    .parameters = parameters,
    .check = replay_check,
    .gather = replay_gather,
    .row = replay_row,
};
