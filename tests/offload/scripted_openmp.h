// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stand-in for libomptarget with CUDA or HIP devices: it asks the runtime for memory as ours
// does, and answers the runtime's questions. The devices are those of tests/device/fake_cuda.h,
// whose memory the processor cannot touch, or with SCRIPTED_VENDOR=hip those of fake_hip.cpp; read
// and write touch it as a kernel would.
//
// The including program exports the functions (ENABLE_EXPORTS); DIOMP_CUDA_LIBRARY or
// DIOMP_HIP_LIBRARY says where the stand-in is.
#pragma once

#include "diomp.h"
#include "offload/table.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

extern "C" const diomp_offload_table *diomp_offload_table();

namespace scripted {

struct vendor {
    const char *plugin;   ///< LLVM's
    const char *library;  ///< variable with the stand-in's path
    const char *stand_in; ///< what the names of its own functions begin with
    const char *devices;  ///< variable with their number
    const char *failing;  ///< variable that lets calls fail
    const char *launch;   ///< the call that launches a kernel
};
/// Whose devices they are.
inline const vendor &used() {
    static constexpr vendor cuda{"cuda",           "DIOMP_CUDA_LIBRARY",
                                 "fake_cuda",      "FAKE_CUDA_DEVICES",
                                 "FAKE_CUDA_FAIL", "cuLaunchKernel"};
    static constexpr vendor hip{"amdgpu",           "DIOMP_HIP_LIBRARY", "fake_hip",
                                "FAKE_HIP_DEVICES", "FAKE_HIP_FAIL",     "hipModuleLaunchKernel"};
    static const char *const set = std::getenv("SCRIPTED_VENDOR");
    return set != nullptr && std::string(set) == "hip" ? hip : cuda;
}
/// A function of the stand-in: one of the vendor's, or with `name` "_..." one of its own.
template <typename Function>
Function *in_stand_in(const std::string &name) {
    static void *const library = ::dlopen(std::getenv(used().library), RTLD_NOW);
    return reinterpret_cast<Function *>(
        ::dlsym(library, name.front() == '_' ? (used().stand_in + name).c_str() : name.c_str()));
}

/// Mapped sections: (device, host address) to size and device address.
struct section {
    std::size_t nbytes;
    char *device;
};
inline std::mutex g_mutex;
inline std::map<std::pair<int, std::uintptr_t>, section> g_sections;

inline int num_devices() {
    const char *const set = std::getenv(used().devices);
    return set == nullptr ? 2 : std::atoi(set);
}

inline void *allocate(std::size_t nbytes, int device, const void *host) {
    diomp_offload_request const request{used().plugin, device, device,
                                        static_cast<std::int64_t>(nbytes), host};
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
    in_stand_in<void(void *, const void *, std::size_t)>("_copy")(dst, src, nbytes);
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
    return in_stand_in<Answer()>(question)();
}
/// What broke the vendor's rules so far.
inline const char *complaints() { return ask_stand_in<const char *>("_complaints"); }
/// Ranges of host memory that are pinned although the vendor's library has not allocated them.
inline int num_registered() { return ask_stand_in<int>("_num_registered"); }

/// Launches of kernels by this process, until fail_nothing.
inline void fail_launches() {
    ::setenv(used().failing, (std::string(used().launch) + "=700").c_str(), 1);
}
inline void fail_nothing() { ::unsetenv(used().failing); }

} // namespace scripted
