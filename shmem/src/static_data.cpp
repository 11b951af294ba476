// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "static_data.h"

#include <algorithm>
#include <link.h>
#include <unistd.h>

namespace diomp_shmem {
namespace {

constexpr std::size_t alignment = 64;

/// What the loader has made read-only after relocation is at the start of a writable segment.
std::uintptr_t end_of_read_only(const dl_phdr_info &program, std::uintptr_t begin,
                                std::uintptr_t end) {
    auto const page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (int i = 0; i < program.dlpi_phnum; ++i) {
        ElfW(Phdr) const &part = program.dlpi_phdr[i];
        std::uintptr_t const at = program.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_GNU_RELRO && at >= begin && at < end) {
            std::uintptr_t const protected_end = (at + part.p_memsz) & ~(page - 1);
            begin = protected_end > begin ? protected_end : begin;
        }
    }
    return begin;
}

/// Adds the segments of the first object, which is the program.
int collect(dl_phdr_info *program, std::size_t, void *ranges) {
    for (int i = 0; i < program->dlpi_phnum; ++i) {
        ElfW(Phdr) const &part = program->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) {
            continue;
        }
        std::uintptr_t const begin = program->dlpi_addr + part.p_vaddr;
        std::uintptr_t const end = begin + part.p_memsz;
        std::uintptr_t const first =
            (end_of_read_only(*program, begin, end) + alignment - 1) & ~(alignment - 1);
        if (first < end) {
            static_cast<std::vector<static_range> *>(ranges)->push_back(
                {reinterpret_cast<std::byte *>(first), end - first});
        }
    }
    return 1;
}

} // namespace

std::vector<static_range> find_static_data() {
    std::vector<static_range> ranges;
    dl_iterate_phdr(collect, &ranges);
    // The first one that is registered has the shortest path.
    std::sort(ranges.begin(), ranges.end(),
              [](const static_range &a, const static_range &b) { return a.nbytes > b.nbytes; });
    return ranges;
}

} // namespace diomp_shmem
