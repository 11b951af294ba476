// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/image_store.h"

#include "base/descriptor_message.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC // Linux 6.3
#define MFD_EXEC 0x0010U
#endif

namespace diomp::offload::service {
namespace {

constexpr std::uint64_t pack(pid_t owner, int fd) {
    return std::uint64_t{static_cast<std::uint32_t>(owner)} << 32 | static_cast<std::uint32_t>(fd);
}

std::string path_of_packed(std::uint64_t location) {
    return fmt::format("/proc/{}/fd/{}", location >> 32, location & 0xffffffffU);
}

} // namespace

result<unique_fd> make_image_memory(std::string_view content) {
    constexpr unsigned wanted = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    unique_fd memory(::memfd_create("device image", wanted | MFD_EXEC));
    if (!memory.valid()) {
        memory = unique_fd(::memfd_create("device image", wanted));
    }
    if (!memory.valid()) {
        return system_error("memory for a device image", errno);
    }
    while (!content.empty()) {
        ssize_t const written = ::write(memory.get(), content.data(), content.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return system_error("writing a device image to memory", errno);
        }
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    return memory;
}

std::string path_of(const unique_fd &memory) {
    // In a PID namespace, /proc may have other numbers of processes.
    return fmt::format("/proc/self/fd/{}", memory.get());
}

struct image_store::table {
    static constexpr std::size_t num_entries =
        512; ///< when full, further images are sent to each session
    struct entry {
        std::atomic<std::uint64_t> location{
            0}; ///< process and descriptor; 0: `id` is not valid yet
        remote::image_id id;
        dev_t device = 0; ///< of the file, which /proc may show under another process's name
        ino_t inode = 0;
    };
    std::atomic<std::uint32_t> num_claimed{0};
    std::array<entry, num_entries> entries;
};

result<std::unique_ptr<image_store>> image_store::create() {
    std::unique_ptr<image_store> made(new image_store);
    void *const memory =
        ::mmap(nullptr, sizeof(table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return system_error("memory for a table of device images", errno);
    }
    made->table_ = new (memory) table;
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return system_error("socketpair", errno);
    }
    made->from_sessions_ = unique_fd(ends[0]);
    made->to_service_ = unique_fd(ends[1]);
    return made;
}

image_store::~image_store() {
    if (table_ != nullptr) {
        ::munmap(table_, sizeof *table_);
    }
}

std::optional<unique_fd> image_store::find(const remote::image_id &id) const {
    if (is_private_) {
        return std::nullopt;
    }
    for (table::entry const &each : table_->entries) {
        std::uint64_t const location = each.location.load(std::memory_order_acquire);
        if (location == 0 || each.id != id) {
            continue;
        }
        unique_fd found(::open(path_of_packed(location).c_str(), O_RDONLY | O_CLOEXEC));
        struct stat about{};
        // A session that ended before the service received its image leaves a stale entry.
        if (found.valid() && ::fstat(found.get(), &about) == 0 && about.st_dev == each.device &&
            about.st_ino == each.inode) {
            return found;
        }
    }
    return std::nullopt;
}

result<unique_fd> image_store::add(const remote::image_id &id, std::string_view image) {
    if (remote::identify(image) != id) {
        return error(OMPX_ERR_ARG, "the received image does not match the announced one");
    }
    auto memory = make_image_memory(image);
    DIOMP_TRY(memory);
    if (is_private_) {
        return memory;
    }
    std::uint32_t number = table_->num_claimed.load(std::memory_order_relaxed);
    while (number < table::num_entries &&
           !table_->num_claimed.compare_exchange_weak(number, number + 1)) {
    }
    if (number < table::num_entries) {
        table::entry &mine = table_->entries[number];
        struct stat about{};
        if (::fstat(memory.value().get(), &about) != 0) {
            return system_error("a device image in memory", errno);
        }
        mine.id = id;
        mine.device = about.st_dev;
        mine.inode = about.st_ino;
        mine.location.store(pack(::getpid(), memory.value().get()), std::memory_order_release);
        descriptor_message message(&number, sizeof number);
        message.attach(memory.value().get());
        // If the service is too busy, only the session keeps the image, for the other sessions.
        static_cast<void>(
            ::sendmsg(to_service_.get(), message.header(), MSG_NOSIGNAL | MSG_DONTWAIT));
    }
    return memory;
}

void image_store::take() {
    for (;;) {
        std::uint32_t number = 0;
        descriptor_message message(&number, sizeof number);
        ssize_t const got =
            ::recvmsg(from_sessions_.get(), message.header(), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0) {
            return;
        }
        unique_fd taken = message.take();
        if (got == sizeof number && number < table::num_entries && taken.valid()) {
            table_->entries[number].location.store(pack(::getpid(), taken.get()),
                                                   std::memory_order_release);
            descriptors_.push_back(std::move(taken));
        }
    }
}

} // namespace diomp::offload::service
