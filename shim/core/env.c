/* SPDX-License-Identifier: Apache-2.0 */
/* env.c - the rank and job variables: from the initial environment, updated by setenv */
#include "shim/core/internal.h"

#include <string.h>

#include "shim/core/clock.h"

/* The hello lacks these variables: filters can be long, and the daemon does not need them. */
static const char *const not_sent[] = {"HEADRACE_EXCLUDE", "HEADRACE_INCLUDE",
				       "HEADRACE_DEFAULT_EXCLUDE"};

static size_t name_length(const char *text)
{
	size_t n = 0;

	while (text[n] != '\0' && text[n] != '=')
		n++;
	return n;
}

static bool is_name(const char *text, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(text, name, n) == 0;
}

bool hr__env_wanted(const char *text)
{
	size_t n = name_length(text);

	for (size_t i = 0; i < sizeof(not_sent) / sizeof(not_sent[0]); i++)
		if (is_name(text, n, not_sent[i]))
			return false;
#define HR_ENV_NAME(name)                                                                          \
	if (is_name(text, n, name))                                                                \
		return true;
#define HR_ENV_PREFIX(prefix)                                                                      \
	if (n >= sizeof(prefix) - 1 && memcmp(text, prefix, sizeof(prefix) - 1) == 0)              \
		return true;
#include "proto/env_names.def"
#undef HR_ENV_NAME
#undef HR_ENV_PREFIX
	return false;
}

/*
 * hr_shim_image.env contains entries, up to a head of 0. An entry is a head and "NAME=VALUE" with its
 * NUL, in whole words. A head changes only by compare-and-swap, and an entry's length never
 * changes. No thread waits for another: if a thread stops in the middle (in a signal handler that
 * forks), its entry stays busy, and other threads skip that entry. Texts are stored with release
 * and loaded with acquire, so that a thread that has read a newer text also finds the newer head.
 */
enum { BUSY = 1, KEPT, FREE };
#define WORDS	      (HR__ENV_BYTES / 8)
#define STATE(head)   ((head)&3)
#define LENGTH(head)  ((uint32_t)((head) >> 2) & 0x3fff)
#define TURN(head)    ((head) >> 16)
#define ROOM_OF(head) ((LENGTH(head) - UINT64_C(1)) * 8)
_Static_assert(WORDS <= 0x3fff, "a length has 14 bits");

static uint64_t head_of(uint64_t turn, uint32_t length, uint32_t state)
{
	return turn << 16 | (uint64_t)length << 2 | state;
}

/*
 * Returns the head of the entry at this index; 0: no entry follows. All accesses are sequentially
 * consistent, so if two threads write at once, one sees the entry of the other.
 */
static uint64_t head_at(uint32_t at)
{
	return at < WORDS ? __atomic_load_n(&hr_shim_image.env[at], __ATOMIC_SEQ_CST) : 0;
}

static bool head_change(uint32_t at, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&hr_shim_image.env[at], &from, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static char *text_at(uint32_t at)
{
	return (char *)&hr_shim_image.env[at + 1];
}

static bool names(uint32_t at, uint64_t head, const char *name, size_t n)
{
	const char *text = text_at(at);

	if (STATE(head) != KEPT || n >= ROOM_OF(head))
		return false;
	for (size_t i = 0; i < n; i++)
		if (__atomic_load_n(&text[i], __ATOMIC_ACQUIRE) != name[i])
			return false;
	return __atomic_load_n(&text[n], __ATOMIC_ACQUIRE) == '=';
}

/* Claims an entry to fill: the smallest free one with enough room, otherwise a new one. */
static bool claim(uint32_t length, uint64_t turn, uint32_t *ret_at, uint64_t *ret_head)
{
	uint64_t head, found;
	uint32_t at, best;

	do {
		found = 0;
		best = 0;
		for (at = 0; (head = head_at(at)) != 0; at += LENGTH(head))
			if (STATE(head) == FREE && LENGTH(head) >= length &&
			    (found == 0 || LENGTH(head) < LENGTH(found))) {
				found = head;
				best = at;
			}
		if (found == 0 && length > WORDS - at)
			return false;
		best = found != 0 ? best : at;
		head = head_of(turn, found != 0 ? LENGTH(found) : length, BUSY);
	} while (!head_change(best, found, head)); /* again, if another thread claimed it */
	*ret_at = best;
	*ret_head = head;
	return true;
}

/*
 * For a full buffer: claims the old entry of this name, if it is long enough. Until the new value
 * is written, readers find no value.
 */
static bool claim_same(const char *name, size_t n, uint32_t length, uint64_t turn, uint32_t *ret_at,
		       uint64_t *ret_head)
{
	uint64_t head, busy;

	for (uint32_t at = 0; (head = head_at(at)) != 0; at += LENGTH(head)) {
		if (LENGTH(head) < length || TURN(head) > turn || !names(at, head, name, n))
			continue;
		busy = head_of(turn, LENGTH(head), BUSY);
		if (!head_change(at, head, busy))
			continue;
		*ret_at = at;
		*ret_head = busy;
		return true;
	}
	return false;
}

static char *env_store(char *to, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		__atomic_store_n(to++, text[i], __ATOMIC_RELEASE);
	return to;
}

/* Frees all entries of a name except the latest one. */
static void overtake(const char *name, size_t n, uint32_t mine, uint64_t kept)
{
	uint64_t head;

	for (uint32_t at = 0; (head = head_at(at)) != 0; at += LENGTH(head)) {
		if (at == mine || !names(at, head, name, n))
			continue;
		if (TURN(head) < TURN(kept))
			head_change(at, head, head_of(TURN(head), LENGTH(head), FREE));
		else
			head_change(mine, kept, head_of(TURN(kept), LENGTH(kept), FREE));
	}
}

/* Stores a variable. If the new value does not fit, the old value stays. */
void hr__env_keep(const char *name, size_t n, const char *value)
{
	size_t n_value = strlen(value), bytes = n + n_value + 2;
	uint64_t turn, head, kept;
	uint32_t at, length;
	char *to;

	if (bytes > HR__ENV_BYTES - 8)
		return;
	length = 2 * (uint32_t)((bytes + 8 + 15) / 16); /* the next value is often a bit longer */
	turn = __atomic_fetch_add(&hr_shim_image.env_turn, 1, __ATOMIC_SEQ_CST);
	if (!claim(length, turn, &at, &head) && !claim_same(name, n, length, turn, &at, &head))
		return;
	to = env_store(text_at(at), name, n);
	to = env_store(to, "=", 1);
	env_store(to, value, n_value + 1);
	kept = head_of(turn, LENGTH(head), KEPT);
	__atomic_store_n(&hr_shim_image.env[at], kept, __ATOMIC_SEQ_CST);
	/* Increments the turn first: a reader that missed both entries then reads again. */
	__atomic_fetch_add(&hr_shim_image.env_turn, 1, __ATOMIC_SEQ_CST);
	overtake(name, n, at, kept);
}

uint64_t hr__env_turn(void)
{
	return __atomic_load_n(&hr_shim_image.env_turn, __ATOMIC_SEQ_CST);
}

static bool is_overtaken(const char *text, uint64_t kept)
{
	size_t n = name_length(text);
	uint64_t head;

	for (uint32_t at = 0; (head = head_at(at)) != 0; at += LENGTH(head))
		if (TURN(head) > TURN(kept) && names(at, head, text, n))
			return true;
	return false;
}

/* False: another thread changed the entry during the read, or the text does not fit. */
static bool read_entry(uint32_t at, uint64_t head, char *to, size_t cap)
{
	const char *text = text_at(at);

	for (size_t i = 0; i < cap && i < ROOM_OF(head); i++) {
		to[i] = __atomic_load_n(&text[i], __ATOMIC_ACQUIRE);
		if (to[i] == '\0')
			return head_at(at) == head && !is_overtaken(to, head);
	}
	return false;
}

size_t hr__env_next(uint32_t *at, char *to, size_t cap)
{
	uint64_t head;

	while ((head = head_at(*at)) != 0) {
		uint32_t here = *at;

		*at += LENGTH(head);
		if (STATE(head) == KEPT && read_entry(here, head, to, cap))
			return strlen(to);
	}
	return 0;
}

void hr_env_set(const char *name, const char *value)
{
	struct hr_record head = {.op = HR_CTL_ENV, .offset = HR_OFFSET_NONE, .fd = -1};
	char text[256];
	size_t n, n_value;

	if (!hr_shim_image.on || name == NULL || value == NULL || !hr__env_wanted(name) ||
	    hr_in_vfork_child())
		return;
	n = name_length(name);
	n_value = strlen(value);
	hr__env_keep(name, n, value); /* for the hello of this process or of a child */
	hr_ring_find(HR__SEEK_NONE);  /* in a session, also for a new thread */
	if (hr__ring_any() == NULL || n + n_value + 1 > sizeof(text))
		return;
	memcpy(text, name, n);
	text[n] = '=';
	memcpy(text + n + 1, value, n_value);
	head.asked = n + n_value + 1;
	head.fd = (int32_t)((head.asked + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES);
	head.start_ticks = hr_shim_ticks();
	hr_ring_control(&head, text, head.asked);
}

void hr_env_add(const char *name, const char *value)
{
	size_t n = name != NULL ? name_length(name) : 0;
	uint64_t head;

	for (uint32_t at = 0; n > 0 && (head = head_at(at)) != 0; at += LENGTH(head))
		if (names(at, head, name, n))
			return;
	hr_env_set(name, value);
}
