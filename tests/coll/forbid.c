/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Runs a program that may not read or not write other processes' memory, as in some containers, on
 * one rank: forbid RANK read|write|both PROGRAM [ARGUMENT]... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int forbid(char const *what) {
    unsigned const read_call =
        strcmp(what, "write") == 0 ? SYS_process_vm_writev : SYS_process_vm_readv;
    unsigned const write_call =
        strcmp(what, "read") == 0 ? SYS_process_vm_readv : SYS_process_vm_writev;
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, read_call, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, write_call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog const filter = {sizeof steps / sizeof *steps, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int main(int argc, char **argv) {
    char const *const rank = getenv("DIOMP_RANK");
    if (argc < 4 || rank == NULL) {
        return 2;
    }
    if (strcmp(rank, argv[1]) == 0 && !forbid(argv[2])) {
        puts("this system permits no filter of system calls");
        return 77;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 1;
}
