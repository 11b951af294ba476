// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/fake_hip.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fake_hip {

world &all() {
    static world *const only = new world; // never destroyed: may be called at the end
    return *only;
}
thread_local int current = 0;

int num_devices() { return stand_in::number_of("FAKE_HIP_DEVICES", 2); }

namespace {

std::size_t device_bytes() {
    return static_cast<std::size_t>(stand_in::number_of("FAKE_HIP_MEBIBYTES", 64)) << 20;
}
bool exists(int device) { return device >= 0 && device < num_devices(); }

} // namespace

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

namespace {

/// As far as it goes; true: nothing is left. Foreign work is asked without the mutex, since it
/// copies; a stream is used by one thread at a time.
bool carry_out(stream &of, std::unique_lock<std::mutex> &guard) {
    while (!of.pending.empty()) {
        work const next = of.pending.front();
        if (next.kernel) {
            if (next.kernel->runs->run == nullptr) {
                stand_in::run_updates(next.kernel->updates);
            } else {
                stand_in::run_threads(*next.kernel->runs, next.kernel->with,
                                      next.kernel->num_threads);
            }
        } else if (next.foreign != nullptr) {
            guard.unlock();
            int const complete = next.foreign(next.argument);
            guard.lock();
            if (complete == 0) {
                return false;
            }
        } else {
            bool const by_host = holding(next.dst) == nullptr || holding(next.src) == nullptr;
            all().host_bytes += by_host ? next.size : 0;
            std::memmove(next.dst, next.src, next.size);
        }
        of.pending.pop_front();
    }
    return true;
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
} // namespace fake_hip

using namespace fake_hip;

EXPORTED const char *fake_hip_complaints() { return all().complaints.c_str(); }
EXPORTED int fake_hip_alive() {
    return static_cast<int>(all().allocations.size() + all().host_allocations.size() +
                            all().registered.size() + all().streams.size() + all().modules.size());
}

/// Ranges of host memory that are pinned although HIP has not allocated them.
EXPORTED int fake_hip_num_registered() { return static_cast<int>(all().registered.size()); }
/// Copied by streams between devices and the host, so far.
EXPORTED std::size_t fake_hip_host_bytes() { return all().host_bytes; }
/// Kernels launched in this process.
EXPORTED int fake_hip_launches() { return all().launches; }
/// What a kernel would do.
EXPORTED void fake_hip_copy(void *dst, const void *src, std::size_t size) {
    std::memcpy(dst, src, size);
}

// For stand-ins of libraries above HIP.
/// The thread's device.
EXPORTED int fake_hip_current() { return current; }
/// -1: no stream.
EXPORTED int fake_hip_stream_device(void *of) {
    std::lock_guard const guard(all().mutex);
    auto *const asked = static_cast<stream *>(of);
    return all().streams.contains(asked) ? asked->device : -1;
}
EXPORTED int fake_hip_may_touch(int device, const void *where) {
    std::lock_guard const guard(all().mutex);
    return may_touch(device, where) ? 1 : 0;
}
EXPORTED int fake_hip_enqueue(void *on, work_function work, void *argument) {
    std::lock_guard const guard(all().mutex);
    auto *const of = static_cast<stream *>(on);
    if (!all().streams.contains(of)) {
        return complain(__func__, "no such stream", invalid_value);
    }
    of->pending.push_back({nullptr, nullptr, 0, {}, work, argument});
    of->questions = 0;
    return ok;
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
    *total_bytes = device_bytes();
    *free_bytes = device_bytes() - used_on(current);
    return ok;
}
EXPORTED int hipMalloc(void **base, std::size_t size) {
    FAKE_HIP_ENTER
    if (size == 0) {
        return complain(__func__, "nothing", invalid_value);
    }
    if (used_on(current) + size > device_bytes()) {
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
    return carry_out(*asked, guard) ? ok : not_ready;
}
#ifndef FAKE_HIP_LACKS_SYNCHRONIZE
EXPORTED int hipStreamSynchronize(void *of) {
    FAKE_HIP_ENTER
    while (!carry_out(*static_cast<stream *>(of), guard)) {
        guard.unlock();
        ::sched_yield();
        guard.lock();
    }
    return ok;
}
#endif
