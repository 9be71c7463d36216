/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.h - arrays that grow
 *
 * An array is a pointer, a count and a room, each a variable or a member of the caller's; all zero: an empty one. The caller
 * frees the pointer. Any one thread.
 */
#ifndef HEADRACE_COMMON_ARRAY_H
#define HEADRACE_COMMON_ARRAY_H

#include <stdbool.h>
#include <stdlib.h>

/*
 * Makes room for one more element after the first `n`: the room doubles, from `first` elements on. False: no memory, and the
 * array is as it was. `list` and `room` are evaluated more than once.
 */
#define hr_array_reserve(list, n, room, first)                                                     \
	({                                                                                         \
		bool hr_fits = (n) < (room);                                                       \
                                                                                                   \
		if (!hr_fits) {                                                                    \
			size_t hr_more = (room) > 0 ? (size_t)(room)*2 : (first);                  \
			void *hr_grown = reallocarray(list, hr_more, sizeof(*(list)));             \
                                                                                                   \
			hr_fits = hr_grown != NULL;                                                \
			if (hr_fits) {                                                             \
				(list) = hr_grown;                                                 \
				(room) = (__typeof__(room))hr_more;                                \
			}                                                                          \
		}                                                                                  \
		hr_fits;                                                                           \
	})

#endif
