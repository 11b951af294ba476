/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: rights OTHER_PID PORT FILE    what a region on device 0 may do to its host: one line per
 * attempt, "NAME allowed" or the error. OTHER_PID: a process of the same user outside the session;
 * PORT: one that is free. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { max_path = 1024 };

static void report(const char *name, long returned) {
    printf("%s %s\n", name, returned >= 0 ? "allowed" : strerrorname_np(errno));
}

/* A file outside the own folder is removed at once. */
static int create_file(const char *folder, int stays) {
    char path[4096];
    snprintf(path, sizeof path, "%s/made-by-a-region-%d", folder, (int)getpid());
    int const fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
    int const failure = errno;
    if (fd >= 0) {
        close(fd);
        if (!stays) {
            unlink(path);
        }
    }
    errno = failure;
    return fd;
}

/* With a file, and closed to its owner. */
static int create_closed_folder(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/closed", folder);
    if (mkdir(path, 0700) != 0 || create_file(path, 1) < 0) {
        return -1;
    }
    return chmod(path, 0);
}

static long trace(pid_t pid) {
    long const attached = ptrace(PTRACE_ATTACH, pid, NULL, NULL);
    int const failure = errno;
    if (attached == 0) {
        waitpid(pid, NULL, __WALL);
        ptrace(PTRACE_DETACH, pid, NULL, NULL);
    }
    errno = failure;
    return attached;
}

static int bind_to(int port) {
    int const fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int const returned = bind(fd, (const struct sockaddr *)&address, sizeof address);
    int const failure = errno;
    close(fd);
    errno = failure;
    return returned;
}

static long read_memory_of(int pid) {
    char here = 0;
    struct iovec local = {&here, 1}, remote = {&here, 1};
    long const returned = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    return returned < 0 && errno == EFAULT ? 0 : returned; /* permitted, but not mapped there */
}

static int new_namespace_in_a_child(void) {
    pid_t const child = fork();
    if (child == 0) {
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
    }
    int how = 0;
    waitpid(child, &how, 0);
    errno = WEXITSTATUS(how);
    return errno == 0 ? 0 : -1;
}

/* As unshare(), by the call that makes processes. */
static int new_namespace_by_clone(void) {
    long const child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        _exit(0);
    }
    if (child > 0) {
        waitpid((pid_t)child, NULL, 0);
    }
    return (int)child;
}

int main(int argc, char **argv) {
    if (argc != 4 || strlen(argv[3]) >= max_path) {
        return 2;
    }
    int const other = atoi(argv[1]), port = atoi(argv[2]);
    char file[max_path];
    strcpy(file, argv[3]);
#pragma omp target device(0) map(to : other, port, file)
    {
        char moved[max_path + 8];
        snprintf(moved, sizeof moved, "%s.moved", file);
        const char *const own_folder = getenv("TMPDIR");
        report("file_in_own_folder", create_file(own_folder ? own_folder : "/nowhere", 1));
        report("closed_folder_in_own_folder",
               create_closed_folder(own_folder ? own_folder : "/nowhere"));
        report("file_in_tmp", create_file("/tmp", 0));
        report("file_in_dev_shm", create_file("/dev/shm", 0));
        report("write_to_dev_null", open("/dev/null", O_WRONLY));
        report("read_a_file", open("/etc/passwd", O_RDONLY));
        report("rename_a_file", rename(file, moved));
        report("trace", trace(other));
        report("read_memory", read_memory_of(other));
        report("signal", kill(other, 0));
        report("bind_any_port", bind_to(0));
        report("bind_a_port", bind_to(port));
        report("packet_socket", socket(AF_PACKET, SOCK_RAW, 0));
        report("raw_socket", socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1));
        report("unix_socket", socket(AF_UNIX, SOCK_STREAM, 0));
        report("namespace", new_namespace_in_a_child());
        report("namespace_by_clone", new_namespace_by_clone());
        report("umount", syscall(SYS_umount2, "/a-folder-that-does-not-exist", 0));
        report("bpf", syscall(SYS_bpf, 0, NULL, 0));
        /* Threads and memory, which programs need. */
        int threads = 0;
#pragma omp parallel reduction(+ : threads)
        threads += 1;
        void *const memory =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        report("memory_and_threads", memory != MAP_FAILED && threads > 0 ? 0 : -1);
        fflush(NULL); /* stdout itself is the variable of the program, which is elsewhere */
    }
    return 0;
}
