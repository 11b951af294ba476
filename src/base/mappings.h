// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mappings of this process, as the system lists them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <sys/sysmacros.h>
#include <sys/types.h>

namespace diomp {

struct memory_mapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool is_readable = false;
    bool is_writable = false;
    std::uint64_t offset = 0; ///< in the file
    dev_t device = 0;
    ino_t inode = 0;       ///< 0: of no file
    std::string_view line; ///< as the system writes it, perhaps without its end
};

/// Calls visit(memory_mapping) in the order of addresses until it returns false. Returns false if
/// the system does not list them.
template <typename Visit>
bool visit_mappings(Visit &&visit) {
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> const maps(std::fopen("/proc/self/maps", "re"),
                                                                std::fclose);
    if (maps == nullptr) {
        return false;
    }
    char line[512];
    while (std::fgets(line, sizeof(line), maps.get()) != nullptr) {
        memory_mapping found;
        char rights[5] = {};
        unsigned major_device = 0;
        unsigned minor_device = 0;
        if (std::sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &found.begin, &found.end, rights,
                        &found.offset, &major_device, &minor_device, &found.inode) != 7) {
            continue; // the rest of a long line
        }
        found.is_readable = rights[0] == 'r';
        found.is_writable = rights[1] == 'w';
        found.device = makedev(major_device, minor_device);
        found.line = line;
        if (!visit(found)) {
            break;
        }
    }
    return true;
}

} // namespace diomp
