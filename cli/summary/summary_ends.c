/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_ends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the entry of a signal, and adds a new one. NULL: no memory. */
static struct hr_summary_killed *find_row(struct hr_summary *s, const char *signal)
{
	struct hr_summary_killed *list;
	char *name;

	for (size_t i = 0; i < s->n_killed; i++)
		if (strcmp(s->killed[i].signal, signal) == 0)
			return &s->killed[i];
	list = realloc(s->killed, (s->n_killed + 1) * sizeof(*list));
	if (list == NULL)
		return NULL;
	s->killed = list;
	name = strdup(signal);
	if (name == NULL)
		return NULL;
	list[s->n_killed] = (struct hr_summary_killed){.signal = name};
	return &list[s->n_killed++];
}

int hr_ends_add(struct hr_summary *s, const struct hr_process *process)
{
	struct hr_summary_killed *row;
	uint32_t i;

	if (strncmp(process->msg->exit, "SIG", 3) != 0)
		return 0;
	row = find_row(s, process->msg->exit);
	if (row == NULL)
		return -ENOMEM;
	i = row->processes++;
	if (i < HR_KILLED_NAMED) {
		row->first[i].rank = process->rank;
		row->first[i].worker = process->worker;
		row->first[i].pid = process->msg->pid;
	}
	return 0;
}

const char *hr_ends_signal(int number, char *out, size_t bytes)
{
	const char *name = sigabbrev_np(number);

	if (name != NULL)
		snprintf(out, bytes, "SIG%s", name);
	else
		snprintf(out, bytes, "SIG%d", number);
	return out;
}

void hr_ends_free(struct hr_summary *s)
{
	for (size_t i = 0; i < s->n_killed; i++)
		free(s->killed[i].signal);
	free(s->killed);
}
