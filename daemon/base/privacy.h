/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privacy.h - what a site does not want to keep of paths and command lines
 *
 * Purpose   Paths and command lines are personal data. What is hidden here is in no frame: the engine hides as it makes Paths and
 *           Processes frames. Its journal, a file or memory of this node that only the daemon reads and that goes with the job, has
 *           the words themselves, and these rules, so that whoever replays it hides the same.
 *
 *      keep 2, full      /gpfs/alice/imagenet/train/n015.tar        hash 9f3c...
 *      keep 2, hash      /gpfs/alice/3e1b90c2/77ad41f0/c01d22e9.tar hash 51d0...   each component has a pseudonym
 *      keep 2, cut       /gpfs/alice/+.tar                          hash 51d0...   files can still be told apart
 *
 * Pseudonyms and hashes come from HMAC-SHA256 with the site's key: the same on all nodes that have the key, and nobody without it
 * can try whether a name is behind one. An extension (a letter, then up to seven letters or digits) stays.
 *
 * Owner     The maker. Threads: one at a time.
 */
#ifndef HEADRACE_DAEMON_BASE_PRIVACY_H
#define HEADRACE_DAEMON_BASE_PRIVACY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_PRIVACY_KEY_LEAST 16u /* bytes of a key file; those past 4096 do not count */

enum hr_paths_shown { HR_PATHS_FULL, HR_PATHS_HASH, HR_PATHS_CUT };
enum hr_commands_shown { HR_COMMANDS_FULL, HR_COMMANDS_PROGRAM, HR_COMMANDS_NONE };

struct hr_privacy_rules {  /* lies in journals */
	uint32_t paths;	   /* enum hr_paths_shown */
	uint32_t keep;	   /* components at a path's begin that stay */
	uint32_t commands; /* enum hr_commands_shown */
	uint32_t spare;
	uint8_t key[32]; /* of HMAC */
};

/*
 * The key of a file, the same for the same bytes. When it cannot be used *ret_error (malloc'ed) says why, and the key is random:
 * recording goes on, hidden. -errno when there is not even that.
 */
int hr_privacy_key(const char *path, uint8_t ret[32], char **ret_error);

struct hr_privacy;

static inline bool hr_privacy_hides(const struct hr_privacy_rules *rules)
{
	return rules->paths != HR_PATHS_FULL || rules->commands != HR_COMMANDS_FULL;
}

/* NULL: out of memory. */
struct hr_privacy *hr_privacy_new(const struct hr_privacy_rules *rules);
void hr_privacy_free(struct hr_privacy *p); /* accepts NULL */

/* Room that hr_privacy_path needs at most. */
size_t hr_privacy_room(size_t bytes);

/* What is kept of a path, not terminated; its bytes. One that does not begin with a slash has no begin that stays. */
size_t hr_privacy_path(struct hr_privacy *p, const uint8_t *path, size_t bytes, uint8_t *out);

/* Of the hash of a path. */
uint64_t hr_privacy_hash(struct hr_privacy *p, uint64_t hash);

/* How many bytes of a command line are kept, from its begin. */
size_t hr_privacy_command(const struct hr_privacy *p, const uint8_t *command, size_t bytes);

#endif
