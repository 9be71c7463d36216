/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - initializes the shim from the environment */
#include <string.h>
#include <sys/mman.h>

#include "shim/core/path.h"
#include "shim/core/sys.h"

#define NS_PER_S     UINT64_C(1000000000)
#define HINT_NAME    "HEADRACE_ATTACH_FAILED"
#define HINT_SECONDS 5 /* how long children do not wait for an answer after a time-out */
#define WAIT_MS	     2
#define WAIT_MS_MOST 60000u

struct hr_shim_image hr_shim_image;
struct hr_wiped hr_wiped;
struct hr_filter hr_filter;

const char *hr__env_value(char *const envp[], const char *name)
{
	size_t n = strlen(name);

	for (; envp != NULL && *envp != NULL; envp++)
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

bool hr__env_is(char *const envp[], const char *name, const char *value)
{
	const char *is = hr__env_value(envp, name);

	return is != NULL && strcmp(is, value) == 0;
}

static uint64_t parse_number(const char *s)
{
	uint64_t n = 0;

	while (*s >= '0' && *s <= '9' && n < UINT64_C(1) << 48)
		n = n * 10 + (uint64_t)(*s++ - '0');
	return n;
}

static void read_on_full(const char *value)
{
	struct hr_shim_image *im = &hr_shim_image;
	uint64_t ms = WAIT_MS;

	im->on_full = HR__FULL_WAIT;
	if (value != NULL && strcmp(value, "drop") == 0)
		im->on_full = HR__FULL_DROP;
	else if (value != NULL && strncmp(value, "wait:", 5) == 0)
		ms = parse_number(value + 5);
	im->wait_ms = ms < WAIT_MS_MOST ? (uint32_t)ms : WAIT_MS_MOST;
}

/* Reads the time of a parent's last time-out, after which its children do not wait for answers. */
static void read_hint(const char *value)
{
	uint64_t failed_s;

	if (value == NULL || strlen(value) != 20)
		return;
	hr_shim_image.hint = (char *)value;
	failed_s = parse_number(value);
	if (failed_s != 0)
		hr_shim_image.no_wait_until_ns = (failed_s + HINT_SECONDS) * NS_PER_S;
}

static void read_filter(char **envp)
{
	const struct hr_filter_config config = {
	    .exclude = hr__env_value(envp, "HEADRACE_EXCLUDE"),
	    .include = hr__env_value(envp, "HEADRACE_INCLUDE"),
	    .defaults = hr__env_value(envp, "HEADRACE_DEFAULT_EXCLUDE"),
	    .store = hr__env_value(envp, "HEADRACE_STORE"),
	};

	hr_filter_init(&hr_filter, &config);
}

static void read_environment(char **envp)
{
	const char *socket = hr__env_value(envp, "HEADRACE_SOCKET");
	size_t n;

	if (socket == NULL)
		socket = "/run/headrace/shim.sock";
	n = strlen(socket);
	if (n < sizeof(hr_shim_image.socket)) /* a longer path is no valid address */
		memcpy(hr_shim_image.socket, socket, n + 1);
	hr_shim_image.seccomp_allowed = hr__env_is(envp, "HEADRACE_SECCOMP", "allow");
	hr_shim_image.full_cmdline = hr__env_is(envp, "HEADRACE_CMDLINE", "full");
	hr_shim_image.nvtx_off = hr__env_is(envp, "HEADRACE_NVTX", "off");
	hr_shim_image.nvtx_all = hr__env_is(envp, "HEADRACE_NVTX", "all");
	read_on_full(hr__env_value(envp, "HEADRACE_ON_FULL"));
	read_hint(hr__env_value(envp, HINT_NAME));
	read_filter(envp);
	hr__exec_init(envp);
	for (; envp != NULL && *envp != NULL; envp++) {
		const char *equals = strchr(*envp, '=');

		if (equals != NULL && hr__env_wanted(*envp))
			hr__env_keep(*envp, (size_t)(equals - *envp), equals + 1);
	}
}

void hr__init(char **envp)
{
	if (hr__env_is(envp, "HEADRACE", "off"))
		return;
	read_environment(envp);
	/* The kernel zeroes this memory in a forked child. This needs Linux 4.14. */
	if (HR_SYS3(madvise, &hr_wiped, sizeof(hr_wiped), MADV_WIPEONFORK) != 0 ||
	    !hr__fdtab_init()) {
		hr__exec_unable();
		return;
	}
	hr_wiped.pid = hr__sys_getpid();
	hr_wiped.born = HR__BORN_IMAGE;
	hr_shim_image.on = true;
}
