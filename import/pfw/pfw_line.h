/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfw_line.h - the values of known keys in one line of a .pfw file
 *
 * One pass over the bytes, without a tree. The line may have blanks, a trailing comma, unknown keys
 * with any values, control bytes in strings, and bytes that are not UTF-8. A result refers to the
 * bytes of the line. Pure functions, after hr__pfw_line_init() by one thread.
 */
#ifndef HEADRACE_IMPORT_PFW_PFW_LINE_H
#define HEADRACE_IMPORT_PFW_PFW_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(id, key): keys of the event, and below of its member `args`. At most 64 in all. */
#define HR_PFW_EVENT_KEYS(X)                                                                       \
	X(ID, "id")                                                                                \
	X(NAME, "name")                                                                            \
	X(CAT, "cat")                                                                              \
	X(PID, "pid")                                                                              \
	X(TID, "tid")                                                                              \
	X(TS, "ts")                                                                                \
	X(DUR, "dur")                                                                              \
	X(PH, "ph")                                                                                \
	X(ARGS, "args")
#define HR_PFW_ARG_KEYS(X)                                                                         \
	X(HOSTNAME, "hostname")                                                                    \
	X(HHASH, "hhash")                                                                          \
	X(FNAME, "fname")                                                                          \
	X(FHASH, "fhash")                                                                          \
	X(FHASH2, "fhash2")                                                                        \
	X(NEWPATH, "newpath_hash")                                                                 \
	X(RET, "ret")                                                                              \
	X(COUNT, "count")                                                                          \
	X(SIZE, "size")                                                                            \
	X(OFFSET, "offset")                                                                        \
	X(FLAGS, "flags")                                                                          \
	X(MODE, "mode")                                                                            \
	X(WHENCE, "whence")                                                                        \
	X(FD, "fd")                                                                                \
	X(ERRNO, "errno")                                                                          \
	X(ITEMS, "items")                                                                          \
	X(NS, "ns")                                                                                \
	X(RT, "rt")                                                                                \
	X(BPF, "bpf")                                                                              \
	X(EPOCH, "epoch")                                                                          \
	X(STEP, "step")                                                                            \
	X(DOMAIN, "domain")                                                                        \
	X(CATEGORY, "category")                                                                    \
	X(REGION_COUNT, "region_count")                                                            \
	X(DEPTH, "depth")                                                                          \
	X(OPEN, "open")                                                                            \
	X(TEXT, "args")                                                                            \
	X(ARG_NAME, "name")                                                                        \
	X(VALUE, "value")                                                                          \
	X(PPID, "ppid")                                                                            \
	X(RANK, "rank")                                                                            \
	X(LOCAL_RANK, "local_rank")                                                                \
	X(WORKER, "worker")                                                                        \
	X(WORLD_SIZE, "world_size")                                                                \
	X(LOADER, "loader")                                                                        \
	X(LOADER_WORKER, "loader_worker")                                                          \
	X(RESTART, "restart")                                                                      \
	X(CPUS, "cpus")                                                                            \
	X(FIRST_CPU, "first_cpu")                                                                  \
	X(CPU_QUOTA, "cpu_quota_milli")                                                            \
	X(EXE, "exe")                                                                              \
	X(START_US, "start_us")                                                                    \
	X(END_US, "end_us")                                                                        \
	X(EXIT, "exit")                                                                            \
	X(CMD_HASH, "cmd_hash")                                                                    \
	X(EXEC_HASH, "exec_hash")                                                                  \
	X(ARG_DUR, "dur")                                                                          \
	X(DFT_CNT, "dft_cnt")                                                                      \
	X(RET_SUM, "ret_sum")                                                                      \
	X(DUR_SUM, "dur_sum")                                                                      \
	X(DUR_MAX, "dur_max")

enum hr_pfw_key {
#define HR__PFW_KEY(id, key) HR_PFW_##id,
	HR_PFW_EVENT_KEYS(HR__PFW_KEY) HR_PFW_ARG_KEYS(HR__PFW_KEY)
#undef HR__PFW_KEY
	    HR_PFW_KEYS
};
_Static_assert(HR_PFW_KEYS <= 64, "struct hr_pfw_line.have has 64 bits");

enum hr_pfw_type { HR_PFW_STRING, HR_PFW_NUMBER, HR_PFW_NESTED };

struct hr_pfw_value {
	const char *p; /* without the quotes */
	uint32_t n;
	uint8_t type;
	bool escaped; /* the string contains a backslash */
};

/* Zero it before the first line; the scanner uses what it learned from the lines before. */
struct hr_pfw_line {
	uint64_t have; /* bit K: v[K] is set */
	bool more;     /* `args` has unknown keys */
	struct hr_pfw_value v[HR_PFW_KEYS];
	uint8_t
	    next[HR_PFW_KEYS + 1]; /* key that followed this one (HR_PFW_KEYS: an unknown one) */
};

static inline bool hr_pfw_has(const struct hr_pfw_line *l, enum hr_pfw_key k)
{
	return l->have >> k & 1;
}

void hr__pfw_line_init(void);

/*
 * Reads a line without its line end. The bytes p[n..n + 16) are readable. 0: an event; 1: nothing
 * (empty, or a bracket); -EBADMSG: it cannot be read; -EAGAIN: it ends in a string.
 */
int hr__pfw_line(const char *p, size_t n, struct hr_pfw_line *ret);

/* Reads a number, which may be in quotes. False: it is not a number, or out of range. */
bool hr__pfw_int(const struct hr_pfw_value *v, int64_t *ret);
/* Reads a time in units of unit_ns, with an optional fraction. */
bool hr__pfw_time(const struct hr_pfw_value *v, uint64_t unit_ns, uint64_t *ret_ns);

/* Writes a string without its escapes: at most v->n bytes. Returns their number. */
size_t hr__pfw_text(const struct hr_pfw_value *v, char *to);

#endif
