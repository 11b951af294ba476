// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stand-in's functions, as the library exports them.
#include "device_coll/fake_nccl.h"

#include <cstring>
#include <unistd.h>

using namespace fake_nccl;

#define EXPORTED extern "C" __attribute__((visibility("default")))
#define FAKE_NCCL_ENTER                                                                            \
    std::lock_guard const guard(all().mutex);                                                      \
    if (int const demanded_ = demanded(__func__)) {                                                \
        return fail(demanded_);                                                                    \
    }

/// What is against the rules so far; empty: nothing.
EXPORTED const char *fake_nccl_complaints() { return all().complaints.c_str(); }
EXPORTED void fake_nccl_forget() { all().complaints.clear(); }
/// Communicators that have not been given back.
EXPORTED int fake_nccl_alive() { return static_cast<int>(all().alive.size()); }
/// How often a function was called.
EXPORTED int fake_nccl_calls(const char *function) {
    std::lock_guard const guard(all().mutex);
    return all().calls[function];
}

EXPORTED int ncclGetVersion(int *version) {
    FAKE_NCCL_ENTER
    *version = number_of("FAKE_NCCL_VERSION", 23203);
    return ok;
}

EXPORTED const char *ncclGetErrorString(int code) {
    return code == invalid_usage          ? "invalid usage"
           : code == system_error         ? "unhandled system error"
           : code == unhandled_cuda_error ? "unhandled cuda error"
                                          : "some other error";
}

EXPORTED const char *ncclGetLastError(void * /*of*/) {
    thread_local std::string text;
    std::lock_guard const guard(all().mutex);
    text = all().last_error;
    return text.c_str();
}

EXPORTED int ncclGetUniqueId(unique_id *into) {
    FAKE_NCCL_ENTER
    std::memset(into, 0, sizeof(*into));
    std::string const text =
        "fake-nccl-" + std::to_string(::getpid()) + "-" + std::to_string(++all().ids);
    std::memcpy(into->bytes, text.data(), text.size());
    return ok;
}

EXPORTED int ncclCommInitRankConfig(void **into, int count, unique_id id, int rank,
                                    const config *chosen) {
    FAKE_NCCL_ENTER
    if (chosen->size < 20 || chosen->magic != 0xcafebeef || chosen->version < 21400 ||
        chosen->blocking != 0) {
        return fail(complain(__func__, "a configuration that blocks or is none", invalid_argument));
    }
    if (rank < 0 || rank >= count || count > most_ranks) {
        return fail(complain(__func__, "rank or count", invalid_argument));
    }
    int const device = devices().current();
    if (device < 0) {
        return fail(complain(__func__, "no device is current", unhandled_cuda_error));
    }
    if (open_group().depth == 0 && !siblings(id).empty()) {
        complain(__func__, "several endpoints of the process, outside a group", 0);
    }
    auto made = std::make_shared<communicator>();
    made->id = id;
    made->rank = rank;
    made->count = count;
    made->device = device;
    made->where = meeting::open(id, rank, device, count);
    if (made->where == nullptr) {
        all().last_error = "the unique id leads nowhere";
        return fail(invalid_argument);
    }
    *into = made.get();
    open_group().fresh.push_back(made);
    all().alive[made.get()] = made;
    return open_group().depth == 0 ? end_group() : ok;
}

EXPORTED int ncclCommGetAsyncError(void *comm, int *state) {
    FAKE_NCCL_ENTER
    auto const of = find(__func__, comm);
    if (of == nullptr) {
        return invalid_argument;
    }
    if (!of->ready() && of->failure == ok) {
        progress(of);
    }
    apply_async_failure(*of);
    *state = of->failure != ok ? of->failure : of->ready() ? ok : in_progress;
    return ok;
}

EXPORTED int ncclCommDestroy(void *comm) {
    FAKE_NCCL_ENTER
    auto const of = find(__func__, comm);
    if (of == nullptr) {
        return invalid_argument;
    }
    if (!of->ready() || has_work(*of)) {
        complain(__func__, "work is under way", 0);
    }
    if (devices().current() != of->device) {
        complain(__func__, "another device is current", 0);
    }
    leave(of);
    return ok;
}

#ifndef FAKE_NCCL_LACKS_ABORT
/// The communicator is gone, whatever it answers.
EXPORTED int ncclCommAbort(void *comm) {
    std::lock_guard const guard(all().mutex);
    int const code = demanded(__func__);
    auto const of = find(__func__, comm);
    if (of == nullptr) {
        return invalid_argument;
    }
    leave(of);
    return code;
}
#endif

EXPORTED int ncclGroupStart() {
    FAKE_NCCL_ENTER
    ++open_group().depth;
    return ok;
}

EXPORTED int ncclGroupEnd() {
    std::lock_guard const guard(all().mutex);
    if (open_group().depth == 0) {
        return complain(__func__, "no group is open", invalid_usage);
    }
    int const code = demanded(__func__);
    if (code != ok) {
        open_group().failure = code;
    }
    return --open_group().depth > 0 ? ok : end_group();
}

EXPORTED int ncclBroadcast(const void *from, void *to, std::size_t count, int type, int root,
                           void *in, void *on) {
    return issue(__func__, {kind::broadcast, from, to, count, type, 0, root}, in, on);
}
EXPORTED int ncclReduce(const void *from, void *to, std::size_t count, int type, int op, int root,
                        void *in, void *on) {
    return issue(__func__, {kind::reduce, from, to, count, type, op, root}, in, on);
}
EXPORTED int ncclAllReduce(const void *from, void *to, std::size_t count, int type, int op,
                           void *in, void *on) {
    return issue(__func__, {kind::all_reduce, from, to, count, type, op, -1}, in, on);
}
EXPORTED int ncclAllGather(const void *from, void *to, std::size_t count, int type, void *in,
                           void *on) {
    return issue(__func__, {kind::all_gather, from, to, count, type, 0, -1}, in, on);
}
EXPORTED int ncclReduceScatter(const void *from, void *to, std::size_t count, int type, int op,
                               void *in, void *on) {
    return issue(__func__, {kind::reduce_scatter, from, to, count, type, op, -1}, in, on);
}
EXPORTED int ncclSend(const void *from, std::size_t count, int type, int peer, void *in, void *on) {
    return issue(__func__, {kind::send, from, nullptr, count, type, 0, peer}, in, on);
}
EXPORTED int ncclRecv(void *to, std::size_t count, int type, int peer, void *in, void *on) {
    return issue(__func__, {kind::receive, nullptr, to, count, type, 0, peer}, in, on);
}
