/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that have begun: stacks of threads (B, E) and of ids (b, e). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "import/chrome/chrome.h"

#define OPEN_MOST 65536u

/* Copies the texts of an event that are needed at its end. */
static int event_copy(const struct chrome_event *e, struct chrome_open *to)
{
	struct hr_json_part *parts[] = {&to->e.name, &to->e.cat, &to->e.pid, &to->e.tid,
					&to->e.args};
	size_t bytes = 1;
	char *at;

	to->e = *e;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		bytes += parts[i]->n;
	at = to->memory = malloc(bytes);
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i]->n > 0)
			memcpy(at, parts[i]->p, parts[i]->n);
		parts[i]->p = at;
		at += parts[i]->n;
	}
	return 0;
}

int hr__chrome_open(struct chrome_opens *o, uint64_t key, int64_t start_ns,
		    const struct chrome_event *e)
{
	uint32_t i, below = hr_map64_get(&o->last, key);
	struct chrome_open open = {.key = key, .start_ns = start_ns};
	int r;

	open.below = below == HR_MAP64_NONE ? 0 : below + 1;
	if (!o->free_list && o->n == OPEN_MOST)
		return -EBADMSG;
	r = event_copy(e, &open);
	if (r)
		return r;
	if (!o->free_list && !hr_array_reserve(o->list, o->n, o->room)) {
		free(open.memory);
		return -ENOMEM;
	}
	i = o->free_list ? o->free_list - 1 : o->n;
	r = hr_map64_set(&o->last, key, i);
	if (r) {
		free(open.memory);
		return r;
	}
	if (o->free_list)
		o->free_list = o->list[i].below;
	else
		o->n++;
	o->list[i] = open;
	return 0;
}

static void open_take(struct chrome_opens *o, uint32_t i, struct chrome_open *ret)
{
	*ret = o->list[i];
	if (ret->below)
		(void)hr_map64_set(&o->last, ret->key, ret->below - 1); /* the key exists */
	else
		hr_map64_remove(&o->last, ret->key);
	o->list[i] = (struct chrome_open){.below = o->free_list};
	o->free_list = i + 1;
}

bool hr__chrome_close(struct chrome_opens *o, uint64_t key, struct chrome_open *ret)
{
	uint32_t i = hr_map64_get(&o->last, key);

	if (i == HR_MAP64_NONE)
		return false;
	open_take(o, i, ret);
	return true;
}

bool hr__chrome_close_any(struct chrome_opens *o, struct chrome_open *ret)
{
	while (o->n > 0) {
		struct chrome_open *last = &o->list[o->n - 1];

		if (last->memory) {
			*ret = *last;
			last->memory = NULL;
			return true;
		}
		o->n--;
	}
	return false;
}

void hr__chrome_opens_done(struct chrome_opens *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		free(o->list[i].memory);
	free(o->list);
	hr_map64_done(&o->last);
}
