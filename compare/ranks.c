/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/ranks.h"

#include <errno.h>
#include <stdlib.h>

double hr_compare_rank_own(const struct hr_rank_means *m)
{
	return m->seconds[HR_QUANTITY_loop] - m->seconds[HR_QUANTITY_stall];
}

int hr_compare_ranks_find(const struct hr_side_means means[HR_COMPARE_SIDES],
			  struct hr_compare_ranks *ret)
{
	const struct hr_side_means *a = &means[HR_COMPARE_A], *b = &means[HR_COMPARE_B];
	size_t i = 0, k = 0;

	*ret = (struct hr_compare_ranks){
	    .list = calloc(a->n_ranks + b->n_ranks + 1, sizeof(*ret->list)),
	};
	if (ret->list == NULL)
		return -ENOMEM;
	while (i < a->n_ranks || k < b->n_ranks) {
		bool in_a =
		    i < a->n_ranks && (k == b->n_ranks || a->ranks[i].rank <= b->ranks[k].rank);
		int64_t rank = in_a ? a->ranks[i].rank : b->ranks[k].rank;
		struct hr_compare_rank *to = &ret->list[ret->n];

		to->rank = rank;
		if (in_a)
			to->side[HR_COMPARE_A] = a->ranks[i++];
		if (k < b->n_ranks && b->ranks[k].rank == rank)
			to->side[HR_COMPARE_B] = b->ranks[k++];
		if (rank >= 0)
			ret->n++;
		else
			*to = (struct hr_compare_rank){0};
	}
	return 0;
}

void hr_compare_ranks_done(struct hr_compare_ranks *r)
{
	free(r->list);
	*r = (struct hr_compare_ranks){0};
}
