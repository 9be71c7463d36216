/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks in memory with any content, because Python changes and frees what is read: frames, code
 * objects, texts and tables of lines of random numbers, of which many are addresses of this memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/text.h"
#include "python/unlocked.h"

#define WORDS  2048u
#define ROUNDS 3000

static const char type_of_code;
static uint64_t *memory; /* a page that cannot be read follows */

static uint64_t any_word(void)
{
	uintptr_t from = (uintptr_t)memory, to = (uintptr_t)(memory + WORDS);

	switch (rand() % 12) {
	case 0:
		return 0;
	case 1:
		return (uint64_t)rand() % 4096;
	case 2:
		return to - (uintptr_t)rand() % 300; /* its members may be in the page behind */
	case 3:
		return UINTPTR_MAX - (uintptr_t)rand() % 300;
	case 4:
		return (uint64_t)rand() << 33 ^ (uint64_t)rand();
	case 5:
	case 6:
	case 7:
		return (uintptr_t)&type_of_code;
	default:
		return from + (uintptr_t)rand() % WORDS * 8;
	}
}

static unsigned found;

static void read_all(void)
{
	struct unlocked_place places[UNLOCKED_MAX];
	unsigned n = unlocked_places((const PyThreadState *)memory, places);

	assert_in_range(n, 0, UNLOCKED_MAX);
	for (unsigned i = 0; i < n; i++) {
		char text[100];

		if (unlocked_file(&places[i], text, sizeof(text))) {
			assert_in_range(strnlen(text, sizeof(text)), 0, sizeof(text) - 1);
			assert_true(hr_text_is_utf8(text, strlen(text)));
			found++;
		}
		unlocked_function(&places[i], text, sizeof(text));
		unlocked_line(&places[i]);
	}
	found += n;
}

static void any_memory(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = WORDS * sizeof(*memory);

	(void)state;
	memory =
	    mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect((char *)memory + bytes, page, PROT_NONE), 0);
	for (int minor = 7; minor <= 13; minor++) {
		const char *reason = unlocked_set(minor, &type_of_code);

		if (reason && strstr(reason, "permitted"))
			skip();
		assert_null(reason);
		srand((unsigned)minor);
		found = 0;
		for (int i = 0; i < ROUNDS; i++) {
			for (unsigned k = 0; k < WORDS; k++)
				memory[k] = any_word();
			read_all();
		}
		assert_true(found > 0);
	}
	munmap(memory, bytes + page);
}

static void versions(void **state)
{
	(void)state;
	assert_non_null(unlocked_set(6, &type_of_code));
	assert_non_null(unlocked_set(14, &type_of_code));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(any_memory),
	    cmocka_unit_test(versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
