// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stand-in for HIP's runtime, after the pattern of fake_cuda.h and smaller: host memory stands
// for device memory, in memfds, so that an interprocess handle can open it. Copies are carried out
// at the second question or when somebody waits.
//
//     FAKE_HIP_DEVICES=n        number of devices, 2; 0: hipGetDeviceCount says so with an error
//     FAKE_HIP_VERSION=n        what hipRuntimeGetVersion says, 60100000
//     FAKE_HIP_FAIL=NAME[#N]=C  calls of NAME (the Nth only) return the code C
#include "support/stand_in.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

constexpr int ok = 0;
constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int no_device = 100;
constexpr int invalid_device = 101;
constexpr int not_ready = 600;
constexpr int already_enabled = 704;
constexpr std::size_t device_bytes = std::size_t{64} << 20;

struct allocation {
    std::size_t size;
    int fd;
    int device;
    bool opened;
};
struct copy {
    void *dst;
    const void *src;
    std::size_t size;
};
struct stream {
    int device;
    int questions;
    std::vector<copy> pending;
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
    std::set<std::pair<int, int>> reaches; ///< (device, peer)
    std::string complaints;
    stand_in::failure demanded{"FAKE_HIP_FAIL"};
};
world &all() {
    static world *const only = new world; // never destroyed: may be called at the end
    return *only;
}
thread_local int current = 0;

int num_devices() { return stand_in::number_of("FAKE_HIP_DEVICES", 2); }
bool exists(int device) { return device >= 0 && device < num_devices(); }

int complain(const char *function, const char *text, int code) {
    all().complaints += std::string(function) + ": " + text + "\n";
    return code;
}

allocation *holding(const void *where) {
    auto *const wanted = static_cast<char *>(const_cast<void *>(where));
    auto const after = all().allocations.upper_bound(wanted);
    if (after == all().allocations.begin()) {
        return nullptr;
    }
    auto const found = std::prev(after);
    return wanted < found->first + found->second.size ? &found->second : nullptr;
}

bool may_touch(int device, const void *where) {
    allocation const *const of = holding(where);
    return of == nullptr || of->opened || of->device == device ||
           all().reaches.contains({device, of->device});
}

void carry_out(stream &of) {
    for (copy const &each : of.pending) {
        std::memmove(each.dst, each.src, each.size);
    }
    of.pending.clear();
}

int give_back(const char *function, void *base, bool opened) {
    auto const found = all().allocations.find(static_cast<char *>(base));
    if (found == all().allocations.end() || found->second.opened != opened) {
        return complain(function, "no such memory", invalid_value);
    }
    ::munmap(base, found->second.size);
    ::close(found->second.fd);
    all().allocations.erase(found);
    return ok;
}

std::size_t used_on(int device) {
    std::size_t used = 0;
    for (auto const &[base, of] : all().allocations) {
        used += of.device == device && !of.opened ? of.size : 0;
    }
    return used;
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))
#define FAKE_HIP_ENTER                                                                             \
    std::lock_guard const guard(all().mutex);                                                      \
    if (int const demanded_ = all().demanded.of(__func__)) {                                       \
        return demanded_;                                                                          \
    }

EXPORTED const char *fake_hip_complaints() { return all().complaints.c_str(); }
EXPORTED int fake_hip_alive() {
    return static_cast<int>(all().allocations.size() + all().host_allocations.size() +
                            all().registered.size() + all().streams.size());
}

EXPORTED int hipRuntimeGetVersion(int *version) {
    FAKE_HIP_ENTER
    *version = stand_in::number_of("FAKE_HIP_VERSION", 60100000);
    return ok;
}
EXPORTED const char *hipGetErrorName(int code) {
    return code == out_of_memory ? "hipErrorOutOfMemory" : "hipErrorSomething";
}
EXPORTED const char *hipGetErrorString(int code) {
    return code == out_of_memory ? "out of memory" : "something else";
}
EXPORTED int hipGetDeviceCount(int *count) {
    FAKE_HIP_ENTER
    *count = num_devices();
    return *count == 0 ? no_device : ok;
}
EXPORTED int hipGetDevice(int *device) {
    FAKE_HIP_ENTER
    *device = current;
    return ok;
}
EXPORTED int hipSetDevice(int device) {
    FAKE_HIP_ENTER
    current = exists(device) ? device : current;
    return exists(device) ? ok : invalid_device;
}
EXPORTED int hipDeviceGetName(char *text, int size, int device) {
    FAKE_HIP_ENTER
    std::snprintf(text, static_cast<std::size_t>(size), "Stand-in %d", device);
    return exists(device) ? ok : invalid_device;
}
EXPORTED int hipDeviceGetUuid(void *bytes, int device) {
    FAKE_HIP_ENTER
    std::memset(bytes, 0x60 + device, 16);
    return exists(device) ? ok : invalid_device;
}
EXPORTED int hipDeviceGetAttribute(int *value, int which, int device) {
    FAKE_HIP_ENTER
    *value = 11 + device;
    return which == 63 && exists(device) ? ok : complain(__func__, "attribute", invalid_value);
}
EXPORTED int hipDeviceGetPCIBusId(char *text, int size, int device) {
    FAKE_HIP_ENTER
    std::snprintf(text, static_cast<std::size_t>(size), "ffff:%02x:00.0", device);
    return exists(device) ? ok : invalid_device;
}
EXPORTED int hipDeviceCanAccessPeer(int *can, int device, int peer) {
    FAKE_HIP_ENTER
    *can = device != peer ? 1 : 0;
    return exists(device) && exists(peer) ? ok : invalid_device;
}
EXPORTED int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
    FAKE_HIP_ENTER
    if (flags != 0 || peer == current || !exists(peer)) {
        return complain(__func__, "of itself, or with flags", invalid_value);
    }
    return all().reaches.insert({current, peer}).second ? ok : already_enabled;
}
EXPORTED int hipMemGetInfo(std::size_t *free_bytes, std::size_t *total_bytes) {
    FAKE_HIP_ENTER
    *total_bytes = device_bytes;
    *free_bytes = device_bytes - used_on(current);
    return ok;
}
EXPORTED int hipMalloc(void **base, std::size_t size) {
    FAKE_HIP_ENTER
    if (size == 0) {
        return complain(__func__, "nothing", invalid_value);
    }
    if (used_on(current) + size > device_bytes) {
        return out_of_memory;
    }
    int const fd = ::memfd_create("fake-hip", MFD_CLOEXEC);
    if (::ftruncate(fd, static_cast<off_t>(size)) != 0) {
        std::abort();
    }
    *base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    all().allocations[static_cast<char *>(*base)] = {size, fd, current, false};
    return ok;
}
EXPORTED int hipFree(void *base) {
    FAKE_HIP_ENTER
    return give_back(__func__, base, false);
}
EXPORTED int hipHostMalloc(void **base, std::size_t size, unsigned flags) {
    FAKE_HIP_ENTER
    if (flags != 1 || size == 0) {
        return complain(__func__, "size or flags", invalid_value);
    }
    *base = std::malloc(size);
    all().host_allocations[*base] = size;
    return ok;
}
EXPORTED int hipHostFree(void *base) {
    FAKE_HIP_ENTER
    if (all().host_allocations.erase(base) == 0) {
        return complain(__func__, "no such memory", invalid_value);
    }
    std::free(base);
    return ok;
}
EXPORTED int hipHostRegister(void *base, std::size_t size, unsigned flags) {
    FAKE_HIP_ENTER
    if (flags != 1 || size == 0 || !all().registered.insert(base).second) {
        return complain(__func__, "size, flags, or registered before", invalid_value);
    }
    return ok;
}
EXPORTED int hipHostUnregister(void *base) {
    FAKE_HIP_ENTER
    return all().registered.erase(base) == 1 ? ok
                                             : complain(__func__, "not registered", invalid_value);
}
EXPORTED int hipIpcGetMemHandle(token *into, void *base) {
    FAKE_HIP_ENTER
    auto const found = all().allocations.find(static_cast<char *>(base));
    if (found == all().allocations.end() || found->second.opened) {
        return complain(__func__, "no such memory", invalid_value);
    }
    words const text{::getpid(), found->second.fd, found->second.size};
    std::memset(into, 0, sizeof(*into));
    std::memcpy(into, &text, sizeof(text));
    return ok;
}
EXPORTED int hipIpcOpenMemHandle(void **base, token of, unsigned flags) {
    FAKE_HIP_ENTER
    words text{};
    std::memcpy(&text, &of, sizeof(text));
    if (flags != 1 || text.process == ::getpid()) {
        return complain(__func__, "flags, or opened by its owner", invalid_value);
    }
    std::string const path =
        "/proc/" + std::to_string(text.process) + "/fd/" + std::to_string(text.fd);
    int const fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return invalid_value;
    }
    *base = ::mmap(nullptr, text.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    all().allocations[static_cast<char *>(*base)] = {text.size, fd, current, true};
    return ok;
}
EXPORTED int hipIpcCloseMemHandle(void *base) {
    FAKE_HIP_ENTER
    return give_back(__func__, base, true);
}
EXPORTED int hipPointerGetAttribute(void *into, int which, void *where) {
    FAKE_HIP_ENTER
    allocation const *const of = holding(where);
    bool const pinned = all().host_allocations.contains(where) || all().registered.contains(where);
    if (of == nullptr && !pinned) {
        return invalid_value;
    }
    if (which == 2) {
        *static_cast<unsigned *>(into) = pinned ? 1 : 2;
    } else if (which == 9) {
        *static_cast<int *>(into) = pinned ? 0 : of->device;
    } else {
        return complain(__func__, "attribute", invalid_value);
    }
    return ok;
}
EXPORTED int hipStreamCreateWithFlags(void **into, unsigned flags) {
    FAKE_HIP_ENTER
    if (flags != 1) {
        return complain(__func__, "a stream that meets in the default stream", invalid_value);
    }
    *into = *all().streams.insert(new stream{current, 0, {}}).first;
    return ok;
}
EXPORTED int hipStreamDestroy(void *of) {
    FAKE_HIP_ENTER
    auto *const gone = static_cast<stream *>(of);
    if (all().streams.erase(gone) == 0) {
        return complain(__func__, "no such stream", invalid_value);
    }
    if (!gone->pending.empty()) {
        complain(__func__, "copies are under way", 0);
    }
    delete gone;
    return ok;
}
EXPORTED int hipMemcpyAsync(void *dst, const void *src, std::size_t size, int kind, void *on) {
    FAKE_HIP_ENTER
    auto *const of = static_cast<stream *>(on);
    if (kind != 4 || !all().streams.contains(of) || of->device != current) {
        return complain(__func__, "kind or stream", invalid_value);
    }
    if (!may_touch(current, dst) || !may_touch(current, src)) {
        return invalid_value;
    }
    of->pending.push_back({dst, src, size});
    of->questions = 0;
    return ok;
}
EXPORTED int hipStreamQuery(void *of) {
    FAKE_HIP_ENTER
    auto *const asked = static_cast<stream *>(of);
    if (!asked->pending.empty() && ++asked->questions < 2) {
        return not_ready;
    }
    carry_out(*asked);
    return ok;
}
#ifndef FAKE_HIP_LACKS_SYNCHRONIZE
EXPORTED int hipStreamSynchronize(void *of) {
    FAKE_HIP_ENTER
    carry_out(*static_cast<stream *>(of));
    return ok;
}
#endif
