/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/probes/probes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/io_uring.h>

#include "common/host.h"
#include "common/ops.h"
#include "common/text.h"
#include "probe.skel.h"

#define AT_ONCE		256u   /* maximum number of entries of a BPF map that one call reads */
#define ITERATIONS_MOST 64     /* maximum number of passes, one per generation of descendants */
#define LOG_BYTES	65536u /* maximum bytes of messages from libbpf and the verifier */
#define LOG_SHOWN_BYTES 1500u  /* an error message contains at most this many of the last bytes */
/* How many descriptors the programs, maps and links need, with those that only the load needs. */
#define FILES	   56u
#define FILES_LEFT 40u /* how many descriptors remain for other files of headraced */

struct hr_probes {
	struct probe_bpf *skel;
	struct ring_buffer *ring;
	pthread_mutex_t lock; /* protects roots and covers */
	hr_probes_taken *taken;
	void *arg;
	size_t left;	 /* how many further records this call of hr_probes_poll may pass on */
	uint32_t turned; /* the side of the maps that the programs do not use now (probes.h) */
	/*
	 * The counter `unmarked` of the programs at the last mark_new(). If it has not changed
	 * since, no pass over the tasks is needed.
	 */
	uint64_t marked;
	struct hr_tally tallies[AT_ONCE];
	char lacks[256]; /* the missing features, as text for users; "": none */
};

/* ---- messages of libbpf ---------------------------------------------------------------------- */

/* libbpf passes no context to the callback, so only one thread at a time may load programs. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char libbpf_log[LOG_BYTES];
static size_t log_used;

static __attribute__((format(printf, 2, 0))) int keep_log(enum libbpf_print_level level,
							  const char *format, va_list ap)
{
	int n;

	if (level == LIBBPF_DEBUG)
		return 0;
	n = vsnprintf(libbpf_log + log_used, sizeof(libbpf_log) - log_used, format, ap);
	if (n > 0)
		log_used += (size_t)n;
	if (log_used >= sizeof(libbpf_log))
		log_used = sizeof(libbpf_log) - 1;
	return n;
}

static int probes_fail(char **ret_error, int r, const char *what)
{
	const char *last =
	    log_used > LOG_SHOWN_BYTES ? libbpf_log + log_used - LOG_SHOWN_BYTES : libbpf_log;

	return hr_text_fail(r, ret_error, "%s: %s%s%s", what, strerrordesc_np(-r),
			    log_used ? "\n" : "", last);
}

/* ---- features of this kernel ----------------------------------------------------------------- */

/* Returns how many parameters a tracepoint has (without the context); -1: it does not exist. */
static int tracepoint_args(const struct btf *kernel, const char *name)
{
	char type[128];
	const struct btf_type *t;
	int id;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	id = btf__find_by_name_kind(kernel, type, BTF_KIND_TYPEDEF);
	if (id < 0)
		return -1;
	/* The type is a pointer to a function. */
	t = btf__type_by_id(kernel, btf__type_by_id(kernel, (uint32_t)id)->type);
	t = t ? btf__type_by_id(kernel, t->type) : NULL;
	return t && btf_is_func_proto(t) ? btf_vlen(t) - 1 : -1;
}

static __attribute__((format(printf, 2, 3))) void lack(struct hr_probes *p, const char *format, ...)
{
	size_t used = strlen(p->lacks);
	va_list args;

	if (used > 0 && used < sizeof(p->lacks) - 2)
		memcpy(p->lacks + used, "; ", sizeof("; "));
	used = strlen(p->lacks);
	va_start(args, format);
	vsnprintf(p->lacks + used, sizeof(p->lacks) - used, format, args);
	va_end(args);
}

/* Chooses the programs that fit this kernel, possibly without those for io_uring. */
static void choose(struct hr_probes *p, const struct btf *kernel)
{
	struct probe_bpf *skel = p->skel;
	int submit = tracepoint_args(kernel, "io_uring_submit_req");
	int submit_sqe = tracepoint_args(kernel, "io_uring_submit_sqe");
	int complete = tracepoint_args(kernel, "io_uring_complete");
	bool uring = (submit == 1 || submit_sqe == 2) && complete >= 3;
	bool pages = tracepoint_args(kernel, "mm_filemap_add_to_page_cache") == 1;

	bpf_program__set_autoload(skel->progs.uring_submits, uring && submit == 1);
	bpf_program__set_autoload(skel->progs.uring_submits_sqe, uring && submit != 1);
	bpf_program__set_autoload(skel->progs.uring_completes, uring && complete == 3);
	bpf_program__set_autoload(skel->progs.uring_completes_words, uring && complete > 3);
	bpf_program__set_autoload(skel->progs.task_moves,
				  tracepoint_args(kernel, "cgroup_attach_task") == 4);
	bpf_program__set_autoload(skel->progs.page_comes, pages);
	if (!uring)
		lack(p, "io_uring operations are not recorded: that needs Linux 6.0");
	skel->rodata->faults_traced = tracepoint_args(kernel, "mm_filemap_fault") == 2;
	bpf_program__set_autoload(skel->progs.page_faults, skel->rodata->faults_traced);
	if (!pages)
		lack(p, "this kernel does not report which pages are read from storage");
	if (!skel->rodata->faults_traced && !pages)
		lack(p, "major faults are not counted");
	else if (!skel->rodata->faults_traced)
		lack(p, "a major fault counts only for the thread that reads the page, not for "
			"threads that wait for it: that needs Linux 6.12");
}

static int check_kernel(char **ret_error)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		return probes_fail(ret_error, -ENOTSUP,
				   "this kernel has no type information (/sys/kernel/btf/vmlinux)");
	/* The programs use pids of the initial namespace. */
	if (!hr_host_has_initial_pids())
		return probes_fail(ret_error, -ENOTSUP, "not in the initial pid namespace");
	return 0;
}

static unsigned open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d)) /* only this thread uses d. NOLINT(concurrency-mt-unsafe) */
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

/* Fails if the probes would leave headraced too few descriptors. */
static int check_room(char **ret_error)
{
	unsigned needed = open_files() + FILES + FILES_LEFT;
	struct rlimit files;
	char what[160];

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= needed)
		return 0;
	snprintf(what, sizeof(what), "the limit of open files is %llu (ulimit -n); probes need %u",
		 (unsigned long long)files.rlim_cur, needed);
	return probes_fail(ret_error, -EMFILE, what);
}

/* ---- tables that the programs read ----------------------------------------------------------- */

/* Values of the column `how` in syscalls.def. The programs ignore calls without a file. */
enum {
	HOW_FD = HR_CALL_FD,
	HOW_VECTOR = HR_CALL_VECTOR,
	HOW_OPEN = HR_CALL_OPEN,
	HOW_PATH = HR_CALL_PATH,
	HOW_TWO = HR_CALL_TWO,
	HOW_COPY = HR_CALL_COPY,
	HOW_SENDFILE = HR_CALL_SENDFILE,
	HOW_OPEN_FD = HR_CALL_NONE,
	HOW_CLOSE = HR_CALL_FD,
	HOW_DUP = HR_CALL_FD,
	HOW_DUP_TO = HR_CALL_FD,
	HOW_FCNTL = HR_CALL_FD,
	HOW_CHDIR = HR_CALL_NONE,
	HOW_FCHDIR = HR_CALL_NONE,
	HOW_MMAP = HR_CALL_MAP,
	HOW_MUNMAP = HR_CALL_NONE,
	HOW_MREMAP = HR_CALL_NONE,
	HOW_MAP = HR_CALL_NONE
};

static uint8_t moves(uint16_t op)
{
	switch (hr_op_info(op)->class) {
	case HR_CLASS_READ:
		return HR_MOVES_IN;
	case HR_CLASS_WRITE:
		return HR_MOVES_OUT;
	default:
		return 0;
	}
}

struct call_row {
	uint32_t number; /* of the system call, or the opcode of io_uring */
	struct hr_call call;
};

static const struct call_row calls[] = {
#define ROW(number, function, how, file, asked, offset, flags, at)                                 \
	{SYS_##number, {HR_OP_##function, HOW_##how, file, asked, offset, flags, at, 0, {0}}},
#include "proto/syscalls.def"
#undef ROW
};

/* Linux has these operations since 6.15; the headers of Debian 12 lack them. */
#define URING_READV_FIXED  60
#define URING_WRITEV_FIXED 61

static const struct call_row uring_calls[] = {
    {IORING_OP_READ, {.op = HR_OP_io_uring_read, .how = HR_CALL_FD, .asked = 1}},
    {IORING_OP_READV, {.op = HR_OP_io_uring_readv, .how = HR_CALL_FD}},
    {IORING_OP_READ_FIXED, {.op = HR_OP_io_uring_read_fixed, .how = HR_CALL_FD, .asked = 1}},
    {IORING_OP_WRITE, {.op = HR_OP_io_uring_write, .how = HR_CALL_FD, .asked = 1}},
    {IORING_OP_WRITEV, {.op = HR_OP_io_uring_writev, .how = HR_CALL_FD}},
    {IORING_OP_WRITE_FIXED, {.op = HR_OP_io_uring_write_fixed, .how = HR_CALL_FD, .asked = 1}},
    {URING_READV_FIXED, {.op = HR_OP_io_uring_readv, .how = HR_CALL_FD}},
    {URING_WRITEV_FIXED, {.op = HR_OP_io_uring_writev, .how = HR_CALL_FD}},
    {IORING_OP_FSYNC, {.op = HR_OP_io_uring_fsync, .how = HR_CALL_FD}},
    {IORING_OP_OPENAT, {.op = HR_OP_io_uring_openat, .how = HR_CALL_OPEN}},
    {IORING_OP_OPENAT2, {.op = HR_OP_io_uring_openat2, .how = HR_CALL_OPEN}},
    {IORING_OP_CLOSE, {.op = HR_OP_io_uring_close, .how = HR_CALL_FD}},
};

static int fill_calls(const struct bpf_map *map, const struct call_row *rows, size_t n)
{
	int r = 0;

	_Static_assert(HR_OP_AIO_FIRST == HR_OP_aio_read && HR_OP_AIO_LAST == HR_OP_lio_listio64,
		       "the programs know the calls of POSIX AIO");
	for (size_t i = 0; i < n && !r; i++) {
		struct hr_call call = rows[i].call;

		call.moves = moves(call.op);
		/*
		 * libc calls isatty and the like for each stdio stream that it opens; these calls
		 * move no data
		 */
		if (call.op == HR_OP_ioctl)
			continue;
		if (call.how != HR_CALL_NONE && rows[i].number < HR_PROBE_CALLS)
			r = bpf_map_update_elem(bpf_map__fd(map), &rows[i].number, &call, BPF_ANY);
	}
	return r;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int probes_take(void *arg, void *data, size_t bytes)
{
	struct hr_probes *p = arg;

	p->taken(p->arg, data, bytes);
	return --p->left == 0 ? -ECANCELED : 0; /* -ECANCELED ends the poll after this record */
}

/* Loads and attaches the programs. The caller holds log_lock. */
static int probes_load(struct hr_probes *p, const struct btf *kernel, char **ret_error)
{
	int r;

	p->skel = probe_bpf__open();
	if (!p->skel)
		return probes_fail(ret_error, -errno, "cannot open the programs");
	choose(p, kernel);
	r = probe_bpf__load(p->skel);
	if (r)
		return probes_fail(ret_error, r,
				   r == -EPERM ? "probes need CAP_BPF and CAP_PERFMON (or root)"
					       : "the kernel rejects the programs");
	r = fill_calls(p->skel->maps.calls, calls, sizeof(calls) / sizeof(calls[0]));
	if (!r)
		r = fill_calls(p->skel->maps.uring, uring_calls,
			       sizeof(uring_calls) / sizeof(uring_calls[0]));
	p->ring =
	    r ? NULL : ring_buffer__new(bpf_map__fd(p->skel->maps.buffer), probes_take, p, NULL);
	if (!r && !p->ring)
		r = -errno;
	if (!r)
		r = probe_bpf__attach(p->skel);
	return r ? probes_fail(ret_error, r, "cannot attach the programs") : 0;
}

int hr_probes_new(struct hr_probes **ret, char **ret_error)
{
	struct hr_probes *p;
	struct btf *kernel;
	libbpf_print_fn_t before;
	int r;

	*ret_error = NULL;
	r = check_kernel(ret_error);
	if (!r)
		r = check_room(ret_error);
	if (r)
		return r;
	p = calloc(1, sizeof(*p));
	kernel = p ? btf__load_vmlinux_btf() : NULL;
	if (!kernel) {
		free(p);
		return probes_fail(ret_error, -ENOTSUP,
				   "cannot read the type information of the kernel");
	}
	pthread_mutex_init(&p->lock, NULL);
	p->turned = 1;
	pthread_mutex_lock(&log_lock);
	log_used = 0;
	libbpf_log[0] = '\0';
	before = libbpf_set_print(keep_log);
	r = probes_load(p, kernel, ret_error);
	libbpf_set_print(before);
	pthread_mutex_unlock(&log_lock);
	btf__free(kernel);
	if (r) {
		hr_probes_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void hr_probes_free(struct hr_probes *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	probe_bpf__destroy(p->skel);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* ---- processes to follow --------------------------------------------------------------------- */

/* Runs the program list_tasks once over all tasks. Returns how many tasks it marked. */
static uint64_t list_tasks(struct hr_probes *p)
{
	int fd = bpf_iter_create(bpf_link__fd(p->skel->links.list_tasks));
	char buf[64];

	if (fd < 0)
		return 0;
	p->skel->bss->marked = 0;
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
	return p->skel->bss->marked;
}

/* Marks all tasks that belong to the job now. The caller holds the lock. */
static void mark_all(struct hr_probes *p)
{
	for (int i = 0; i < ITERATIONS_MOST && list_tasks(p) > 0; i++)
		;
}

/* Adds a process to the job. The caller holds the lock. */
static int add_root(struct hr_probes *p, pid_t pid, const struct hr_image *root)
{
	uint32_t tgid = (uint32_t)pid;
	struct hr_image image = *root;

	image.id = __atomic_add_fetch(&p->skel->bss->last_image, 1, __ATOMIC_RELAXED);
	if (bpf_map_update_elem(bpf_map__fd(p->skel->maps.images), &tgid, &image, BPF_NOEXIST))
		return errno == EEXIST ? 0 : -errno;
	mark_all(p);
	return 0;
}

int hr_probes_cgroup(struct hr_probes *p, uint64_t id)
{
	const uint32_t one = 1;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	if (!bpf_map_update_elem(bpf_map__fd(p->skel->maps.cgroups), &id, &one, BPF_NOEXIST)) {
		/*
		 * From now on, the BPF programs check each fork and exec. mark_all() finds the
		 * tasks that exist.
		 */
		__atomic_add_fetch(&p->skel->bss->n_cgroups, 1, __ATOMIC_SEQ_CST);
		mark_all(p);
	} else if (errno != EEXIST) {
		r = -errno;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

/* Marks the threads and children of processes that the programs have found in a cgroup. */
static void mark_new(struct hr_probes *p)
{
	uint64_t now = __atomic_load_n(&p->skel->bss->unmarked, __ATOMIC_RELAXED);

	if (now == p->marked)
		return;
	p->marked = now;
	pthread_mutex_lock(&p->lock);
	mark_all(p);
	pthread_mutex_unlock(&p->lock);
}

int hr_probes_root(struct hr_probes *p, pid_t pid, bool quiet)
{
	const struct hr_image root = {.flags = quiet ? HR_IMAGE_QUIET : 0};
	int r;

	pthread_mutex_lock(&p->lock);
	r = add_root(p, pid, &root);
	pthread_mutex_unlock(&p->lock);
	return r;
}

int hr_probes_cover(struct hr_probes *p, pid_t pid, const int64_t *thread)
{
	const struct hr_image root = {.cover = thread ? *thread : 0,
				      .covered = thread != NULL,
				      .flags = thread ? 0 : HR_IMAGE_QUIET};
	int map = bpf_map__fd(p->skel->maps.images), r = 0;
	uint32_t tgid = (uint32_t)pid;
	struct hr_image image;

	pthread_mutex_lock(&p->lock);
	if (bpf_map_lookup_elem(map, &tgid, &image)) {
		r = add_root(p, pid, &root);
	} else {
		/* Nothing else changes the image: the process waits for headraced's answer. */
		image.cover = root.cover;
		image.covered = root.covered;
		image.flags |= root.flags;
		if (bpf_map_update_elem(map, &tgid, &image, BPF_EXIST))
			r = -errno;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

uint64_t hr_probes_image(struct hr_probes *p, pid_t pid)
{
	uint32_t tgid = (uint32_t)pid;
	struct hr_image image;

	return bpf_map_lookup_elem(bpf_map__fd(p->skel->maps.images), &tgid, &image) ? 0 : image.id;
}

const char *hr_probes_lacks(const struct hr_probes *p)
{
	return p->lacks[0] != '\0' ? p->lacks : NULL;
}

/* ---- results --------------------------------------------------------------------------------- */

size_t hr_probes_poll(struct hr_probes *p, size_t most, hr_probes_taken *taken, void *arg)
{
	p->taken = taken;
	p->arg = arg;
	p->left = most;
	mark_new(p);
	ring_buffer__consume(p->ring);
	return most - p->left;
}

/* Reads and empties a BPF map, to which no program adds at this time. */
static void empty(int map, void *keys, size_t key_bytes, void *values, size_t value_bytes,
		  hr_probes_found *found, void *arg)
{
	char at[64]; /* the key from which the next call continues */
	void *from = NULL;
	int r;

	do {
		uint32_t n = AT_ONCE;

		r = bpf_map_lookup_and_delete_batch(map, from, at, keys, values, &n, NULL);
		if (r && errno != ENOENT)
			return;
		for (uint32_t i = 0; i < n; i++)
			found(arg, (char *)keys + i * key_bytes, (char *)values + i * value_bytes);
		from = at;
	} while (!r);
}

void hr_probes_sums(struct hr_probes *p, hr_probes_found *summed, hr_probes_found *tallied,
		    void *arg)
{
	struct probe_bpf *skel = p->skel;
	struct hr_sum_key sum_keys[AT_ONCE];
	struct hr_sum sums[AT_ONCE];
	struct hr_tally_key tally_keys[AT_ONCE];

	empty(bpf_map__fd(p->turned ? skel->maps.tallies_b : skel->maps.tallies_a), tally_keys,
	      sizeof(tally_keys[0]), p->tallies, sizeof(p->tallies[0]), tallied, arg);
	empty(bpf_map__fd(p->turned ? skel->maps.sums_b : skel->maps.sums_a), sum_keys,
	      sizeof(sum_keys[0]), sums, sizeof(sums[0]), summed, arg);
	skel->bss->filled[p->turned] = skel->bss->summed[p->turned] = 0;
	p->turned = !p->turned;
	__atomic_store_n(&skel->bss->side, !p->turned, __ATOMIC_RELEASE);
}

bool hr_probes_full(const struct hr_probes *p)
{
	return __atomic_load_n(&p->skel->bss->filled[!p->turned], __ATOMIC_RELAXED) >
	       HR_PROBE_TALLIES / 2;
}

void hr_probes_events(struct hr_probes *p, bool wanted)
{
	__atomic_store_n(&p->skel->bss->events, wanted, __ATOMIC_RELAXED);
}

void hr_probes_missed(const struct hr_probes *p, struct hr_probes_missed *ret)
{
	ret->calls = __atomic_load_n(&p->skel->bss->unsummed, __ATOMIC_RELAXED);
	ret->processes = __atomic_load_n(&p->skel->bss->unlisted, __ATOMIC_RELAXED);
	ret->compat = __atomic_load_n(&p->skel->bss->compat, __ATOMIC_RELAXED);
}
