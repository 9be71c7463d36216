/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privacy.h - hides parts of paths and command lines, as a site configured it
 *
 * Purpose   Paths and command lines are personal data. The engine hides parts of them when it makes
 *           Paths and Processes frames. The journal has all text, and these rules, so that a replay
 *           hides the same parts. Only headraced reads the journal, and removes it with the job.
 *
 *      keep 2, full      /gpfs/alice/imagenet/train/n015.tar        hash 9f3c...
 *      keep 2, hash      /gpfs/alice/3e1b90c2/77ad41f0/c01d22e9.tar hash 51d0...   each component has a pseudonym
 *      keep 2, cut       /gpfs/alice/+.tar                          hash 51d0...   hash: the file
 *
 * Pseudonyms and hashes are HMAC-SHA256 with the site's key. They are equal on nodes with the same
 * key, and only users with the key can test a guess. An extension (a letter, then up to seven
 * letters or digits) stays.
 *
 * Owner     The caller of hr_privacy_new.
 * Threads   One at a time.
 */
#ifndef HEADRACE_DAEMON_BASE_PRIVACY_H
#define HEADRACE_DAEMON_BASE_PRIVACY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Minimum bytes of a key file. Only the first 4096 bytes are used. */
#define HR_PRIVACY_KEY_LEAST 16u

enum hr_paths_shown { HR_PATHS_FULL, HR_PATHS_HASH, HR_PATHS_CUT };
enum hr_commands_shown { HR_COMMANDS_FULL, HR_COMMANDS_PROGRAM, HR_COMMANDS_NONE };

struct hr_privacy_rules {  /* part of the journal */
	uint32_t paths;	   /* enum hr_paths_shown */
	uint32_t keep;	   /* how many components at the start of a path are not hidden */
	uint32_t commands; /* enum hr_commands_shown */
	uint32_t spare;
	uint8_t key[32];
};

/*
 * Derives the key from a file. After a failure, *ret_error (malloc'ed) has the reason, and the key
 * is random: recording continues, with pseudonyms that no other recording has. Returns -errno if no
 * random key can be made either.
 */
int hr_privacy_key(const char *path, uint8_t ret[32], char **ret_error);

struct hr_privacy;

static inline bool hr_privacy_hides(const struct hr_privacy_rules *rules)
{
	return rules->paths != HR_PATHS_FULL || rules->commands != HR_COMMANDS_FULL;
}

struct hr_privacy *hr_privacy_new(const struct hr_privacy_rules *rules);
void hr_privacy_free(struct hr_privacy *p); /* accepts NULL */

size_t hr_privacy_room(size_t bytes);

/* Writes a path without its hidden parts to `out`, without a NUL. Returns the bytes written. */
size_t hr_privacy_path(struct hr_privacy *p, const uint8_t *path, size_t bytes, uint8_t *out);

/* Returns the hash that is stored instead of a path's hash. */
uint64_t hr_privacy_hash(struct hr_privacy *p, uint64_t hash);

/* Returns how many bytes at the start of a command line may be stored. */
size_t hr_privacy_command(const struct hr_privacy *p, const uint8_t *command, size_t bytes);

#endif
