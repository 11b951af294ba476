// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// "A program linked with DiOMP starts by itself": the runtime starts before main, so that ranks
// which never call anything still take part, and ends with the process.
//
// When to end: after the program's static objects, which may have memory of ours, and before the
// libraries that we have loaded ourselves take themselves down. Exit handlers that are registered
// before main run too late for that: the dynamic linker's own handler, which ends all libraries, is
// registered after them. But it ends libraries in the order in which they were loaded, so this
// library's destructor is the right place. It does not learn the exit status, on which the end
// depends (a failing rank must not wait for the others). A handler that runs earlier does; the
// first chance to register one is when main begins.
#include "api/state.h"
#include "launch/launch.h"
#include "offload/remote_table.h"

#include <cstdlib>
#include <dlfcn.h>

namespace {

using main_function = int (*)(int, char **, char **);
using start_function = int (*)(main_function, int, char **, void (*)(), void (*)(), void (*)(),
                               void *);

main_function g_main = nullptr;
int g_exit_status = 0;

void record_status(int status, void * /*unused*/) { g_exit_status = status; }

// main may be declared without parameters, or with two, which C allows and the sanitizer does not.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
int main_with_handler(int argc, char **argv, char **environment) {
    ::on_exit(record_status, nullptr);
    diomp::api::images_are_registered();
    diomp::api::bind_devices();
    return g_main(argc, argv, environment);
}

extern "C" __attribute__((visibility("hidden"), alias("__libc_start_main"))) int
start_of_ours(main_function main, int argc, char **argv, void (*init)(), void (*fini)(),
              void (*linker_fini)(), void *stack_end);

__attribute__((constructor)) void begin_process() {
    if (::dlsym(RTLD_DEFAULT, "__libc_start_main") != reinterpret_cast<void *>(start_of_ours)) {
        diomp::api::images_are_registered(); // loaded later: the program runs
    }
    if (std::getenv(DIOMP_REMOTE_LOADING) == nullptr) {
        diomp::api::start_with_program();
    }
}

// Others may still need this rank's memory and its progress thread, so a regular end waits for
// them; a failing one does not. Libraries that are ended after this one may be in use by other
// threads until then.
__attribute__((destructor)) void end_process() {
    if (g_exit_status == 0) {
        diomp::api::finish_with_program();
    } else {
        diomp::api::abandon_with_program();
    }
    diomp::launch::end_of_process(g_exit_status);
}

} // namespace

extern "C" {

// Stands in front of the C library's (Linux Standard Base, "__libc_start_main"). A program that
// loads this library later than at its start does without it: then its end counts as regular.
__attribute__((visibility("default"))) int
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
__libc_start_main(main_function main, int argc, char **argv, void (*init)(), void (*fini)(),
                  void (*linker_fini)(), void *stack_end) {
    auto const start = reinterpret_cast<start_function>(::dlsym(RTLD_NEXT, "__libc_start_main"));
    if (start == nullptr) {
        std::abort();
    }
    g_main = main;
    return start(main_with_handler, argc, argv, init, fini, linker_fini, stack_end);
}

} // extern "C"
