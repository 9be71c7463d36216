/* SPDX-License-Identifier: Apache-2.0 */
#include "python/unlocked.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/utf8.h"

#define OBJECT_BYTES 256u /* the members of a frame and of a code object are in its first bytes */
#define OWNED_BY_C   3	  /* owner of a frame that only marks where C called Python, since 3.12 */
#define TRIES	     3
#define STEPS_MAX    256u /* frames that are read, also those of C */
#define PAGE_BYTES   4096u
#define LINES_MAX    1048576u /* bytes of a table of lines that are read */
#define NEVER	     (-1)     /* offset of a member that a version lacks */

/* Offsets in an object, a bytes object and a text. */
#define TYPE_AT	 8
#define SIZE_AT	 16
#define BYTES_AT 32
#define STATE_AT 32

enum lines { LINES_PAIRS, LINES_RANGES, LINES_LOCATIONS };

/* Offsets of members in the structures of a version (Python.h and Include/internal). */
static const struct layout {
	int from, until; /* minor versions of Python 3 */
	struct {
		int frame; /* the innermost frame; in 3.11 and 3.12, a structure that has it */
		int of;	   /* where this structure has it */
	} thread;
	struct {
		int code, outer, owner, instruction;
		int unit; /* the instruction is a number of so many bytes; 0: a pointer */
	} frame;
	struct {
		int first_line, file, function, lines;
		int instructions; /* the first one */
	} code;
	enum lines lines;
	struct {
		unsigned ascii, other; /* size of the header of such a text */
	} text;
} layouts[] = {
    {7, 7, {24, NEVER}, {32, 24, NEVER, 104, 1}, {36, 96, 104, 112, NEVER}, LINES_PAIRS, {48, 72}},
    {8, 9, {24, NEVER}, {32, 24, NEVER, 104, 1}, {40, 104, 112, 120, NEVER}, LINES_PAIRS, {48, 72}},
    {10,
     10,
     {24, NEVER},
     {32, 24, NEVER, 96, 2},
     {40, 104, 112, 120, NEVER},
     LINES_RANGES,
     {48, 72}},
    {11, 11, {56, 8}, {32, 48, 69, 56, 0}, {72, 112, 128, 136, 184}, LINES_LOCATIONS, {48, 72}},
    {12, 12, {56, 0}, {0, 8, 70, 56, 0}, {68, 112, 128, 136, 192}, LINES_LOCATIONS, {40, 56}},
    {13, 13, {72, NEVER}, {0, 8, 70, 56, 0}, {68, 112, 128, 136, 200}, LINES_LOCATIONS, {40, 56}},
};

static const struct layout *layout;
static uintptr_t code_type; /* address of the type of code objects */

/* ---- memory ---------------------------------------------------------------------------------- */

static bool copy_all(const struct iovec *to, const struct iovec *from, unsigned n, size_t bytes)
{
	return process_vm_readv(getpid(), to, n, from, n, 0) == (ssize_t)bytes;
}

static bool copy(uintptr_t at, void *room, size_t n)
{
	return copy_all(&(struct iovec){room, n}, &(struct iovec){(void *)at, n}, 1, n);
}

static uintptr_t pointer_in(const char *bytes, int at)
{
	uintptr_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static int32_t number_in(const char *bytes, int at)
{
	int32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct frame {
	uintptr_t at, outer, code; /* code 0: it only marks where C called Python */
	uintptr_t instruction;
};

/* A copy of the part of a page up to a frame. It often has the outer frames, too. */
struct page_copy {
	uintptr_t from;
	size_t n;
	char bytes[PAGE_BYTES + OBJECT_BYTES];
};

/* Returns the address of the innermost frame of a thread; 0: none. */
static uintptr_t innermost(const PyThreadState *thread)
{
	uintptr_t at;

	if (!copy((uintptr_t)thread + (size_t)layout->thread.frame, &at, sizeof(at)) ||
	    (layout->thread.of != NEVER && !copy(at + (size_t)layout->thread.of, &at, sizeof(at))))
		return 0;
	return at;
}

static size_t frame_bytes(void)
{
	return layout->frame.owner != NEVER ? (size_t)layout->frame.owner + 1
					    : (size_t)layout->frame.instruction + sizeof(int32_t);
}

static bool read_frame(struct page_copy *page, uintptr_t at, struct frame *ret)
{
	size_t n = frame_bytes();
	const char *bytes;

	/* `at` may be any number, so the sum of it and `n` may be too large. */
	if (page->n < n || at - page->from > page->n - n) {
		page->from = at & ~(uintptr_t)(PAGE_BYTES - 1);
		page->n = at - page->from + n;
		if (!copy(page->from, page->bytes, page->n)) {
			page->n = 0;
			return false;
		}
	}
	bytes = page->bytes + (at - page->from);
	*ret = (struct frame){.at = at, .outer = pointer_in(bytes, layout->frame.outer)};
	if (layout->frame.owner == NEVER || bytes[layout->frame.owner] != OWNED_BY_C)
		ret->code = pointer_in(bytes, layout->frame.code);
	ret->instruction = layout->frame.unit > 0
			       ? (uintptr_t)number_in(bytes, layout->frame.instruction)
			       : pointer_in(bytes, layout->frame.instruction);
	return true;
}

/* Reads up to `max` frames with code, innermost first. Returns their number. */
static unsigned read_frames(uintptr_t at, struct frame *ret, unsigned max)
{
	struct page_copy page = {0};
	unsigned n = 0;

	/* A chain that changes can have a circle. */
	for (unsigned i = 0; i < STEPS_MAX && n < max && at != 0; i++) {
		if (!read_frame(&page, at, &ret[n]))
			break;
		at = ret[n].outer;
		n += ret[n].code != 0;
	}
	return n;
}

/* Returns the offset of a frame's instruction. */
static int32_t instruction_of(const struct frame *frame)
{
	if (layout->frame.unit > 0)
		return (int32_t)((uint32_t)frame->instruction * (uint32_t)layout->frame.unit);
	return (int32_t)(frame->instruction - frame->code - (size_t)layout->code.instructions);
}

/* Reads the code of frames. Frames without a code object have no place. Returns the number. */
static unsigned read_codes(const struct frame *frames, unsigned n, struct unlocked_place *ret)
{
	char bytes[UNLOCKED_MAX][OBJECT_BYTES];
	struct iovec to[UNLOCKED_MAX], from[UNLOCKED_MAX];
	size_t each = (size_t)layout->code.lines + sizeof(uintptr_t);
	unsigned places = 0;

	for (unsigned i = 0; i < n; i++) {
		to[i] = (struct iovec){bytes[i], each};
		from[i] = (struct iovec){(void *)frames[i].code, each};
	}
	if (!copy_all(to, from, n, n * each))
		return 0;
	for (unsigned i = 0; i < n; i++)
		if (pointer_in(bytes[i], TYPE_AT) == code_type)
			ret[places++] = (struct unlocked_place){
			    .code = frames[i].code,
			    .file = pointer_in(bytes[i], layout->code.file),
			    .function = pointer_in(bytes[i], layout->code.function),
			    .lines = pointer_in(bytes[i], layout->code.lines),
			    .first_line = number_in(bytes[i], layout->code.first_line),
			    .instruction = instruction_of(&frames[i]),
			};
	return places;
}

/* Returns whether a frame is still innermost, so that its outer ones have not changed. */
static bool is_still(const PyThreadState *thread, const struct frame *frame, uintptr_t first)
{
	struct page_copy page = {0};
	struct frame now;

	return innermost(thread) == first && read_frame(&page, frame->at, &now) &&
	       now.code == frame->code && now.outer == frame->outer;
}

unsigned unlocked_places(const PyThreadState *thread, struct unlocked_place *ret)
{
	for (int i = 0; i < TRIES; i++) {
		uintptr_t first = innermost(thread);
		struct frame frames[UNLOCKED_MAX];
		unsigned n = read_frames(first, frames, UNLOCKED_MAX), places;

		places = read_codes(frames, n, ret);
		if (n > 0 && is_still(thread, &frames[0], first))
			return places;
	}
	return 0;
}

/* The first two members of a thread in all versions: the threads before and after it in a list. */
unsigned unlocked_threads(const PyThreadState *thread, const PyThreadState **ret, unsigned max)
{
	unsigned n = 0;

	for (size_t member = 0; member < 2; member++) {
		uintptr_t at = (uintptr_t)thread;

		while (n < max && copy(at + member * sizeof(at), &at, sizeof(at)) && at != 0)
			ret[n++] = (const PyThreadState *)at;
	}
	return n;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Reads a text: a header, and characters of 1, 2 or 4 bytes. */
static bool read_text(uintptr_t at, char *room, size_t size)
{
	char header[STATE_AT + sizeof(uint32_t)], bytes[1024];
	uint32_t state, width, c = 0;
	uintptr_t length, from;
	size_t n = 0;

	if (!copy(at, header, sizeof(header)))
		return false;
	length = pointer_in(header, SIZE_AT);
	state = (uint32_t)number_in(header, STATE_AT);
	width = state >> 2 & 7; /* bits: 2 interned, 3 width, 1 compact, 1 ASCII */
	if ((width != 1 && width != 2 && width != 4) || (state >> 5 & 1) == 0 || length >= size)
		return false;
	from = at + (state >> 6 & 1 ? layout->text.ascii : layout->text.other);
	for (uintptr_t i = 0; i < length; i++) {
		size_t in = i * width % sizeof(bytes), left = (length - i) * width;

		if (in == 0 &&
		    !copy(from + i * width, bytes, left < sizeof(bytes) ? left : sizeof(bytes)))
			return false;
		memcpy(&c, bytes + in, width); /* little-endian */
		if (n + 4 >= size)
			return false;
		/* Half of a pair, or no character. */
		if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			c = '?';
		n += hr_utf8_write(c, room + n);
	}
	room[n] = '\0';
	return true;
}

bool unlocked_file(const struct unlocked_place *place, char *room, size_t size)
{
	return read_text(place->file, room, size);
}

bool unlocked_function(const struct unlocked_place *place, char *room, size_t size)
{
	return read_text(place->function, room, size);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The bytes of a table of lines. */
struct line_table {
	uintptr_t at, end;
	unsigned char bytes[256];
	size_t i, n;
};

/* Returns the next byte; -1: there is none. */
static int next_byte(struct line_table *t)
{
	if (t->i == t->n) {
		size_t left = t->end - t->at, n = left < sizeof(t->bytes) ? left : sizeof(t->bytes);

		if (n == 0 || !copy(t->at, t->bytes, n))
			return -1;
		t->at += n;
		t->n = n;
		t->i = 0;
	}
	return t->bytes[t->i++];
}

/* Until 3.9: pairs of what to add to the instruction, and then to the line. */
static long line_of_pairs(struct line_table *t, long line, int instruction)
{
	int more, at = 0;

	while ((more = next_byte(t)) >= 0 && (at += more) <= instruction)
		line += (int8_t)next_byte(t);
	return line;
}

/* 3.10: pairs of the bytes of a range, and what to add to the line before; -128: it has no line. */
static long line_of_ranges(struct line_table *t, long line, int instruction)
{
	int bytes, end = 0;

	while ((bytes = next_byte(t)) >= 0) {
		int8_t more = (int8_t)next_byte(t);

		line += more == -128 ? 0 : more;
		end += bytes;
		if (end > instruction)
			break;
	}
	return line;
}

/* Reads a number of groups of 6 bits, the least first. Bit 6 of a byte: another one follows. */
static int number_of_groups(struct line_table *t)
{
	unsigned value = 0;
	int byte, shift = 0;

	do {
		byte = next_byte(t);
		value |= (unsigned)(byte & 63) << shift;
		shift += 6;
	} while (byte >= 0 && byte & 64 && shift < 30);
	return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/*
 * Since 3.11: entries, whose first byte has bit 7, a form, and the number of instructions (of two
 * bytes) less one. Forms 13 and 14 add a number to the line before, 10 to 12 add 0 to 2.
 */
static long line_of_locations(struct line_table *t, long line, int instruction)
{
	int byte, end = 0;

	while ((byte = next_byte(t)) >= 0) {
		int form = byte >> 3 & 15;

		if ((byte & 128) == 0)
			continue;
		if (form == 13 || form == 14)
			line += number_of_groups(t);
		else if (form >= 10 && form <= 12)
			line += form - 10;
		end += 2 * ((byte & 7) + 1);
		if (end > instruction)
			break;
	}
	return line;
}

int unlocked_line(const struct unlocked_place *place)
{
	static long (*const of[])(struct line_table *, long, int) = {
	    [LINES_PAIRS] = line_of_pairs,
	    [LINES_RANGES] = line_of_ranges,
	    [LINES_LOCATIONS] = line_of_locations,
	};
	uintptr_t at = place->lines, size;
	struct line_table table = {0};

	if (place->instruction < 0 || !copy(at + SIZE_AT, &size, sizeof(size)))
		return place->first_line;
	table.at = at + BYTES_AT;
	table.end = table.at + (size < LINES_MAX ? size : LINES_MAX);
	return (int)of[layout->lines](&table, place->first_line, place->instruction);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

const char *unlocked_set(int minor, const void *type_of_code)
{
	char byte;

	layout = NULL;
	code_type = (uintptr_t)type_of_code;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (minor >= layouts[i].from && minor <= layouts[i].until)
			layout = &layouts[i];
	if (!layout)
		return "this version of Python is not known";
	return copy((uintptr_t)&layout, &byte, 1) ? NULL : "process_vm_readv is not permitted";
}
