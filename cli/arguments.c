/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cli/commands.h"

bool hr_arguments(int argc, char **argv, const struct hr_option *table, hr_argument *take,
		  void *self, int *ret_status)
{
	struct hr_options o = {.table = table, .argv = argv, .argc = argc, .next = 1};
	int r = 0;

	while (r == 0 && o.next < argc) {
		int id = hr_option_next(&o);

		if (id == 'h') {
			*ret_status = hr_command_help(argv[0]);
			return false;
		}
		if (id == HR_OPTION_END && o.next < argc)
			r = take(self, id, argv[o.next++]);
		else if (id != HR_OPTION_END && !hr_option_store(self, id, o.value))
			r = id == HR_OPTION_BAD ? -1 : take(self, id, o.value);
	}
	*ret_status = r < 0 ? HR_EXIT_USAGE : r;
	return r == 0;
}
