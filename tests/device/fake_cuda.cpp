// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stand-in's devices, contexts and streams; its memory is in fake_cuda_memory.cpp.
#include "device/fake_cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>

namespace fake_cuda {

int protection() {
    return stand_in::is_set_to("FAKE_CUDA_LOADS", "any") ? PROT_READ | PROT_WRITE : PROT_NONE;
}

namespace {
/// Of the thread, the current one last. Without a destructor: the runtime ends after a thread's own
/// variables are gone.
class context_stack {
public:
    [[nodiscard]] bool empty() const { return depth_ == 0; }
    [[nodiscard]] std::size_t size() const { return depth_; }
    [[nodiscard]] device *back() const { return contexts_[depth_ - 1]; }
    void push_back(device *of) {
        if (depth_ == limit) {
            std::abort();
        }
        contexts_[depth_++] = of;
    }
    void pop_back() { --depth_; }

private:
    static constexpr std::size_t limit = 16;
    device *contexts_[limit];
    std::size_t depth_;
};
thread_local constinit context_stack contexts{};
} // namespace

world &all() {
    // Never destroyed: the runtime may call it at the end of the process.
    static world *const only = new world;
    return *only;
}

int complain(const char *function, const std::string &text, int code) {
    all().complaints += std::string(function) + ": " + text + "\n";
    if (stand_in::is_set_to("FAKE_CUDA_COMPLAINTS", "tell")) {
        std::fprintf(stderr, "fake_cuda: %s: %s\n", function, text.c_str());
    }
    return code;
}

int current_device(const char *function) {
    if (contexts.empty()) {
        complain(function, "no context is current", 0);
        return -1;
    }
    if (contexts.back()->retained == 0) {
        complain(function, "the current context is gone", 0);
        return -1;
    }
    return contexts.back()->number;
}

bool peers_exist() { return !stand_in::is_set_to("FAKE_CUDA_PEERS", "none"); }

namespace {

bool maps() { return !stand_in::is_set_to("FAKE_CUDA_VMM", "none"); }

bool exists(int device) { return device >= 0 && device < static_cast<int>(all().devices.size()); }

bool known(const char *function, stream *of) {
    if (!all().streams.contains(of)) {
        complain(function, "no such stream", 0);
        return false;
    }
    return true;
}

} // namespace

void stream::add(pending_item item) {
    if (captured) {
        captured->push_back(std::move(item));
        return;
    }
    pending.push_back(std::move(item));
    questions = 0;
}

namespace {
/// Carries the item out, or some of its work; false: it is not complete.
bool carry_out_item(const pending_item &item, std::unique_lock<std::mutex> &guard) {
    if (item.kernel) {
        carry_out(*item.kernel);
        return true;
    }
    if (item.until) { // all that a stream had is complete once it is gone
        return !all().streams.contains(item.until->of) ||
               carry_out(*item.until->of, guard, item.until->end);
    }
    if (item.work == nullptr && !item.call) {
        move_bytes(item.dst, item.src, item.size);
        bool const by_host = owner_of(item.dst) < 0 || owner_of(item.src) < 0;
        all().host_bytes += by_host ? item.size : 0;
        return true;
    }
    guard.unlock();
    bool complete = true;
    if (item.call) {
        carry_out(*item.call);
    } else {
        complete = item.work(item.argument) != 0;
    }
    guard.lock();
    return complete;
}
} // namespace

bool carry_out(stream &of, std::unique_lock<std::mutex> &guard, unsigned long long end) {
    while (!of.pending.empty() && of.num_complete < end) {
        if (of.is_busy) {
            return false;
        }
        pending_item const next = of.pending.front();
        of.is_busy = true;
        bool const complete = carry_out_item(next, guard);
        of.is_busy = false;
        if (!complete) {
            return false;
        }
        of.pending.pop_front();
        ++of.num_complete;
    }
    return true;
}

} // namespace fake_cuda

using namespace fake_cuda;

#define EXPORTED extern "C" __attribute__((visibility("default")))

/// What is against the rules so far; empty: nothing.
EXPORTED const char *fake_cuda_complaints() { return all().complaints.c_str(); }
/// The number of things that have not been given back.
EXPORTED int fake_cuda_alive() {
    world &w = all();
    std::size_t count = w.reservations.size() + w.mappings.size() + w.handles.size() +
                        w.allocations.size() + w.host_allocations.size() + w.registered.size() +
                        w.streams.size() + w.modules.size() + w.graphs.size() +
                        w.executables.size();
    for (device const &each : w.devices) {
        count += static_cast<std::size_t>(each.retained);
    }
    return static_cast<int>(count + contexts.size());
}
/// Ranges of others' host memory that are pinned now.
EXPORTED int fake_cuda_num_registered() { return static_cast<int>(all().registered.size()); }
/// Copied by streams between devices and the host, so far.
EXPORTED std::size_t fake_cuda_host_bytes() { return all().host_bytes; }
/// Which device of this process reads the address; for tests of access.
EXPORTED int fake_cuda_may_touch(int device, const void *where) {
    return may_touch(device, reinterpret_cast<device_address>(where), 1) ? 1 : 0;
}

/// What a kernel would do: the processor cannot.
EXPORTED void fake_cuda_copy(void *dst, const void *src, std::size_t size) {
    std::lock_guard const guard(all().mutex);
    move_bytes(reinterpret_cast<device_address>(dst), reinterpret_cast<device_address>(src), size);
}

/// For stand-ins of libraries above the driver. The device whose context is current; -1: none.
EXPORTED int fake_cuda_current() { return contexts.empty() ? -1 : contexts.back()->number; }
/// -1: no stream.
EXPORTED int fake_cuda_stream_device(void *of) {
    std::lock_guard const guard(all().mutex);
    auto *const asked = static_cast<stream *>(of);
    return all().streams.contains(asked) ? asked->device : -1;
}
EXPORTED int fake_cuda_enqueue(void *on, work_function work, void *argument) {
    std::lock_guard const guard(all().mutex);
    auto *const of = static_cast<stream *>(on);
    if (!known(__func__, of)) {
        return invalid_handle;
    }
    of->add({.work = work, .argument = argument});
    return ok;
}

EXPORTED int cuInit(unsigned flags) {
    FAKE_CUDA_ENTER
    int const count = stand_in::number_of("FAKE_CUDA_DEVICES", 2);
    if (flags != 0) {
        return complain(__func__, "flags must be 0", invalid_value);
    }
    if (count == 0) {
        return no_device;
    }
    world &w = all();
    for (int i = static_cast<int>(w.devices.size()); i < count; ++i) {
        w.devices.push_back({.number = i, .retained = 0, .reaches = {}});
    }
    w.initialised = true;
    return ok;
}

EXPORTED int cuGetErrorName(int code, const char **text) {
    *text = code == out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == no_device   ? "CUDA_ERROR_NO_DEVICE"
            : code < 900          ? "CUDA_ERROR_SOMETHING"
                                  : nullptr;
    return *text == nullptr ? invalid_value : ok;
}

EXPORTED int cuGetErrorString(int code, const char **text) {
    *text = code == out_of_memory ? "out of memory"
            : code == no_device   ? "no CUDA-capable device is detected"
            : code < 900          ? "something else"
                                  : nullptr;
    return *text == nullptr ? invalid_value : ok;
}

EXPORTED int cuDeviceGetCount(int *count) {
    FAKE_CUDA_ENTER
    *count = static_cast<int>(all().devices.size());
    return ok;
}

EXPORTED int cuDeviceGetName(char *text, int size, int device) {
    FAKE_CUDA_ENTER
    std::snprintf(text, static_cast<std::size_t>(size), "Stand-in %d", device);
    return exists(device) ? ok : invalid_device;
}

EXPORTED int cuDeviceGetUuid_v2(void *bytes, int device) {
    FAKE_CUDA_ENTER
    std::memset(bytes, 0x40 + device, 16);
    return exists(device) ? ok : invalid_device;
}

EXPORTED int cuDeviceTotalMem_v2(std::size_t *size, int device) {
    FAKE_CUDA_ENTER
    *size = device_bytes();
    return exists(device) ? ok : invalid_device;
}

EXPORTED int cuDeviceGetAttribute(int *value, int which, int device) {
    FAKE_CUDA_ENTER
    switch (which) {
    case 2:
    case 5:
    case 39:
        *value = 1024;
        break;
    case 8:
        *value = 49152;
        break;
    case 10:
        *value = 32;
        break;
    case 75:
        *value = 8;
        break;
    case 76:
        *value = 0;
        break;
    case 133:
        *value = std::getenv("FAKE_CUDA_MPS") != nullptr ? 1 : 0;
        break;
    case 16:
        *value = 7 + device;
        break;
    case 102:
    case 103:
        *value = maps() ? 1 : 0;
        break;
    case 41:
    case 110:
        *value = 1;
        break;
    default:
        return complain(__func__, "which attribute is " + std::to_string(which), invalid_value);
    }
    return exists(device) ? ok : invalid_device;
}

EXPORTED int cuDeviceGetPCIBusId(char *text, int size, int device) {
    FAKE_CUDA_ENTER
    std::snprintf(text, static_cast<std::size_t>(size), "FFFF:%02X:00.0", device);
    return exists(device) ? ok : invalid_device;
}

EXPORTED int cuDeviceCanAccessPeer(int *can, int device, int peer) {
    FAKE_CUDA_ENTER
    *can = peers_exist() && device != peer ? 1 : 0;
    return exists(device) && exists(peer) ? ok : invalid_device;
}

EXPORTED int cuDevicePrimaryCtxRetain(void **into, int device) {
    FAKE_CUDA_ENTER
    if (!exists(device)) {
        return invalid_device;
    }
    fake_cuda::device &of = all().devices[static_cast<std::size_t>(device)];
    ++of.retained;
    *into = &of;
    return ok;
}

EXPORTED int cuDevicePrimaryCtxRelease_v2(int device) {
    FAKE_CUDA_ENTER
    fake_cuda::device &of = all().devices[static_cast<std::size_t>(device)];
    if (of.retained == 0) {
        return complain(__func__, "released too often", invalid_context);
    }
    if (--of.retained == 0) {
        of.reaches.clear();
    }
    return ok;
}

EXPORTED int cuCtxPushCurrent_v2(void *context) {
    FAKE_CUDA_ENTER
    contexts.push_back(static_cast<fake_cuda::device *>(context));
    return ok;
}

EXPORTED int cuCtxSetCurrent(void *context) {
    FAKE_CUDA_ENTER
    if (!contexts.empty()) {
        contexts.pop_back();
    }
    if (context != nullptr) {
        contexts.push_back(static_cast<fake_cuda::device *>(context));
    }
    return ok;
}

EXPORTED int cuCtxPopCurrent_v2(void **was) {
    FAKE_CUDA_ENTER
    if (contexts.empty()) {
        return complain(__func__, "nothing to pop", invalid_context);
    }
    *was = contexts.back();
    contexts.pop_back();
    return ok;
}

EXPORTED int cuCtxEnablePeerAccess(void *peer, unsigned flags) {
    FAKE_CUDA_ENTER_CONTEXT
    int const other = static_cast<fake_cuda::device *>(peer)->number;
    if (flags != 0 || other == current) {
        return complain(__func__, "of itself, or with flags", invalid_value);
    }
    if (!peers_exist()) {
        return peer_access_unsupported;
    }
    bool const fresh =
        all().devices[static_cast<std::size_t>(current)].reaches.insert(other).second;
    return fresh ? ok : peer_access_already_enabled;
}

EXPORTED int cuStreamCreate(void **into, unsigned flags) {
    FAKE_CUDA_ENTER_CONTEXT
    if (flags != 1) {
        return complain(__func__, "a stream that meets in the default stream", invalid_value);
    }
    auto *const made = new stream;
    made->device = current;
    all().streams.insert(made);
    *into = made;
    return ok;
}

EXPORTED int cuStreamDestroy_v2(void *of) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const gone = static_cast<stream *>(of);
    if (!known(__func__, gone)) {
        return invalid_handle;
    }
    if (!gone->pending.empty() && all().demanded.empty()) {
        complain(__func__, "copies are under way", 0);
    }
    all().streams.erase(gone);
    delete gone;
    return ok;
}

EXPORTED int cuMemcpyAsync(device_address dst, device_address src, std::size_t size, void *on) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const of = static_cast<stream *>(on);
    if (!known(__func__, of)) {
        return invalid_handle;
    }
    if (of->device != current) {
        return complain(__func__, "the stream is of another context", invalid_handle);
    }
    // A program's mistake, not one of the runtime: no complaint.
    if (!may_touch(current, dst, size) || !may_touch(current, src, size)) {
        return invalid_value;
    }
    of->add({.dst = dst, .src = src, .size = size});
    return ok;
}

#ifndef FAKE_CUDA_LACKS_QUERY
EXPORTED int cuStreamQuery(void *of) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const asked = static_cast<stream *>(of);
    if (!known(__func__, asked)) {
        return invalid_handle;
    }
    if (int const refused = refuse_captured(__func__, *asked)) {
        return refused;
    }
    int const patience = stand_in::number_of("FAKE_CUDA_PATIENCE", 2);
    if (!asked->pending.empty() && ++asked->questions < patience) {
        return not_ready;
    }
    return carry_out(*asked, guard) ? ok : not_ready;
}
#endif

EXPORTED int cuStreamSynchronize(void *of) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const awaited = static_cast<stream *>(of);
    if (!known(__func__, awaited)) {
        return invalid_handle;
    }
    if (int const refused = refuse_captured(__func__, *awaited)) {
        return refused;
    }
    while (!carry_out(*awaited, guard)) {
        guard.unlock();
        ::sched_yield();
        guard.lock();
    }
    return ok;
}
