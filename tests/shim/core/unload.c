/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unload PLUGIN - libaio comes and goes with a plugin, each time to another place; without it its functions fail
 *
 * A preload that kept the address of a function would jump to where nothing is any more.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

static void *function(void *library, const char *name)
{
	void *fn = dlsym(library, name);

	if (fn == NULL)
		abort();
	return fn;
}

/* Where libaio was, nothing else will be. */
static void visit(const char *plugin, int fd)
{
	void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL), *libaio, *at;
	int (*plugin_read)(int fd) = (int (*)(int))function(library, "plugin_read");

	libaio = dlopen("libaio.so.1", RTLD_NOW | RTLD_NOLOAD);
	at = (void *)((uintptr_t)function(libaio, "io_setup") & ~(uintptr_t)(PAGE - 1));
	if (plugin_read(fd) != 1)
		abort();
	dlclose(libaio);
	dlclose(library);
	if (mmap(at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
	    at)
		abort();
}

int main(int argc, char **argv)
{
	int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
	int (*submit)(void *context, long n, void *list);

	if (argc != 2 || fd < 0)
		return 2;
	for (int i = 0; i < 3; i++)
		visit(argv[1], fd);
	/* Found only under a preload that has it. */
	submit = (int (*)(void *, long, void *))dlsym(RTLD_DEFAULT, "io_submit");
	return submit == NULL || submit(NULL, 0, NULL) == -ENOSYS ? 0 : 1;
}
