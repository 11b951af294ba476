// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/openmp_files.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::launch {
namespace {

timespec current_time() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now); // the clock that stamps files
    return now;
}

const timespec started = current_time();

bool is_younger(const timespec &file) {
    return file.tv_sec != started.tv_sec ? file.tv_sec > started.tv_sec
                                         : file.tv_nsec >= started.tv_nsec;
}

void remove_openmp_files(pid_t dead_child) noexcept {
    // libomp 14 to 22 (kmp_runtime.cpp, __kmp_register_library_startup) uses /tmp where there is no
    // shared memory.
    for (const char *const folder : {"/dev/shm", "/tmp"}) {
        std::array<char, 96> path{};
        std::snprintf(path.data(), path.size(), "%s/__KMP_REGISTERED_LIB_%d_%d", folder,
                      static_cast<int>(dead_child), static_cast<int>(::getuid()));
        struct stat facts{};
        if (::lstat(path.data(), &facts) == 0 && S_ISREG(facts.st_mode) &&
            facts.st_uid == ::getuid() && is_younger(facts.st_mtim)) {
            ::unlink(path.data());
        }
    }
}

} // namespace

pid_t reap_child(pid_t child, int *how, int options) noexcept {
    pid_t const reaped = ::waitpid(child, how, options);
    if (reaped > 0) {
        remove_openmp_files(reaped);
    }
    return reaped;
}

} // namespace diomp::launch
