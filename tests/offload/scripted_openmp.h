// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stand-in for libomptarget with CUDA devices: it asks the runtime for memory as ours does, and
// answers the runtime's questions. The devices are those of tests/device/fake_cuda.h, whose memory
// the processor cannot touch; device_array reads and writes it as a kernel would.
//
// The including program exports the functions (ENABLE_EXPORTS) and sets DIOMP_CUDA_LIBRARY.
#pragma once

#include "diomp.h"
#include "offload/table.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

extern "C" const diomp_offload_table *diomp_offload_table();

namespace scripted {

/// Mapped sections: (device, host address) to size and device address.
struct section {
    std::size_t nbytes;
    char *device;
};
inline std::mutex g_mutex;
inline std::map<std::pair<int, std::uintptr_t>, section> g_sections;

inline int num_devices() {
    const char *const set = std::getenv("FAKE_CUDA_DEVICES");
    return set == nullptr ? 2 : std::atoi(set);
}

inline void *allocate(std::size_t nbytes, int device, const void *host) {
    diomp_offload_request const request{"cuda", device, device, static_cast<std::int64_t>(nbytes),
                                        host};
    return diomp_offload_table()->allocate(&request);
}

/// `target enter data map(alloc : ...)`. Null: the runtime has no room.
inline void *map(const void *host, std::size_t nbytes, int device) {
    void *const made = allocate(nbytes, device, host);
    if (made != nullptr) {
        std::lock_guard const guard(g_mutex);
        g_sections[{device, reinterpret_cast<std::uintptr_t>(host)}] = {nbytes,
                                                                        static_cast<char *>(made)};
    }
    return made;
}

inline void unmap(const void *host, int device) {
    void *gone = nullptr;
    {
        std::lock_guard const guard(g_mutex);
        auto const found = g_sections.find({device, reinterpret_cast<std::uintptr_t>(host)});
        gone = found->second.device;
        g_sections.erase(found);
    }
    diomp_offload_table()->release(device, gone);
}

/// `declare target` variables by host address. Their copies are in no segment.
struct declared_variable {
    std::size_t nbytes;
    const char *name;
};
inline std::map<std::uintptr_t, declared_variable> g_variables;
inline std::uint64_t g_num_declared = 0;

/// As if a library with this variable were loaded.
inline void declare(const void *host, std::size_t nbytes, const char *name) {
    std::lock_guard const guard(g_mutex);
    g_variables[reinterpret_cast<std::uintptr_t>(host)] = {nbytes, name};
    ++g_num_declared;
}

/// A kernel's work.
inline void copy(void *dst, const void *src, std::size_t nbytes) {
    static auto *const function = reinterpret_cast<void (*)(void *, const void *, std::size_t)>(
        ::dlsym(::dlopen(std::getenv("DIOMP_CUDA_LIBRARY"), RTLD_NOW), "fake_cuda_copy"));
    function(dst, src, nbytes);
}

template <typename T>
std::vector<T> read(const void *device_address, std::size_t count) {
    std::vector<T> values(count);
    copy(values.data(), device_address, count * sizeof(T));
    return values;
}

template <typename T>
void write(void *device_address, const std::vector<T> &values) {
    copy(device_address, values.data(), values.size() * sizeof(T));
}

template <typename Answer>
Answer ask_stand_in(const char *question) {
    void *const library = ::dlopen(std::getenv("DIOMP_CUDA_LIBRARY"), RTLD_NOW);
    return reinterpret_cast<Answer (*)()>(::dlsym(library, question))();
}
/// What broke the rules of CUDA so far.
inline const char *complaints() { return ask_stand_in<const char *>("fake_cuda_complaints"); }
/// Ranges of host memory that are pinned although CUDA has not allocated them.
inline int num_registered() { return ask_stand_in<int>("fake_cuda_num_registered"); }

} // namespace scripted
