#define _GNU_SOURCE
#include "harness/exec_guard.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int guarded;
static size_t n_at_start;

int exec_guard_on(void) {
    return guarded;
}

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifdef __x86_64__
#define GUARD_ARCH AUDIT_ARCH_X86_64
#else
#define GUARD_ARCH AUDIT_ARCH_AARCH64
#endif

static void caught(int signal) {
    static const char text[] = "exec_guard: executable memory was asked for\n";
    (void)signal;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(EXEC_GUARD_CAUGHT);
    _exit(EXEC_GUARD_CAUGHT);
}

static size_t executable_mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) return 0;
    char line[1024], perms[8];
    size_t n = 0;
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%*s %7s", perms) == 1 && strchr(perms, 'x') != NULL) n++;
    fclose(maps);
    return n;
}

static int install(void) {
    /* the protection is the third argument of all three calls */
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GUARD_ARCH, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pkey_mprotect, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 2 * sizeof(uint64_t)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = caught;
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
#else
static size_t executable_mappings(void) {
    return 0;
}
static int install(void) {
    return 0;
}
#endif

static void check_at_exit(void) {
    if (executable_mappings() <= n_at_start) return;
    fputs("exec_guard: there are more executable mappings than at the start\n", stderr);
    _exit(EXEC_GUARD_CAUGHT);
}

__attribute__((constructor)) static void start(void) {
    const char *wanted = getenv("QDQ_TEST_NO_EXEC");
    if (wanted == NULL || strcmp(wanted, "1") != 0) return;
    n_at_start = executable_mappings();
    if (!install()) {
        puts("exec_guard: seccomp is not allowed here: skipped");
        exit(EXEC_GUARD_SKIP);
    }
    guarded = 1;
    if (atexit(check_at_exit) != 0) exit(EXEC_GUARD_SKIP);
}
