// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stand-in for HIP's runtime, after the pattern of fake_cuda.h and smaller: host memory stands
// for device memory, in memfds, so that an interprocess handle can open it. Copies are carried out
// at the second question or when somebody waits.
//
//     FAKE_HIP_DEVICES=n        number of devices, 2; 0: hipGetDeviceCount says so with an error
//     FAKE_HIP_MEBIBYTES=n      memory of each device, 64
//     FAKE_HIP_VERSION=n        what hipRuntimeGetVersion says, 60100000
//     FAKE_HIP_FAIL=NAME[#N]=C  calls of NAME (the Nth only) return the code C
//     FAKE_HIP_ARCH=NAME        architecture of the devices, gfx90a
#pragma once

#include "device/stand_in_kernels.h"
#include "support/stand_in.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace fake_hip {

inline constexpr int ok = 0;
inline constexpr int invalid_value = 1;
inline constexpr int out_of_memory = 2;
inline constexpr int no_device = 100;
inline constexpr int invalid_device = 101;
inline constexpr int no_binary_for_gpu = 209;
inline constexpr int not_found = 500;
inline constexpr int not_ready = 600;
inline constexpr int already_enabled = 704;

struct allocation {
    std::size_t size;
    int fd;
    int device;
    bool opened;
};
struct launch {
    const stand_in::kernel *runs;
    unsigned long long num_threads;
    stand_in::reduction_arguments with;
    stand_in::update_arguments updates{}; ///< of the kernel of update.h
};
using work_function = int (*)(void *argument); ///< 1: complete, 0: ask again
/// A copy, a kernel, or work of another stand-in.
struct work {
    void *dst;
    const void *src;
    std::size_t size;
    std::optional<launch> kernel{};
    work_function foreign = nullptr;
    void *argument = nullptr;
};
struct stream {
    int device;
    int questions;
    std::deque<work> pending;
};
struct module {
    int device;
    std::string_view image; ///< the code object of the devices' architecture
};
struct function {
    module *in;
    const stand_in::kernel *runs;
};
struct token {
    char bytes[64];
};
struct words {
    int process;
    int fd;
    std::size_t size;
};

struct world {
    std::mutex mutex;
    std::map<char *, allocation> allocations;
    std::map<void *, std::size_t> host_allocations;
    std::set<void *> registered;
    std::set<stream *> streams;
    std::map<module *, std::unique_ptr<module>> modules;
    std::map<std::pair<module *, std::string>, function> functions;
    std::set<std::pair<int, int>> reaches; ///< (device, peer)
    int launches = 0;
    std::size_t host_bytes = 0; ///< copied between devices and the host
    std::string complaints;
    stand_in::failure demanded{"FAKE_HIP_FAIL"};
};
world &all();

extern thread_local int current; ///< device

int num_devices();
/// The answer to a call that breaks a rule.
int complain(const char *function, const char *text, int code);
/// Null: host memory.
allocation *holding(const void *where);
bool may_touch(int device, const void *where);

} // namespace fake_hip

#define EXPORTED extern "C" __attribute__((visibility("default")))
#define FAKE_HIP_ENTER                                                                             \
    std::unique_lock guard(fake_hip::all().mutex);                                                 \
    if (int const demanded_ = fake_hip::all().demanded.of(__func__)) {                             \
        return demanded_;                                                                          \
    }
