/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/journal/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/frame.h"

#define HALF_MOST     (UINT64_C(1) << 30)
#define SALVAGE_TIMES 4u /* hr_journal_salvage reads at most this many times the bytes of a half */

struct hr_journal {
	pthread_mutex_t lock;
	struct hr_journal_hdr *map;
	uint64_t map_bytes;
	uint64_t half_bytes;
	struct hr_half *halves[2];
	/* Where hr_journal_next stops: at damage that hr_journal_replay found; UINT64_MAX: none. */
	uint64_t ends[2];
	bool damaged[2];
	bool headless;
	uint64_t end_seq;	/* end_seq of the journal that was read */
	uint64_t salvage_bytes; /* bytes that hr_journal_salvage may still read */
	unsigned active;
	uint64_t gen;  /* generation of the active half; valid after hr_journal_begun */
	uint64_t head; /* bytes in use of the active half */
	uint64_t reserved;
};

static uint64_t file_bytes(uint64_t half_bytes)
{
	return HR_PAGE_BYTES + 2 * half_bytes;
}

static void find_halves(struct hr_journal *j)
{
	for (unsigned i = 0; i < 2; i++) {
		j->halves[i] =
		    (struct hr_half *)((uint8_t *)j->map + HR_PAGE_BYTES + i * j->half_bytes);
		j->ends[i] = UINT64_MAX;
	}
}

static int map_file(struct hr_journal *j, int fd)
{
	void *map;

	j->map_bytes = file_bytes(j->half_bytes);
	map = mmap(NULL, j->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	j->map = map;
	/* Readahead would fill megabytes of page cache and delay the start of a job. */
	madvise(map, j->map_bytes, MADV_RANDOM);
	find_halves(j);
	return 0;
}

/*
 * Maps the file as a private copy. If the file is too short, zeros follow, which are not a valid
 * entry.
 */
static int map_copy(struct hr_journal *j, int fd, uint64_t bytes_there)
{
	const int prot = PROT_READ | PROT_WRITE;
	void *map;

	j->map_bytes = file_bytes(j->half_bytes);
	if (bytes_there > j->map_bytes)
		bytes_there = j->map_bytes;
	map = mmap(NULL, j->map_bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	j->map = map;
	if (mmap(map, bytes_there, prot, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		return -errno;
	find_halves(j);
	return 0;
}

static uint32_t geometry_crc(uint64_t half_bytes)
{
	return hr_crc32c(0, &half_bytes, sizeof(half_bytes));
}

static int journal_make(struct hr_journal *j, int fd)
{
	int r = posix_fallocate(fd, 0, (off_t)file_bytes(j->half_bytes));

	if (r)
		return -r;
	r = map_file(j, fd);
	if (r || !j->map)
		return r ? r : -ENOMEM;
	j->map->version = HR_JOURNAL_VERSION;
	j->map->half_bytes = j->half_bytes;
	j->map->crc = geometry_crc(j->half_bytes);
	/* The magic makes the file a journal, so it is written last. */
	__atomic_store_n(&j->map->magic, HR_JOURNAL_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Returns 1 if the file is a journal of this version. Returns 0 if the file is new, or if a kill
 * has left it without magic.
 */
static int read_header(int fd, struct hr_journal_hdr *hdr, uint64_t *ret_file_bytes)
{
	ssize_t n = pread(fd, hdr, sizeof(*hdr), 0);
	struct stat st;

	if (n < 0 || fstat(fd, &st) < 0)
		return -errno;
	*ret_file_bytes = (uint64_t)st.st_size;
	if (n < (ssize_t)sizeof(hdr->magic) || hdr->magic == 0)
		return 0;
	if (hdr->magic != HR_JOURNAL_MAGIC || n < (ssize_t)sizeof(*hdr))
		return -EBADMSG;
	if (hdr->version != HR_JOURNAL_VERSION)
		return -EPROTONOSUPPORT;
	if (hdr->half_bytes % HR_PAGE_BYTES || hdr->half_bytes < HR_PAGE_BYTES ||
	    hdr->half_bytes > HALF_MOST || hdr->crc != geometry_crc(hdr->half_bytes))
		return -EBADMSG;
	return 1;
}

static bool was_used(const struct hr_journal *j)
{
	return j->map->last_gen || j->halves[0]->gen || j->halves[1]->gen;
}

static int open_found(struct hr_journal *j, int fd)
{
	struct hr_journal_hdr hdr = {0};
	uint64_t bytes_there = 0;
	int r = read_header(fd, &hdr, &bytes_there);

	if (r <= 0)
		return r;
	/* Extends a truncated file by zeros, which are not a valid entry. */
	r = file_bytes(hdr.half_bytes) > bytes_there
		? posix_fallocate(fd, 0, (off_t)file_bytes(hdr.half_bytes))
		: 0;
	if (r)
		return -r;
	j->half_bytes = hdr.half_bytes;
	r = map_file(j, fd);
	if (r || !j->map)
		return r ? r : -ENOMEM;
	j->map->end_seq = 0; /* no longer valid, because the stream continues */
	return 1;
}

int hr_journal_open(int fd, uint64_t half_bytes, struct hr_journal **ret, bool *ret_found)
{
	struct hr_journal *j = calloc(1, sizeof(*j));
	int r = j ? 0 : -ENOMEM;

	if (fd < 0 && r == 0) {
		fd = memfd_create("headrace-journal", MFD_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	if (r == 0) {
		j->half_bytes = (half_bytes + HR_PAGE_BYTES - 1) & ~(uint64_t)(HR_PAGE_BYTES - 1);
		r = open_found(j, fd);
	}
	if (r == 0)
		r = journal_make(j, fd);
	if (fd >= 0)
		close(fd);
	if (r < 0) {
		hr_journal_close(j);
		return r;
	}
	pthread_mutex_init(&j->lock, NULL);
	*ret_found = was_used(j);
	madvise(j->map, j->map_bytes, MADV_NORMAL);
	*ret = j;
	return 0;
}

void hr_journal_close(struct hr_journal *j)
{
	if (!j)
		return;
	if (j->map)
		munmap(j->map, j->map_bytes);
	free(j);
}

/* ---- appending ------------------------------------------------------------------------------- */

static uint32_t entry_crc(const struct hr_entry *e, uint64_t gen, uint64_t offset)
{
	const uint64_t place[] = {gen, offset};
	uint32_t crc = hr_crc32c(0, place, sizeof(place));

	crc = hr_crc32c(crc, e, offsetof(struct hr_entry, crc));
	return hr_crc32c(crc, e + 1, e->bytes - sizeof(*e));
}

void hr_journal_lock(struct hr_journal *j)
{
	pthread_mutex_lock(&j->lock);
}

void hr_journal_unlock(struct hr_journal *j)
{
	pthread_mutex_unlock(&j->lock);
}

uint64_t hr_journal_capacity(const struct hr_journal *j)
{
	return j->half_bytes - sizeof(struct hr_half);
}

uint64_t hr_journal_gen(const struct hr_journal *j)
{
	return j->gen;
}

uint64_t hr_journal_head(const struct hr_journal *j)
{
	return j->head;
}

void *hr_journal_reserve(struct hr_journal *j, uint64_t bytes, uint64_t slack)
{
	bytes = hr_entry_round(bytes);
	if (!j->gen || bytes > HR_ENTRY_MOST || j->head + bytes + slack > hr_journal_capacity(j))
		return NULL;
	j->reserved = bytes;
	return j->halves[j->active]->entries + j->head;
}

void hr_journal_commit(struct hr_journal *j, uint32_t kind, uint64_t bytes)
{
	struct hr_half *half = j->halves[j->active];
	struct hr_entry *e = (struct hr_entry *)(half->entries + j->head);

	assert(bytes >= sizeof(*e) && hr_entry_round(bytes) <= j->reserved);
	e->bytes =
	    (uint32_t)hr_entry_round(bytes < j->reserved ? bytes : j->reserved) & HR_ENTRY_MOST;
	e->kind = kind & (HR_ENTRY_KINDS_MOST - 1);
	e->crc = entry_crc(e, j->gen, j->head);
	j->head += e->bytes;
	assert(j->head <= hr_journal_capacity(j));
	/*
	 * Release: pairs with hr_journal_next. So, if a kill leaves the new head, it also leaves
	 * the whole entry.
	 */
	__atomic_store_n(&half->head, j->head, __ATOMIC_RELEASE);
}

bool hr_journal_spare_free(const struct hr_journal *j)
{
	return __atomic_load_n(&j->halves[!j->active]->gen, __ATOMIC_ACQUIRE) == 0;
}

int hr_journal_begin(struct hr_journal *j)
{
	if (!hr_journal_spare_free(j))
		return -EBUSY;
	j->active = !j->active;
	j->gen++;
	j->head = 0;
	j->halves[j->active]->head = 0;
	j->ends[j->active] = UINT64_MAX;
	j->damaged[j->active] = false;
	return 0;
}

void hr_journal_begun(struct hr_journal *j)
{
	__atomic_store_n(&j->halves[j->active]->gen, j->gen, __ATOMIC_RELEASE);
	__atomic_store_n(&j->map->last_gen, j->gen, __ATOMIC_RELEASE);
}

void hr_journal_retire(struct hr_journal *j, uint64_t gen)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t expected = gen;

		__atomic_compare_exchange_n(&j->halves[i]->gen, &expected, 0, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

/* ---- reading back ---------------------------------------------------------------------------- */

static unsigned index_of(const struct hr_journal *j, uint64_t gen)
{
	/* Relaxed: the appender only changes the gen of the other half, which it retires. */
	if (gen == j->gen)
		return j->active;
	return __atomic_load_n(&j->halves[0]->gen, __ATOMIC_RELAXED) == gen ? 0 : 1;
}

/* Returns the entry at `offset`, or NULL if its header is invalid. */
static const struct hr_entry *entry_at(const struct hr_journal *j, unsigned i, uint64_t offset)
{
	const struct hr_entry *e = (const struct hr_entry *)(j->halves[i]->entries + offset);

	if (offset + sizeof(*e) > hr_journal_capacity(j) || e->kind == HR_ENTRY_NONE ||
	    e->kind >= HR_ENTRY_KINDS || e->bytes % 8 || e->bytes < sizeof(*e) ||
	    e->bytes < hr_entry_least(e->kind) || e->bytes > hr_journal_capacity(j) - offset)
		return NULL;
	return e;
}

static bool intact(const struct hr_journal *j, unsigned i, const struct hr_entry *e)
{
	uint64_t offset = (uint64_t)((const uint8_t *)e - j->halves[i]->entries);

	return e->crc == entry_crc(e, j->halves[i]->gen, offset);
}

/* Returns whether a KNOWN entry may follow an entry of this kind. */
static bool uses_files(uint32_t kind)
{
	return kind == HR_ENTRY_RECORDS || kind == HR_ENTRY_LEFT || kind == HR_ENTRY_KERNEL ||
	       kind == HR_ENTRY_TALLY;
}

/* Finds the end of the entries that can be replayed (see journal.h, Checksums). */
static void check_half(struct hr_journal *j, unsigned i)
{
	struct hr_half *half = j->halves[i];
	uint64_t at = 0, unnamed = UINT64_MAX; /* last entry, if its KNOWN may be missing */
	const struct hr_entry *e;
	bool snapshot = false;

	while ((e = entry_at(j, i, at)) && intact(j, i, e)) {
		if (e->kind != HR_ENTRY_ATTACH)
			unnamed = uses_files(e->kind) ? at : UINT64_MAX;
		snapshot |= e->kind == HR_ENTRY_SNAP;
		at += e->bytes;
	}
	assert(at <= hr_journal_capacity(j));
	if (at >= half->head)
		half->head = at;
	else
		j->ends[i] = snapshot && unnamed < at ? unnamed : at;
	j->damaged[i] |= at < half->head;
	/* A head beyond the half is damage, too: at < head. hr_journal_reserve adds to the head. */
	if (half->head > hr_journal_capacity(j))
		half->head = hr_journal_capacity(j);
}

unsigned hr_journal_replay(struct hr_journal *j, uint64_t ret_gens[2])
{
	uint64_t a = j->halves[0]->gen, b = j->halves[1]->gen;
	unsigned n = 0;

	if (a && (!b || a < b))
		ret_gens[n++] = a;
	if (b)
		ret_gens[n++] = b;
	if (a && b && a > b)
		ret_gens[n++] = a;
	assert(n < 2 || ret_gens[0] < ret_gens[1]);
	/* The newest half is never retired. */
	j->headless = j->map->last_gen > (n ? ret_gens[n - 1] : 0);
	if (!n)
		return 0;
	j->gen = ret_gens[n - 1];
	j->active = j->gen == a ? 0 : 1;
	for (unsigned i = 0; i < n; i++)
		check_half(j, index_of(j, ret_gens[i]));
	j->head = j->halves[j->active]->head;
	j->salvage_bytes = hr_journal_capacity(j) * SALVAGE_TIMES;
	return n;
}

const struct hr_entry *hr_journal_next(const struct hr_journal *j, uint64_t gen, uint64_t *offset)
{
	unsigned i = index_of(j, gen);
	uint64_t end = __atomic_load_n(&j->halves[i]->head, __ATOMIC_ACQUIRE);
	const struct hr_entry *e;

	if (end > j->ends[i])
		end = j->ends[i];
	if (*offset + sizeof(*e) > end)
		return NULL;
	e = (const struct hr_entry *)(j->halves[i]->entries + *offset);
	/* impossible, unless another process writes to the journal */
	if (e->bytes < sizeof(*e) || e->bytes > end - *offset)
		return NULL;
	*offset += e->bytes;
	return e;
}

bool hr_journal_damaged(const struct hr_journal *j, uint64_t gen)
{
	return j->damaged[index_of(j, gen)];
}

bool hr_journal_headless(const struct hr_journal *j)
{
	return j->headless;
}

const struct hr_entry *hr_journal_salvage(struct hr_journal *j, uint64_t gen, uint64_t *offset)
{
	unsigned i = index_of(j, gen);

	for (; *offset < j->halves[i]->head && *offset < hr_journal_capacity(j); *offset += 8) {
		const struct hr_entry *e = entry_at(j, i, *offset);

		if (!e)
			continue;
		if (e->bytes > j->salvage_bytes)
			return NULL;
		j->salvage_bytes -= e->bytes;
		if (!intact(j, i, e))
			continue;
		*offset += e->bytes;
		return e;
	}
	return NULL;
}

/* ---- a private copy -------------------------------------------------------------------------- */

uint64_t hr_journal_end_seq(const struct hr_journal *j)
{
	return j->end_seq;
}

int hr_journal_note_end(int fd, uint64_t seq)
{
	ssize_t n = pwrite(fd, &seq, sizeof(seq), offsetof(struct hr_journal_hdr, end_seq));

	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(seq) ? 0 : -EIO;
}

int hr_journal_read(int fd, struct hr_journal **ret)
{
	struct hr_journal *j = calloc(1, sizeof(*j));
	struct hr_journal_hdr hdr = {0};
	uint64_t bytes_there = 0;
	int r;

	if (!j)
		return -ENOMEM;
	r = read_header(fd, &hdr, &bytes_there);
	if (r == 0)
		r = -ENODATA;
	j->half_bytes = hdr.half_bytes;
	if (r > 0)
		r = map_copy(j, fd, bytes_there);
	if (r == 0 && (!j->halves[0] || !j->halves[1] || !was_used(j)))
		r = -ENODATA;
	if (r < 0) {
		hr_journal_close(j);
		return r;
	}
	j->end_seq = hdr.end_seq;
	pthread_mutex_init(&j->lock, NULL);
	*ret = j;
	return 0;
}
