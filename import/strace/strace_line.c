/* SPDX-License-Identifier: Apache-2.0 */
#include "import/strace/strace_line.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define DATE_SECONDS  100000000u /* smaller times are relative ones (-r) */
#define SECONDS_MOST  UINT64_C(17179869184)
#define ERRNO_MOST    133
#define TEXT(literal) literal, sizeof(literal) - 1

static bool text_begins(struct hr_strace_text t, const char *with, size_t n)
{
	return t.n >= n && memcmp(t.p, with, n) == 0;
}

static bool text_ends(struct hr_strace_text t, const char *with, size_t n)
{
	return t.n >= n && memcmp(t.p + t.n - n, with, n) == 0;
}

static void text_skip(struct hr_strace_text *t, size_t n)
{
	t->p += n;
	t->n -= n;
}

/* Skips a text, if the other one begins with it. */
static bool text_take(struct hr_strace_text *t, const char *with, size_t n)
{
	bool begins = text_begins(*t, with, n);

	if (begins)
		text_skip(t, n);
	return begins;
}

static void blanks_skip(struct hr_strace_text *t)
{
	while (t->n && *t->p == ' ')
		text_skip(t, 1);
}

static void blanks_cut(struct hr_strace_text *t)
{
	while (t->n && t->p[t->n - 1] == ' ')
		t->n--;
}

/* Reads digits. False: none, or too many. */
static bool digits_read(struct hr_strace_text *t, uint64_t *ret)
{
	size_t i = 0;
	uint64_t v = 0;

	while (i < t->n && i < 19 && isdigit((unsigned char)t->p[i]))
		v = v * 10 + (uint64_t)(t->p[i++] - '0');
	if (i == 0 || (i < t->n && isdigit((unsigned char)t->p[i])))
		return false;
	text_skip(t, i);
	*ret = v;
	return true;
}

/* Reads "1795678693.469718" as nanoseconds. False: not a time. */
static bool time_read(struct hr_strace_text *t, uint64_t *ret_ns)
{
	struct hr_strace_text at = *t;
	uint64_t s, ns = 0;
	unsigned digits = 0;

	if (!digits_read(&at, &s) || s > SECONDS_MOST || !text_take(&at, TEXT(".")))
		return false;
	for (; at.n && isdigit((unsigned char)*at.p); text_skip(&at, 1))
		if (digits++ < 9)
			ns = ns * 10 + (uint64_t)(*at.p - '0');
	if (digits == 0)
		return false;
	for (; digits < 9; digits++)
		ns *= 10;
	*ret_ns = s * 1000000000 + ns;
	*t = at;
	return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Skips "<python3>", which -Y shows after a pid. A name may have any characters. */
static void comm_skip(struct hr_strace_text *t)
{
	const char *end = t->n && *t->p == '<' ? memchr(t->p, '>', t->n) : NULL;

	if (end)
		text_skip(t, (size_t)(end + 1 - t->p));
}

/* Reads "18973 ", "18973<python3> " or "[pid 18973] ". */
static void tid_read(struct hr_strace_text *t, struct hr_strace_line *l)
{
	struct hr_strace_text at = *t;
	bool bracket = text_take(&at, TEXT("[pid "));
	uint64_t v;

	if (bracket)
		blanks_skip(&at);
	if (!digits_read(&at, &v) || v == 0 || v > INT32_MAX)
		return;
	comm_skip(&at);
	if (!at.n || *at.p != (bracket ? ']' : ' '))
		return;
	text_skip(&at, 1);
	blanks_skip(&at);
	l->tid = (int32_t)v;
	*t = at;
}

/* Reads "12:34:56" or "12:34:56.789", as nanoseconds since midnight. */
static bool day_read(struct hr_strace_text *t, uint64_t *ret_ns)
{
	struct hr_strace_text at = *t;
	uint64_t hours, minutes, seconds, ns;

	if (!digits_read(&at, &hours) || hours > 23 || !text_take(&at, TEXT(":")) ||
	    !digits_read(&at, &minutes) || minutes > 59 || !text_take(&at, TEXT(":")))
		return false;
	if (!time_read(&at, &ns)) {
		if (!digits_read(&at, &seconds))
			return false;
		ns = seconds * 1000000000;
	}
	*ret_ns = (hours * 3600 + minutes * 60) * 1000000000 + ns;
	*t = at;
	return true;
}

/* Skips "(+     0.000123) ", the time since the line before, if the line has another time. */
static void step_skip(struct hr_strace_text *t)
{
	const char *end = text_begins(*t, TEXT("(+ ")) ? memchr(t->p, ')', t->n) : NULL;

	if (end)
		text_skip(t, (size_t)(end + 1 - t->p));
	blanks_skip(t);
}

static void clock_read(struct hr_strace_text *t, struct hr_strace_line *l)
{
	struct hr_strace_text at = *t;
	enum hr_strace_clock clock;

	if (time_read(&at, &l->time_ns))
		clock = l->time_ns / 1000000000 >= DATE_SECONDS ? HR_STRACE_UNIX : HR_STRACE_STEP;
	else if (day_read(&at, &l->time_ns))
		clock = HR_STRACE_DAY;
	else
		return;
	if (!at.n || *at.p != ' ')
		return;
	l->clock = clock;
	*t = at;
	blanks_skip(t);
	step_skip(t);
}

/* Skips the number of the system call (-n) and the instruction pointer (-i): "[  257] [00007f...] ". */
static void brackets_skip(struct hr_strace_text *t)
{
	for (;;) {
		size_t n = 1;

		if (!t->n || *t->p != '[')
			return;
		while (n < t->n &&
		       (isxdigit((unsigned char)t->p[n]) || t->p[n] == ' ' || t->p[n] == '?'))
			n++;
		if (n + 1 >= t->n || n < 2 || t->p[n] != ']' || t->p[n + 1] != ' ')
			return;
		text_skip(t, n + 1);
		blanks_skip(t);
	}
}

static size_t name_length(struct hr_strace_text t)
{
	size_t n = 0;

	while (n < t.n && (isalnum((unsigned char)t.p[n]) || t.p[n] == '_'))
		n++;
	return n;
}

/* "+++ exited with 0 +++" and the like */
static int end_read(struct hr_strace_text t, struct hr_strace_line *l)
{
	struct hr_strace_text word;
	uint64_t v;

	if (!text_ends(t, TEXT(" +++")))
		return -EBADMSG;
	if (text_take(&t, TEXT("+++ exited with "))) {
		l->kind = HR_STRACE_EXITED;
	} else if (text_take(&t, TEXT("+++ killed by "))) {
		l->kind = HR_STRACE_KILLED;
	} else if (text_take(&t, TEXT("+++ superseded by execve in pid "))) {
		l->kind = HR_STRACE_SUPERSEDED;
		if (!digits_read(&t, &v) || v > INT32_MAX)
			return -EBADMSG;
		l->other = (int32_t)v;
		return 0;
	} else {
		return -EBADMSG;
	}
	word = t;
	word.n = name_length(t);
	l->text = word;
	return word.n ? 0 : -EBADMSG;
}

/* "<... read resumed>" */
static int resumed_read(struct hr_strace_text t, struct hr_strace_line *l)
{
	text_skip(&t, strlen("<... "));
	l->name = (struct hr_strace_text){t.p, name_length(t)};
	text_skip(&t, l->name.n);
	if (l->name.n == 0 || !text_take(&t, TEXT(" resumed>")))
		return -EBADMSG;
	l->kind = HR_STRACE_RESUMED;
	l->text = t;
	return 0;
}

/* In output to a terminal, a call may be interrupted: "vfork(strace: Process 7 attached". */
static bool message_cut(struct hr_strace_text *t)
{
	const char *message;

	if (!text_ends(*t, TEXT(" attached")))
		return false;
	message = memmem(t->p, t->n, TEXT("strace: Process "));
	if (message)
		t->n = (size_t)(message - t->p);
	return message != NULL;
}

/*
 * The call has no result in this line: it has not ended, strace has left the process, or execve
 * continues in the file of another thread (strace -ff): "<pid changed to 4711 ...>".
 */
static bool unfinished_cut(struct hr_strace_text *t)
{
	static const char *const begins[] = {"<unfinished ", "<detached ", "<pid changed to "};
	const char *end = text_ends(*t, TEXT(" ...>")) ? memrchr(t->p, '<', t->n) : NULL;
	struct hr_strace_text last = {end, end ? (size_t)(t->p + t->n - end) : 0};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (text_begins(last, begins[i], strlen(begins[i]))) {
			t->n -= last.n;
			return true;
		}
	return false;
}

static bool text_is_message(struct hr_strace_text t)
{
	return t.n == 0 || *t.p == '?' || *t.p == '>' || text_begins(t, TEXT("| ")) ||
	       text_begins(t, TEXT("* ")) || text_begins(t, TEXT("<unfinished ...>")) ||
	       text_begins(t, TEXT("strace: ")) || text_begins(t, TEXT("[ Process ")) ||
	       text_begins(t, TEXT("[ Needed "));
}

int hr__strace_line(const char *p, size_t n, struct hr_strace_line *l)
{
	struct hr_strace_text t = {p, n};

	*l = (struct hr_strace_line){.kind = HR_STRACE_NOTHING};
	if (n && p[n - 1] == '\r')
		t.n--;
	blanks_cut(&t);
	blanks_skip(&t);
	l->text = t;
	if (text_is_message(t))
		return 0;
	if (text_begins(t, TEXT("% time "))) {
		l->kind = HR_STRACE_COUNTS;
		return 0;
	}
	tid_read(&t, l);
	clock_read(&t, l);
	brackets_skip(&t);
	if (text_is_message(t))
		return 0;
	if (text_begins(t, TEXT("--- ")))
		return 0;
	if (text_begins(t, TEXT("+++ ")))
		return end_read(t, l);
	if (text_begins(t, TEXT("<... ")))
		return resumed_read(t, l);
	l->name = (struct hr_strace_text){t.p, name_length(t)};
	text_skip(&t, l->name.n);
	if (l->name.n == 0 || !text_take(&t, TEXT("(")))
		return -EBADMSG;
	l->kind = message_cut(&t)      ? HR_STRACE_INTERRUPTED
		  : unfinished_cut(&t) ? HR_STRACE_UNFINISHED
				       : HR_STRACE_CALL;
	l->text = t;
	return 0;
}

/* ---- arguments ------------------------------------------------------------------------------- */

size_t hr__strace_string_end(struct hr_strace_text t, size_t i)
{
	for (i++; i < t.n && t.p[i] != '"'; i++)
		i += t.p[i] == '\\';
	return i + 1;
}

/*
 * Returns the position after what -y shows of a descriptor, which begins at `i`. In a path, strace
 * escapes < and >, but shows a device after it: </dev/null<char 1:3>>. Others are <TCP:[a->b]>.
 */
static size_t shown_skip(struct hr_strace_text t, size_t i)
{
	bool path = i + 1 < t.n && t.p[i + 1] == '/';
	unsigned angles = 0, squares = 0;

	for (; i < t.n; i++) {
		char c = t.p[i];

		if (c == '\\')
			i++;
		else if (c == '[' && !path)
			squares++;
		else if (c == ']' && squares)
			squares--;
		else if (c == '<' && !squares)
			angles++;
		else if (c == '>' && !squares && --angles == 0)
			return i + 1;
	}
	return i;
}

/* Whether '<' at `i` begins what -y shows: "3<", "AT_FDCWD<", but not "1<<2". */
static bool shown_begins(struct hr_strace_text t, size_t i)
{
	bool comment = i > 1 && t.p[i - 2] == '*' && t.p[i - 1] == '/'; /* of -X verbose */

	return i > 0 && (isdigit((unsigned char)t.p[i - 1]) || t.p[i - 1] == 'D' || comment) &&
	       i + 1 < t.n && t.p[i + 1] != '<';
}

static void arg_add(struct hr_strace_call *c, struct hr_strace_text t, size_t from, size_t to)
{
	struct hr_strace_text arg = {t.p + from, to - from};

	blanks_skip(&arg);
	blanks_cut(&arg);
	if (text_ends(arg, TEXT("<unfinished ...>"))) {
		arg.n -= strlen("<unfinished ...>");
		blanks_cut(&arg);
	}
	if (c->n_args < HR_STRACE_ARGS && (arg.n || c->n_args))
		c->arg[c->n_args++] = arg;
}

/* Divides the arguments. Returns the position after the closing bracket. 0: none. */
static size_t args_divide(struct hr_strace_text t, struct hr_strace_call *c)
{
	unsigned depth = 0;
	size_t i = 0, from = 0;

	while (i < t.n) {
		char ch = t.p[i];

		if (ch == '"') {
			i = hr__strace_string_end(t, i);
			continue;
		}
		if (ch == '<' && shown_begins(t, i)) {
			i = shown_skip(t, i);
			continue;
		}
		if (ch == '(' || ch == '[' || ch == '{') {
			depth++;
		} else if (depth && (ch == ')' || ch == ']' || ch == '}')) {
			depth--;
		} else if (ch == ',' && !depth) {
			arg_add(c, t, from, i);
			from = i + 1;
		} else if (ch == ')') {
			arg_add(c, t, from, i);
			return i + 1;
		}
		i++;
	}
	return 0;
}

/* ---- results --------------------------------------------------------------------------------- */

static int errno_by_name(struct hr_strace_text t)
{
	for (int i = 1; i <= ERRNO_MOST; i++) {
		const char *name = strerrorname_np(i);

		if (name && strlen(name) == t.n && memcmp(name, t.p, t.n) == 0)
			return i;
	}
	return 0;
}

/* Takes "<0.000011>" from the end. */
static void duration_read(struct hr_strace_text *t, struct hr_strace_call *c)
{
	size_t i = t->n;
	struct hr_strace_text at;

	if (!t->n || t->p[t->n - 1] != '>')
		return;
	while (i > 0 && t->p[i - 1] != '<')
		i--;
	at = (struct hr_strace_text){t->p + i, t->n - i};
	if (i == 0 || !time_read(&at, &c->dur_ns) || at.n != 1) {
		c->dur_ns = 0;
		return;
	}
	c->has_dur = true;
	t->n = i - 1;
	blanks_cut(t);
}

static int result_read(struct hr_strace_text t, struct hr_strace_call *c)
{
	struct hr_strace_text rest;
	struct hr_strace_fd fd;

	duration_read(&t, c);
	if (text_take(&t, TEXT("?"))) {
		blanks_skip(&t);
		c->restarts = text_begins(t, TEXT("ERESTART"));
		return 0;
	}
	if (!hr__strace_number(t, &c->ret, &rest))
		return -EBADMSG;
	c->returned = true;
	if (hr__strace_fd(t, &fd) && fd.path.n)
		c->ret_path = fd.path;
	blanks_skip(&rest);
	if (c->ret == -1 && rest.n && *rest.p == 'E') {
		int error = errno_by_name((struct hr_strace_text){rest.p, name_length(rest)});

		c->ret = error ? -error : INT64_C(-4096);
	}
	return 0;
}

int hr__strace_call(struct hr_strace_text text, struct hr_strace_call *c)
{
	size_t end;

	*c = (struct hr_strace_call){0};
	end = args_divide(text, c);
	if (end == 0)
		return -EBADMSG;
	text_skip(&text, end);
	blanks_skip(&text);
	if (!text_take(&text, TEXT("= ")))
		return -EBADMSG;
	return result_read(text, c);
}
