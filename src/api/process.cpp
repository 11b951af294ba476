// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts the runtime before main, so that ranks without any call take part too, and ends it with
// the process.
//
// The runtime must end after the program's static objects are destroyed, since they may own global
// memory, and before the libraries that it has loaded are finalised. Exit handlers registered
// before main run too late: the dynamic linker's own handler, which finalises all libraries, is
// registered after them and so runs first. It finalises libraries in load order, so this library's
// destructor runs at the right time. But what a library needs is finalised after that library, and
// the linker begins with those opened last: if one that the program has opened needs this library,
// the libraries that the runtime has opened before, such as UCX, are finalised first. The runtime
// then ends before the linker's handler. A destructor cannot see the exit status, on which shutdown
// depends (a failing rank must not wait for the others). An exit handler can; it is registered when
// main begins, the first opportunity, or when a running program loads this library.
#include "api/internal/state.h"
#include "launch/launch.h"
#include "offload/remote_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <string>
#include <utility>
#include <vector>

namespace {

using main_function = int (*)(int, char **, char **);
using start_function = int (*)(main_function, int, char **, void (*)(), void (*)(), void (*)(),
                               void *);

main_function g_main = nullptr;
void (*g_linker_fini)() = nullptr;
int g_exit_status = 0;
std::size_t g_num_loaded_at_begin = 0;

std::vector<std::string> loaded_libraries() {
    std::vector<std::string> names;
    ::dl_iterate_phdr(
        [](dl_phdr_info *each, std::size_t /*unused*/, void *into) {
            static_cast<std::vector<std::string> *>(into)->emplace_back(each->dlpi_name);
            return 0;
        },
        &names);
    return names;
}

/// Whether a library, or one that it needs, needs this library.
bool needs_this_library(const std::string &name) {
    void *const handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        return false;
    }
    bool const needs = ::dlsym(handle, "ompx_finalize") != nullptr;
    ::dlclose(handle);
    return needs;
}

// Other ranks may still use this rank's memory and progress thread, so a regular exit waits for
// them; a failing one does not. Other threads may use libraries that are finalised after this one
// until then.
__attribute__((destructor)) void end_process() {
    static bool has_ended = false;
    if (std::exchange(has_ended, true)) {
        return;
    }
    if (g_exit_status == 0) {
        diomp::api::finish_at_exit();
    } else {
        diomp::api::abandon_at_exit();
    }
    diomp::launch::notify_process_exit(g_exit_status);
}

void end_before_libraries() {
    std::vector<std::string> const names = loaded_libraries();
    auto const num_old = std::min(g_num_loaded_at_begin, names.size());
    if (std::any_of(names.begin() + static_cast<std::ptrdiff_t>(num_old), names.end(),
                    needs_this_library)) {
        end_process();
    }
}

/// Instead of the dynamic linker's handler.
void finalise_libraries() {
    end_before_libraries();
    if (g_linker_fini != nullptr) {
        g_linker_fini();
    }
}

void record_status(int status, void * /*unused*/) { g_exit_status = status; }

void end_loaded_runtime(int status, void * /*unused*/) {
    g_exit_status = status;
    end_before_libraries();
}

// main may be declared without parameters, or with two, which C allows and the sanitizer does not.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
int main_with_handler(int argc, char **argv, char **environment) {
    ::on_exit(record_status, nullptr);
    diomp::api::on_images_registered();
    diomp::api::bind_devices();
    return g_main(argc, argv, environment);
}

extern "C" __attribute__((visibility("hidden"), alias("__libc_start_main"))) int
start_of_ours(main_function main, int argc, char **argv, void (*init)(), void (*fini)(),
              void (*linker_fini)(), void *stack_end);

__attribute__((constructor)) void begin_process() {
    g_num_loaded_at_begin = loaded_libraries().size();
    if (::dlsym(RTLD_DEFAULT, "__libc_start_main") != reinterpret_cast<void *>(start_of_ours)) {
        // Loaded by a running program, such as an interpreter. Its exit handlers from now on run
        // before the dynamic linker's.
        ::on_exit(end_loaded_runtime, nullptr);
        diomp::api::on_images_registered();
    }
    if (std::getenv(DIOMP_REMOTE_LOADING) == nullptr) {
        diomp::api::start_at_load();
    }
}

} // namespace

extern "C" {

// Interposes the C library's function (Linux Standard Base, "__libc_start_main"). It is not called
// if a running program loads this library.
__attribute__((visibility("default"))) int
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
__libc_start_main(main_function main, int argc, char **argv, void (*init)(), void (*fini)(),
                  void (*linker_fini)(), void *stack_end) {
    auto const start = reinterpret_cast<start_function>(::dlsym(RTLD_NEXT, "__libc_start_main"));
    if (start == nullptr) {
        std::abort();
    }
    g_main = main;
    g_linker_fini = linker_fini;
    return start(main_with_handler, argc, argv, init, fini, finalise_libraries, stack_end);
}

} // extern "C"
