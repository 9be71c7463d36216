/* SPDX-License-Identifier: Apache-2.0 */
/* clients.c - connections to control.sock: answers, clients that wait for a job, and their ends */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/loop.h"
#include "daemon/service/internal.h"

void hr__service_client_close(struct client *a)
{
	struct client **link = &a->service->clients;

	while (*link != a)
		link = &(*link)->next;
	*link = a->next;
	a->service->n_clients--;
	uv_poll_stop(&a->poll);
	close(a->fd);
	uv_close((uv_handle_t *)&a->poll, hr_handle_free_data);
}

void hr__service_client_done(struct client *a)
{
	hr_control_send(a->fd, HR_CONTROL(DONE), NULL);
	hr__service_client_close(a);
}

void hr__service_client_refuse(struct client *a, int r, const char *text)
{
	hr_control_send_error(a->fd, -r, text);
	hr__service_client_close(a);
}

void hr__service_clients_notify(struct job *job, const Headrace__Control *m)
{
	for (struct client *a = job->service->clients; a; a = a->next)
		if (a->awaits_end == job)
			hr_control_send(a->fd, m->kind_case, &m->done->base);
}

static void answer_waiting(struct job *job, bool end, const char *error)
{
	for (struct client *a = job->service->clients, *next; a; a = next) {
		next = a->next;
		if ((end ? a->awaits_end : a->awaits_start) != job)
			continue;
		if (error)
			hr__service_client_refuse(a, -EIO, error);
		else
			hr__service_client_done(a);
	}
}

void hr__service_clients_done(struct job *job, const char *error)
{
	answer_waiting(job, true, error);
}

void hr__service_clients_begun(struct job *job, const char *error)
{
	answer_waiting(job, false, error);
}

void hr__service_clients_tick(struct service *s)
{
	for (struct client *a = s->clients, *next; a; a = next) {
		next = a->next;
		if (!a->awaits_end && !a->awaits_start &&
		    hr__service_now_ms(s) - a->since_ms >= REQUEST_MS)
			hr__service_client_close(a);
	}
}

void hr__service_clients_leave(struct service *s)
{
	while (s->clients)
		hr__service_client_close(s->clients);
}
