// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/arena.h"

#include "base/log.h"
#include "base/mappings.h"
#include "base/sanitizer.h"
#include "base/sizes.h"
#include "base/unique_fd.h"
#include "launch/launch.h"
#include "launch/placement.h"
#include "transport/arena_geometry.h"
#include "transport/fd_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/falloc.h>
#include <numeric>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace diomp::transport {
namespace {

constexpr int exchange_timeout_ms = 30000;

/// The only large hole that clang's and gcc's ThreadSanitizer count as application memory. It ends
/// at the address of Linux's first position-independent programs, and contains two arenas
/// (offload/remote/world.cpp).
constexpr std::uint64_t thread_sanitizer_hole = 0x550000000000;
constexpr std::uint64_t first_program = 0x555555554000;
constexpr std::uint64_t end_of_programs = 0x7ffffffff000; ///< Linux, x86-64, four levels of tables

/// Bytes of the tables in the file of a node.
std::size_t table_bytes(int num_ranks) {
    return arena_geometry::round_up(static_cast<std::size_t>(num_ranks) *
                                        (sizeof(world_rank) + 2 * sizeof(std::int32_t)),
                                    arena_geometry::page_bytes);
}

struct table_columns {
    std::span<world_rank> ranks;
    std::span<std::int32_t> nodes;
    std::span<std::int32_t> slot_numbers;
};

table_columns columns_of(void *memory, int num_ranks) {
    auto const count = static_cast<std::size_t>(num_ranks);
    auto *const numbers = static_cast<std::int32_t *>(memory);
    static_assert(sizeof(world_rank) == sizeof(std::int32_t));
    return {{static_cast<world_rank *>(memory), count},
            {numbers + count, count},
            {numbers + 2 * count, count}};
}

/// The first rank of a node writes the tables before the others have the file.
status write_tables(launch::launcher &launcher, const arena_options &options, int num_slots, int fd,
                    std::size_t offset) {
    launch::job_info const &job = launcher.info();
    std::size_t const nbytes = table_bytes(job.size);
    void *const memory =
        ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) {
        return system_error("mapping the tables of the ranks", errno);
    }
    table_columns const to = columns_of(memory, job.size);
    for (int rank = 0; rank < job.size; ++rank) {
        std::construct_at(&to.ranks[static_cast<std::size_t>(rank)], rank);
    }
    status filled;
    if (has_slots_by_node(job, options)) {
        auto fetched = launch::fetch_placement(launcher);
        if (fetched) {
            fetched.value().fill(to.nodes, to.slot_numbers);
            if (num_slots == job.size) {
                std::iota(to.slot_numbers.begin(), to.slot_numbers.end(), 0);
            }
        } else {
            filled = fetched.take_failure();
        }
    } else {
        launch::placement(job.size).fill(to.nodes, to.slot_numbers);
    }
    ::munmap(memory, nbytes);
    return filled;
}

result<unique_fd> make_file(std::size_t nbytes, const char *size_remedy) {
    unique_fd fd(::memfd_create("diomp-segment", MFD_CLOEXEC));
    if (!fd.valid()) {
        return system_error("memfd_create", errno);
    }
    std::string const what =
        fmt::format("reserving {} for the segments of this node", format_size(nbytes));
    // A larger file would not return an error but end the process, by SIGXFSZ.
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < nbytes) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("{}: files are limited to {} here (ulimit -f), and memory files "
                                 "count",
                                 what, format_size(limit.rlim_cur)),
                     fmt::format("raise the limit (ulimit -f unlimited), or {}", size_remedy));
    }
    if (::ftruncate(fd.get(), static_cast<off_t>(nbytes)) != 0) {
        return system_error(what, errno, size_remedy);
    }
    return fd;
}

/// The node's first rank creates the file with the tables at `tables_offset`, the others receive
/// its descriptor.
result<unique_fd> share_file(launch::launcher &launcher, const arena_options &options,
                             int num_slots, std::size_t tables_offset) {
    auto const &job = launcher.info();
    std::string const name =
        fmt::format("diomp-{}-{}", job.job_id, job.local_ranks.front().value());
    if (job.local != local_rank{0}) {
        DIOMP_TRY(launcher.fence());
        return fetch_descriptor(name, exchange_timeout_ms);
    }
    auto fd = make_file(tables_offset + table_bytes(job.size), options.size_remedy);
    DIOMP_TRY(fd);
    DIOMP_TRY(write_tables(launcher, options, num_slots, fd.value().get(), tables_offset));
    if (job.local_size == 1) {
        // Other nodes may still exchange descriptors: all ranks call the same number of fences.
        if (job.size > 1) {
            DIOMP_TRY(launcher.fence());
        }
        return fd;
    }
    auto listener = listen_for_peers(name, job.local_size - 1);
    DIOMP_TRY(listener);
    DIOMP_TRY(launcher.fence());
    DIOMP_TRY(serve_descriptor(listener.value().get(), fd.value().get(), job.local_size - 1,
                               exchange_timeout_ms));
    return fd;
}

std::string mapping_in(std::uintptr_t begin, std::uintptr_t end) {
    std::string found;
    visit_mappings([&](const memory_mapping &each) {
        if (each.begin < end && each.end > begin) {
            found = each.line;
            found.erase(found.find_last_not_of('\n') + 1);
        }
        return found.empty();
    });
    return found;
}

} // namespace

std::uint64_t arena::default_base() {
    // Above AddressSanitizer's shadow, below Linux's addresses of position-independent programs.
    constexpr std::uint64_t usual = 0x200000000000;
    return has_thread_sanitizer() ? thread_sanitizer_hole : usual;
}

std::uint64_t arena::max_span() {
    constexpr std::uint64_t gib = std::uint64_t{1} << 30;
    constexpr std::uint64_t half_span_bytes =
        (first_program - thread_sanitizer_hole) / 2 / gib * gib;
    return has_thread_sanitizer() ? half_span_bytes : 32 * 1024 * gib;
}

std::string segment_size_remedy(const char *setting, std::uint64_t nbytes,
                                std::uint64_t segment_bytes) {
    return nbytes > arena::max_span() ? "check the arithmetic that the size comes from"
                                      : fmt::format("set {} above {}", setting,
                                                    format_size(std::max(nbytes, segment_bytes)));
}

result<std::unique_ptr<arena>> arena::create(launch::launcher &launcher,
                                             const arena_options &options) {
    auto agreed = agree_geometry(launcher, options);
    DIOMP_TRY(agreed);
    auto const &job = launcher.info();
    arena_geometry const &shape = agreed.value();
    std::unique_ptr<arena> made(new arena);
    made->base_ = shape.base;
    made->usable_bytes_ = shape.usable_bytes;
    made->device_offset_ = shape.device_offset();
    made->device_bytes_ = shape.device_bytes;
    made->slot_bytes_ = shape.slot_bytes();
    made->control_bytes_ = options.control_bytes;
    made->num_ranks_ = job.size;
    made->num_slots_ = shape.num_slots;
    made->num_local_ = job.local_size;
    made->is_in_core_ = options.is_in_core;
    made->has_redzones_ = shape.has_redzones != 0;
    made->local_ranks_ = job.local_ranks;
    auto fd = share_file(launcher, options, shape.num_slots, made->tables_in_file());
    DIOMP_TRY(fd);
    made->fd_ = fd.value().release();
    DIOMP_TRY(made->map_control());
    DIOMP_TRY(made->map_tables());
    DIOMP_TRY(made->map_slots(options.size_remedy));
    return made;
}

status arena::map_tables() {
    std::size_t const nbytes = table_bytes(num_ranks_);
    void *const memory =
        ::mmap(nullptr, nbytes, PROT_READ, MAP_SHARED, fd_, static_cast<off_t>(tables_in_file()));
    if (memory == MAP_FAILED) {
        return system_error("mapping the tables of the ranks", errno);
    }
    table_memory_ = memory;
    keep_out_of_core(memory, nbytes);
    table_columns const from = columns_of(memory, num_ranks_);
    tables_ = {from.ranks, from.nodes, from.slot_numbers};
    return {};
}

std::optional<world_rank> arena::rank_here(std::size_t number) const {
    auto const found = std::ranges::find_if(local_ranks_, [&](world_rank each) {
        return static_cast<std::size_t>(slot_number(each)) == number;
    });
    if (found != local_ranks_.end()) {
        return *found;
    }
    return shares_slots() || number >= tables_.slot_numbers.size()
               ? std::nullopt
               : std::optional(world_rank{static_cast<int>(number)});
}

namespace {

/// Maps pages of the file of a node's slots, in place of what is mapped there.
bool map_over(void *to, std::size_t nbytes, int fd, std::uint64_t offset) {
    return ::mmap(to, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
                  static_cast<off_t>(offset)) != MAP_FAILED;
}

} // namespace

status arena::map_control() {
    void *const control = ::mmap(nullptr, static_cast<std::size_t>(num_local_) * control_bytes_,
                                 PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (control == MAP_FAILED) {
        return system_error("mapping the control area", errno);
    }
    control_ = static_cast<std::byte *>(control);
    keep_out_of_core(control, static_cast<std::size_t>(num_local_) * control_bytes_);
    return {};
}

// The kernel reads memory page by page while it writes a core file, and commits the holes of a
// memory file on the way: the segments of a node are larger than its memory.
void arena::keep_out_of_core(void *begin, std::size_t nbytes) const {
    if (!is_in_core_ && ::madvise(begin, nbytes, MADV_DONTDUMP) != 0) {
        log(log_level::debug, "core files will contain the segments: {}", ::strerrordesc_np(errno));
    }
}

void arena::allow_in_core(local_rank owner, std::uint64_t offset, std::size_t nbytes) const {
    auto const page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::uint64_t const begin = offset / page * page;
    std::uint64_t const end = (offset + nbytes + page - 1) / page * page;
    if (is_in_core_ || begin == end) {
        return;
    }
    if (::madvise(slot(local_ranks_[owner.index()]) + begin, end - begin, MADV_DODUMP) != 0) {
        log(log_level::debug, "core files will not contain this rank's data: {}",
            ::strerrordesc_np(errno));
    }
}

status arena::map_slots(const char *size_remedy) {
    std::size_t const span = span_bytes();
    void *const wanted = reinterpret_cast<void *>(base_);
    auto const failed = [&](int code) {
        return system_error(
            fmt::format("mapping {} of segments at {:#x}", format_size(span), base_), code,
            base_ + span > end_of_programs
                ? std::string("set DIOMP_SEGMENT_BASE to a smaller address, or leave it unset")
                : fmt::format("{}, or raise the limit on address space (ulimit -v)", size_remedy));
    };
    // Reserve the whole arena, so that no other mapping takes slots that only larger nodes use.
    void *const reserved =
        ::mmap(wanted, span, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (reserved == MAP_FAILED && errno != EEXIST) {
        return failed(errno);
    }
    if (reserved != wanted) {
        if (reserved != MAP_FAILED) {
            ::munmap(reserved, span); // a kernel without MAP_FIXED_NOREPLACE
        }
        return error(OMPX_ERR_NOMEM,
                     fmt::format("the address range of the segments, {:#x} + {}, is taken: {}",
                                 base_, format_size(span), mapping_in(base_, base_ + span)),
                     "set DIOMP_SEGMENT_BASE to a free address");
    }
    mapped_ = true;
    for (std::size_t local = 0; local < local_ranks_.size(); ++local) {
        if (!map_over(slot(local_ranks_[local]), slot_bytes_, fd_,
                      slot_in_file(local_rank{static_cast<int>(local)}))) {
            return failed(errno);
        }
    }
    keep_out_of_core(wanted, span);
    return {};
}

arena::~arena() {
    if (mapped_) {
        ::munmap(reinterpret_cast<void *>(base_), span_bytes());
    }
    if (table_memory_ != nullptr) {
        ::munmap(table_memory_, table_bytes(num_ranks_));
    }
    if (control_ != nullptr) {
        ::munmap(control_, static_cast<std::size_t>(num_local_) * control_bytes_);
    }
    ::close(fd_);
}

// Not mremap() with an old size of 0, which QEMU's user mode refuses.
status arena::map_again(local_rank owner, std::uint64_t offset, std::size_t nbytes,
                        void *to) const {
    return map_over(to, nbytes, fd_, slot_in_file(owner) + offset)
               ? status()
               : system_error("mapping pages of the segment once more", errno);
}

bool arena::is_mapped(local_rank owner, std::uint64_t offset, std::size_t nbytes,
                      const void *at) const {
    struct stat file{};
    if (::fstat(fd_, &file) != 0) {
        return true;
    }
    auto const begin = reinterpret_cast<std::uintptr_t>(at);
    std::uintptr_t next = begin; // address of the first byte that no mapping seen so far has
    std::uint64_t const in_file = slot_in_file(owner) + offset;
    bool const is_listed = visit_mappings([&](const memory_mapping &each) {
        if (next < each.begin) {
            return false;
        }
        if (next >= each.end) {
            return true;
        }
        if (each.inode != file.st_ino || each.device != file.st_dev ||
            each.offset + (next - each.begin) != in_file + (next - begin)) {
            return false;
        }
        next = each.end;
        return next < begin + nbytes;
    });
    return !is_listed || next >= begin + nbytes;
}

void arena::release_pages(local_rank owner, std::uint64_t offset, std::size_t nbytes) const {
    auto const page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::uint64_t const begin = (offset + page - 1) / page * page;
    std::uint64_t const end = (offset + nbytes) / page * page;
    if (begin >= end) {
        return;
    }
    std::uint64_t const file_offset = slot_in_file(owner) + begin;
    if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(file_offset), static_cast<off_t>(end - begin)) != 0) {
        log(log_level::debug, "could not return {} to the system: {}", format_size(end - begin),
            ::strerrordesc_np(errno));
    }
}

void arena::for_each_data(local_rank owner, std::uint64_t offset, std::size_t nbytes,
                          function_ref<void(std::uint64_t, std::size_t)> each) const {
    // Holes of the file are skipped, so the cost grows with the data, not with the reservation.
    auto const start = static_cast<off_t>(slot_in_file(owner));
    off_t const end = start + static_cast<off_t>(offset + nbytes);
    for (off_t position = start + static_cast<off_t>(offset); position < end;) {
        off_t const data = ::lseek(fd_, position, SEEK_DATA);
        if (data < 0 || data >= end) {
            break;
        }
        off_t const hole = std::min(::lseek(fd_, data, SEEK_HOLE), end);
        if (hole <= data) {
            break;
        }
        each(static_cast<std::uint64_t>(data - start), static_cast<std::size_t>(hole - data));
        position = hole;
    }
}

std::size_t arena::resident_bytes(local_rank owner) const {
    std::size_t resident = 0;
    for_each_data(owner, 0, slot_bytes_,
                  [&](std::uint64_t, std::size_t nbytes) { resident += nbytes; });
    return resident;
}

} // namespace diomp::transport
