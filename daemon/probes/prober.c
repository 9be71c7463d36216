/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/probes/prober.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hr_prober_init(struct hr_prober *p)
{
	*p = (struct hr_prober){0};
	pthread_mutex_init(&p->lock, NULL);
}

void hr_prober_load(struct hr_prober *p)
{
	(void)hr_probes_new(&p->probes, &p->error);
}

static int follow(struct hr_probes *probes, const struct hr_prober_root *root)
{
	return root->pid ? hr_probes_root(probes, root->pid, root->quiet)
			 : hr_probes_cgroup(probes, root->cgroup);
}

static void *prober_load(void *arg)
{
	struct hr_prober *p = arg;
	struct hr_probes *probes = NULL;
	char *error = NULL;

	if (hr_probes_new(&probes, &error)) {
		__atomic_store_n(&p->error, error, __ATOMIC_RELEASE);
		return NULL;
	}
	pthread_mutex_lock(&p->lock);
	p->probes = probes;
	for (uint32_t i = 0; i < p->n_roots; i++)
		(void)follow(probes, &p->roots[i]);
	pthread_mutex_unlock(&p->lock);
	p->loaded(p->arg, probes);
	return NULL;
}

/* Uses a thread, because the kernel checks the programs for a tenth of a second or longer. */
void hr_prober_load_async(struct hr_prober *p, hr_prober_loaded *loaded, void *arg)
{
	p->loaded = loaded;
	p->arg = arg;
	p->loading = pthread_create(&p->loader, NULL, prober_load, p) == 0;
	if (!p->loading)
		p->error = strdup("cannot start a thread to load the programs");
}

int hr_prober_root(struct hr_prober *p, const struct hr_prober_root *root)
{
	int r = 0;

	pthread_mutex_lock(&p->lock);
	if (p->probes)
		r = follow(p->probes, root);
	else if (p->loading && p->n_roots < HR_PROBER_ROOTS)
		p->roots[p->n_roots++] = *root;
	else if (p->loading)
		r = -ENOSPC;
	pthread_mutex_unlock(&p->lock);
	return r;
}

bool hr_prober_ready(struct hr_prober *p)
{
	bool there;

	pthread_mutex_lock(&p->lock);
	there = p->probes != NULL;
	pthread_mutex_unlock(&p->lock);
	return there;
}

/* Acquire: pairs with the release store in prober_load. */
const char *hr_prober_error(const struct hr_prober *p)
{
	return __atomic_load_n(&p->error, __ATOMIC_ACQUIRE);
}

void hr_prober_wait(struct hr_prober *p)
{
	if (p->loading)
		pthread_join(p->loader, NULL);
	p->loading = false;
}

void hr_prober_done(struct hr_prober *p)
{
	hr_probes_free(p->probes);
	free(p->error);
	pthread_mutex_destroy(&p->lock);
}
