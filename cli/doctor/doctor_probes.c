/* SPDX-License-Identifier: Apache-2.0 */
/* Tests, without libbpf, whether `headrace run --probes` could load BPF programs here. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "common/host.h"

#define BTF	 "/sys/kernel/btf/vmlinux"
#define LOCKDOWN "/sys/kernel/security/lockdown"

#ifdef HEADRACE_BPF
#define BUILT true
#else
#define BUILT false
#endif

/* Loads a BPF program of a type that needs CAP_BPF and CAP_PERFMON. Returns 0 or -errno. */
static int load_nothing(void)
{
	static const struct bpf_insn insns[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr program = {
	    .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	    .insns = (uint64_t)(uintptr_t)insns,
	    .insn_cnt = sizeof(insns) / sizeof(insns[0]),
	    .license = (uint64_t)(uintptr_t) "GPL",
	};
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof(program));

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Returns whether the mode of kernel lockdown (the word in brackets) is confidentiality. */
static bool is_confidential(void)
{
	FILE *f = fopen(LOCKDOWN, "re");
	char line[128] = "";
	bool found =
	    f != NULL && fgets(line, sizeof(line), f) != NULL && strstr(line, "[conf") != NULL;

	if (f != NULL)
		fclose(f);
	return found;
}

void hr_check_probes(const struct hr_doctor *d, struct hr_check *c)
{
	int r = load_nothing();

	(void)d;
	if (!BUILT)
		hr_check_set(c, HR_HEALTH_WARN,
			     "build headrace with libbpf, clang, llvm-strip and bpftool installed",
			     "this headrace was built without probes");
	else if (access(BTF, R_OK) != 0)
		hr_check_set(c, HR_HEALTH_WARN, "use a kernel with CONFIG_DEBUG_INFO_BTF", "%s: %s",
			     BTF, strerrordesc_np(errno));
	else if (r == -EPERM)
		hr_check_set(c, HR_HEALTH_WARN,
			     "use root, or CAP_BPF and CAP_PERFMON, outside of user namespaces and "
			     "seccomp filters",
			     "this user may not load BPF programs: `run --probes` would fail");
	else if (r < 0)
		hr_check_set(c, HR_HEALTH_WARN, "use Linux 5.8 or newer with CONFIG_BPF_SYSCALL",
			     "cannot load a BPF program: %s", strerrordesc_np(-r));
	else if (!hr_host_has_initial_pids())
		hr_check_set(
		    c, HR_HEALTH_WARN, "run headraced outside of the container",
		    "not in the initial pid namespace: `run --probes` would record without probes");
	else if (is_confidential())
		hr_check_set(c, HR_HEALTH_WARN, "boot without lockdown=confidentiality",
			     "%s prevents BPF programs from reading kernel memory", LOCKDOWN);
	else
		hr_check_set(c, HR_HEALTH_OK, NULL,
			     "BPF programs can be loaded: `headrace run --probes` works");
}
