// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Resident memory of this process, by kind, from /proc/self/status.
#pragma once

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace diomp::bench {

/// Prints one line for bench/compare: resident memory without mapped files, that is without
/// libraries. Shared memory is counted in every process that has touched it.
inline void print_resident_memory() {
    std::ifstream file("/proc/self/status");
    long anonymous_kib = 0;
    long shared_kib = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields(line);
        std::string key;
        long value = 0;
        fields >> key >> value;
        if (key == "RssAnon:") {
            anonymous_kib = value;
        } else if (key == "RssShmem:") {
            shared_kib = value;
        }
    }
    std::printf("resident_kib anonymous %ld shared %ld\n", anonymous_kib, shared_kib);
    std::fflush(stdout);
}

} // namespace diomp::bench
