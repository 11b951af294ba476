// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stand-in's older calls: cuMemAlloc with its interprocess handles, and pinned host memory.
#include "device/fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>

using namespace fake_cuda;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cuMemAlloc_v2(device_address *base, std::size_t size) {
    FAKE_CUDA_ENTER_CONTEXT
    if (used_on(current) + size > device_bytes()) {
        return out_of_memory;
    }
    physical const made = make_physical(current, size, false);
    void *const found = ::mmap(nullptr, size, protection(), MAP_SHARED, made.fd, 0);
    *base = reinterpret_cast<device_address>(found);
    all().allocations[*base] = {size, made, false};
    return ok;
}

namespace {
int give_back(const char *function, device_address base, bool opened) {
    auto const found = all().allocations.find(base);
    if (found == all().allocations.end() || found->second.opened != opened) {
        return complain(function, "no such memory", invalid_value);
    }
    ::munmap(pointer(base), found->second.size);
    ::close(found->second.of.fd);
    all().allocations.erase(found);
    return ok;
}
} // namespace

EXPORTED int cuMemFree_v2(device_address base) {
    FAKE_CUDA_ENTER_CONTEXT
    return give_back(__func__, base, false);
}

/// Of the owner's process and descriptor there.
struct ipc_words {
    std::uint64_t magic;
    int process;
    int fd;
};

EXPORTED int cuIpcGetMemHandle(token *into, device_address base) {
    FAKE_CUDA_ENTER_CONTEXT
    auto const found = all().allocations.find(base);
    if (found == all().allocations.end() || found->second.opened ||
        found->second.size % granularity != 0) {
        return complain(__func__, "no memory that is its own block", invalid_value);
    }
    ipc_words const words{magic, ::getpid(), found->second.of.fd};
    std::memset(into, 0, sizeof(*into));
    std::memcpy(into, &words, sizeof(words));
    return ok;
}

EXPORTED int cuIpcOpenMemHandle_v2(device_address *base, token of, unsigned flags) {
    FAKE_CUDA_ENTER_CONTEXT
    ipc_words words{};
    std::memcpy(&words, &of, sizeof(words));
    if (words.magic != magic || flags != 1) {
        return invalid_value;
    }
    if (words.process == ::getpid()) {
        return complain(__func__, "opened by its owner", invalid_context);
    }
    std::string const path =
        "/proc/" + std::to_string(words.process) + "/fd/" + std::to_string(words.fd);
    int const fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    physical const found = open_physical(fd);
    ::close(fd);
    void *const mapped = ::mmap(nullptr, found.size, protection(), MAP_SHARED, found.fd, 0);
    *base = reinterpret_cast<device_address>(mapped);
    all().allocations[*base] = {found.size, found, true};
    return ok;
}

EXPORTED int cuIpcCloseMemHandle(device_address base) {
    FAKE_CUDA_ENTER_CONTEXT
    return give_back(__func__, base, true);
}

EXPORTED int cuMemHostAlloc(void **base, std::size_t size, unsigned flags) {
    FAKE_CUDA_ENTER_CONTEXT
    if (flags != 1 || size == 0) {
        return complain(__func__, "size or flags", invalid_value);
    }
    *base = std::malloc(size);
    all().host_allocations[*base] = size;
    return ok;
}

EXPORTED int cuMemFreeHost(void *base) {
    FAKE_CUDA_ENTER_CONTEXT
    if (all().host_allocations.erase(base) == 0) {
        return complain(__func__, "no such memory", invalid_value);
    }
    std::free(base);
    return ok;
}

EXPORTED int cuMemHostRegister_v2(void *base, std::size_t size, unsigned flags) {
    FAKE_CUDA_ENTER_CONTEXT
    if (flags != 1 || size == 0 || base == nullptr) {
        return complain(__func__, "address, size or flags", invalid_value);
    }
    return all().registered.emplace(base, size).second ? ok : host_memory_already_registered;
}

EXPORTED int cuMemHostUnregister(void *base) {
    FAKE_CUDA_ENTER_CONTEXT
    return all().registered.erase(base) == 1
               ? ok
               : complain(__func__, "not registered", host_memory_not_registered);
}
