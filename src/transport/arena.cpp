// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/arena.h"

#include "base/log.h"
#include "base/sanitizer.h"
#include "base/sizes.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "launch/launch.h"
#include "transport/fd_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace diomp::transport {
namespace {

/// Slots begin at multiples of this, so an offset aligned to less gives an address aligned to less.
constexpr std::size_t slot_granule = arena::max_alignment;
constexpr std::size_t page_bytes = 4096;

constexpr std::size_t round_up(std::size_t value, std::size_t granule) {
    return (value + granule - 1) / granule * granule;
}
constexpr int exchange_timeout_ms = 30000;

/// The only large hole that clang's and gcc's ThreadSanitizer count as application memory. It ends
/// at the address of Linux's first position-independent programs, and contains two arenas
/// (offload/remote/world.cpp).
constexpr std::uint64_t thread_sanitizer_hole = 0x550000000000;
constexpr std::uint64_t first_program = 0x555555554000;

std::size_t physical_memory_bytes() {
    return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

struct geometry {
    std::uint64_t base = 0;
    std::size_t usable_bytes = 0;
    std::size_t device_bytes = 0;
    int has_redzones = 0;

    [[nodiscard]] std::size_t device_offset() const { return round_up(usable_bytes, slot_granule); }
    [[nodiscard]] std::size_t slot_bytes() const {
        return device_offset() + round_up(device_bytes, slot_granule);
    }
};

/// Sizes that were not set: the node's memory, or a share of the maximum slot.
void choose_auto_sizes(geometry &mine, const arena_options &options, std::size_t slots) {
    std::size_t const max_slot_bytes = arena::max_span() / slots / slot_granule * slot_granule;
    auto const remaining_bytes = [max_slot_bytes](std::size_t taken) {
        return max_slot_bytes -
               std::min(max_slot_bytes, round_up(std::min(taken, max_slot_bytes), slot_granule));
    };
    if (options.usable_bytes == 0) {
        std::size_t const budget_bytes = options.choose_device_bytes
                                             ? max_slot_bytes / 2
                                             : remaining_bytes(options.device_bytes);
        mine.usable_bytes = std::min<std::size_t>(physical_memory_bytes(),
                                                  budget_bytes / slot_granule * slot_granule);
    }
    if (options.choose_device_bytes) {
        // Neither tiny nor more than the program's own choice leaves.
        std::size_t const host_bytes =
            round_up(std::min(mine.usable_bytes, max_slot_bytes), slot_granule);
        mine.device_bytes = std::min(remaining_bytes(mine.usable_bytes),
                                     std::max(host_bytes, options.device_bytes));
    }
}

/// Sums of sizes must not overflow, and a segment must not be empty.
status check_sizes(const geometry &mine) {
    if (mine.usable_bytes > arena::max_span() || mine.device_bytes > arena::max_span() ||
        mine.usable_bytes == 0) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("segments of {} with {} for devices do not fit into "
                                 "the address arena of {}",
                                 format_size(mine.usable_bytes), format_size(mine.device_bytes),
                                 format_size(arena::max_span())),
                     "set DIOMP_SEGMENT_SIZE or DIOMP_DEVICE_SEGMENT_SIZE to a smaller value");
    }
    return {};
}

/// Layouts of messages and of shared memory differ between releases. The version is in the first
/// value that a rank reads of another one, and must stay there: later values may differ too.
status check_version(const launch::job_info &job, const std::string &of_rank_0) {
    if (of_rank_0 == library_version()) {
        return {};
    }
    return error(
        OMPX_ERR_UNSUPPORTED,
        fmt::format("rank {} on {} has loaded version {} of libdiomp, and rank 0 version {}",
                    job.rank.value(), job.host, library_version(), of_rank_0),
        "start all ranks with the same library: compare LD_LIBRARY_PATH of the ranks, and "
        "what diomp-info prints on their hosts");
}

/// Rank 0 chooses the geometry for the whole job, so that an address means the same everywhere.
result<geometry> agree_geometry(launch::launcher &launcher, const arena_options &options) {
    auto const &job = launcher.info();
    if (job.rank == world_rank{0}) {
        geometry mine{options.base == 0 ? arena::default_base() : options.base,
                      options.usable_bytes, options.device_bytes, options.has_redzones ? 1 : 0};
        choose_auto_sizes(mine, options, static_cast<std::size_t>(job.size));
        mine.usable_bytes = round_up(mine.usable_bytes, page_bytes);
        if (job.size == 1) {
            return mine;
        }
        DIOMP_TRY(launcher.put("window", fmt::format("{} {} {} {} {}", library_version(), mine.base,
                                                     mine.usable_bytes, mine.device_bytes,
                                                     mine.has_redzones)));
    }
    DIOMP_TRY(launcher.fence());
    auto text = launcher.get(world_rank{0}, "window");
    DIOMP_TRY(text);
    std::string const version = text.value().substr(0, text.value().find(' '));
    DIOMP_TRY(check_version(job, version));
    geometry agreed;
    if (std::sscanf(text.value().c_str() + version.size(), "%lu %zu %zu %d", &agreed.base,
                    &agreed.usable_bytes, &agreed.device_bytes, &agreed.has_redzones) != 4) {
        return error(OMPX_ERR_SYSTEM, "rank 0 published a malformed arena geometry");
    }
    return agreed;
}

result<unique_fd> make_file(std::size_t nbytes) {
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
                     "raise the limit (ulimit -f unlimited), or set DIOMP_SEGMENT_SIZE to a "
                     "smaller value");
    }
    if (::ftruncate(fd.get(), static_cast<off_t>(nbytes)) != 0) {
        return system_error(what, errno, "set DIOMP_SEGMENT_SIZE to a smaller value");
    }
    return fd;
}

/// The node's first rank creates the file, the others receive its descriptor.
result<unique_fd> share_file(launch::launcher &launcher, std::size_t nbytes) {
    auto const &job = launcher.info();
    if (job.local_size == 1) {
        // Other nodes may still exchange descriptors: all ranks call the same number of fences.
        if (job.size > 1) {
            DIOMP_TRY(launcher.fence());
        }
        return make_file(nbytes);
    }
    std::string const name =
        fmt::format("diomp-{}-{}", job.job_id, job.local_ranks.front().value());
    if (job.local != local_rank{0}) {
        DIOMP_TRY(launcher.fence());
        return fetch_descriptor(name, exchange_timeout_ms);
    }
    auto fd = make_file(nbytes);
    DIOMP_TRY(fd);
    auto listener = listen_for_peers(name, job.local_size - 1);
    DIOMP_TRY(listener);
    DIOMP_TRY(launcher.fence());
    DIOMP_TRY(serve_descriptor(listener.value().get(), fd.value().get(), job.local_size - 1,
                               exchange_timeout_ms));
    return fd;
}

std::string mapping_in(std::uintptr_t begin, std::uintptr_t end) {
    std::FILE *maps = std::fopen("/proc/self/maps", "re");
    std::string found;
    char line[512];
    while (maps != nullptr && found.empty() && std::fgets(line, sizeof(line), maps) != nullptr) {
        std::uintptr_t low = 0;
        std::uintptr_t high = 0;
        if (std::sscanf(line, "%lx-%lx", &low, &high) == 2 && low < end && high > begin) {
            found = line;
            found.erase(found.find_last_not_of('\n') + 1);
        }
    }
    if (maps != nullptr) {
        std::fclose(maps);
    }
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

result<std::unique_ptr<arena>> arena::create(launch::launcher &launcher,
                                             const arena_options &options) {
    auto agreed = agree_geometry(launcher, options);
    DIOMP_TRY(agreed);
    auto const &job = launcher.info();
    auto const slots = static_cast<std::size_t>(job.size);
    geometry const &shape = agreed.value();
    DIOMP_TRY(check_sizes(shape));
    std::size_t const slot_bytes = shape.slot_bytes();
    if (slot_bytes > arena::max_span() / slots) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("{} ranks times {} per segment exceed the address arena of {}",
                                 slots, format_size(slot_bytes), format_size(arena::max_span())),
                     "set DIOMP_SEGMENT_SIZE or DIOMP_DEVICE_SEGMENT_SIZE to a smaller value");
    }
    auto const local = static_cast<std::size_t>(job.local_size);
    auto fd = share_file(launcher, local * (options.control_bytes + slot_bytes));
    DIOMP_TRY(fd);

    std::unique_ptr<arena> made(new arena);
    made->base_ = shape.base;
    made->usable_bytes_ = shape.usable_bytes;
    made->device_offset_ = shape.device_offset();
    made->device_bytes_ = shape.device_bytes;
    made->slot_bytes_ = slot_bytes;
    made->control_bytes_ = options.control_bytes;
    made->num_slots_ = job.size;
    made->num_local_ = job.local_size;
    made->is_in_core_ = options.is_in_core;
    made->has_redzones_ = shape.has_redzones != 0;
    made->local_ranks_ = job.local_ranks;
    made->fd_ = fd.value().release();
    DIOMP_TRY(made->map_control());
    DIOMP_TRY(made->map_slots(job));
    return made;
}

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

status arena::map_slots(const launch::job_info &job) {
    std::size_t const span = static_cast<std::size_t>(num_slots_) * slot_bytes_;
    void *const wanted = reinterpret_cast<void *>(base_);
    auto const failed = [&](int code) {
        return system_error(
            fmt::format("mapping {} of segments at {:#x}", format_size(span), base_), code,
            "set DIOMP_SEGMENT_SIZE to a smaller value, or raise the limit on address space "
            "(ulimit -v)");
    };
    // Reserve the whole arena, so that no other mapping takes the slots of other nodes.
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
    for (std::size_t local = 0; local < job.local_ranks.size(); ++local) {
        if (::mmap(slot(job.local_ranks[local]), slot_bytes_, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd_,
                   static_cast<off_t>(slot_in_file(local_rank{static_cast<int>(local)}))) ==
            MAP_FAILED) {
            return failed(errno);
        }
    }
    keep_out_of_core(wanted, span);
    return {};
}

arena::~arena() {
    if (mapped_) {
        ::munmap(reinterpret_cast<void *>(base_),
                 static_cast<std::size_t>(num_slots_) * slot_bytes_);
    }
    if (control_ != nullptr) {
        ::munmap(control_, static_cast<std::size_t>(num_local_) * control_bytes_);
    }
    ::close(fd_);
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
