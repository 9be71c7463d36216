/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_table.c - the wrappers that proto/calls.def describes completely
 *
 * Each HR_CALL becomes HR_WRAP_<KIND>, which defines a function: begin, call, end. Inline functions
 * of wrap.h and core.h make all decisions.
 */
#include "shim/core/clock.h"
#include "shim/wrap/wrap.h"

/*
 * NOLINTBEGIN(bugprone-macro-parentheses, clang-analyzer-valist.Uninitialized): parameters, types
 * and names cannot have parentheses; the analyzer does not follow va_start inside a macro
 */

#define NO_SIZE				  HR_ASKED_NONE
#define NO_POS				  HR_OFFSET_NONE
#define HR_UNWRAP(...)			  __VA_ARGS__
#define HR_FROM(from_fd, from, to_fd, to) from_fd, from
#define HR_TO(from_fd, from, to_fd, to)	  to_fd, to

#define HR_WRAP_HAND(...)

#define HR_WRAP_FORWARD(ret, name, params, args, ...)                                              \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		return HR_REAL(name) args;                                                         \
	}

/* What a wrapper does: it begins, calls, ends, and returns the result of the call. */
#define HR_BODY(state, ret, begin, call, end)                                                      \
	{                                                                                          \
		state;                                                                             \
		ret r;                                                                             \
                                                                                                   \
		begin;                                                                             \
		r = call;                                                                          \
		end;                                                                               \
		return r;                                                                          \
	}

/* For an ignored descriptor, this is a tail call. Only the traced_ function saves registers. */
#define HR_WRAP_FD(ret, name, params, args, file, asked, offset, flags)                            \
	HR_WRAP_ON(ret, name, params, args, file, asked, offset, hr_ret(r), flags)

#define HR_WRAP_ON(ret, name, params, args, file, asked, offset, value, flags)                     \
	HR_TRACED(ret, name, params, args, file, asked, offset, value, flags)                      \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		if (hr_fd_ignored(file))                                                           \
			return HR_REAL(name) args;                                                 \
		return traced_##name args;                                                         \
	}

#define HR_TRACED(ret, name, params, args, file, asked, offset, value, flags)                      \
	static __attribute__((noinline)) ret traced_##name params                                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
		ret r;                                                                             \
                                                                                                   \
		hr_begin_fd(&op, HR_OP_##name, file, (uint64_t)(asked), offset);                   \
		r = HR_REAL(name) args;                                                            \
		if (op.live)                                                                       \
			hr_end(&op, value, (uint32_t)(flags));                                     \
		return r;                                                                          \
	}

/* An ignored descriptor may be a socket: the time of the call is then measured as a wait. */
#define HR_WRAP_RW(ret, name, params, args, file, asked, offset, flags)                            \
	HR_WAITED(ret, name, params, args, hr_wait_end_fd(&wait, file))                            \
	HR_TRACED(ret, name, params, args, file, asked, offset, hr_ret(r), flags)                  \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		if (hr_unlikely(hr_waits.on) && hr_fd_get(file) == HR_FILE_IGNORED)                \
			return waited_##name args;                                                 \
		if (hr_fd_ignored(file))                                                           \
			return HR_REAL(name) args;                                                 \
		return traced_##name args;                                                         \
	}

/* A tail call, unless the thread measures its waits. */
#define HR_WRAP_WAIT(ret, name, params, args, group, asked, offset, flags)                         \
	HR_WAITED(ret, name, params, args, hr_wait_end(&wait, group))                              \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		return hr_likely(!hr_waits.on) ? HR_REAL(name) args : waited_##name args;          \
	}

#define HR_WAITED(ret, name, params, args, end)                                                    \
	static __attribute__((noinline)) ret waited_##name params HR_BODY(                         \
	    struct hr_waiting wait, ret, hr_wait_begin(&wait), HR_REAL(name) args, end)

#define HR_WRAP_FDERR(ret, name, params, args, file, asked, offset, flags)                         \
	HR_WRAP_ON(ret, name, params, args, file, asked, offset, -(int64_t)r, flags)

#define HR_WRAP_VECTOR(ret, name, params, args, file, asked, offset, flags)                        \
	HR_WRAP_ON(ret, name, params, args, file, NO_SIZE, offset,                                 \
		   hr_ret_vector(&op, iov, count, r), flags)

/* Of preadv2 and pwritev2, the row describes the offset in words. */
#define HR_WRAP_VECTOR2(ret, name, params, args, file, asked, words, flags)                        \
	HR_WRAP_VECTOR(ret, name, params, args, file, asked, hr_v2_offset(offset), flags)

#define HR_WRAP_FP(ret, name, params, args, file, asked, offset, flags)                            \
	HR_WRAP_FD(ret, name, params, args, hr_fileno(file), asked, offset, flags)

#define HR_WRAP_DIRP(ret, name, params, args, file, asked, offset, flags)                          \
	HR_WRAP_FD(ret, name, params, args, HR_REAL(dirfd)(file), asked, offset, flags)

#define HR_WRAP_FPREAD(ret, name, params, args, file, asked, offset, flags)                        \
	HR_WRAP_ON(ret, name, params, args, hr_fileno(file), asked, offset, hr_ret_eof(file, r),   \
		   flags)

#define HR_WRAP_SCAN(ret, name, params, args, file, asked, offset, flags)                          \
	ret hr_wrap_##name params HR_BODY(struct hr_scan scan, ret,                                \
					  hr_begin_scan(&scan, HR_OP_##name, file),                \
					  HR_REAL(name) args, hr_end_scan(&scan, file, r))

#define HR_WRAP_ITEMS(ret, name, params, args, file, asked, offset, flags)                         \
	HR_WRAP_ON(ret, name, params, args, hr_fileno(file), asked, offset,                        \
		   hr_ret_items(file, r, asked), flags)

#define HR_WRAP_LINE(ret, name, params, args, file, asked, offset, flags)                          \
	HR_WRAP_ON(ret, name, params, args, hr_fileno(file), asked, offset,                        \
		   r ? (int64_t)strlen(r) : hr_ret_eof(file, -1), flags)

/*
 * hr_begin_buffer() makes probes attribute the system call of an unbuffered call to stdio. If the
 * original function belongs to another library, the call is enclosed in an operation: wrappers that
 * it calls then record nothing.
 */
#define HR_WRAP_CHAR(ret, name, params, args, file, asked, offset, flags)                          \
	static __attribute__((noinline)) ret unbuffered_##name params                              \
	{                                                                                          \
		uint8_t outer = hr_begin_buffer();                                                 \
		ret r = HR_REAL(name) args;                                                        \
                                                                                                   \
		hr_end_buffer(outer);                                                              \
		hr_count(HR_OP_##name, hr_fileno(file), r != EOF);                                 \
		return r;                                                                          \
	}                                                                                          \
	static __attribute__((noinline)) ret foreign_##name params                                 \
	{                                                                                          \
		struct hr_op op;                                                                   \
		ret r;                                                                             \
                                                                                                   \
		hr_begin_fd(&op, HR_OP_##name, hr_fileno(file), asked, offset);                    \
		r = HR_REAL(name) args;                                                            \
		if (op.live) {                                                                     \
			hr_end_none(&op);                                                          \
			hr_count(HR_OP_##name, hr_fileno(file), r != EOF);                         \
		}                                                                                  \
		return r;                                                                          \
	}                                                                                          \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		ret r;                                                                             \
                                                                                                   \
		if (hr_unlikely(hr_real_foreign[HR_OP_##name]))                                    \
			return foreign_##name args;                                                \
		if (hr_unlikely(!hr_stream_buffered(file)))                                        \
			return unbuffered_##name args;                                             \
		r = HR_REAL(name) args;                                                            \
		hr_count(HR_OP_##name, hr_fileno(file), r != EOF);                                 \
		return r;                                                                          \
	}

/* An inlined getc_unlocked calls this to fill the buffer, and then reads it without calls. */
#define HR_WRAP_REFILL(ret, name, params, args, file, asked, offset, flags)                        \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		uint8_t outer = hr_begin_buffer();                                                 \
		ret r = HR_REAL(name) args;                                                        \
                                                                                                   \
		hr_end_buffer(outer);                                                              \
		hr_count(HR_OP_##name, hr_fileno(file), r != EOF ? 1 + hr_stream_ahead(file) : 0); \
		return r;                                                                          \
	}

#define HR_WRAP_PATH(ret, name, params, args, file, asked, offset, flags)                          \
	ret hr_wrap_##name params HR_BODY(                                                         \
	    struct hr_op op, ret,                                                                  \
	    hr_begin_at(&op, HR_OP_##name, HR_UNWRAP file, (uint64_t)(asked)), HR_REAL(name) args, \
	    hr_end(&op, hr_ret(r), (uint32_t)(flags)))

#define HR_WRAP_OPEN(ret, name, params, args, file, asked, offset, flags)                          \
	ret hr_wrap_##name params HR_BODY(                                                         \
	    struct hr_op op, ret, hr_begin_path(&op, HR_OP_##name, HR_UNWRAP file, asked),         \
	    HR_REAL(name) args, hr_end_open(&op, r, hr_ret(r), (uint32_t)(flags)))

/* The caller passes a mode only with these flags. */
#define HR_WRAP_VOPEN(ret, name, params, args, file, asked, offset, flags)                         \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
		mode_t mode = 0;                                                                   \
		va_list ap;                                                                        \
		ret r;                                                                             \
                                                                                                   \
		va_start(ap, flags);                                                               \
		if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)                         \
			mode = va_arg(ap, mode_t);                                                 \
		va_end(ap);                                                                        \
		hr_begin_path(&op, HR_OP_##name, HR_UNWRAP file, asked);                           \
		r = HR_REAL(name) args;                                                            \
		hr_end_open(&op, r, hr_ret(r), (uint32_t)flags);                                   \
		return r;                                                                          \
	}

/* The end of the operation reads the new name from `path`. */
#define HR_WRAP_TEMP(ret, name, params, args, file, asked, offset, flags)                          \
	HR_WRAP_OPEN(ret, name, params, args, (AT_FDCWD, path), asked, offset, flags)

/* The file has no name before the call. */
#define HR_MADE(ret, name, params, args, fd, flags)                                                \
	ret hr_wrap_##name params HR_BODY(                                                         \
	    uint64_t start, ret, start = hr_shim_ticks(), HR_REAL(name) args,                      \
	    hr__record_made_fd(HR_OP_##name, start, fd, (uint32_t)(flags)))

#define HR_WRAP_MADE(ret, name, params, args, file, asked, offset, flags)                          \
	HR_MADE(ret, name, params, args, r, flags)

#define HR_WRAP_MADEFP(ret, name, params, args, file, asked, offset, flags)                        \
	HR_MADE(ret, name, params, args, hr_fileno(r), flags)

/* The entry of the fd table is cleared before the call frees the number, or the stream with it. */
#define HR_WRAP_CLOSE(ret, name, params, args, file, asked, offset, flags)                         \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		int closed = file;                                                                 \
		struct hr_op op;                                                                   \
		ret r;                                                                             \
                                                                                                   \
		if (hr_fd_ignored(closed)) {                                                       \
			hr_fd_clear(closed);                                                       \
			return HR_REAL(name) args;                                                 \
		}                                                                                  \
		hr_begin_fd(&op, HR_OP_##name, closed, asked, offset);                             \
		hr_fd_clear(closed);                                                               \
		r = HR_REAL(name) args;                                                            \
		hr_end(&op, hr_ret(r), (uint32_t)(flags));                                         \
		return r;                                                                          \
	}

#define HR_WRAP_FPCLOSE(ret, name, params, args, file, asked, offset, flags)                       \
	HR_WRAP_CLOSE(ret, name, params, args, hr_fileno(file), asked, offset, flags)

/* The shim must not crash for NULL. */
#define HR_WRAP_DIRCLOSE(ret, name, params, args, file, asked, offset, flags)                      \
	HR_WRAP_CLOSE(ret, name, params, args, (file != NULL ? HR_REAL(dirfd)(file) : -1), asked,  \
		      offset, flags)

#define HR_VOID(name, params, args, file, asked, offset, flags)                                    \
	void hr_wrap_##name params                                                                 \
	{                                                                                          \
		struct hr_op op;                                                                   \
                                                                                                   \
		hr_begin_fd(&op, HR_OP_##name, file, asked, offset);                               \
		HR_REAL(name) args;                                                                \
		hr_end(&op, 0, (uint32_t)(flags));                                                 \
	}

#define HR_WRAP_FPVOID(ret, name, params, args, file, ...)                                         \
	HR_VOID(name, params, args, hr_fileno(file), __VA_ARGS__)

#define HR_WRAP_DIRVOID(ret, name, params, args, file, ...)                                        \
	HR_VOID(name, params, args, HR_REAL(dirfd)(file), __VA_ARGS__)

/* After the call, the socket of headraced may be unreachable. */
#define HR_WRAP_LEAVE(ret, name, params, args, ...)                                                \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		hr_before_leaving();                                                               \
		return HR_REAL(name) args;                                                         \
	}

/* An operation that a signal handler jumps out of will never end. */
#define HR_WRAP_JUMP(ret, name, params, args, ...)                                                 \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		hr_before_longjmp(env);                                                            \
		HR_REAL(name) args;                                                                \
	}

#define HR_WRAP_LINK(ret, name, params, args, file, asked, offset, flags)                          \
	ret hr_wrap_##name params HR_BODY(                                                         \
	    struct hr_op op, ret, hr_begin_path(&op, HR_OP_##name, HR_FROM file, asked),           \
	    HR_REAL(name) args, hr_end_two(&op, HR_TO file, hr_ret(r), (uint32_t)(flags)))

#define HR_ON_MAP(ret, name, params, args, file, asked, value, flags)                              \
	ret hr_wrap_##name params HR_BODY(                                                         \
	    struct hr_op op, ret, hr_begin_map(&op, HR_OP_##name, file, asked),                    \
	    HR_REAL(name) args, hr_end(&op, value, (uint32_t)(flags)))

#define HR_WRAP_MAP(ret, name, params, args, file, asked, offset, flags)                           \
	HR_ON_MAP(ret, name, params, args, file, asked, hr_ret(r), flags)

#define HR_WRAP_MAPERR(ret, name, params, args, file, asked, offset, flags)                        \
	HR_ON_MAP(ret, name, params, args, file, asked, -(int64_t)r, flags)

/* printf and scanf call vprintf and vscanf: C has no other way to forward variadic arguments. */
#define HR_WRAP_VFD(ret, name, params, args, file, asked, offset, flags, real, last)               \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
		va_list ap;                                                                        \
		ret r;                                                                             \
                                                                                                   \
		hr_begin_fd(&op, HR_OP_##name, file, asked, offset);                               \
		va_start(ap, last);                                                                \
		r = HR_REAL(real) args;                                                            \
		va_end(ap);                                                                        \
		hr_end(&op, hr_ret(r), flags);                                                     \
		return r;                                                                          \
	}

#define HR_WRAP_VFP(ret, name, params, args, file, asked, offset, flags, real, last)               \
	HR_WRAP_VFD(ret, name, params, args, hr_fileno(file), asked, offset, flags, real, last)

#define HR_WRAP_VSCAN(ret, name, params, args, file, asked, offset, flags, real, last)             \
	ret hr_wrap_##name params                                                                  \
	{                                                                                          \
		struct hr_scan scan;                                                               \
		va_list ap;                                                                        \
		ret r;                                                                             \
                                                                                                   \
		hr_begin_scan(&scan, HR_OP_##name, file);                                          \
		va_start(ap, last);                                                                \
		r = HR_REAL(real) args;                                                            \
		va_end(ap);                                                                        \
		hr_end_scan(&scan, file, r);                                                       \
		return r;                                                                          \
	}

#define HR_CALL(id, ret, name, params, args, class, api, bytes, decl, kind, ...)                   \
	HR_WRAP_##kind(ret, name, params, args, __VA_ARGS__)
#include "proto/calls.def"

/* NOLINTEND(bugprone-macro-parentheses, clang-analyzer-valist.Uninitialized) */
