/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - attach: one handshake with the daemon, after which no descriptor is open
 *
 * One thread at a time attaches: it holds the attach lock, with all signals blocked, and other
 * threads wait. If a running daemon does not answer, the shim offers a map. After a failure, the
 * process is not recorded until the back-off has passed. A program may also end its session, and
 * begin one with another daemon (hr_session_record).
 */
#include "shim/core/hello.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/core/clock.h"
#include "shim/core/sys.h"
#include "shim/core/handshake.h"

#define NS_PER_S   UINT64_C(1000000000)
#define PATIENCE   UINT64_C(50000000) /* ns: shortest time that an attach may take */
#define NO_WAIT_S  5 /* after a time-out, attaches do not wait for an answer for this time */
#define GRND_NOW   1 /* flags of getrandom: do not wait for entropy */
#define HINT_DIGIT 20
#define REDIALS	   3

/*
 * Returns how long an attach may take, in ns: as long as a thread may wait for a full ring
 * (HEADRACE_ON_FULL, one second under `headrace run`), but at least PATIENCE. On a busy node, the
 * daemon may not run within 50 ms. A longer wait is useful, because with a map of the daemon,
 * unlike an offered one, threads can wake the daemon when a ring is full.
 */
static uint64_t patience(void)
{
	uint64_t wait =
	    hr_shim_image.on_full == HR__FULL_WAIT ? hr_shim_image.wait_ms * UINT64_C(1000000) : 0;

	return wait > PATIENCE ? wait : PATIENCE;
}

/* ---- the attach lock -------------------------------------------------------------------------- */

/* False: another thread has held the lock for longer than an attach and an offer may take. */
static bool lock(void)
{
	uint64_t until = 0, now;

	for (;;) {
		uint32_t free = 0;

		if (__atomic_compare_exchange_n(&hr_wiped.lock, &free, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
		now = hr__clock_ns();
		if (until == 0)
			until = now + 2 * patience();
		if (now >= until)
			return false;
		hr__sys_futex_wait(&hr_wiped.lock, 1, until - now, 1);
	}
}

static void unlock(void)
{
	__atomic_store_n(&hr_wiped.lock, 0, __ATOMIC_RELEASE);
	hr__sys_futex_wake(&hr_wiped.lock, 1, 1);
}

/* ---- maps ------------------------------------------------------------------------------------- */

static void mapping_keep(void *addr, uint64_t bytes)
{
	struct hr_shim_image *im = &hr_shim_image;

	im->mappings[im->mapping_count].addr = addr;
	im->mappings[im->mapping_count].bytes = bytes;
	im->mapping_count++;
}

static bool ack_sane(const struct hr_ack *ack)
{
	return ack->slots_log2 >= 8 && ack->slots_log2 <= 20 && ack->ring_count >= 1 &&
	       ack->ring_count <= 256 &&
	       ack->map_bytes == hr_map_bytes(ack->ring_count, ack->slots_log2);
}

static struct hr_map_hdr *map_rings(const struct hr_ack *ack)
{
	struct hr_map_hdr *map;

	if (!ack_sane(ack))
		return NULL;
	map = hr__handshake_map(HR__OWN_MAP, ack->map_bytes, PROT_READ | PROT_WRITE);
	if (map == NULL)
		return NULL;
	if (map->magic != HR_ABI_MAGIC || map->abi != HR_ABI_VERSION ||
	    map->session != ack->session || map->ring_count != ack->ring_count ||
	    map->slots_log2 != ack->slots_log2) {
		HR_SYS2(munmap, map, ack->map_bytes);
		return NULL;
	}
	return map;
}

/* Release: a thread that loads map_count with acquire also sees the entries below map_count. */
static void map_publish(struct hr_map_hdr *map, uint64_t bytes)
{
	uint32_t n = hr_wiped.map_count;

	mapping_keep(map + 1, bytes - sizeof(*map));
	if (n == HR_SESSION_MAPS - 1)
		hr__ring_common_set(map, hr__map_ring(map, map->ring_count - 1));
	__atomic_store_n(&hr_wiped.maps[n], map, __ATOMIC_RELAXED);
	__atomic_store_n(&hr_wiped.map_count, n + 1, __ATOMIC_RELEASE);
}

/*
 * Starts the session of this process. `node` is NULL if this process made `map`, and offers it to
 * headraced.
 */
static void session_begin(struct hr_map_hdr *map, uint64_t bytes, const struct hr_node_page *node)
{
	if (node != NULL)
		mapping_keep((void *)(uintptr_t)node, HR_PAGE_BYTES);
	__atomic_store_n(&hr_wiped.node, node, __ATOMIC_RELAXED);
	hr_wiped.token = map->session;
	__atomic_store_n(&hr_wiped.start_ticks, hr_shim_ticks(), __ATOMIC_RELAXED);
	hr_shim_image.parent_token = map->session;
	__atomic_store_n(&hr_shim_image.strays, map, __ATOMIC_RELEASE);
	map_publish(map, bytes);
	/* A child attaches later than its parent, so their nonces differ. */
	__atomic_store_n(&hr_wiped.nonce, hr_shim_ticks() | 1, __ATOMIC_SEQ_CST);
	hr__counters_to_session();
	hr__excluded_to_session();
}

/* ---- the handshake --------------------------------------------------------------------------- */

bool hr__seccomp_forbids(char *text, size_t bytes)
{
	const char *line;
	long n;

	if (hr_shim_image.seccomp_allowed ||
	    __atomic_load_n(&hr_wiped.nonce, __ATOMIC_RELAXED) != 0)
		return false;
	n = hr__sys_slurp("/proc/self/status", text, bytes - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	line = strstr(text, "\nSeccomp:\t");
	return line != NULL && line[10] != '0';
}

static int adopt(const struct hr_ack *ack)
{
	struct hr_map_hdr *map = map_rings(ack);
	const struct hr_node_page *node;

	if (map == NULL)
		return -EPROTO;
	node = hr__handshake_map(HR__OWN_NODE, HR_PAGE_BYTES, PROT_READ);
	if (node == NULL || node->magic != HR_ABI_MAGIC) {
		HR_SYS2(munmap, map, ack->map_bytes);
		if (node != NULL)
			HR_SYS2(munmap, node, HR_PAGE_BYTES);
		return -EPROTO;
	}
	if (hr__clock_is_tsc() && (ack->flags & HR_ACK_CLOCK_TSC) == 0) {
		hr__clock_monotonic();
		hr_shim_image.clock_switched = true;
	}
	session_begin(map, ack->map_bytes, node);
	return 0;
}

static int adopt_more(const struct hr_ack *ack)
{
	struct hr_map_hdr *map = map_rings(ack);

	if (map == NULL)
		return -EPROTO;
	map_publish(map, ack->map_bytes);
	return 0;
}

/* Draws a random token for a session. The daemon refuses a token that is in use. */
static uint64_t token_draw(void)
{
	uint64_t token = 0;

	if (HR_SYS3(getrandom, &token, sizeof(token), GRND_NOW) != (long)sizeof(token))
		token = hr_shim_ticks() << 24 ^ (uint64_t)hr_wiped.pid;
	return token | 1;
}

/*
 * Call it if the daemon does not answer: sends a map that the shim has made. The daemon adopts the
 * map when it reads the offer. This map is bigger than one of the daemon, because the session may
 * have to use it for a long time.
 */
static int offer(enum hr_hello_kind kind)
{
	bool first = kind == HR_HELLO_ATTACH;
	struct hr_map_hdr head = {
	    .magic = HR_ABI_MAGIC,
	    .abi = HR_ABI_VERSION,
	    .session = first ? token_draw() : hr_wiped.token,
	    .ring_count = HR_MAP_RINGS,
	    .slots_log2 = first ? HR_OFFER_SLOTS_LOG2 : HR_RING_SLOTS_LOG2,
	    .level = first ? HR_LEVEL_TRACE
			   : __atomic_load_n(&hr_wiped.maps[0]->level, __ATOMIC_RELAXED),
	};
	uint64_t bytes = hr_map_bytes(head.ring_count, head.slots_log2);
	int r = hr__handshake_memory(bytes);
	struct hr_map_hdr *map;

	if (r < 0)
		return r;
	map = hr__handshake_map(HR__OWN_MAP, bytes, PROT_READ | PROT_WRITE);
	if (map == NULL)
		return -ENOMEM;
	memcpy(map, &head, HR_MAP_HEAD_BYTES);
	r = hr__handshake_offer(head.session);
	if (r < 0) {
		HR_SYS2(munmap, map, bytes);
		return r;
	}
	if (first)
		session_begin(map, bytes, NULL);
	else
		map_publish(map, bytes);
	return 0;
}

/*
 * Call it if the daemon was stopped, but has just read the hello. Waits for its answer for
 * PATIENCE. If none arrives, returns -EPIPE, so that the caller connects again and offers a map.
 */
static int answer_late(struct hr_ack *ret_ack)
{
	int r = hr__handshake_answer(hr__clock_ns() + PATIENCE, false, ret_ack);

	return r == -EAGAIN ? -EPIPE : r;
}

static int handshake(enum hr_hello_kind kind, uint32_t flags, uint64_t until)
{
	struct hr_ack ack = {0};
	int r = hr__handshake_hello(kind, flags, until);

	if (r == 0)
		r = hr__handshake_answer(until, true, &ack);
	hr_shim_image.refused = r == -EPROTO;
	if (r == -EAGAIN) {
		r = offer(kind);
		if (r != -EPIPE)
			return r;
		r = answer_late(&ack);
	}
	if (r < 0)
		return r;
	if (kind != HR_HELLO_ATTACH)
		return adopt_more(&ack);
	hr__hello_counters_sent();
	return adopt(&ack);
}

/* If the daemon was killed, connects again: the next recording process uses the same socket. */
static int handshake_retry(enum hr_hello_kind kind, uint32_t flags, uint64_t until)
{
	int r = -ECONNRESET;

	for (int i = 0; i <= REDIALS && (r == -ECONNRESET || r == -EPIPE); i++) {
		r = handshake(kind, i > 0 ? flags | HR_HELLO_AGAIN : flags, until);
		if (r < 0 && kind == HR_HELLO_ATTACH)
			hr__hello_counters_return();
		hr__session_fds_drop();
	}
	return r;
}

/* ---- after a failure ------------------------------------------------------------------------- */

/*
 * After this, child processes do not wait, either. For children that exec, this overwrites the
 * digits of HEADRACE_ATTACH_FAILED in the initial environment, where the launcher reserved room.
 * setenv would allocate memory.
 */
static void wait_failed(uint64_t now_ns)
{
	char *at = hr_shim_image.hint;
	uint64_t s = now_ns / NS_PER_S;

	hr_shim_image.no_wait_until_ns = now_ns + NO_WAIT_S * NS_PER_S;
	if (at == NULL)
		return;
	for (int i = 0; i < HINT_DIGIT; i++)
		if (at[i] < '0' || at[i] > '9')
			return; /* the program has changed the value */
	for (int i = HINT_DIGIT - 1; i >= 0; i--, s /= 10)
		at[i] = (char)('0' + s % 10);
}

static void attach_failed(int error)
{
	struct hr_shim_image *im = &hr_shim_image;
	uint64_t now = hr__clock_ns();
	uint64_t wait = NS_PER_S << (im->failures < 6 ? im->failures : 6);

	/* ECANCELED: the user has deselected this rank. Forked children do not record either. */
	if (error == -ECANCELED) {
		im->on = false;
		__atomic_store_n(&hr__fdtab.limit, 0, __ATOMIC_RELAXED);
		return;
	}
	im->failures++;
	__atomic_store_n(&im->retry_ns, now + (wait < 60 * NS_PER_S ? wait : 60 * NS_PER_S),
			 __ATOMIC_RELAXED);
}

static int handshake_in_time(enum hr_hello_kind kind)
{
	bool forked = kind == HR_HELLO_ATTACH && hr_wiped.born == HR__BORN_FORKED;
	uint64_t began = hr__clock_ns(), now;
	bool no_wait = began < hr_shim_image.no_wait_until_ns;
	uint64_t until = no_wait ? began : began + patience();
	int r = handshake_retry(kind, forked ? HR_HELLO_FORKED : 0, until);

	now = hr__clock_ns();
	if (!no_wait && now >= until)
		wait_failed(now);
	return r;
}

static int attach_locked(void)
{
	int r;

	__atomic_store_n(&hr_wiped.attempts, hr_wiped.attempts + 1, __ATOMIC_RELAXED);
	if (hr__seccomp_forbids(hr__hello_scratch(), HR_HELLO_MAX_BYTES)) {
		__atomic_fetch_add(&hr_shim_image.quiet, 1, __ATOMIC_SEQ_CST);
		return -EPERM;
	}
	r = handshake_in_time(HR_HELLO_ATTACH);
	if (r < 0)
		attach_failed(r);
	else
		hr_shim_image.failures = 0;
	return r;
}

bool hr__session_retry_due(void)
{
	uint64_t retry_ns = __atomic_load_n(&hr_shim_image.retry_ns, __ATOMIC_RELAXED);

	return retry_ns == 0 || hr__clock_ns() >= retry_ns;
}

bool hr__session_attach(enum hr__seek seek)
{
	bool due;

	if (!lock())
		return __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE) != 0;
	if (hr_wiped.born == HR__BORN_WIPED)
		hr__fork_child();
	due = seek == HR__SEEK_FORCE ||
	      ((seek == HR__SEEK_RETRY || hr_wiped.attempts == 0) && hr__session_retry_due());
	if (hr_wiped.nonce == 0 && due)
		attach_locked();
	unlock();
	return __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE) != 0;
}

static bool maps_beyond(uint32_t have)
{
	return __atomic_load_n(&hr_wiped.map_count, __ATOMIC_ACQUIRE) > have;
}

/* Requests a map. After a refusal or a time-out, sends no further request for one second. */
static void more_locked(void)
{
	uint64_t now = hr__clock_ns();

	if (now < hr_wiped.more_after_ns || hr_wiped.map_count >= HR_SESSION_MAPS)
		return;
	if (handshake_in_time(HR_HELLO_MORE_RINGS) < 0)
		hr_wiped.more_after_ns = hr__clock_ns() + NS_PER_S;
}

bool hr__session_more_rings(uint32_t have)
{
	if (!lock())
		return maps_beyond(have);
	if (!maps_beyond(have)) /* false: another thread has received a map */
		more_locked();
	unlock();
	return maps_beyond(have);
}

/* ---- sessions that the program begins and ends ----------------------------------------------- */

/*
 * Other threads may be anywhere in their operations. From now on, none finds its ring. One that has
 * found it before finishes its record; the memory stays until the next session begins.
 */
static void end_locked(void)
{
	struct hr_wiped *w = &hr_wiped;

	for (uint32_t i = 0; i < w->map_count; i++)
		__atomic_store_n(&w->maps[i]->level, HR_LEVEL_OFF, __ATOMIC_RELAXED);
	__atomic_store_n(&w->nonce, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&hr_shim_image.socket[0], '\0', __ATOMIC_RELAXED);
}

/*
 * Forgets what an ended session knew. Totals from before the first session remain, because a thread
 * may still add to them; hr__controls_sessions() prevents that a session receives them.
 */
static void forget(void)
{
	struct hr_wiped *w = &hr_wiped;

	for (uint32_t i = 0; i < w->map_count; i++)
		hr__cover(w->maps[i], sizeof(*w->maps[i]));
	hr__cover_mappings();
	__atomic_store_n(&w->map_count, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&w->common, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&w->step_span, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&w->epoch_span, 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < HR__SENT_SLOTS; i++)
		__atomic_store_n(&w->sent[i], 0, __ATOMIC_RELAXED);
	hr__fdtab_forget_announced();
}

static int begin_locked(const char *socket)
{
	struct hr_shim_image *im = &hr_shim_image;
	size_t n = strlen(socket);

	if (hr_wiped.nonce != 0)
		return -EALREADY;
	if (n >= sizeof(im->socket))
		return -ENAMETOOLONG;
	__atomic_store_n(&im->controls, hr_wiped.pid, __ATOMIC_RELAXED);
	forget();
	im->failures = 0;
	im->no_wait_until_ns = 0;
	__atomic_store_n(&im->retry_ns, 0, __ATOMIC_RELAXED);
	memcpy(im->socket + 1, socket + 1, n);
	__atomic_store_n(&im->socket[0], socket[0], __ATOMIC_RELAXED);
	return attach_locked();
}

int hr_session_record(const char *socket)
{
	uint64_t mask;
	int r = 0;

	if (!hr_shim_image.on)
		return -ENOTSUP;
	if (hr_shim_image.quiet || hr_in_vfork_child())
		return -EPERM;
	mask = hr__sys_signals_block();
	if (!lock()) {
		r = -EBUSY;
	} else {
		if (hr_wiped.born == HR__BORN_WIPED)
			hr__fork_child();
		if (socket != NULL && socket[0] != '\0')
			r = begin_locked(socket);
		else if (hr__controls_sessions())
			end_locked();
		unlock();
	}
	hr__sys_signals_restore(mask);
	return r;
}
