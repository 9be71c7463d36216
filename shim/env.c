/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - the rank and job variables: kept from the initial environment, followed through setenv
 */
#include "shim/internal.h"

#include <string.h>

#include "shim/clock.h"

/* The filters can be long, and nobody downstream needs them. */
static const char *const not_sent[] = {"HEADRACE_EXCLUDE", "HEADRACE_INCLUDE",
				       "HEADRACE_DEFAULT_EXCLUDE"};

static size_t name_length(const char *text)
{
	size_t n = 0;

	while (text[n] != '\0' && text[n] != '=')
		n++;
	return n;
}

static bool is_name(const char *text, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(text, name, n) == 0;
}

bool hr__env_wanted(const char *text)
{
	size_t n = name_length(text);

	for (size_t i = 0; i < sizeof(not_sent) / sizeof(not_sent[0]); i++)
		if (is_name(text, n, not_sent[i]))
			return false;
#define HR_ENV_NAME(name)                                                                          \
	if (is_name(text, n, name))                                                                \
		return true;
#define HR_ENV_PREFIX(prefix)                                                                      \
	if (n >= sizeof(prefix) - 1 && memcmp(text, prefix, sizeof(prefix) - 1) == 0)              \
		return true;
#include "shim/env_names.def"
#undef HR_ENV_NAME
#undef HR_ENV_PREFIX
	return false;
}

/* Drops the entry of this name, if there is one: by blanking its first byte, hello.c skips it. */
static void forget(const char *name, size_t n)
{
	struct hr__image *im = &hr__image;

	for (uint32_t at = 0; at < im->env_bytes; at += (uint32_t)strlen(im->env + at + 1) + 2)
		if (im->env[at] == '+' && name_length(im->env + at + 1) == n &&
		    memcmp(im->env + at + 1, name, n) == 0)
			im->env[at] = '-';
}

/* Entries are "+NAME=VALUE\0", or "-..." when overtaken. A full buffer keeps what it has. */
void hr__env_keep(const char *name, size_t n, const char *value)
{
	struct hr__image *im = &hr__image;
	size_t n_value = strlen(value);
	char *to = im->env + im->env_bytes;

	if (n + n_value + 3 > sizeof(im->env) - im->env_bytes)
		return;
	forget(name, n);
	*to++ = '+';
	memcpy(to, name, n);
	to[n] = '=';
	memcpy(to + n + 1, value, n_value + 1);
	im->env_bytes += (uint32_t)(n + n_value + 3);
}

void hr_env_set(const char *name, const char *value)
{
	struct hr_record head = {.op = HR_CTL_ENV, .offset = HR_OFFSET_NONE, .fd = -1};
	char text[256];
	size_t n, n_value;

	if (!hr__image.on || name == NULL || value == NULL || !hr__env_wanted(name) ||
	    hr__in_vfork_child())
		return;
	n = name_length(name);
	n_value = strlen(value);
	hr__env_keep(name, n, value); /* for the hello of this process or of a child */
	if (hr__ring_current() == NULL || n + n_value + 1 > sizeof(text))
		return;
	memcpy(text, name, n);
	text[n] = '=';
	memcpy(text + n + 1, value, n_value);
	head.asked = n + n_value + 1;
	head.fd = (int32_t)((head.asked + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES);
	head.start_ticks = hr__clock_ticks();
	hr__ring_control(&head, text, head.asked);
}
