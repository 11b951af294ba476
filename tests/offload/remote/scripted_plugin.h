// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stands for LLVM's plugins in a session: one device whose memory is the process's, with two
// kernels. It tells in memory that all processes of a test share what it was used for.
#pragma once

#include "offload/plugin_table.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

extern "C" void diomp_take_plugins(const diomp_plugin_table *table);

namespace diomp_test {

struct plugin_use {
    std::atomic<int> copies{0}; ///< by the plugin: between memory of the process and the device
    std::atomic<int> frees{0};
    std::atomic<int> launches{0};
    std::atomic<bool> entered{false};
    std::atomic<bool> touched{false}; ///< somebody came to guarded memory, and waits
    std::atomic<bool> may_pass{false};
};

/// Shared by processes that are forked later.
inline plugin_use &used() {
    static auto *const shared = new (::mmap(nullptr, sizeof(plugin_use), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) plugin_use;
    return *shared;
}

/// The kernel of every image: adds 1 to each byte of its arguments' range (address, size).
constexpr const char *kernel_name = "__omp_offloading_add_one";
/// Who touches its range (whole pages) afterwards waits until may_pass.
constexpr const char *guard_name = "__omp_offloading_guard";

namespace scripted {

inline void *at(std::uint64_t address) { return reinterpret_cast<void *>(address); }

/// In front of each allocation, on a page of its own.
constexpr std::size_t page = 4096;

inline std::uint64_t allocate(int, std::uint64_t nbytes) {
    void *const whole =
        ::mmap(nullptr, page + nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) {
        return 0;
    }
    std::memcpy(whole, &nbytes, sizeof nbytes);
    return reinterpret_cast<std::uint64_t>(whole) + page;
}

/// Who uses it afterwards crashes.
inline int release(int, std::uint64_t address) {
    std::uint64_t nbytes = 0;
    std::memcpy(&nbytes, at(address - page), sizeof nbytes);
    used().frees.fetch_add(1);
    return ::munmap(at(address - page), page + nbytes);
}

inline int move(void *to, const void *from, std::uint64_t nbytes) {
    used().copies.fetch_add(1);
    std::memmove(to, from, nbytes);
    return 0;
}

constexpr std::uint64_t kernel_handle = 77;
constexpr std::uint64_t guard_handle = 78;
inline std::uint64_t guarded[2]; ///< address, size

inline void wait_at_guard(int /*signal*/) {
    used().touched.store(true);
    while (!used().may_pass.load()) {
        ::usleep(100);
    }
    ::mprotect(at(guarded[0]), guarded[1], PROT_READ | PROT_WRITE);
}

inline int launch(int, const diomp_remote_launch *what) {
    std::uint64_t arguments[2];
    std::memcpy(arguments, what->arguments, sizeof arguments);
    if (what->kernel == guard_handle) {
        std::memcpy(guarded, arguments, sizeof guarded);
        std::signal(SIGSEGV, wait_at_guard);
        return ::mprotect(at(guarded[0]), guarded[1], PROT_NONE);
    }
    auto *const bytes = static_cast<unsigned char *>(at(arguments[0]));
    for (std::uint64_t i = 0; i < arguments[1]; ++i) {
        ++bytes[i];
    }
    used().launches.fetch_add(1);
    return 0;
}

/// Everything else but "no_symbol" is memory, as plugins have it that know no more than addresses.
inline std::uint64_t symbol(void * /*image*/, std::string_view name, std::uint64_t nbytes) {
    if (name == kernel_name || name == guard_name) {
        return name == kernel_name ? kernel_handle : guard_handle;
    }
    return name == "no_symbol" ? 0 : allocate(0, nbytes);
}

inline int enter(int) {
    used().entered.store(true);
    sigset_t faults; // which the runtime's threads block
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    return ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

constexpr diomp_plugin_table table = {
    DIOMP_PLUGIN_TABLE_VERSION,
    [](const char *) { return 1; },
    [] { return std::uint32_t{62}; },
    [](int) { return 0; },
    [](int, const void *image, std::uint64_t) { return const_cast<void *>(image); },
    [](void *image, const char *name, std::uint64_t nbytes) { return symbol(image, name, nbytes); },
    allocate,
    release,
    [](int, std::uint64_t to, const void *from, std::uint64_t nbytes) {
        return move(at(to), from, nbytes);
    },
    [](int, void *to, std::uint64_t from, std::uint64_t nbytes) {
        return move(to, at(from), nbytes);
    },
    [](int, std::uint64_t to, std::uint64_t from, std::uint64_t nbytes) {
        return move(at(to), at(from), nbytes);
    },
    launch,
    enter,
    [](int) { return ""; },
    [](int) { return std::uint64_t{0}; },
    [](const diomp_offload_table *) {},
};

} // namespace scripted
} // namespace diomp_test
