/* SPDX-License-Identifier: Apache-2.0 */
/* The largest loss of a running training job during the last minute. */
#include <stdlib.h>
#include <string.h>

#include "cli/top/top.h"
#include "common/text.h"
#include "query/diagnosis/findings.h"
#include "query/query.h"

#define WINDOW_S 60.0

static void set_texts(struct hr_top_finding *f, const struct hr_finding *found)
{
	const char *where = found->place;
	int n = 0;

	if (found->lost <= 0) {
		snprintf(f->loss, sizeof(f->loss), "%s", found->meaning);
		return;
	}
	if (found->cause != HR_FOUND_HANG)
		n = snprintf(f->loss, sizeof(f->loss),
			     "%.0f %% lost: ", 100 * found->lost / found->wall);
	snprintf(f->loss + n, sizeof(f->loss) - (size_t)n, "%s%s%s%s", found->meaning,
		 where != NULL ? " (" : "", where != NULL ? where : "", where != NULL ? ")" : "");
	snprintf(f->action, sizeof(f->action), "%s", found->action != NULL ? found->action : "");
}

static void diagnose(struct hr_top_finding *f, const struct hr_catalog *catalog, uint32_t attempt)
{
	struct hr_scope scope = HR_SCOPE_ALL;
	struct hr_findings all = {0};
	struct hr_diagnosis d;
	struct hr_query *q;
	int r = hr_query_new_without_sql(catalog, &q);

	if (r < 0)
		return;
	scope.from = -WINDOW_S;
	r = hr_diagnosis_make(q, &scope, &d);
	if (r == 0)
		r = hr_findings_make(&d, &all);
	for (size_t i = 0; r == 0 && i < all.n && f->loss[0] == '\0'; i++)
		if (all.list[i].st->s->attempt == attempt)
			set_texts(f, &all.list[i]);
	hr_findings_done(&all);
	hr_diagnosis_done(&d);
	hr_query_free(q);
}

void hr_top_finding_make(const struct hr_top_source *source, struct hr_top_finding *ret)
{
	struct hr_catalog_filter filter = {.job = source->job};
	const char *store = source->store;
	struct hr_catalog *catalog;

	ret->loss[0] = ret->action[0] = '\0';
	if (store[0] == '\0' || hr_catalog_open(&store, 1, &filter, &catalog, NULL) < 0)
		return;
	diagnose(ret, catalog, source->attempt);
	hr_catalog_free(catalog);
}
