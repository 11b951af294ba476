// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/static_pages.h"

#include "base/log.h"
#include "base/sanitizer.h"
#include "transport/arena.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <link.h>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace diomp::memory {
namespace {

std::size_t page_bytes() {
    static auto const value = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return value;
}
std::uintptr_t page_floor(std::uintptr_t address) { return address & ~(page_bytes() - 1); }
std::uintptr_t page_ceiling(std::uintptr_t address) {
    return page_floor(address + page_bytes() - 1);
}

/// What the loader makes read-only after relocation is at the start of a writable segment.
std::uintptr_t end_of_read_only(const dl_phdr_info &object, std::uintptr_t begin,
                                std::uintptr_t end) {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        ElfW(Phdr) const &part = object.dlpi_phdr[i];
        std::uintptr_t const at = object.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_GNU_RELRO && at >= begin && at < end) {
            begin = std::max(begin, page_floor(at + part.p_memsz));
        }
    }
    return begin;
}

bool is_writable(const ElfW(Phdr) & part) {
    return part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0;
}

page_run pages_of(const dl_phdr_info &object, const ElfW(Phdr) & part) {
    std::uintptr_t const begin = object.dlpi_addr + part.p_vaddr;
    std::uintptr_t const end = begin + part.p_memsz;
    std::uintptr_t const first = page_floor(end_of_read_only(object, begin, end));
    std::uintptr_t const last = page_ceiling(end);
    return {first, last > first ? last - first : 0};
}

struct search {
    std::uintptr_t address = 0;
    std::size_t nbytes = 0;
    std::optional<page_run> found;
};

int look_into(dl_phdr_info *object, std::size_t, void *given) {
    static int const of_this_library = 0;
    auto const own = reinterpret_cast<std::uintptr_t>(&of_this_library);
    auto &wanted = *static_cast<search *>(given);
    std::optional<page_run> found;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        ElfW(Phdr) const &part = object->dlpi_phdr[i];
        std::uintptr_t const begin = object->dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && own - begin < part.p_memsz) {
            return 0; // threads of the runtime write to the data of this object
        }
        if (is_writable(part)) {
            page_run const pages = pages_of(*object, part);
            found = pages.contains(wanted.address, wanted.nbytes) ? pages : found;
        }
    }
    wanted.found = found;
    return found ? 1 : 0;
}

bool is_zero(const std::byte *page) {
    return page[0] == std::byte{0} && std::memcmp(page, page + 1, page_bytes() - 1) == 0;
}

/// Copies whole pages to memory that is zero; pages of zeros stay untouched there.
void copy_pages(std::byte *to, const std::byte *from, std::size_t nbytes) {
    for (std::size_t at = 0; at < nbytes; at += page_bytes()) {
        if (!is_zero(from + at)) {
            std::memcpy(to + at, from + at, page_bytes());
        }
    }
}

/// mremap() to a fixed address. UCX replaces the function by one that ignores the address.
bool remap(void *from, std::size_t nbytes, void *to) {
    auto const to_address = reinterpret_cast<long>(to);
    return ::syscall(SYS_mremap, from, nbytes, nbytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
           to_address;
}

struct moved_run {
    page_run pages;
    const transport::arena *arena = nullptr; ///< null: a forked child shares them
    local_rank own;
    std::uint64_t offset = 0;
    void *copy = nullptr; ///< of the pages, for a child that is being forked
};

struct moved_table {
    std::mutex mutex;
    std::vector<moved_run> runs;
};
/// Never destroyed: forks may follow the exit handlers.
moved_table &moved() {
    static auto *const only = new moved_table;
    return *only;
}

/// Forgets pages of libraries that the program has closed: something else may be there now.
void drop_unmapped() {
    std::erase_if(moved().runs, [](const moved_run &run) {
        return run.arena != nullptr &&
               !run.arena->is_mapped(run.own, run.offset, run.pages.nbytes,
                                     reinterpret_cast<const void *>(run.pages.base));
    });
}

/// A private copy; nullptr without memory.
void *copy_for_child(const moved_run &run) {
    if (run.arena == nullptr) {
        return nullptr;
    }
    void *const copy = ::mmap(nullptr, run.pages.nbytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED) {
        return nullptr;
    }
    run.arena->for_each_data(
        run.own, run.offset, run.pages.nbytes, [&](std::uint64_t begin, std::size_t nbytes) {
            std::uint64_t const inside = begin - run.offset;
            std::memcpy(static_cast<std::byte *>(copy) + inside,
                        reinterpret_cast<const std::byte *>(run.pages.base) + inside, nbytes);
        });
    return copy;
}

void before_fork() {
    moved().mutex.lock();
    drop_unmapped();
    for (moved_run &run : moved().runs) {
        run.copy = copy_for_child(run);
    }
}

void after_fork_in_parent() {
    for (moved_run &run : moved().runs) {
        if (run.copy != nullptr) {
            ::munmap(run.copy, run.pages.nbytes);
        }
        run.copy = nullptr;
    }
    moved().mutex.unlock();
}

/// The child would otherwise change its parent's variables.
void after_fork_in_child() {
    for (moved_run const &run : moved().runs) {
        auto *const there = reinterpret_cast<void *>(run.pages.base);
        if (run.arena != nullptr &&
            (run.copy == nullptr || !remap(run.copy, run.pages.nbytes, there))) {
            log(log_level::error, "a forked child shares the static data of its parent: {}",
                ::strerrordesc_np(errno));
        }
    }
    moved().runs.clear();
    moved().mutex.unlock();
}

/// Keeps handlers of this thread, which may write to static data, from running.
class blocked_signals {
public:
    blocked_signals() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    blocked_signals(const blocked_signals &) = delete;
    blocked_signals &operator=(const blocked_signals &) = delete;
    ~blocked_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

} // namespace

std::optional<page_run> find_static_pages(std::uintptr_t address, std::size_t nbytes) {
    // The one guards the space between variables, also against copies. The other's own variables
    // are in the program's data, and all threads write to them at any time.
    if (DIOMP_ADDRESS_SANITIZER || has_address_sanitizer() || has_thread_sanitizer()) {
        return std::nullopt;
    }
    search wanted{address, nbytes, std::nullopt};
    ::dl_iterate_phdr(look_into, &wanted);
    return wanted.found;
}

std::optional<moved_pages> find_moved_pages(std::uintptr_t address, std::size_t nbytes) {
    std::lock_guard const guard(moved().mutex);
    drop_unmapped();
    for (const moved_run &run : moved().runs) {
        if (run.pages.contains(address, nbytes)) {
            return moved_pages{run.pages, run.offset};
        }
    }
    return std::nullopt;
}

status move_static_pages(const transport::arena &arena, local_rank own, const page_run &pages,
                         std::uint64_t offset) {
    [[maybe_unused]] static int const handlers =
        ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    std::byte *const there = arena.slot(own) + offset;
    arena.release_pages(own, offset, pages.nbytes); // zeros
    std::lock_guard const guard(moved().mutex);
    moved().runs.reserve(moved().runs.size() + 1);
    blocked_signals const blocked;
    copy_pages(there, reinterpret_cast<const std::byte *>(pages.base), pages.nbytes);
    auto *const here = reinterpret_cast<void *>(pages.base);
    DIOMP_TRY(arena.map_again(own, offset, pages.nbytes, here));
    (void)::madvise(here, pages.nbytes, MADV_DODUMP);
    moved().runs.push_back({pages, &arena, own, offset, nullptr});
    return {};
}

void note_shared_pages(const page_run &pages, std::uint64_t offset) {
    std::lock_guard const guard(moved().mutex);
    moved().runs.push_back({pages, nullptr, {}, offset, nullptr});
}

void release_other_pages(const transport::arena &arena, local_rank own, std::uint64_t offset,
                         std::size_t nbytes) {
    std::lock_guard const guard(moved().mutex);
    std::uint64_t const end = offset + nbytes;
    std::vector<moved_run> kept = moved().runs;
    std::sort(kept.begin(), kept.end(),
              [](const moved_run &a, const moved_run &b) { return a.offset < b.offset; });
    for (const moved_run &run : kept) {
        arena.release_pages(own, offset, run.offset - offset);
        offset = run.offset + run.pages.nbytes;
    }
    arena.release_pages(own, offset, end - offset);
}

} // namespace diomp::memory
