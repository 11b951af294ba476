// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stand-in's rules: what is complained of, groups, and what becomes of their calls.
#include "device_coll/fake_nccl.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

namespace fake_nccl {

world &all() {
    static world *const only = new world; // never destroyed: may be called at the end
    return *only;
}

int complain(const char *function, const std::string &text, int code) {
    all().complaints += std::string(function) + ": " + text + "\n";
    return code;
}

const driver &devices() {
    static const driver only = [] {
        void *const library = ::dlopen(FAKE_DEVICES_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        auto const find = [library]<typename F>(F *&into, const std::string &name) {
            into = reinterpret_cast<F *>(
                library == nullptr ? nullptr : ::dlsym(library, (FAKE_DEVICES + name).c_str()));
            if (into == nullptr) {
                std::abort();
            }
        };
        driver found{};
        find(found.current, "_current");
        find(found.stream_device, "_stream_device");
        find(found.enqueue, "_enqueue");
        find(found.may_touch, "_may_touch");
        find(found.copy, "_copy");
        return found;
    }();
    return only;
}

std::string to_string(const request &of) {
    constexpr const char *names[] = {"broadcast",      "reduce", "all_reduce", "all_gather",
                                     "reduce_scatter", "send",   "receive"};
    return std::string(names[static_cast<int>(of.what)]) + " of " + std::to_string(of.count) +
           " of type " + std::to_string(of.type) + ", operator " + std::to_string(of.op) +
           ", peer " + std::to_string(of.peer);
}

group &open_group() {
    thread_local group only;
    return only;
}

int demanded(const std::string &function) {
    world &w = all();
    ++w.calls[function];
    int const code = w.demanded.of(function);
    if (code != 0) {
        w.last_error = function + " was told to fail";
    }
    return code;
}

int fail(int code) {
    if (open_group().depth > 0) {
        open_group().failure = code;
    }
    return code;
}

namespace {
bool same(const unique_id &a, const unique_id &b) {
    return std::memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}
} // namespace

std::vector<std::shared_ptr<communicator>> siblings(const unique_id &id) {
    std::vector<std::shared_ptr<communicator>> found;
    for (auto const &[address, each] : all().alive) {
        if (same(each->id, id)) {
            found.push_back(each);
        }
    }
    return found;
}

std::shared_ptr<communicator> find(const char *function, void *of) {
    auto const found = all().alive.find(static_cast<communicator *>(of));
    if (found == all().alive.end()) {
        complain(function, "no such communicator", 0);
        return nullptr;
    }
    return found->second;
}

namespace {

bool overlap(const void *a, std::size_t a_bytes, const void *b, std::size_t b_bytes) {
    auto const x = reinterpret_cast<std::uintptr_t>(a);
    auto const y = reinterpret_cast<std::uintptr_t>(b);
    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

/// Whether the buffers lie apart, or in place in the library's way.
bool well_placed(const request &what, const communicator &of) {
    std::size_t const block = what.count * size_of(what.type);
    std::size_t const every = block * static_cast<std::size_t>(of.count);
    auto const *const from = static_cast<const char *>(what.from);
    auto const *const to = static_cast<const char *>(what.to);
    std::size_t const own = block * static_cast<std::size_t>(of.rank);
    switch (what.what) {
    case kind::all_gather:
        return from == to + own || !overlap(from, block, to, every);
    case kind::reduce_scatter:
        return to == from + own || !overlap(from, every, to, block);
    case kind::reduce:
        return of.rank != what.peer || from == to || !overlap(from, block, to, block);
    default:
        return from == to || !overlap(from, block, to, block);
    }
}

bool reachable(const char *function, const void *where, const communicator &of) {
    if (where == nullptr) {
        return true;
    }
    if (devices().may_touch(of.device, where) == 0) {
        return false;
    }
    for (auto const &each : siblings(of.id)) {
        if (devices().may_touch(each->device, where) == 0 &&
            !is_set_to("FAKE_CUDA_PEERS", "none")) {
            complain(function, "a buffer is closed to another endpoint of the process", 0);
        }
    }
    return true;
}

int check_request(const char *function, const request &what, const communicator &of, void *stream) {
    if (!of.ready()) {
        return complain(function, "the communicator is not ready", invalid_usage);
    }
    if (what.count == 0) {
        return complain(function, "a count of zero", invalid_argument);
    }
    if (what.peer >= of.count || what.type < 0 || what.type > 9 || what.op < 0 || what.op > 4) {
        return complain(function, "peer, type or operator", invalid_argument);
    }
    if (devices().stream_device(stream) != of.device) {
        return complain(function, "the stream is of another device", invalid_usage);
    }
    if (open_group().depth == 0 && siblings(of.id).size() > 1) {
        complain(function, "several endpoints of the process, outside a group", 0);
    }
    if (!well_placed(what, of)) {
        complain(function, "buffers overlap", 0);
    }
    bool const open = reachable(function, what.from, of) && reachable(function, what.to, of);
    return open ? ok : unhandled_cuda_error;
}

} // namespace

int issue(const char *function, const request &what, void *in, void *stream) {
    std::lock_guard const guard(all().mutex);
    if (int const code = demanded(function)) {
        return fail(code);
    }
    auto const of = find(function, in);
    if (of == nullptr) {
        return fail(invalid_argument);
    }
    if (int const code = check_request(function, what, *of, stream)) {
        return fail(code);
    }
    auto made = std::make_shared<operation>();
    made->of = of;
    made->stream = stream;
    made->requests.push_back(what);
    open_group().issued.push_back(std::move(made));
    if (open_group().depth == 0) {
        return end_group();
    }
    return ok;
}

namespace {

/// Sends and receives of a communicator in one group are one operation.
std::vector<std::shared_ptr<operation>> fuse(std::vector<std::shared_ptr<operation>> issued) {
    std::vector<std::shared_ptr<operation>> fused;
    for (auto &each : issued) {
        auto const with = std::find_if(fused.begin(), fused.end(), [&](auto const &other) {
            return other->of == each->of && is_pairwise(other->requests.front().what) &&
                   is_pairwise(each->requests.front().what);
        });
        if (with == fused.end()) {
            fused.push_back(std::move(each));
        } else {
            (*with)->requests.push_back(each->requests.front());
        }
    }
    return fused;
}

/// In a group a buffer that is received into must not be sent from.
void check_pairs(const operation &of) {
    for (request const &a : of.requests) {
        for (request const &b : of.requests) {
            if (a.what == kind::receive && &a != &b &&
                overlap(a.to, a.count * size_of(a.type), b.what == kind::send ? b.from : b.to,
                        b.count * size_of(b.type))) {
                complain("ncclGroupEnd", "buffers of sends and receives overlap", 0);
                return;
            }
        }
    }
}

/// Every endpoint of the process must make a collective of the group.
void check_whole(const std::vector<std::shared_ptr<operation>> &issued) {
    auto const collectives = [&](const communicator &of) {
        return std::count_if(issued.begin(), issued.end(), [&](auto const &each) {
            return each->of.get() == &of && !is_pairwise(each->requests.front().what);
        });
    };
    for (auto const &each : issued) {
        for (auto const &sibling : siblings(each->of->id)) {
            if (collectives(*sibling) != collectives(*each->of)) {
                complain("ncclGroupEnd", "not all endpoints of the process are in the group", 0);
                return;
            }
        }
    }
}

} // namespace

int end_group() {
    group ended;
    std::swap(ended, open_group());
    if (!ended.fresh.empty() && !ended.issued.empty()) {
        return complain("ncclGroupEnd", "communicators are made beside calls", invalid_usage);
    }
    if (ended.failure != ok) {
        return ended.failure;
    }
    if (devices().current() < 0) {
        complain("ncclGroupEnd", "no device is current: one would be started", 0);
    }
    check_whole(ended.issued);
    for (auto &each : fuse(std::move(ended.issued))) {
        check_pairs(*each);
        each->of->questions = 0;
        each->of->held.push_back(each);
    }
    return in_progress;
}

namespace {
/// On the stream.
int ask(void *argument) {
    std::lock_guard const guard(all().mutex);
    return static_cast<operation *>(argument)->advance() ? 1 : 0;
}
} // namespace

void progress(const std::shared_ptr<communicator> &of) {
    bool const patient = ++of->questions < number_of("FAKE_NCCL_PATIENCE", 2);
    if (patient || (!of->connected && is_set_to("FAKE_NCCL_STALL", "connect"))) {
        return;
    }
    page &shared = of->where->shared();
    if (!of->connected) {
        if (shared.attached.load() < of->count) {
            return;
        }
        for (int i = 0; i < of->count; ++i) {
            if (i != of->rank && shared.members[i].device == of->device) {
                all().last_error = "Duplicate GPU detected";
                of->failure = invalid_usage;
                return;
            }
        }
        of->connected = true;
    }
    for (auto &each : of->held) {
        devices().enqueue(each->stream, ask, each.get());
        of->started.push_back(std::move(each));
    }
    of->held.clear();
}

bool has_work(const communicator &of) {
    return !of.held.empty() || std::any_of(of.started.begin(), of.started.end(),
                                           [](auto const &o) { return !o->complete.load(); });
}

void apply_async_failure(communicator &of) {
    const char *const set = std::getenv("FAKE_NCCL_ASYNC");
    const char *const rank = set == nullptr ? nullptr : std::strchr(set, '@');
    if (set != nullptr && of.failure == ok && has_work(of) &&
        (rank == nullptr || std::atoi(rank + 1) == of.rank)) {
        of.failure = std::atoi(set);
        all().last_error = "a link went down";
    }
}

void leave(const std::shared_ptr<communicator> &of) {
    static std::vector<std::shared_ptr<communicator>> &gone =
        *new std::vector<std::shared_ptr<communicator>>;
    of->aborted = true;
    of->held.clear();
    of->where.reset();
    gone.push_back(of);
    all().alive.erase(of.get());
}

} // namespace fake_nccl
