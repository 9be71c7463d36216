/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.h - arrays that grow, and a search in sorted ones
 *
 * An array is a pointer, a count and a room: variables or members of the caller, which frees the
 * pointer. If all are zero, the array is empty. One thread at a time.
 */
#ifndef HEADRACE_COMMON_ARRAY_H
#define HEADRACE_COMMON_ARRAY_H

#include <stdbool.h>
#include <stdlib.h>

#define HR_ARRAY_FIRST_BYTES 256u /* size of the first room, unless one element is bigger */

/*
 * Makes room for `need` elements, and at least doubles the room. False: no memory is left, and the
 * array is unchanged. The macro evaluates `list` and `room` more than once.
 */
#define hr_array_fit(list, need, room)                                                             \
	({                                                                                         \
		size_t hr_need = (need), hr_more = 2 * (size_t)(room);                             \
		void *hr_grown;                                                                    \
                                                                                                   \
		if (hr_need > (room)) {                                                            \
			if (hr_more == 0)                                                          \
				hr_more = HR_ARRAY_FIRST_BYTES / sizeof(*(list));                  \
			if (hr_more < hr_need)                                                     \
				hr_more = hr_need;                                                 \
			hr_grown = reallocarray(list, hr_more, sizeof(*(list)));                   \
			if (hr_grown) {                                                            \
				(list) = hr_grown;                                                 \
				(room) = (__typeof__(room))hr_more;                                \
			}                                                                          \
		}                                                                                  \
		hr_need <= (room);                                                                 \
	})

/* Makes room for element n. The comparison with NULL is only for static analyzers. */
#define hr_array_reserve(list, n, room)                                                            \
	(hr_array_fit(list, (size_t)(n) + 1, room) && (list) != NULL)

/*
 * Searches a sorted array of n elements: returns the number of those that come first, because the
 * expression `before` is true for them. `i` names the index of an element in this expression.
 */
#define hr_array_search(i, n, before)                                                              \
	({                                                                                         \
		size_t hr_low = 0, hr_high = (n);                                                  \
                                                                                                   \
		while (hr_low < hr_high) {                                                         \
			size_t i = hr_low + (hr_high - hr_low) / 2;                                \
                                                                                                   \
			if (before)                                                                \
				hr_low = (i) + 1;                                                  \
			else                                                                       \
				hr_high = (i);                                                     \
		}                                                                                  \
		hr_low;                                                                            \
	})

#endif
