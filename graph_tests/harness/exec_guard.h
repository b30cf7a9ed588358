/* With QDQ_TEST_NO_EXEC=1 in the environment, a program that links exec_guard.c may not map executable memory from its start on:
 * mmap, mprotect and pkey_mprotect with PROT_EXEC end it with code 99 and a line that says so (a seccomp filter), and so does
 * an executable mapping that is there at its end and was not at its start (/proc/self/maps). Libraries that the program is linked
 * with, the OpenMP runtime among them, are mapped before. Where seccomp is not allowed it leaves with code 77. */
#ifndef EXEC_GUARD_H
#define EXEC_GUARD_H

#ifdef __cplusplus
extern "C" {
#endif

enum { EXEC_GUARD_SKIP = 77, EXEC_GUARD_CAUGHT = 99 };

/* True when this program runs under the filter. */
int exec_guard_on(void);

#ifdef __cplusplus
}
#endif
#endif
