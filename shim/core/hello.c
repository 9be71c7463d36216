/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - builds the shim's hello */
#include "shim/core/hello.h"

#include <string.h>

#include "shim/core/clock.h"
#include "shim/core/cmdline.h"
#include "shim/core/path.h"
#include "shim/core/sys.h"

#define ARGV_BYTES 4096u
#define ENV_READS  4

/* The attach lock guards it. Most processes use only two pages of it. */
static uint8_t message[HR_HELLO_MAX_BYTES];
static size_t used;
static const uint8_t *taken; /* the struct hr_counter[n_taken] in `message`, unaligned */
static size_t n_taken;

char *hr__hello_scratch(void)
{
	return (char *)message;
}

/* Returns where the value of the next item begins. NULL: `bytes` do not fit. */
static uint8_t *item_room(size_t bytes)
{
	if (sizeof(message) - used < sizeof(struct hr_item_hdr) + bytes)
		return NULL;
	return message + used + sizeof(struct hr_item_hdr);
}

/* Completes the item whose value the caller has written to item_room(). */
static void item_add(enum hr_item_kind kind, size_t bytes)
{
	const struct hr_item_hdr hdr = {.kind = (uint16_t)kind, .bytes = (uint16_t)bytes};

	memcpy(message + used, &hdr, sizeof(hdr));
	used += sizeof(hdr) + bytes;
}

/* Adds an item. `reader` writes its value to buf, and returns the size or -errno. */
static void item_read(enum hr_item_kind kind, long (*reader)(char *buf, size_t cap), size_t cap)
{
	char *value = (char *)item_room(cap);
	long n = value != NULL ? reader(value, cap) : 0;

	if (n > 0)
		item_add(kind, (size_t)n);
}

static long read_exe(char *buf, size_t cap)
{
	return HR_SYS4(readlinkat, AT_FDCWD, "/proc/self/exe", buf, cap);
}

static long read_argv(char *buf, size_t cap)
{
	long n = hr__sys_slurp("/proc/self/cmdline", buf, cap);

	return n > 0 && !hr_shim_image.full_cmdline ? (long)hr__cmdline_cut(buf, (size_t)n) : n;
}

static long read_cwd(char *buf, size_t cap)
{
	long n = HR_SYS2(getcwd, buf, cap);

	return n > 0 ? n - 1 : n; /* without the NUL */
}

/* Returns at most HR_EXCLUDED_TEXT, because common/path_filter.c limits the patterns. */
static long read_defaults(char *buf, size_t cap)
{
	const struct hr_patterns *defaults = &hr_filter.defaults;
	long n = 0;

	(void)cap;
	for (uint32_t i = 0; i < hr_filter.kinds; i++) {
		memcpy(buf + n, defaults->v[i].text, defaults->v[i].bytes);
		n += defaults->v[i].bytes;
		buf[n++] = '\0';
	}
	return n;
}

static uintptr_t thread_pointer(void)
{
#if defined(__x86_64__)
	uintptr_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp)); /* the thread's block begins with its own address */
	return tp;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

static void item_cover(void)
{
	const struct hr_item_cover cover = {
	    .thread = (int64_t)((uintptr_t)&hr_self - thread_pointer()),
	    .began_ticks = hr_self.began,
	};
	uint8_t *value = item_room(sizeof(cover));

	if (value == NULL)
		return;
	memcpy(value, &cover, sizeof(cover));
	item_add(HR_ITEM_COVER, sizeof(cover));
}

static size_t item_env(uint32_t *at)
{
	uint8_t *value = item_room(0);
	size_t n;

	if (value == NULL)
		return 0;
	n = hr__env_next(at, (char *)value, (size_t)(message + sizeof(message) - value));
	if (n > 0)
		item_add(HR_ITEM_ENV, n);
	return n;
}

/* Adds the variables. Starts again if another thread changes one, at most ENV_READS times. */
static void items_env(void)
{
	size_t from = used;
	uint64_t turn;

	for (int i = 0; i < ENV_READS; i++) {
		uint32_t at = 0;

		used = from;
		turn = hr__env_turn();
		while (item_env(&at) > 0)
			;
		if (turn == hr__env_turn())
			return;
	}
}

/* Moves the totals of hr_wiped into the message. */
static void item_counters(void)
{
	uint8_t *start = item_room(HR_OP_MAX * sizeof(struct hr_counter));

	n_taken = 0;
	taken = start;
	if (start == NULL || hr__controls_sessions() ||
	    __atomic_exchange_n(&hr_wiped.counting, 0, __ATOMIC_ACQUIRE) == 0)
		return;
	for (unsigned op = HR_CTL_REGION; op < HR_OP_MAX; op++) {
		struct hr_lost *l = &hr_wiped.counters[op];
		struct hr_counter c = {.op = (uint16_t)op};

		c.total.count = __atomic_exchange_n(&l->count, 0, __ATOMIC_RELAXED);
		if (c.total.count == 0)
			continue;
		c.total.bytes = __atomic_exchange_n(&l->bytes, 0, __ATOMIC_RELAXED);
		c.total.ticks = __atomic_exchange_n(&l->ticks, 0, __ATOMIC_RELAXED);
		memcpy(start + n_taken++ * sizeof(c), &c, sizeof(c));
	}
	if (n_taken > 0)
		item_add(HR_ITEM_COUNTERS, n_taken * sizeof(struct hr_counter));
}

void hr__hello_counters_return(void)
{
	for (size_t i = 0; i < n_taken; i++) {
		struct hr_counter c;

		memcpy(&c, taken + i * sizeof(c), sizeof(c));
		struct hr_lost *l = &hr_wiped.counters[c.op];

		__atomic_fetch_add(&l->count, c.total.count, __ATOMIC_RELAXED);
		__atomic_fetch_add(&l->bytes, c.total.bytes, __ATOMIC_RELAXED);
		__atomic_fetch_add(&l->ticks, c.total.ticks, __ATOMIC_RELAXED);
		__atomic_store_n(&hr_wiped.counting, 1, __ATOMIC_RELEASE);
	}
	n_taken = 0;
}

void hr__hello_counters_sent(void)
{
	n_taken = 0;
}

size_t hr__hello_build(enum hr_hello_kind kind, uint32_t flags, const void **ret_message)
{
	struct hr_hello h = {
	    .magic = HR_ABI_MAGIC,
	    .abi = HR_ABI_VERSION,
	    .word_bytes = sizeof(void *),
	    .kind = (uint16_t)kind,
	    .flags = flags,
	    .pid = hr_wiped.pid,
	    .ppid = (int32_t)HR_SYS0(getppid),
	    .tid = hr_sys_gettid(),
	    .session = hr_wiped.token,
	};

	if (hr_wiped.image == 0)
		hr_wiped.image = (uint32_t)hr_shim_ticks() | 1;
	h.image = hr_wiped.image;
	used = sizeof(h);
	if (kind == HR_HELLO_ATTACH) {
		if (flags & HR_HELLO_FORKED)
			h.parent_session = hr_shim_image.parent_token;
		item_read(HR_ITEM_EXE, read_exe, HR__PATH_MAX);
		item_read(HR_ITEM_ARGV, read_argv, ARGV_BYTES);
		item_read(HR_ITEM_CWD, read_cwd, HR__PATH_MAX);
		item_cover();
		items_env();
		item_read(HR_ITEM_DEFAULTS, read_defaults, HR_EXCLUDED_TEXT);
		item_counters();
	} else if (kind == HR_HELLO_MORE_RINGS) {
		items_env(); /* the node service finds the job by these variables */
	}
	if (hr__clock_is_tsc())
		h.flags |= HR_HELLO_TICKS_TSC;
	h.start_ticks = hr_shim_ticks();
	h.bytes = (uint32_t)used;
	memcpy(message, &h, sizeof(h));
	*ret_message = message;
	return used;
}
